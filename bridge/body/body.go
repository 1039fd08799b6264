// Package body reads bodies in bounded size, a request's also in bounded time, and writes answers to callers who read
// them in time, for both fronts. A connection whose body did not arrive whole is closed after the answer: nobody knows
// where its next request would begin.
package body

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// ErrTooLate says that a body did not arrive in time.
var ErrTooLate = errors.New("the body did not arrive in time")

// Read gives the body of r, of at most longest bytes, that has to arrive within a time. Errors: *http.MaxBytesError,
// ErrTooLate, and what the connection says.
func Read(w http.ResponseWriter, r *http.Request, longest int64, within time.Duration) ([]byte, error) {
	if r.ContentLength > longest {
		w.Header().Set("Connection", "close") // rather than read it all to get at the next request
		return nil, &http.MaxBytesError{Limit: longest}
	}
	late := &cutOff{w: w}
	timer := time.AfterFunc(within, late.fire)
	read, err := All(http.MaxBytesReader(w, r.Body, longest), r.ContentLength)
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
// no more is read than that, into no more memory. With an error it gives what came before.
func All(r io.Reader, announced int64) ([]byte, error) {
	if announced <= 0 {
		return io.ReadAll(r)
	}
	read := make([]byte, announced)
	n, err := io.ReadFull(r, read)
	return read[:n], err
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
	// chunk is how much of an answer a caller has to accept at a time.
	chunk = 64 << 10
	// small is what a connection takes whole, whether the caller reads or not: by Linux's default the first 16 KiB.
	small = 16 << 10
)

// Write sends the parts of an answer one after the other. A caller who does not accept the next 64 KiB within a time is
// cut off: writing fails, and the request's context ends. What is left in the server's buffer at the end has as long.
// A small answer has no deadline, for that would cost more than sending it.
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
