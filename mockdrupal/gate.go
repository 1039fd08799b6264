package mockdrupal

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// gate is a listener that can be taken away for a while, so that connections are refused, or hear nothing.
type gate struct {
	address    net.Addr
	keepAlives func(bool) // of the server: without them its idle connections end too

	mu       sync.Mutex
	listener net.Listener // nil while the gate is shut
	held     *hold        // the port while the gate is shut; nil where it could not be held
	waiting  []net.Conn   // our own, that fill the queue of a gate that hears nothing
	reopens  *time.Timer
	closed   bool
	back     chan struct{}         // closed when the listener is there again
	unused   map[net.Conn]struct{} // connections without a request under way
}

func newGate(l net.Listener) *gate {
	return &gate{address: l.Addr(), listener: l, keepAlives: func(bool) {}, unused: map[net.Conn]struct{}{}}
}

// watch is for http.Server.ConnState: the gate knows the connections that nothing is under way on.
func (g *gate) watch(conn net.Conn, state http.ConnState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch state {
	case http.StateNew, http.StateIdle:
		g.unused[conn] = struct{}{}
	default:
		delete(g.unused, conn)
	}
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
	g.leaveQueue()
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
	g.hangUp()
	g.openIn(d)
	return nil
}

// deafen leaves who connects without an answer for the time given: nobody takes the connections, and the queue of those
// that wait for it is full. Then the gate opens again.
func (g *gate) deafen(d time.Duration) error {
	if err := g.close(); err != nil {
		return err
	}
	g.hangUp()
	if err := g.fillQueue(); err != nil {
		g.open()
		return fmt.Errorf("leaving who connects without an answer: %w", err)
	}
	g.openIn(d)
	return nil
}

// fillQueue fills the queue of connections that wait to be taken.
func (g *gate) fillQueue() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == nil {
		return errors.New("this system does not let the mock hold its port")
	}
	var err error
	g.waiting, err = g.held.fill(g.address.String())
	return err
}

// leaveQueue takes our own connections out of the queue.
func (g *gate) leaveQueue() {
	for _, conn := range g.waiting {
		conn.Close()
	}
	g.waiting = nil
}

// hangUp ends the connections that nothing is under way on, so that callers have to connect anew. It is not called under
// the lock: a server that closes connections holds its own and asks for the gate's.
func (g *gate) hangUp() {
	g.keepAlives(false)
	g.mu.Lock()
	unused := slices.Collect(maps.Keys(g.unused))
	g.mu.Unlock()
	for _, conn := range unused {
		conn.Close() // what it fails with does not matter: it is to be gone
	}
}

func (g *gate) openIn(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reopens = time.AfterFunc(d, g.open)
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
	if g.reopens != nil {
		g.reopens.Stop() // else it would end a later fault before its time
	}
	if g.closed || g.listener != nil {
		return
	}
	l, err := g.listen()
	if err != nil {
		g.reopens = time.AfterFunc(reopenPause, g.open)
		return
	}
	g.leaveQueue()
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

// deafen leaves who connects to the server that this mock listens with without an answer; hear ends it before its time.
func (d *Drupal) deafen(during time.Duration) (hear func(), err error) {
	g := d.gate.Load()
	if g == nil {
		return nil, errors.New("deaf works on a mock started with Listen only: a bare handler has no port of its own")
	}
	return g.open, g.deafen(during)
}
