package bridge

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/httpapi"
)

// Where descriptors run out, probes still get through: a few are kept for them.
const (
	spares    = 4
	spareTime = 500 * time.Millisecond // for a whole request on one of them
)

// spareListener accepts connections by spare descriptors where there are no others.
type spareListener struct {
	net.Listener

	mu    sync.Mutex
	files []*os.File
}

func keepSpares(l net.Listener) net.Listener {
	s := &spareListener{Listener: l}
	s.refill()
	return s
}

// refill takes descriptors until all spares are there, or none can be had.
func (l *spareListener) refill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.files) < spares {
		file, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		l.files = append(l.files, file)
	}
}

// release gives one spare descriptor back; false: there is none.
func (l *spareListener) release() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.files) == 0 {
		return false
	}
	last := len(l.files) - 1
	l.files[last].Close() //nolint:errcheck // nothing was written
	l.files = l.files[:last]
	return true
}

// Accept waits for the next connection.
func (l *spareListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) || !l.release() {
		return conn, err
	}
	if conn, err = l.Listener.Accept(); err != nil {
		l.refill()
		return nil, err
	}
	return &spareConn{Conn: conn, l: l, end: time.AfterFunc(spareTime, func() { conn.Close() })}, nil //nolint:errcheck // it is given up
}

// Close lets the spares go.
func (l *spareListener) Close() error {
	for l.release() {
	}
	return l.Listener.Close()
}

// spareConn is a connection for a probe.
type spareConn struct {
	net.Conn
	l   *spareListener
	end *time.Timer
}

// Close makes the descriptor a spare one again.
func (c *spareConn) Close() error {
	c.end.Stop()
	err := c.Conn.Close()
	c.l.refill()
	return err
}

// spareKey marks the context of requests on a spare descriptor.
type spareKey struct{}

func markSpare(ctx context.Context, c net.Conn) context.Context {
	for {
		if _, ok := c.(*spareConn); ok {
			return context.WithValue(ctx, spareKey{}, true)
		}
		outer, ok := c.(interface{ NetConn() net.Conn }) // TLS, or a connection that is counted
		if !ok {
			return ctx
		}
		c = outer.NetConn()
	}
}

// turnedAway refuses a request on a spare descriptor that is no probe.
func turnedAway(w http.ResponseWriter, r *http.Request) bool {
	if r.Context().Value(spareKey{}) == nil {
		return false
	}
	h := w.Header()
	h.Set("Connection", "close")
	if httpapi.IsProbe(r.URL.Path) {
		return false
	}
	h.Set("Content-Type", "application/json")
	h.Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	w.Write([]byte(`{"error":{"code":"overloaded","message":"The bridge has no free connection; retry in 1 s."}}`)) //nolint:errcheck // the caller went away
	return true
}
