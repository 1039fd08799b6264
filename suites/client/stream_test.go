package client

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// A message that a bridge sends as an event is found whatever surrounds it.
func FuzzEvents(f *testing.F) {
	f.Add(": hello\nevent: message\nid: 1\n", "\r\n\r\ndata: {")
	f.Add("data:{\n\n", "data: x\n\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		Events([]byte(before + after))
		whole := before + after
		ends := eventEnds([]byte(whole), 0)
		if parts := len(Events([]byte(whole[:ends]))) + len(Events([]byte(whole[ends:]))); parts != len(Events([]byte(whole))) && !strings.Contains(whole, "\xef\xbb\xbf") {
			t.Errorf("%d messages of %q where it is read in two parts, at %d", parts, whole, ends)
		}
		stream := before + "\n\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"marker\":1}\n\n" + after
		found := 0
		for _, message := range Events([]byte(stream)) {
			if message["marker"] == json.Number("1") {
				found++
			}
		}
		must.Expect(t, found != 0 || strings.Contains(before, "data:"),
			"the message is not found in %q", stream) // an event that was not ended swallows the next
	})
}

// No Retry-After makes a run wait for a negative time.
func FuzzBusy(f *testing.F) {
	for _, s := range []string{"1", "-1", "9223372036854775807", "10000000000", "Wed, 21 Oct 2015 07:28:00 GMT", "soon"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, after string) {
		r := &Response{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {after}}}
		pause, busy := r.Busy()
		must.Expect(t, busy && pause >= 0, "%q: %s", after, pause)
	})
}

// A stream says with which id and after which pause it is resumed, also in an event that has no message.
func TestResumption(t *testing.T) {
	for _, c := range []struct {
		text, id string
		pause    time.Duration
		messages int
	}{
		{"id: 7\nretry: 250\ndata:\n\n", "7", 250 * time.Millisecond, 0},
		{"id: 7\ndata: {\"a\":1}\n\nid: 8\ndata: {\"a\":2}\n", "7", usualPause, 1}, // the second has not ended
		{"\xef\xbb\xbfid:7\r\n\r\nid\r\n\r\n", "", usualPause, 0},
		{"id: a\x00b\n\n: comment\n\n", "", usualPause, 0},
		{"retry: soon\ndata: {\"a\":1}\n\n", "", usualPause, 1},
	} {
		got := readStream([]byte(c.text))
		must.Expect(t, got.lastID == c.id && got.pause == c.pause && len(got.messages) == c.messages, "%q: got %+v", c.text, got)
	}
}
