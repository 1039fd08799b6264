// Package inmemory connects two ends in one process without the kernel, which a test that sends thousands of requests
// spends much of its time in. It is for requests: who tests the connection itself connects by TCP.
//
// Invariant: what was written is read, in its order, before the end of the connection.
package inmemory

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// buffered bounds what one end has written and the other not read, in bytes; as a kernel does, it lets a writer go on that
// nobody reads from yet.
const buffered = 256 << 10

// Listener accepts the connections that Dial makes. It is a net.Listener.
type Listener struct {
	addr    net.Addr
	backlog chan net.Conn
	closed  chan struct{}
	close   sync.Once
	dialled atomic.Int64
}

// Listen makes a listener with the address of another.
func Listen(addr net.Addr) *Listener {
	return &Listener{addr: addr, backlog: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for the next connection; after Close the error is net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.backlog:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial. Connections stay open.
func (l *Listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

// Addr is the address that was given to Listen.
func (l *Listener) Addr() net.Addr { return l.addr }

// Dial makes a connection from a port of its own of 127.0.0.1. The error is that of ctx, or net.ErrClosed.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1 + int(l.dialled.Add(1)-1)%65535}
	ours, theirs := newPipe(), newPipe()
	select {
	case l.backlog <- &conn{in: theirs, out: ours, local: l.addr, remote: from}:
		return &conn{in: ours, out: theirs, local: from, remote: l.addr}, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// DialContext connects to the address of the listener by Dial while it is open, and to all else by TCP. It is for
// http.Transport.DialContext.
func (l *Listener) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if address == l.addr.String() {
		if conn, err := l.Dial(ctx); !errors.Is(err, net.ErrClosed) {
			return conn, err
		}
	}
	return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, address)
}

// conn is one end of a connection.
type conn struct {
	in, out       *pipe
	local, remote net.Addr
	resets        atomic.Bool // Close is a reset
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.take(b)
	if err == errReset { //nolint:errorlint // it is not wrapped
		err = &net.OpError{Op: "read", Net: c.remote.Network(), Source: c.local, Addr: c.remote, Err: err}
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) { return c.out.put(b) }
func (c *conn) LocalAddr() net.Addr         { return c.local }
func (c *conn) RemoteAddr() net.Addr        { return c.remote }

// Close ends both directions: the other end reads what was written, then io.EOF. After SetLinger(0) it reads nothing more, and
// ECONNRESET.
func (c *conn) Close() error {
	c.in.change(func(p *pipe) { p.unread, p.buf, p.taken = true, nil, 0 })
	c.out.change(func(p *pipe) { p.ended, p.reset = true, p.reset || c.resets.Load() && !p.ended })
	return nil
}

// CloseWrite ends the direction to the other end, as that of net.TCPConn does.
func (c *conn) CloseWrite() error {
	c.out.change(func(p *pipe) { p.ended = true })
	return nil
}

// SetLinger is that of net.TCPConn, of which 0 alone has a meaning here.
func (c *conn) SetLinger(seconds int) error {
	c.resets.Store(seconds == 0)
	return nil
}

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.reader.set(c.in, t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.writer.set(c.out, t)
	return nil
}

// pipe is one direction of a connection.
type pipe struct {
	mu             sync.Mutex
	changed        sync.Cond
	buf            []byte // what was written; it keeps its memory
	taken          int    // how much of buf was read
	ended          bool   // the writer has closed
	reset          bool   // by the writer, so that nothing more is read
	unread         bool   // the reader has closed
	reader, writer deadline
}

var errReset = os.NewSyscallError("read", syscall.ECONNRESET)

func newPipe() *pipe {
	p := &pipe{}
	p.changed.L = &p.mu
	return p
}

func (p *pipe) change(by func(*pipe)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	by(p)
	p.changed.Broadcast()
}

func (p *pipe) take(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.unread:
			return 0, net.ErrClosed
		case p.reset:
			return 0, errReset
		case p.reader.passed:
			return 0, os.ErrDeadlineExceeded
		case len(p.buf) > p.taken || len(b) == 0:
			n := copy(b, p.buf[p.taken:])
			if p.taken += n; p.taken == len(p.buf) {
				p.buf, p.taken = p.buf[:0], 0
			}
			p.changed.Broadcast()
			return n, nil
		case p.ended:
			return 0, io.EOF
		}
		p.changed.Wait()
	}
}

func (p *pipe) put(b []byte) (written int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.ended:
			return written, net.ErrClosed
		case p.writer.passed:
			return written, os.ErrDeadlineExceeded
		case p.unread:
			return written, io.ErrClosedPipe
		}
		n := min(len(b), buffered-(len(p.buf)-p.taken))
		if n > cap(p.buf)-len(p.buf) {
			p.buf, p.taken = p.buf[:copy(p.buf, p.buf[p.taken:])], 0
		}
		p.buf = append(p.buf, b[:n]...)
		written, b = written+n, b[n:]
		if n > 0 {
			p.changed.Broadcast()
		}
		if len(b) == 0 {
			return written, nil
		}
		p.changed.Wait()
	}
}

// deadline ends the reads or the writes of a pipe, whose lock it shares.
type deadline struct {
	passed bool
	timer  *time.Timer
	since  int // how often it was set: a timer that was stopped too late belongs to an earlier one
}

func (d *deadline) set(p *pipe, t time.Time) {
	p.change(func(p *pipe) {
		if d.timer != nil {
			d.timer.Stop()
			d.timer = nil
		}
		d.since++
		wait := time.Until(t)
		if d.passed = !t.IsZero() && wait <= 0; t.IsZero() || d.passed {
			return
		}
		set := d.since
		d.timer = time.AfterFunc(wait, func() { p.change(func(*pipe) { d.passed = d.passed || d.since == set }) })
	})
}
