package mockdrupal

import (
	"errors"
	"net"
	"sync"
	"time"
)

// gate is a listener that can be taken away for a while, so that connections are refused.
type gate struct {
	address    net.Addr
	keepAlives func(bool) // of the server: without them its idle connections end too

	mu       sync.Mutex
	listener net.Listener // nil while the gate is shut
	held     *hold        // the port while the gate is shut; nil where it could not be held
	closed   bool
	back     chan struct{} // closed when the listener is there again
}

func newGate(l net.Listener) *gate {
	return &gate{address: l.Addr(), listener: l, keepAlives: func(bool) {}}
}

// Accept waits through the times when the gate is shut.
func (g *gate) Accept() (net.Conn, error) {
	for {
		g.mu.Lock()
		listener, back, closed := g.listener, g.back, g.closed
		g.mu.Unlock()
		if closed {
			return nil, net.ErrClosed
		}
		if listener == nil {
			<-back
			continue
		}
		conn, err := listener.Accept()
		if err == nil || !errors.Is(err, net.ErrClosed) {
			return conn, err
		}
	}
}

// Close ends the listener for good.
func (g *gate) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	if g.listener != nil {
		return g.listener.Close()
	}
	if g.held != nil {
		g.held.release()
	}
	close(g.back)
	return nil
}

// Addr is the address that the gate guards.
func (g *gate) Addr() net.Addr { return g.address }

// shut refuses connections for the time given, then listens on the same address again.
func (g *gate) shut(d time.Duration) error {
	if err := g.close(); err != nil {
		return err
	}
	g.keepAlives(false) // not under the lock: a server that closes holds its own and asks for the gate's
	time.AfterFunc(d, g.open)
	return nil
}

func (g *gate) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.listener == nil {
		return errors.New("the mock is not listening")
	}
	err := g.listener.Close()
	g.listener, g.back = nil, make(chan struct{})
	if tcp, ok := g.address.(*net.TCPAddr); ok {
		g.held, _ = holdPort(tcp) // where it cannot be held, open asks for it anew
	}
	return err
}

// reopenPause is how long to wait when someone else has taken the port meanwhile.
const reopenPause = 20 * time.Millisecond

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.listener != nil {
		return
	}
	l, err := g.listen()
	if err != nil {
		time.AfterFunc(reopenPause, g.open)
		return
	}
	g.listener = l
	g.keepAlives(true)
	close(g.back)
}

func (g *gate) listen() (net.Listener, error) {
	if h := g.held; h != nil {
		g.held = nil
		return h.listen()
	}
	return net.Listen("tcp", g.address.String())
}

// isShut tells whether connections are refused now.
func (g *gate) isShut() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.listener == nil && !g.closed
}

// refuse shuts the gate of the server that this mock listens with; reopen ends it before its time.
func (d *Drupal) refuse(during time.Duration) (reopen func(), err error) {
	g := d.gate.Load()
	if g == nil {
		return nil, errors.New("refuse works on a mock started with Listen only: a bare handler has no port of its own")
	}
	return g.open, g.shut(during)
}
