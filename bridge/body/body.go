// Package body reads a request's body in bounded size and time, for both fronts. A connection whose body did not arrive
// whole is closed after the answer: nobody knows where its next request would begin.
package body

import (
	"bytes"
	"errors"
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
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	stop := cutOff(http.NewResponseController(w), within)
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, longest))
	stop()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = ErrTooLate
	}
	var over *http.MaxBytesError
	if err != nil && !errors.As(err, &over) { // net/http closes by itself after too much
		w.Header().Set("Connection", "close")
	}
	return buf.Bytes(), err
}

// cutOff makes reading fail when a time is over, unless stop is called before. Nearly every body is there already: a
// timer that never fires costs less than a deadline on the connection.
func cutOff(rc *http.ResponseController, within time.Duration) (stop func()) {
	var mu sync.Mutex
	stopped := false
	timer := time.AfterFunc(within, func() {
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			rc.SetReadDeadline(time.Now()) //nolint:errcheck // without deadlines there is no cutting off
		}
	})
	return func() {
		if timer.Stop() {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		rc.SetReadDeadline(time.Time{}) //nolint:errcheck // see above
	}
}
