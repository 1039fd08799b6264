package mockdrupal

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// delivery is an answer on its way to the wire, and the fault that acts on it.
type delivery struct {
	w       http.ResponseWriter
	x       *exchange
	fault   *armedFault
	answer  *Answer // nil when the fault keeps the site from answering
	handled bool    // the fault wrote to the wire, or dropped the connection, itself
}

// serve routes, reads and answers a request, with the fault that was armed for it.
func (d *Drupal) serve(w http.ResponseWriter, x *exchange) {
	rt, vars := d.find(x)
	x.begun(rt, vars)
	v := &delivery{w: w, x: x}
	if d.gate.Load().isShut() { // a connection from before
		v.reset()
		return
	}
	if v.fault = d.faults.take(x, rt, true); v.fault == nil {
		if err := x.readBody(); err != nil {
			return // the caller went away
		}
		v.fault = d.faults.take(x, rt, false)
	}
	if v.fault != nil {
		x.note(func(e *Entry) { e.Fault = v.fault.Kind })
		kind := faultKinds[v.fault.Kind]
		if v.fault.Kind == FaultStale {
			x.state = v.fault.stale
		}
		if kind.runs || v.fault.Run {
			v.answer = x.dispatch(rt, vars)
		}
		if !x.aborted {
			kind.act(v)
		}
	} else {
		v.answer = x.dispatch(rt, vars)
	}
	if v.handled || x.aborted || v.answer == nil {
		return
	}
	v.write()
}

// write sends the answer as it is.
func (v *delivery) write() {
	if v.x.verb == http.MethodHead && v.x.r.Method != http.MethodHead { // by an override
		v.answer.body = nil
	}
	v.head()
	if v.x.r.Method != http.MethodHead {
		v.body(v.answer.body)
	}
}

// head sends status and headers.
func (v *delivery) head() {
	h := v.w.Header()
	for name, values := range v.answer.header {
		h[name] = values
	}
	if v.answer.status != http.StatusNoContent && h.Get("Content-Length") == "" && h.Get("Transfer-Encoding") == "" {
		h.Set("Content-Length", strconv.Itoa(len(v.answer.body)))
	}
	v.x.note(func(e *Entry) { e.Status = v.answer.status })
	v.w.WriteHeader(v.answer.status)
}

// body sends some bytes of the body and counts them.
func (v *delivery) body(b []byte) {
	n, _ := v.w.Write(b) // a caller who went away is no one's fault
	v.x.note(func(e *Entry) { e.BytesOut += int64(n) })
}

func (v *delivery) flush() { _ = http.NewResponseController(v.w).Flush() }

// pause waits until the time is over, the fault is disarmed or the caller goes away; false when the caller did. A zero
// time waits without end.
func (v *delivery) pause(d time.Duration) bool {
	var timeout <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-timeout:
		return true
	case <-v.fault.disarmed:
		return true
	case <-v.x.r.Context().Done():
		return false
	}
}

// drop ends the connection. What was written may have reached the caller.
func (v *delivery) drop() {
	v.handled = true
	conn, _, err := v.hijack()
	if err != nil {
		v.x.d.journal.finish(v.x.entry, time.Now())
		panic(http.ErrAbortHandler) // HTTP/2, or headers are out: the server ends the stream
	}
	conn.Close()
}

// reset ends the connection with a TCP reset.
func (v *delivery) reset() {
	v.hangUp(func(conn net.Conn) {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	})
}

// close ends the connection as a worker that died does: the caller reads its end, and no error.
func (v *delivery) close() { v.hangUp(func(net.Conn) {}) }

func (v *delivery) hangUp(before func(net.Conn)) {
	v.handled = true
	conn, _, err := v.hijack()
	if err != nil {
		v.drop()
		return
	}
	before(conn)
	conn.Close()
}

func (v *delivery) hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(v.w).Hijack()
}

// raw writes the answer onto the connection past net/http, with the Content-Length it is told, and closes it.
func (v *delivery) raw(contentLength int) {
	v.handled = true
	conn, rw, err := v.hijack()
	if err != nil {
		v.drop()
		return
	}
	defer conn.Close()
	header := v.answer.header.Clone()
	header.Set("Content-Length", strconv.Itoa(contentLength))
	header.Set("Connection", "close")
	fmt.Fprintf(rw, "HTTP/1.1 %d %s\r\n", v.answer.status, http.StatusText(v.answer.status))
	_ = header.Write(rw)
	_, _ = rw.WriteString("\r\n")
	n, _ := rw.Write(v.answer.body)
	_ = rw.Flush() // a caller who went away is no one's fault
	v.x.note(func(e *Entry) { e.Status, e.BytesOut = v.answer.status, int64(n) })
}

// Server is a mock that listens on an address.
type Server struct {
	*Drupal
	URL string // http://host:port

	http *http.Server
	gate *gate
	done chan error
}

// Listen starts the mock on an address ("127.0.0.1:0" picks a port). It fails when the address cannot be had.
func (d *Drupal) Listen(address string) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("the mock cannot listen on %s: %w", address, err)
	}
	s := &Server{Drupal: d, URL: "http://" + listener.Addr().String(), gate: newGate(listener), done: make(chan error, 1)}
	s.http = &http.Server{Handler: d, ConnContext: d.ConnContext, ReadHeaderTimeout: time.Minute}
	s.gate.keepAlives, s.http.ConnState = s.http.SetKeepAlivesEnabled, s.gate.watch
	d.gate.Store(s.gate)
	go func() {
		s.done <- s.http.Serve(s.gate)
		close(s.done)
	}()
	return s, nil
}

// Close ends the server and its connections; hanging requests end with them.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}

// Shutdown ends the server once the requests under way have been answered, or with ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.DisarmAll()
	err := s.http.Shutdown(ctx)
	<-s.done
	return err
}
