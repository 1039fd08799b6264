//go:build unix

package replicas

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// balancer sends each request to the next replica. It repeats a request only where no connection opened, so that nothing of it
// was sent. A request that got no response gets 502 and in the header broken whether its replica had been killed.
type balancer struct {
	to     atomic.Pointer[[]*replica]
	next   atomic.Int64
	client *http.Client

	// Faults, for the test that the soak finds them.
	repeats bool                       // sends a request again whose connection broke
	spoil   atomic.Pointer[spoilation] // nil: responses go on as they are
}

// spoilation changes a response to a POST; nil: it is dropped.
type spoilation func([]byte) []byte

// The header of a 502 and its values.
const (
	broken   = "X-Broken"
	byKill   = "killed"
	untimely = "untimely"
)

func newBalancer() *balancer { return &balancer{client: client(30 * time.Second)} }

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	all := *b.to.Load()
	var p *process
	for range 2 * len(all) {
		p = all[int(b.next.Add(1))%len(all)].now.Load()
		var res *http.Response
		if res, err = b.send(r, p, body); err == nil {
			b.respond(w, r, res)
			return
		}
		dial := (*net.OpError)(nil)
		if !b.repeats && !(errors.As(err, &dial) && dial.Op == "dial") {
			break
		}
	}
	w.Header().Set(broken, untimely)
	if p.killed.Load() {
		w.Header().Set(broken, byKill)
	}
	w.WriteHeader(http.StatusBadGateway)
}

// send gives a response whose body was read.
func (b *balancer) send(r *http.Request, p *process, body []byte) (*http.Response, error) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, p.url+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out.Header = r.Header.Clone()
	out.GetBody = nil
	res, err := b.client.Do(out)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	read, err := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(read))
	return res, err
}

func (b *balancer) respond(w http.ResponseWriter, r *http.Request, res *http.Response) {
	body, _ := io.ReadAll(res.Body) // it is in memory
	if spoil := b.spoil.Load(); spoil != nil && r.Method == "POST" {
		if body = (*spoil)(body); body == nil {
			panic(http.ErrAbortHandler)
		}
	}
	for name, values := range res.Header {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(res.StatusCode)
	w.Write(body) //nolint:errcheck // the client has gone
}

// link carries connections to a server until it is cut. Then what is sent is lost, without a word to either side, as
// where packets are dropped.
type link struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func newLink(t testing.TB, to string) *link {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	l := &link{listener: listener, to: to}
	t.Cleanup(func() { listener.Close(); l.heal() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(conn)
		}
	}()
	return l
}

func (l *link) address() string { return l.listener.Addr().String() }

func (l *link) carry(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer far.Close()
	l.mu.Lock()
	l.conns = append(l.conns, near, far)
	l.mu.Unlock()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			defer func() { done <- struct{}{} }()
			io.Copy(&unlessCut{l, pair[0]}, pair[1]) //nolint:errcheck // it ends with either connection
		}()
	}
	<-done
}

// unlessCut drops what is written while the link is cut.
type unlessCut struct {
	link *link
	conn net.Conn
}

func (u *unlessCut) Write(b []byte) (int, error) {
	u.link.mu.Lock()
	cut := u.link.cut
	u.link.mu.Unlock()
	if cut {
		return len(b), nil
	}
	return u.conn.Write(b)
}

func (l *link) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
}

// heal carries what is sent from now on. Connections that lost something end.
func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}
