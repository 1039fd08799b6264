package inmemory_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/bridgecheck/bridgecheck/internal/inmemory"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

func listen() *inmemory.Listener {
	return inmemory.Listen(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80})
}

// What every net.Conn has to do, by the tests that the Go project has for them.
func TestConnectionsAreThoseOfNet(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		l := listen()
		accepted := make(chan net.Conn, 1)
		go func() {
			c, _ := l.Accept()
			accepted <- c
		}()
		c1, err = l.Dial(context.Background())
		c2 = <-accepted
		return c1, c2, func() { c1.Close(); c2.Close(); l.Close() }, err
	})
}

func TestHTTP(t *testing.T) {
	l := listen()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		must.Expect(t, err == nil, "%v", err)
		io.WriteString(w, r.RemoteAddr+" "+string(body))
	})}
	go server.Serve(l)
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx) }}}
	long := strings.Repeat("x", 3<<20)
	for range 3 { // on one connection
		res := must.Get(client.Post("http://bridge.example/", "text/plain", strings.NewReader(long)))(t)
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if want := "127.0.0.1:1 " + long; string(got) != want || err != nil {
			t.Fatalf("%d bytes of response that begin with %.20q, %v; want %d that begin with %.20q", len(got), got, err, len(want), want)
		}
	}
	server.Close()
	_, err := l.Dial(context.Background())
	must.Expect(t, errors.Is(err, net.ErrClosed), "dial after the end: %v, want %v", err, net.ErrClosed)
	_, err = client.Get("http://bridge.example/")
	must.Expect(t, err != nil, "a request after the end of the server got a response")
}

// A connection that nobody accepts ends with its context.
func TestDialEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := listen().Dial(ctx)
	must.Expect(t, errors.Is(err, context.Canceled), "dial: %v, want %v", err, context.Canceled)
}
