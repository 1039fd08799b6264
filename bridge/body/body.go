// Package body reads bodies in bounded size, a request's also in bounded time, and writes responses to callers who read
// them in time, for both fronts. Memory is taken as bytes arrive, at most four times as many. A connection whose body
// did not arrive whole is closed after the response, since the start of its next request is unknown.
package body

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
)

// ErrTooLate says that a body did not arrive in time.
var ErrTooLate = errors.New("the body did not arrive in time")

// Free is how much of a body is read without asking for memory, in bytes: as much as a connection costs anyway.
const Free = 16 << 10

// Memory grants so many more bytes to hold a body, or returns an error where there are none left. A nil Memory has no bound.
type Memory interface{ Grow(bytes int64) error }

// Read returns the body of r, of at most longest bytes, that has to arrive within a time. Errors: *http.MaxBytesError,
// ErrTooLate, those of memory, and what the connection says.
func Read(w http.ResponseWriter, r *http.Request, longest int64, within time.Duration, memory Memory) ([]byte, error) {
	if r.ContentLength > longest {
		w.Header().Set("Connection", "close") // rather than read it all to get at the next request
		return nil, &http.MaxBytesError{Limit: longest}
	}
	late := &cutOff{w: w}
	timer := time.AfterFunc(within, late.fire)
	read, err := All(http.MaxBytesReader(w, r.Body, longest), r.ContentLength, memory)
	if !timer.Stop() {
		late.undo()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = ErrTooLate
	}
	var over *http.MaxBytesError
	if err != nil && !errors.As(err, &over) { // net/http closes by itself after too much
		w.Header().Set("Connection", "close")
	}
	return read, err
}

// All reads a body to its end. announced is its Content-Length, not positive where it has none to go by: with it
// no more is read than that. With an error it gives what came before.
func All(r io.Reader, announced int64, memory Memory) ([]byte, error) {
	if announced > 0 && announced <= Free {
		read := make([]byte, announced)
		n, err := io.ReadFull(r, read)
		return read[:n], err
	}
	read := make([]byte, 0, first(announced))
	for {
		if announced > 0 && int64(len(read)) == announced {
			return read, nil
		}
		if len(read) == cap(read) {
			larger, err := enlarged(read, announced, memory)
			if err != nil {
				return read, err
			}
			read = larger
		}
		n, err := r.Read(read[len(read):min(len(read)+chunk, cap(read))])
		read = read[:len(read)+n]
		if n == chunk {
			fair.EndTurn() // more is there: others get the processor first
		}
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF):
			return read, err
		case announced > 0 && int64(len(read)) < announced:
			return read, io.ErrUnexpectedEOF
		default:
			return read, nil
		}
	}
}

// maxDrained is how much of a refused request's body is read and dropped, in bytes.
const maxDrained = 64 << 20

// Drain reads what is left of the body of a request that was refused, and drops it, within a bound and a time. A connection
// that is closed while its client still sends is reset, and the reset destroys the response before a client, or a proxy in
// front, has read it (RFC 9112 section 9.6). It is called after the response is written.
func Drain(w http.ResponseWriter, r *http.Request, within time.Duration) {
	// What is short net/http reads by itself; a client that waits for 100 Continue has not sent anything.
	const short = 256 << 10
	if r.Body == nil || r.ContentLength >= 0 && r.ContentLength <= short || r.ProtoMajor != 1 || r.Header.Get("Expect") != "" {
		return
	}
	c := http.NewResponseController(w)
	if c.Flush() != nil || c.SetReadDeadline(time.Now().Add(within)) != nil {
		return
	}
	part := make([]byte, chunk)
	for dropped := 0; dropped < maxDrained; {
		n, err := r.Body.Read(part)
		if dropped += n; err != nil {
			return
		}
		fair.EndTurn()
	}
}

// first is how large the first buffer is: most bodies that announce nothing are small.
func first(announced int64) int {
	if announced > 0 {
		return Free
	}
	return 1 << 10
}

// enlarged is a copy of what was read with room for as much again, or for all that was announced once a quarter is there.
func enlarged(read []byte, announced int64, memory Memory) ([]byte, error) {
	size := 2 * cap(read)
	if announced > 0 && int64(cap(read)) >= announced/4 {
		size = int(announced)
	}
	if size > Free && memory != nil {
		if err := memory.Grow(int64(size - cap(read))); err != nil {
			return nil, err
		}
	}
	return append(make([]byte, 0, size), read...), nil
}

// cutOff makes reading a request fail when a time is over. Nearly every body is there already: a timer that never fires
// costs less than a deadline on the connection.
type cutOff struct {
	w http.ResponseWriter

	mu     sync.Mutex
	undone bool
}

func (c *cutOff) fire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.undone {
		http.NewResponseController(c.w).SetReadDeadline(time.Now()) //nolint:errcheck // without deadlines there is no cutting off
	}
}

// undo is for a timer that fired, or is about to, when reading has ended.
func (c *cutOff) undo() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.undone = true
	http.NewResponseController(c.w).SetReadDeadline(time.Time{}) //nolint:errcheck // see above
}

const (
	// chunk is how much of a body is read in one turn, and how much of a response a caller has to accept at a time.
	chunk = 64 << 10
	// small is what a connection takes whole, whether the caller reads or not: by Linux's default the first 16 KiB.
	small = 16 << 10
)

// Write sends the parts of a response one after the other. A caller who does not accept the next 64 KiB within a time is
// cut off: writing fails, and the request's context ends. What is left in the server's buffer at the end has as long.
// A small response has no deadline, for that would cost more than sending it.
func Write(w http.ResponseWriter, within time.Duration, parts ...[]byte) error {
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	if length > small {
		Extend(w, within)
	}
	for _, part := range parts {
		for len(part) > 0 {
			n, err := w.Write(part[:min(len(part), chunk)])
			if err != nil {
				return err
			}
			if part = part[n:]; n == chunk {
				Extend(w, within)
			}
		}
	}
	return nil
}

// Extend gives a caller so much time from now on to accept what is written.
func Extend(w http.ResponseWriter, within time.Duration) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(within)) //nolint:errcheck // see cutOff
}
