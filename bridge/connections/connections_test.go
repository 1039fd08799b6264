package connections

import (
	"bufio"
	"bytes"
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

// Who reads nothing is cut off, however small the responses are.
func TestAClientThatDoesNotReadIsCutOff(t *testing.T) {
	small := bytes.Repeat([]byte("x"), 8<<10)
	failed := make(chan error, 1)
	address := served(t, Limits{Total: 10, PerClient: 10, WriteTime: 300 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		context := r.Context()
		if _, err := w.Write(small); err != nil || context.Err() != nil {
			select {
			case failed <- err:
			default:
			}
		}
	})
	c := dial(t, "127.0.0.1", address)
	c.SetDeadline(time.Now().Add(20 * time.Second))
	request := []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	for range 20_000 { // until the server stops reading, because it cannot write
		if _, err := c.Write(request); err != nil {
			return // cut off
		}
	}
	select {
	case <-failed:
	case <-time.After(10 * time.Second):
		t.Error("a client that reads nothing is still served")
	}
}

// Who reads slowly but steadily gets all of a long response.
func TestASteadyClientIsNotCutOff(t *testing.T) {
	const size = 2 << 20
	address := served(t, Limits{Total: 10, PerClient: 10, WriteTime: 300 * time.Millisecond}, func(w http.ResponseWriter, _ *http.Request) {
		w.Write(make([]byte, size))
	})
	c := dial(t, "127.0.0.1", address)
	c.(*net.TCPConn).SetReadBuffer(16 << 10)
	c.SetDeadline(time.Now().Add(30 * time.Second))
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	total, buffer := 0, make([]byte, 128<<10)
	for {
		n, err := c.Read(buffer)
		total += n
		if err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	must.Expect(t, total >= size, "%d bytes of %d came", total, size)
}

// Connections whose request head does not end lose their places to others: of the same client, and of other clients.
func TestHalfARequestHeadHoldsNoPlace(t *testing.T) {
	for name, c := range map[string]struct {
		limits  Limits
		sources int // addresses that send half heads
		held    int // connections of each
	}{
		"one address, as behind a proxy":   {Limits{Total: 1000, PerClient: 20}, 1, 20 + refusing + 50},
		"many addresses":                   {Limits{Total: 40, PerClient: 20}, 5, 60},
		"fewer places in all than for one": {Limits{Total: 10, PerClient: 20}, 1, 10 + refusing + 50},
	} {
		t.Run(name, func(t *testing.T) {
			c.limits.WriteTime = time.Second
			address := served(t, c.limits, func(http.ResponseWriter, *http.Request) {})
			for i := range c.sources {
				for range c.held {
					fmt.Fprint(dial(t, fmt.Sprint("127.0.0.", 1+i), address), "GET / HTTP/1.1\r\nHost:")
				}
			}
			status, _ := ask(dial(t, "127.0.0.1", address), "/readyz")
			must.Expect(t, status == 200, "a probe from an address of the attack: %d", status)
			status, _ = ask(dial(t, "127.0.0.100", address), "/readyz")
			must.Expect(t, status == 200, "a probe from elsewhere: %d", status)
			time.Sleep(patience + 50*time.Millisecond)
			status, _ = ask(dial(t, "127.0.0.1", address), "/")
			must.Expect(t, status == 200, "a caller, after a moment: %d", status)
		})
	}
}
