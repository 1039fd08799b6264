// Package port is a TCP listener that can be taken away for a while and comes back on the same address: connections are
// refused, or time out. It is for faults that a site's responses cannot show. It knows nothing of HTTP beyond the states
// that an http.Server reports to Watch.
//
// Its invariant: while the port is shut no other process can take it (where the system allows that), and every shutting ends:
// by its time, by Open or by Close.
package port

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Port is the listener.
type Port struct {
	// KeepAlives switches the server's keep-alives: without them its idle connections end too. Set it before serving.
	KeepAlives func(bool)

	address net.Addr

	mu       sync.Mutex
	listener net.Listener // nil while the port is shut
	held     *hold        // the address while the port is shut; nil where it could not be held
	waiting  []net.Conn   // our own, that fill the queue of a port that accepts nothing
	reopens  *time.Timer
	reopened func() // to be called when the port opens again
	closed   bool
	back     chan struct{}     // closed when the listener is there again
	unused   map[net.Conn]bool // the connections, and whether no request is under way there
}

// Listen opens a port on an address ("127.0.0.1:0" picks one). It fails when the address is taken.
func Listen(address string) (*Port, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Port{address: l.Addr(), listener: l, KeepAlives: func(bool) {}, unused: map[net.Conn]bool{}}, nil
}

// Watch is for http.Server.ConnState: the port learns on which connections no request is under way.
func (p *Port) Watch(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(p.unused, conn)
	default:
		p.unused[conn] = state != http.StateActive
	}
}

// Accept waits until a client connects, through the times when the port is shut.
func (p *Port) Accept() (net.Conn, error) {
	for {
		p.mu.Lock()
		listener, back, closed := p.listener, p.back, p.closed
		p.mu.Unlock()
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
func (p *Port) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	if p.listener != nil {
		return p.listener.Close()
	}
	if p.held != nil {
		p.held.release()
	}
	p.leaveQueue()
	close(p.back)
	return nil
}

// Addr is the port's address.
func (p *Port) Addr() net.Addr { return p.address }

// Refuse refuses connections for the time given, then listens on the same address again and calls reopened.
func (p *Port) Refuse(d time.Duration, reopened func()) error {
	if err := p.shut(reopened); err != nil {
		return err
	}
	p.endUnused()
	p.openIn(d)
	return nil
}

// Ignore lets connecting clients time out for the time given: nothing accepts connections, and the queue of those that
// wait is full. Then the port opens again and calls reopened. It fails where the system does not allow
// it.
func (p *Port) Ignore(d time.Duration, reopened func()) error {
	if err := p.shut(reopened); err != nil {
		return err
	}
	var ended sync.WaitGroup
	ended.Go(p.endUnused)
	err := p.fillQueue()
	ended.Wait()
	if err != nil {
		p.Open()
		return fmt.Errorf("ignoring connections: %w", err)
	}
	p.openIn(d)
	return nil
}

// How a queue is filled: connections that we open, at most, and how long one may take before the queue counts as full.
const (
	fillers    = 1024
	fillerTime = 150 * time.Millisecond
)

// fillQueue fills the queue of connections that wait to be accepted, so that later clients time out. It fails where
// connections are accepted without end. It is not called under the lock, which the server needs to go on meanwhile.
func (p *Port) fillQueue() error {
	if err := p.queue(); err != nil {
		return err
	}
	for filled := 0; filled < fillers; {
		opened := make(chan error)
		for range 2 { // one alone may be late because the machine is busy
			go func() { opened <- p.fill() }()
		}
		late, failed := 0, error(nil)
		for range 2 {
			err := <-opened
			var timeout net.Error
			switch {
			case err == nil:
				filled++
			case errors.As(err, &timeout) && timeout.Timeout():
				late++
			default:
				failed = err
			}
		}
		if failed != nil {
			return failed
		}
		if late == 2 {
			return nil
		}
	}
	return fmt.Errorf("the system accepted %d connections that nothing waits for", fillers)
}

// queue makes the port one that has a short queue and accepts nothing.
func (p *Port) queue() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		return errors.New("this system does not let the mock hold its port")
	}
	return p.held.queue()
}

// fill puts a connection into the queue.
func (p *Port) fill() error {
	conn, err := net.DialTimeout("tcp", p.address.String(), fillerTime)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.closed {
		conn.Close()
		return errors.New("the port was opened meanwhile")
	}
	p.waiting = append(p.waiting, conn)
	return nil
}

// leaveQueue takes our own connections out of the queue.
func (p *Port) leaveQueue() {
	for _, conn := range p.waiting {
		conn.Close()
	}
	p.waiting = nil
}

// How long clients may take to see that a connection ends. One that has not seen it sends its next request into the end, and
// takes that for a site that fails.
const (
	noticeTime = 300 * time.Millisecond
	usedTime   = 100 * time.Millisecond // after which a connection that is still used will not end now: its request takes long
)

// endUnused ends the connections that no request is under way on, so that clients have to connect again, and waits until
// the clients have ended them too. It is not called under the lock: a server that closes connections holds its own and asks
// for the port's.
func (p *Port) endUnused() {
	last := time.Now() // that a connection was there which no request is under way on
	for until := last.Add(noticeTime); time.Now().Before(until) && time.Since(last) < usedTime; time.Sleep(time.Millisecond) {
		unused, used := p.connections()
		if len(unused)+used == 0 {
			break
		}
		if len(unused) > 0 {
			last = time.Now()
		}
		for _, conn := range unused {
			if c, ok := conn.(interface{ CloseWrite() error }); ok {
				_ = c.CloseWrite() // what fails is gone
			}
		}
	}
	p.KeepAlives(false)
	unused, _ := p.connections()
	for _, conn := range unused {
		conn.Close() // an error changes nothing: the connection is to be gone
	}
}

// connections are those without a request under way, and how many have one, or had one a moment ago.
func (p *Port) connections() (unused []net.Conn, used int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn, is := range p.unused {
		if is {
			unused = append(unused, conn)
		} else {
			used++
		}
	}
	return unused, used
}

func (p *Port) openIn(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reopens = time.AfterFunc(d, p.Open)
}

func (p *Port) shut(reopened func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.listener == nil {
		return errors.New("the port is shut already")
	}
	err := p.listener.Close()
	p.listener, p.back, p.reopened = nil, make(chan struct{}), reopened
	if tcp, ok := p.address.(*net.TCPAddr); ok {
		p.held, _ = holdPort(tcp) // where it cannot be held, Open asks for it again
	}
	return err
}

// retryPause is how long to wait when another process has taken the port meanwhile.
const retryPause = 20 * time.Millisecond

// Open ends Refuse and Ignore before their time. On a port that is open it does nothing.
func (p *Port) Open() {
	if reopened := p.open(); reopened != nil {
		reopened()
	}
}

func (p *Port) open() (reopened func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reopens != nil {
		p.reopens.Stop() // else it would end a later fault before its time
	}
	if p.closed || p.listener != nil {
		return nil
	}
	l, err := p.listen()
	if err != nil {
		p.reopens = time.AfterFunc(retryPause, p.Open)
		return nil
	}
	p.leaveQueue()
	p.listener = l
	p.KeepAlives(true)
	close(p.back)
	return p.reopened
}

func (p *Port) listen() (net.Listener, error) {
	if h := p.held; h != nil {
		p.held = nil
		return h.listen()
	}
	return net.Listen("tcp", p.address.String())
}

// IsShut reports whether the port accepts no connections now. A nil port is open.
func (p *Port) IsShut() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listener == nil && !p.closed
}
