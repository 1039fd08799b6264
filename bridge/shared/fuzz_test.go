package shared

import (
	"bufio"
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/keys"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// Whatever an event holds, with or without a key, it is passed on once, and never as of this replica.
func FuzzEvent(f *testing.F) {
	ring := must.Get(keys.New([]string{"the events of the fuzzer are sealed by it"}, "test"))(f)
	f.Add([]byte(`{"kind":"changed","subject":"eA==","from":"other","number":1,"at":"`+time.Now().Format(time.RFC3339)+`"}`), true)
	f.Add([]byte(`{"kind":"ended","number":-1,"at":"x"}`), true)
	f.Fuzz(func(t *testing.T, event []byte, sealed bool) {
		h := &heard{}
		s := must.Get(New(Options{Address: "redis://127.0.0.1:1", Site: "x", Keys: ring, Logger: slog.New(slog.DiscardHandler), Handler: h}))(t)
		if sealed {
			event = ring.Seal(event, []byte("stream"))
		}
		s.hear(event, "stream")
		s.hear(event, "stream")
		must.Expect(t, h.events <= 1 && (h.events != 1 || sealed), "%q is heard %d times", event, h.events)
	})
}

type heard struct{ events int }

func (h *heard) Heard(Event)  { h.events++ }
func (h *heard) Reconnected() {}

// Whatever a store sends is read within the bounds or refused, and an address is read or refused.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{"+OK\r\n", "$3\r\nabc\r\n", "*2\r\n:1\r\n$-1\r\n", "$99999999999\r\n", "*2000000000\r\n", "*1\r\n*1\r\n*1\r\n", ":x\r\n", "-ERR no\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := small
		v, err := b.read(bufio.NewReader(bytes.NewReader(data)), 0)
		if err == nil && len(v.text) > small.bytes {
			t.Errorf("a reply of %d bytes is read, beyond %d", len(v.text), small.bytes)
		}
		_, _ = parseAddress(string(data)) // it may be anything
	})
}
