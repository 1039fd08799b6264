package client

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// room is what the responses that this process holds take together, as bytes and as values: the bridge decides how long each
// is, and a check holds all of its own.
var room struct {
	mu        sync.Mutex
	taken     int64
	collected time.Time // when garbage was collected for want of room
}

const (
	uncounted = 16 << 10  // bytes of a response
	unlimited = 512 << 20 // bytes of all responses, where the process has no limit of memory
	waitsRoom = 2 * time.Second
)

// mostHeld is half of what the process may take, for as much again is garbage until it is collected.
func mostHeld() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit / 2
	}
	return unlimited
}

// hold counts bytes until the response is collected. It waits a moment until others are, and fails where they stay.
func (a *Response) hold(ctx context.Context, n int64) error {
	if n <= uncounted {
		return nil
	}
	most := mostHeld()
	for deadline := time.Now().Add(waitsRoom); ; time.Sleep(20 * time.Millisecond) {
		taken := take(n, most)
		if taken <= most {
			runtime.AddCleanup(a, give, n)
			return nil
		}
		if n > most || ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("the run holds at most %d MiB of responses, and this one would make it %d MiB", most>>20, taken>>20)
		}
	}
}

// take takes n bytes of room where they fit in most, and gives what is or would be taken. Where they do not fit garbage is
// collected, a few times a second at most.
func take(n, most int64) int64 {
	room.mu.Lock()
	defer room.mu.Unlock()
	if room.taken+n <= most {
		room.taken += n
		return room.taken
	}
	if time.Since(room.collected) > 200*time.Millisecond {
		runtime.GC()
		room.collected = time.Now()
	}
	return room.taken + n
}

func give(n int64) {
	room.mu.Lock()
	defer room.mu.Unlock()
	room.taken -= n
}

// headBytes is about what a head takes.
func headBytes(h http.Header) (n int64) {
	for name, values := range h {
		for _, value := range values {
			n += int64(len(name)+len(value)) + 64
		}
	}
	return n
}

// treeBytes is at most about what the values of a JSON document take: an object's first members take much.
func treeBytes(body []byte) int64 {
	n := 2 * int64(len(body))
	for _, c := range body {
		switch c {
		case '{':
			n += 320
		case '[', ',', ':':
			n += 48
		}
	}
	return n
}

// parse reads the body, and says of one that is cut at its Content-Length why that may be.
func (a *Response) parse() (any, error) {
	v, err := a.parseBody()
	if length := a.Header.Get("Content-Length"); err != nil && exact.CountsCharacters(a.Body, length) {
		return nil, fmt.Errorf("%s of %s: is that the number of its characters, not of its bytes?", exact.EndsInTheMiddle, length)
	}
	return v, err
}

// parseBody reads the body, unless the target has said the same before.
func (a *Response) parseBody() (any, error) {
	if a.Target == nil {
		return exact.Parse(a.Body)
	}
	if known, ok := a.documents.find(a.Body); ok {
		return known.value, known.err
	}
	takes := treeBytes(a.Body)
	if err := a.hold(context.Background(), takes); err != nil {
		return nil, unread{err}
	}
	v, err := exact.Parse(a.Body)
	a.documents.remember(a.Body, document{v, err}, takes)
	return v, err
}

// unread is why a body was not read as JSON at all.
type unread struct{ error }

// documents are the bodies that were read before: a bridge says the same again and again. What they hold is shared and
// never changed.
type documents struct {
	mu    sync.Mutex
	read  map[string]document
	takes int64
}

type document struct {
	value any
	err   error
}

const (
	maxRemembered    = 256 << 10 // bytes of a body worth remembering: huge ones come once
	maxAllRemembered = 8 << 20   // bytes of all, with their values; then they are forgotten
)

func (d *documents) find(body []byte) (document, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.read[string(body)]
	return known, ok
}

func (d *documents) remember(body []byte, read document, takes int64) {
	if len(body) > maxRemembered {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.takes += takes + int64(len(body)); d.read == nil || d.takes > maxAllRemembered {
		d.read, d.takes = map[string]document{}, takes+int64(len(body))
	}
	d.read[string(body)] = read
}
