// Package connections bounds the connections to a server, in total and for each client, and how slowly a client may
// read. It knows neither tools nor the site. A connection beyond the bounds gets one response, which says so, and is
// closed; its invariant is that whatever clients do, there are no more connections than the bounds and a few to refuse.
package connections

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
)

// Limits are the bounds.
type Limits struct {
	Total     int           // connections at one time
	PerClient int           // of one address
	WriteTime time.Duration // how long a client may take to accept each 64 KiB
}

// refusing is how many connections may be open beyond the bounds at one time, to say so; more are closed at once.
const refusing = 128

// chunk is how much a client has to accept at a time, in bytes.
const chunk = 64 << 10

// Handler serves connections of a listener that it bounds; those beyond the bounds get 503.
type Handler struct {
	Next   http.Handler
	Limits Limits
	// Exempt says which paths are served on any connection: an orchestrator must not take a busy server for a dead one.
	Exempt func(path string) bool
}

// refusal is what a connection beyond the bounds gets.
const refusal = `{"error":{"code":"overloaded","message":"Too many connections; come again soon."}}`

// ServeHTTP refuses a connection beyond the bounds, or goes on.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Context().Value(refusedKey{}) == nil {
		h.Next.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Connection", "close")
	if h.Exempt != nil && h.Exempt(r.URL.Path) {
		h.Next.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	io.WriteString(w, refusal) //nolint:errcheck // a client that left needs no response
}

type refusedKey struct{}

// Context is an http.Server's ConnContext: it marks connections that are beyond the bounds.
func Context(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if counted, ok := c.(*conn); ok && counted.refused {
		return context.WithValue(ctx, refusedKey{}, true)
	}
	return ctx
}

// Listener bounds what l accepts.
func (h *Handler) Listener(l net.Listener) net.Listener {
	return &listener{Listener: l, limits: h.Limits, clients: map[fair.Key]int{}}
}

type listener struct {
	net.Listener
	limits Limits

	mu      sync.Mutex
	total   int // within the bounds
	refused int // beyond them
	clients map[fair.Key]int
}

// Accept gives the next connection, within the bounds or marked as beyond them.
func (l *listener) Accept() (net.Conn, error) {
	fair.Yield() // a flood of connections is accepted no faster than they are served
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		counted, ok := l.count(c)
		if ok {
			return counted, nil
		}
		c.Close() //nolint:errcheck // it is given up
	}
}

// count takes a connection in; false: there are too many even to say so.
func (l *listener) count(c net.Conn) (*conn, bool) {
	remote, _ := netip.ParseAddrPort(c.RemoteAddr().String()) // one client, where there are no addresses
	client := fair.Network(remote.Addr())
	l.mu.Lock()
	defer l.mu.Unlock()
	counted := &conn{Conn: c, within: l.limits.WriteTime}
	if l.total < l.limits.Total && l.clients[client] < l.limits.PerClient {
		l.total++
		l.clients[client]++
		counted.release = sync.OnceFunc(func() { l.leave(client) })
		return counted, true
	}
	if l.refused == refusing {
		return nil, false
	}
	l.refused++
	counted.refused = true
	counted.release = sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.refused--
	})
	return counted, true
}

func (l *listener) leave(client fair.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.clients[client]--; l.clients[client] == 0 {
		delete(l.clients, client)
	}
}

// conn is a connection that is counted until it is closed, and that fails when its client does not read.
type conn struct {
	net.Conn
	refused  bool
	release  func()
	within   time.Duration
	extended atomic.Int64 // when the deadline was set last, Unix nanoseconds; 0: by another
}

// NetConn gives the connection that is counted.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Close gives the connection's place back.
func (c *conn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// Write sends b in parts each of which the client has to accept within the time.
func (c *conn) Write(b []byte) (n int, err error) {
	for {
		c.extend()
		m, err := c.Conn.Write(b[n:min(n+chunk, len(b))])
		if n += m; err != nil || n == len(b) {
			return n, err
		}
	}
}

// extend moves the deadline where it is a quarter of the time old: to move it for each small write costs too much.
func (c *conn) extend() {
	now := time.Now()
	if now.UnixNano()-c.extended.Load() < int64(c.within/4) {
		return
	}
	c.Conn.SetWriteDeadline(now.Add(c.within)) //nolint:errcheck // a connection that is closed says so when it is written to
	c.extended.Store(now.UnixNano())
}

// SetWriteDeadline sets a deadline until the next write. net/http takes it off after each request; the one for the next
// write stays.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	c.extended.Store(0)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline is SetWriteDeadline, and as much for reading.
func (c *conn) SetDeadline(t time.Time) error {
	c.extended.Store(0)
	return c.Conn.SetDeadline(t)
}
