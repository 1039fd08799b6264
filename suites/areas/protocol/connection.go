package protocol

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// connection is one HTTP/1.1 connection of a caller, for what net/http's own client hides: whether it stays open, and
// what follows the end of a message.
type connection struct {
	client check.Client
	conn   net.Conn
	from   *bufio.Reader
	silent bool // the last request got no response
}

// dial opens a connection to the bridge. Where it cannot, it ends the running check.
func dial(ctx context.Context, c check.Client) *connection {
	u, err := url.Parse(c.T.URL)
	if err != nil {
		check.NotTestable("the URL cannot be dialled: " + err.Error())
	}
	if by, err := c.T.Transport.Proxy(&http.Request{URL: u}); by != nil || err != nil {
		check.NotTestable("it needs a connection of its own to the bridge, and the run goes through a proxy")
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	address := net.JoinHostPort(u.Hostname(), port)
	dialer := net.Dialer{Timeout: c.T.Timeout}
	var conn net.Conn
	if u.Scheme == "https" {
		settings := cmp.Or(c.T.Transport.TLSClientConfig.Clone(), &tls.Config{})
		settings.NextProtos = []string{"http/1.1"}
		conn, err = (&tls.Dialer{NetDialer: &dialer, Config: settings}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = dialer.DialContext(ctx, "tcp", address)
	}
	if err != nil {
		c.T.ExemptFault(err)
		check.BlockedBy(check.Mismatch("a further connection to "+address, "one that opens", client.NoResponse(ctx, err).Error()))
	}
	return &connection{client: c, conn: conn, from: bufio.NewReader(conn)}
}

// close ends the connection.
func (w *connection) close() { w.conn.Close() }

// headOf is the head of a request, with the client's credentials.
func (w *connection) headOf(ctx context.Context, request check.Request) string {
	req, err := w.client.NewRequest(ctx, request, &check.Response{})
	if err != nil {
		check.NotTestable("a request cannot be made: " + err.Error())
	}
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s HTTP/1.1\r\nHost: %s\r\n", req.Method, req.URL.RequestURI(), req.URL.Host)
	_ = req.Header.Write(&head) // which cannot fail in memory
	return head.String() + "\r\n"
}

// ask sends a request on the connection and reads the response.
func (w *connection) ask(ctx context.Context, request check.Request) *check.Response {
	r := w.client.SendOnce(ctx, request, func(ctx context.Context, request check.Request, r *check.Response, limit time.Duration) bool {
		req, err := w.client.NewRequest(ctx, request, r)
		if err == nil {
			err = w.roundTrip(req, r, limit)
		}
		if err != nil {
			r.Err = client.NoResponse(ctx, err)
		}
		return false
	})
	w.silent = r.Err != nil
	return r
}

func (w *connection) roundTrip(req *http.Request, r *check.Response, limit time.Duration) error {
	if err := w.conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	written := make(chan error, 1)
	go func() { written <- req.Write(w.conn) }()
	if req.ContentLength < tooLong { // else it may be refused before all of it is sent
		if err := <-written; err != nil {
			return err
		}
	}
	if _, err := w.from.Peek(1); err != nil { // ReadResponse reports a missing response as a truncated one
		return err
	}
	resp, err := http.ReadResponse(w.from, req)
	for err == nil && resp.StatusCode < 200 && resp.StatusCode != http.StatusSwitchingProtocols { // 103 Early Hints
		resp, err = http.ReadResponse(w.from, req)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r.Status, r.Header = resp.StatusCode, resp.Header
	if resp.Close && resp.ProtoAtLeast(1, 1) {
		r.Header.Set("Connection", "close") // which ReadResponse removes
	}
	r.Body, err = io.ReadAll(io.LimitReader(resp.Body, client.MaxResponse))
	return err
}

// rest is what the bridge sends after its last response, until it closes the connection. Where no response came, nothing
// is waited for.
func (w *connection) rest() ([]byte, error) {
	if w.silent {
		return nil, nil
	}
	return io.ReadAll(io.LimitReader(w.from, client.MaxResponse))
}

// unasked is the beginning of what the bridge sends within a short time in which nothing is asked.
func (w *connection) unasked() string {
	_ = w.conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)) // where that fails, so does the read
	_, _ = w.from.Peek(1)
	began, _ := w.from.Peek(min(w.from.Buffered(), len("HTTP/1.1 400")))
	return string(began)
}

// write sends bytes as they are.
func (w *connection) write(text string) error {
	w.client.T.WaitForRate()
	if err := w.conn.SetWriteDeadline(time.Now().Add(w.client.T.Timeout)); err != nil {
		return fmt.Errorf("set a deadline: %w", err)
	}
	_, err := io.WriteString(w.conn, text)
	return err
}
