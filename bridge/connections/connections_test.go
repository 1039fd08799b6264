package connections

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// served starts a server with limits, whose handler is next.
func served(t *testing.T, limits Limits, next http.HandlerFunc) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	h := &Handler{Next: next, Limits: limits, Exempt: func(path string) bool { return path == "/readyz" }}
	s := &http.Server{Handler: h, ConnContext: Context, ReadHeaderTimeout: time.Second}
	go s.Serve(h.Listener(l))
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// dial opens a connection from an address of this machine.
func dial(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp", to)
	must.Need(t, err == nil, "no connection from %s: %v", from, err)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(10 * time.Second))
	return c
}

// ask sends a request on a connection and gives the status; 0: there was no response.
func ask(c net.Conn, path string) (int, string) {
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, ""
	}
	body, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(body)
}

func TestConnectionsBeyondTheBoundsAreRefused(t *testing.T) {
	address := served(t, Limits{Total: 3, PerClient: 2, WriteTime: time.Second}, func(http.ResponseWriter, *http.Request) {})
	first := dial(t, "127.0.0.1", address)
	for i, c := range []struct {
		from, path string
		status     int
	}{
		{"127.0.0.1", "/", 200}, {"127.0.0.1", "/", 503}, {"127.0.0.1", "/readyz", 200}, {"127.0.0.2", "/", 200}, {"127.0.0.3", "/", 503},
	} {
		if i == 0 {
			status, _ := ask(first, "/")
			must.Assert(t, status == 200, "the first connection: %d", status)
		}
		if status, body := ask(dial(t, c.from, address), c.path); status != c.status || status == 503 && body != refusal {
			t.Errorf("connection %d, from %s: %d %s, want %d", i, c.from, status, body, c.status)
		}
	}
	first.Close()
	again := func() bool { status, _ := ask(dial(t, "127.0.0.1", address), "/"); return status == 200 }
	must.Become(t, 5*time.Second, again, "a place that was given back is not taken")
}

func TestNotEvenRefusalsAreEndless(t *testing.T) {
	h := &Handler{Limits: Limits{Total: 1, PerClient: 1}}
	l := h.Listener(nil).(*listener)
	var open []*conn
	for range 2 * refusing {
		mine, theirs := net.Pipe()
		t.Cleanup(func() { mine.Close(); theirs.Close() })
		if c, ok := l.count(mine); ok {
			open = append(open, c)
		}
	}
	held := slices.DeleteFunc(slices.Clone(open), func(c *conn) bool { return c.left })
	must.Expect(t, len(held) == refusing+1 && l.total == 1 && l.refused == refusing,
		"%d connections are open, want one and %d to refuse", len(held), refusing)
	for _, c := range open {
		c.Close()
		c.Close()
	}
	must.Expect(t, l.total == 0 && l.refused == 0 && len(l.clients) == 0,
		"%d and %d connections of %d clients are left", l.total, l.refused, len(l.clients))
}
