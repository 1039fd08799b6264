package inmemory_test

import (
	"context"
	"errors"
	"net"
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

// A connection that nobody accepts ends with its context, and there is none to a listener that is closed.
func TestDialEnds(t *testing.T) {
	l := listen()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := l.Dial(ctx)
	must.Expect(t, errors.Is(err, context.Canceled), "dial: %v, want %v", err, context.Canceled)
	l.Close()
	_, err = l.Dial(context.Background())
	must.Expect(t, errors.Is(err, net.ErrClosed), "dial after the end: %v, want %v", err, net.ErrClosed)
}
