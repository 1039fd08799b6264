package port

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// A client with connections in its pool sees that they have ended before the port is shut: its first request after that
// finds no listener, and its first request to the open port is served.
func TestClientsNoticeThatThePortIsShut(t *testing.T) {
	p := must.Get(Listen("127.0.0.1:0"))(t)
	server := &http.Server{ConnState: p.Watch, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })}
	p.KeepAlives = server.SetKeepAlivesEnabled
	go server.Serve(p)
	defer server.Close()

	var open atomic.Int32
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		return &counted{Conn: conn, open: &open}, nil
	}}}
	post := func() error {
		r, err := client.Post("http://"+p.Addr().String(), "text/plain", strings.NewReader("x"))
		if err != nil {
			return err
		}
		defer r.Body.Close()
		_, err = io.Copy(io.Discard, r.Body)
		return err
	}
	for range 50 {
		if err := post(); err != nil || open.Load() == 0 {
			t.Fatalf("%v, with %d connections", err, open.Load())
		}
		must.Do(t, p.Refuse(time.Minute, nil))
		if n := open.Load(); n != 0 {
			t.Fatalf("the client has %d connections to the port that is shut", n)
		}
		if err := post(); err == nil {
			t.Fatal("the port that is shut serves a request")
		}
		p.Open()
		must.Do(t, post())
	}
}

// counted notes when the client closes it, and reads slowly, as on a busy machine.
type counted struct {
	net.Conn
	open   *atomic.Int32
	closed atomic.Bool
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		time.Sleep(10 * time.Millisecond)
	}
	return n, err
}

func (c *counted) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}
