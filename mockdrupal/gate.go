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

	// keepAlive lets go of the connections that no request uses while the gate is shut, or allows them again.
	keepAlive func(bool)

	mu       sync.Mutex
	listener net.Listener
	closed   bool
	back     chan struct{} // closed when the listener is there again
}

func newGate(l net.Listener) *gate {
	return &gate{address: l.Addr(), listener: l, keepAlive: func(bool) {}}
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
	if g.listener == nil {
		close(g.back)
		return nil
	}
	return g.listener.Close()
}

// Addr is the address that the gate guards.
func (g *gate) Addr() net.Addr { return g.address }

// shut refuses connections for the time given, then listens on the same address again.
func (g *gate) shut(d time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.listener == nil {
		return errors.New("the mock is not listening")
	}
	err := g.listener.Close()
	g.keepAlives(false)
	g.listener, g.back = nil, make(chan struct{})
	g.keepAlive(false)
	time.AfterFunc(d, g.open)
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
	l, err := net.Listen("tcp", g.address.String())
	if err != nil {
		time.AfterFunc(reopenPause, g.open)
		return
	}
	g.listener = l
	g.keepAlives(true)
	close(g.back)
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
