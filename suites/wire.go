package suites

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// wire is one HTTP/1.1 connection of a caller, for what net/http's own client hides: whether it stays open, and what
// comes after a message's end.
type wire struct {
	client Client
	conn   net.Conn
	from   *bufio.Reader
}

// Dial opens a connection to the bridge. Where it cannot, the running check is not testable.
func (c Client) Dial(ctx context.Context) *wire {
	u, err := url.Parse(c.t.url)
	if err != nil {
		NotTestable("the URL cannot be dialled: " + err.Error())
	}
	if by, err := c.t.transport.Proxy(&http.Request{URL: u}); by != nil || err != nil {
		NotTestable("it needs a connection of its own to the bridge, and the run goes by a proxy")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	address := net.JoinHostPort(u.Hostname(), port)
	dialer := net.Dialer{Timeout: c.t.timeout}
	var conn net.Conn
	if u.Scheme == "https" {
		settings := c.t.transport.TLSClientConfig.Clone()
		if settings == nil {
			settings = &tls.Config{}
		}
		settings.NextProtos = []string{"http/1.1"}
		conn, err = (&tls.Dialer{NetDialer: &dialer, Config: settings}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = dialer.DialContext(ctx, "tcp", address)
	}
	if err != nil {
		NotTestable("no connection of its own can be opened: " + NoResponse(ctx, err).Error())
	}
	return &wire{c, conn, bufio.NewReader(conn)}
}

// Close ends the connection.
func (w *wire) Close() { w.conn.Close() }

// Ask sends a request on the connection and reads the answer.
func (w *wire) Ask(ctx context.Context, r Request) *Response {
	a := w.client.responseTo(&r)
	req, err := w.client.request(ctx, r, a)
	w.client.t.keepPace()
	since := w.client.t.Upstream.last()
	a.At = time.Now()
	if err == nil {
		err = w.roundTrip(req, a)
	}
	if err != nil {
		a.Err = NoResponse(ctx, err)
	}
	a.Took = time.Since(a.At)
	w.client.t.record(a, since)
	return a
}

func (w *wire) roundTrip(req *http.Request, a *Response) error {
	if err := w.conn.SetDeadline(time.Now().Add(w.client.t.timeout)); err != nil {
		return err
	}
	if err := req.Write(w.conn); err != nil {
		return err
	}
	if _, err := w.from.Peek(1); err != nil { // ReadResponse calls no answer a cut one
		return err
	}
	resp, err := http.ReadResponse(w.from, req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	a.Status, a.Header = resp.StatusCode, resp.Header
	if resp.Close && resp.ProtoAtLeast(1, 1) {
		a.Header.Set("Connection", "close") // which ReadResponse takes out
	}
	a.Body, err = io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	return err
}

// Rest is what the bridge sends after its last answer, until it closes the connection.
func (w *wire) Rest() ([]byte, error) { return io.ReadAll(io.LimitReader(w.from, maxResponse)) }

// Write sends bytes as they are.
func (w *wire) Write(text string) error {
	w.client.t.keepPace()
	if err := w.conn.SetWriteDeadline(time.Now().Add(w.client.t.timeout)); err != nil {
		return fmt.Errorf("set a deadline: %w", err)
	}
	_, err := io.WriteString(w.conn, text)
	return err
}
