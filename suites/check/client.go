package check

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

func PercentEncoded(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

// The paths of the tools contract, below the bridge's URL.
const (
	ListPath     = "/mcp/tools/list"
	DescribePath = "/mcp/tools/describe"
	InvokePath   = "/mcp/tools/invoke"
)

// MaxResponse bounds how much of a response is read, in bytes.
const MaxResponse = 64 << 20

// Client sends requests to the bridge as one caller; every exchange is recorded as evidence of the running check.
type Client struct {
	T       *T
	Who     Identity
	Creds   Credentials
	Replica int // that requests are sent to

	waits bool // its requests are sent again where the bridge limits how often they come
}

// AtOnce gives the client that takes the bridge's 429 for the response.
func (c Client) AtOnce() Client {
	c.waits = false
	return c
}

// On gives the client that sends to another replica.
func (c Client) On(replica int) Client {
	c.Replica = replica
	return c
}

// url is the base URL that the client sends to.
func (c Client) url() string {
	if c.Replica > 0 {
		return c.T.Replicas[c.Replica].URL
	}
	return c.T.URL
}

// Request is what a check sends. The zero Method is GET.
type Request struct {
	Method  string
	Path    string // below the bridge's URL
	Address string // an absolute URL, in place of the bridge's URL and Path
	Query   url.Values
	Raw     string      // the query as it stands, in place of Query
	Header  http.Header // replaces the defaults of the same name; an empty list takes one away
	Host    string      // host and port of the request target, which is then in absolute form; "": the target is a path
	Body    io.Reader
	Length  int64                   // of Body, announced in Content-Length; 0: as net/http finds it, else Body is sent in chunks
	Show    string                  // the body as evidence shows it
	Unseen  int                     // how many bytes of Body are not in Show
	Fresh   bool                    // on a connection of its own
	Until   func(sofar []byte) bool // ends the reading of an event stream early; nil: it is read to its end
}

// List asks for the first page, or the page of a cursor.
func (c Client) List(ctx context.Context, cursor ...string) *Response {
	if c.T.Alone() {
		return c.listAlone(ctx, strings.Join(cursor, ""))
	}
	r := Request{Path: ListPath}
	if len(cursor) > 0 {
		r.Query = url.Values{"cursor": cursor[:1]}
	}
	return c.Send(ctx, r)
}

// Describe asks for one tool.
func (c Client) Describe(ctx context.Context, name string) *Response {
	if c.T.Alone() {
		return c.describeAlone(ctx, name)
	}
	return c.Send(ctx, Request{Path: DescribePath, Query: url.Values{"name": {name}}})
}

// Args are the arguments of an invoke by name.
type Args map[string]any

// Invoke runs a tool. Arguments are Args, or json.RawMessage to send bytes as they are.
func (c Client) Invoke(ctx context.Context, name string, arguments any) *Response {
	if c.T.Alone() {
		return c.invokeAlone(ctx, name, arguments)
	}
	body := Encode(map[string]any{"name": name, "arguments": arguments})
	return c.InvokeBody(ctx, body)
}

// InvokeBody posts a body of any kind to invoke, as application/json.
func (c Client) InvokeBody(ctx context.Context, body []byte) *Response {
	return c.Send(ctx, Request{Method: http.MethodPost, Path: InvokePath, Body: bytes.NewReader(body), Show: string(body)})
}

func Encode(v any) []byte {
	data, err := exact.Write(v)
	if err != nil {
		panic(fmt.Sprintf("a check's own request cannot be encoded: %v", err))
	}
	return data
}

// Send sends any request under the policy of the run and reads the response. A failure of the transport is kept in the
// response, for there are checks that expect one.
func (c Client) Send(ctx context.Context, r Request) *Response { return c.T.Policy.send(ctx, c, r) }

// ResponseTo makes the response that is to be filled, with the request beside it.
func (c Client) ResponseTo(r *Request) *Response {
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	a := &Response{Who: c.Who, base: c.url(), Method: r.Method, Path: r.Path, RawQuery: r.Raw, T: c.T, Shown: r.Show, unseen: r.Unseen}
	if r.Raw == "" {
		a.RawQuery = r.Query.Encode()
	}
	if u, err := url.Parse(r.Address); err == nil && r.Address != "" {
		a.Path = u.Path
	}
	return a
}

// Request makes the HTTP request and notes in the response what is sent.
func (c Client) Request(ctx context.Context, r Request, a *Response) (*http.Request, error) {
	target := c.url() + r.Path
	if r.Address != "" {
		target = r.Address
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target, r.Body)
	if err != nil {
		return nil, err
	}
	req.URL.RawQuery = a.RawQuery
	if r.Length > 0 {
		req.ContentLength = r.Length
	}
	req.Header.Set("Accept", "application/json")
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	c.Creds.Apply(req.Header)
	for name, values := range r.Header {
		req.Header[name] = values
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host // net/http sends no other
		req.Header.Del("Host")
	}
	if r.Host != "" {
		req.URL.Opaque = "//" + r.Host + req.URL.EscapedPath() // net/http connects to URL.Host all the same
	}
	a.Sent = req.Header.Clone()
	return req, nil
}

// exchange sends the request and fills in the response. Dropped reports that a connection that had served before was closed
// in place of a response: a server may do so at any time.
func (c Client) exchange(ctx context.Context, r Request, a *Response, limit time.Duration) (dropped bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrTimeout)
	defer cancel()
	defer context.AfterFunc(c.T.Context, cancel)()
	used := false
	req, err := c.Request(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(conn httptrace.GotConnInfo) { used = conn.Reused },
	}), r, a)
	if err != nil {
		a.Err = err
		return false
	}
	transport := c.T.Transport
	if r.Fresh {
		transport = transport.Clone()
		defer transport.CloseIdleConnections()
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		a.Err = NoResponse(ctx, err)
		return used && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
			errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "server closed idle connection"))
	}
	defer resp.Body.Close()
	a.Status, a.Header = resp.StatusCode, resp.Header
	a.Body, err = read(resp, r.Until)
	if err != nil {
		a.Err = NoResponse(ctx, err)
	}
	return false
}

// read reads a body to its end, or an event stream until it holds what is waited for.
func read(resp *http.Response, until func([]byte) bool) ([]byte, error) {
	body := io.LimitReader(resp.Body, MaxResponse)
	if until == nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		var whole bytes.Buffer
		if 0 < resp.ContentLength && resp.ContentLength <= 1<<20 {
			whole.Grow(int(resp.ContentLength) + bytes.MinRead)
		}
		_, err := whole.ReadFrom(body)
		return whole.Bytes(), err
	}
	var sofar []byte
	chunk := make([]byte, 32<<10)
	for {
		n, err := body.Read(chunk)
		sofar = append(sofar, chunk[:n]...)
		switch {
		case until(sofar) || err == io.EOF:
			return sofar, nil
		case err != nil:
			return sofar, err
		}
	}
}

var ErrTimeout = errors.New("no response within the time-out")

// NoResponse says, in words for the bridge's author, why a request got no response.
func NoResponse(ctx context.Context, err error) error {
	var (
		dns  *net.DNSError
		host x509.HostnameError
		cert *tls.CertificateVerificationError
		rec  tls.RecordHeaderError
		op   *net.OpError
	)
	switch {
	case context.Cause(ctx) == ErrTimeout, errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTimeout
	case errors.As(err, &dns):
		return fmt.Errorf("no such host: %s", dns.Name)
	case errors.As(err, &host):
		return fmt.Errorf("the TLS certificate is for %s, and not for %s: check the name in the URL", namesOf(host.Certificate), host.Host)
	case errors.As(err, &cert):
		return fmt.Errorf("the TLS certificate is not trusted: %w (tls.ca in the configuration names a file of certificates to trust)", cert.Err)
	case errors.As(err, &rec):
		return fmt.Errorf("TLS failed: the server does not speak TLS on this port")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the response was cut off")
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the connection was closed without a response")
	case errors.As(err, &op) && op.Op == "dial":
		if op.Addr == nil {
			return fmt.Errorf("cannot connect: %w", op.Err)
		}
		return fmt.Errorf("cannot connect to %s: %w", op.Addr, op.Err)
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return fmt.Errorf("cannot connect to the proxy: %w", op.Err)
	case errors.As(err, &op) && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate"):
		return fmt.Errorf("the server does not take our TLS certificate, or wants one: %w (tls.cert and tls.key in the configuration)", op.Err)
	case strings.Contains(err.Error(), "Proxy Authentication Required"):
		return fmt.Errorf("the proxy wants a user and a password: HTTP_PROXY or HTTPS_PROXY in the environment may hold them")
	case strings.Contains(err.Error(), "malformed HTTP"):
		return fmt.Errorf("what responds there does not speak HTTP: %w", err)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("the server speaks plain HTTP on this port: use http://")
	}
	return err
}

// namesOf lists some of the hosts that a certificate is for.
func namesOf(cert *x509.Certificate) string {
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	switch {
	case len(names) == 0:
		return "no host by name"
	case len(names) > 5:
		names = append(names[:5], "…")
	}
	return strings.Join(names, ", ")
}

// Call invokes as the call says.
func (t *T) Call(ctx context.Context, call Invocation) *Response {
	if t.Alone() {
		return t.As(call.Identity).Invoke(ctx, call.Tool, call.Object())
	}
	return t.As(call.Identity).InvokeBody(ctx, call.Body())
}

// Mark makes Runs and Calls forget what came before, where there is a site to see.
func (t *T) Mark() {
	if t.Upstream != nil {
		t.Upstream.Mark()
	}
}
