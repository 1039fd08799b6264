// Package connections bounds the connections to a server, in total and for each client, and how slowly a client may
// read. It knows neither tools nor the site. A connection beyond the bounds gets one response, which says so, and is
// closed. Invariants: there are never more connections than the bounds and a few to refuse, and a connection whose first
// request head is not complete holds no place that another needs, so that probes are served whatever clients do.
package connections

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
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

// refusing is how many connections may be open beyond the bounds at one time, to say so.
const refusing = 128

// patience is how long a new connection keeps its place without a whole request head where another client needs the place.
const patience = 250 * time.Millisecond

// chunk is how much a client has to accept at a time, in bytes.
const chunk = 64 << 10

// Handler serves connections of a listener that it bounds; those beyond the bounds get 503.
type Handler struct {
	Next   http.Handler
	Limits Limits
	// Exempt says which paths are served on any connection: an orchestrator must not restart a server that is only busy.
	Exempt func(path string) bool
}

// refusal is what a connection beyond the bounds gets.
const refusal = `{"error":{"code":"overloaded","message":"Too many connections; retry in 1 s."}}`

// ServeHTTP refuses a connection beyond the bounds, or goes on.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(connKey{}).(*conn)
	if c != nil {
		c.served()
	}
	if c == nil || !c.refused {
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

type connKey struct{}

// Context is an http.Server's ConnContext: by it the handler finds the connection of a request.
func Context(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if counted, ok := c.(*conn); ok {
		return context.WithValue(ctx, connKey{}, counted)
	}
	return ctx
}

// Listener bounds what l accepts.
func (h *Handler) Listener(l net.Listener) net.Listener {
	return &listener{Listener: l, limits: h.Limits, clients: map[fair.Key]*client{}}
}

type listener struct {
	net.Listener
	limits Limits

	mu      sync.Mutex
	total   int // within the bounds
	refused int // beyond them
	clients map[fair.Key]*client
}

// client is an address with open connections.
type client struct {
	within, refused int
	waiting         [2][]*conn // whose first request head is not complete, the oldest first: within the bounds, and refused
}

// pool is the index of a connection's list among those that wait.
func (c *conn) pool() int {
	if c.refused {
		return 1
	}
	return 0
}

// Accept returns the next connection, within the bounds or marked as beyond them.
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

// count adds a connection; false: there are too many even for a refusal. Where there is no place, one that waits for its
// first request head makes room.
func (l *listener) count(c net.Conn) (*conn, bool) {
	remote, _ := netip.ParseAddrPort(c.RemoteAddr().String()) // one client, where there are no addresses
	counted := &conn{Conn: c, l: l, client: fair.Network(remote.Addr()), within: l.limits.WriteTime, since: time.Now()}
	l.mu.Lock()
	own := l.clients[counted.client]
	if own == nil {
		own = &client{}
		l.clients[counted.client] = own
	}
	var evicted *conn
	switch {
	case own.within >= l.limits.PerClient:
		evicted = own.oldest(0, patience)
		counted.refused = evicted == nil
	case l.total >= l.limits.Total:
		evicted = l.largest(0).oldest(0, patience)
		counted.refused = evicted == nil
	}
	if counted.refused && l.refused >= refusing {
		if evicted = l.largest(1).oldest(1, 0); evicted == nil {
			l.tidy(counted.client)
			l.mu.Unlock()
			return nil, false
		}
	}
	if evicted != nil {
		l.forget(evicted)
	}
	if counted.refused {
		l.refused++
		own.refused++
	} else {
		l.total++
		own.within++
	}
	l.clients[counted.client] = own // which the eviction may have taken out
	own.waiting[counted.pool()] = append(own.waiting[counted.pool()], counted)
	l.mu.Unlock()
	if evicted != nil {
		evicted.Conn.Close() //nolint:errcheck // it is given up
	}
	return counted, true
}

// largest is the client with the most connections in a pool that wait; the listener is locked.
func (l *listener) largest(pool int) *client {
	most := &client{}
	for _, c := range l.clients {
		if len(c.waiting[pool]) > len(most.waiting[pool]) {
			most = c
		}
	}
	return most
}

// oldest is the connection that has waited longest in a pool, if that is long enough.
func (c *client) oldest(pool int, atLeast time.Duration) *conn {
	if list := c.waiting[pool]; len(list) > 0 && time.Since(list[0].since) >= atLeast {
		return list[0]
	}
	return nil
}

// forget gives the place of a connection back, once; the listener is locked.
func (l *listener) forget(c *conn) {
	if c.left {
		return
	}
	c.left = true
	l.arrived(c)
	own := l.clients[c.client]
	if c.refused {
		l.refused--
		own.refused--
	} else {
		l.total--
		own.within--
	}
	l.tidy(c.client)
}

// arrived takes a connection out of those that wait for a request head; the listener is locked. It is mostly among the newest.
func (l *listener) arrived(c *conn) {
	own := l.clients[c.client]
	if own == nil {
		return
	}
	list := own.waiting[c.pool()]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] == c {
			own.waiting[c.pool()] = slices.Delete(list, i, i+1)
			return
		}
	}
}

// tidy drops a client without connections; the listener is locked.
func (l *listener) tidy(key fair.Key) {
	if c := l.clients[key]; c != nil && c.within == 0 && c.refused == 0 {
		delete(l.clients, key)
	}
}

// conn is a connection that is counted until it is closed, and that fails when its client does not read.
type conn struct {
	net.Conn
	l        *listener
	client   fair.Key
	refused  bool
	left     bool      // its place is given back; guarded by the listener
	since    time.Time // when it was accepted
	asked    atomic.Bool
	within   time.Duration
	extended atomic.Int64 // when the deadline was set last, nanoseconds of the connection; 0: by another
}

// served notes that a whole request head has come.
func (c *conn) served() {
	if c.asked.Load() || c.asked.Swap(true) {
		return
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.l.arrived(c)
}

// NetConn returns the underlying connection.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Close gives the connection's place back.
func (c *conn) Close() error {
	c.l.mu.Lock()
	c.l.forget(c)
	c.l.mu.Unlock()
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
	now := time.Since(c.since)
	if last := c.extended.Load(); last != 0 && now-time.Duration(last) < c.within/4 {
		return
	}
	c.Conn.SetWriteDeadline(time.Now().Add(c.within)) //nolint:errcheck // a connection that is closed says so when it is written to
	c.extended.Store(int64(now))
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
