package recorder

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
)

// countingListener accepts connections that count what they take.
type countingListener struct {
	net.Listener
	peers *peers
}

// Accept waits until a client connects.
func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countingConn{Conn: conn, record: l.peers.next(conn)}, nil
}

// countingConn counts the bytes that the operating system took for the client. It is a connection that port.Port can end where
// the client sees it.
type countingConn struct {
	net.Conn
	record *journal.Conn
}

// Write sends bytes and counts them.
func (c *countingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.record.Took(n)
	return n, err
}

// SetLinger makes Close reset the connection, where the connection can do so.
func (c *countingConn) SetLinger(seconds int) error {
	if c, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		return c.SetLinger(seconds)
	}
	return nil
}

// CloseWrite ends what the client reads, where the connection can do so.
func (c *countingConn) CloseWrite() error {
	if c, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// peers numbers the connections that requests arrive on.
type peers struct {
	last    atomic.Int64
	byPeer  sync.Map // remote address → *journal.Conn, where the server does not set ConnContext
	entries atomic.Int64
}

func (p *peers) next(conn net.Conn) *journal.Conn {
	return &journal.Conn{Number: p.last.Add(1), Net: conn}
}

type connKey struct{}

// ConnContext is for http.Server.ConnContext: with it the journal numbers connections exactly. Without it a connection
// is known by its peer's address.
func (r *Recorder) ConnContext(ctx context.Context, conn net.Conn) context.Context {
	if counting, ok := conn.(*countingConn); ok {
		return context.WithValue(ctx, connKey{}, counting.record)
	}
	return context.WithValue(ctx, connKey{}, r.peers.next(nil))
}

// maxPeers bounds what is kept of peers; beyond it the table starts again.
const maxPeers = 65536

func (r *Recorder) connection(req *http.Request) *journal.Conn {
	if c, ok := req.Context().Value(connKey{}).(*journal.Conn); ok {
		return c
	}
	p := &r.peers
	if c, ok := p.byPeer.Load(req.RemoteAddr); ok {
		return c.(*journal.Conn)
	}
	if p.entries.Add(1) > maxPeers {
		p.byPeer.Clear()
		p.entries.Store(1)
	}
	c, _ := p.byPeer.LoadOrStore(req.RemoteAddr, p.next(nil))
	return c.(*journal.Conn)
}
