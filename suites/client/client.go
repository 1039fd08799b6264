// Package client sends one request to a bridge as one caller and reads the response, by HTTP or by MCP over it. It
// never sends twice, but where MCP's path redirects, never waits and blames nobody: package patience does, around it. It knows
// nothing of checks.
//
// A Client fills a Response from a Request; a Session speaks MCP through any Sender. The invariant: a failure of the
// transport is kept in the response, in words for the bridge's author, for there are checks that expect one.
package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// The paths of the tools contract, below the bridge's URL.
const (
	ListPath     = "/mcp/tools/list"
	DescribePath = "/mcp/tools/describe"
	InvokePath   = "/mcp/tools/invoke"
)

// What is read of one response, in bytes.
const (
	MaxResponse = 8 << 20
	MaxHead     = 64 << 10
)

// Target is the bridge as its clients know it.
type Target struct {
	URL       string // without a slash at its end
	MCPOnly   bool   // the bridge has no interface but MCP
	Transport *http.Transport

	documents documents
	slash     atomic.Bool           // the bridge has sent clients of MCP to the same path with a slash at its end
	front     atomic.Pointer[Proxy] // that was seen; nil: none was
	looked    atomic.Bool           // for it, where no response has shown one
}

// Client sends requests to a bridge as one caller.
type Client struct {
	*Target
	Who   Identity
	Creds Credentials
	Base  string // URL of the replica to send to; "": that of the target
}

// base is the base URL that the client sends to.
func (c Client) base() string {
	if c.Base != "" {
		return c.Base
	}
	return c.URL
}

// Request is what a caller sends. The zero Method is GET.
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

// body is what one attempt reads: a copy where there can be another, for net/http may go on reading after a response or an error.
// again reports whether there can be one.
func (r *Request) body() (body io.Reader, again bool) {
	switch body := r.Body.(type) {
	case nil:
		return nil, true
	case *bytes.Reader:
		attempt := *body
		return &attempt, true
	case *strings.Reader:
		attempt := *body
		return &attempt, true
	}
	return r.Body, false
}

// Repeatable reports whether the request can be sent again.
func (r *Request) Repeatable() bool {
	_, again := r.body()
	return again
}

// InvokeRequest posts a body of any kind to invoke, as application/json.
func InvokeRequest(body []byte) Request {
	return Request{Method: http.MethodPost, Path: InvokePath, Body: bytes.NewReader(body), Show: string(body)}
}

// Args are the arguments of an invoke by name.
type Args map[string]any

// Encode writes a check's own document as JSON.
func Encode(v any) []byte {
	data, err := exact.Write(v)
	if err != nil {
		panic(fmt.Sprintf("a check's own request cannot be encoded: %v", err))
	}
	return data
}

// PercentEncoded is a text with each byte percent-encoded.
func PercentEncoded(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

// NewResponse makes the response that is to be filled, with the request beside it.
func (c Client) NewResponse(r *Request) *Response {
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	a := &Response{Target: c.Target, Who: c.Who, Base: c.base(), Method: r.Method, Path: r.Path, RawQuery: r.Raw, Shown: r.Show, Unseen: r.Unseen}
	if r.Raw == "" {
		a.RawQuery = strings.ReplaceAll(r.Query.Encode(), "+", "%20") // + is a blank in forms alone
	}
	if u, err := url.Parse(r.Address); err == nil && r.Address != "" {
		a.Path = u.Path
	}
	return a
}

// NewRequest makes the HTTP request and notes in the response what is sent.
func (c Client) NewRequest(ctx context.Context, r Request, a *Response) (*http.Request, error) {
	target := c.base() + r.Path
	if r.Path == MCPPath && c.slash.Load() {
		target += "/"
	}
	if r.Address != "" {
		target = r.Address
	}
	body, _ := r.body()
	req, err := http.NewRequestWithContext(ctx, r.Method, target, body)
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
	maps.Copy(req.Header, r.Header)
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host // net/http sends no other
		req.Header.Del("Host")
	}
	if r.Host != "" {
		req.URL.Opaque = "//" + r.Host + req.URL.EscapedPath() // net/http connects to URL.Host all the same
	}
	a.Sent, a.Elsewhere = req.Header.Clone(), r.Host != "" || req.Host != req.URL.Host
	return req, nil
}

// toSlash reports whether a response sends its client to the same address with a slash at its end, as routers do that serve a
// path below. Clients of MCP follow where the verb stays what it is (RFC 9110, 15.4.8), and so does a run, from then on at once.
func toSlash(resp *http.Response) bool {
	if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
		return false
	}
	to, err := resp.Location()
	return err == nil && to.Scheme == resp.Request.URL.Scheme && to.Host == resp.Request.URL.Host && to.Path == resp.Request.URL.Path+"/"
}

// Exchange sends the request and fills in the response. Dropped reports that a connection that had served before was closed
// in place of a response: a server may do so at any time.
func (c Client) Exchange(ctx context.Context, r Request, a *Response, limit time.Duration) (dropped bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrTimeout)
	defer cancel()
	used := false
	req, err := c.NewRequest(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(conn httptrace.GotConnInfo) { used = conn.Reused },
	}), r, a)
	if err != nil {
		a.Err = err
		return false
	}
	transport := c.Transport
	if r.Fresh {
		transport = transport.Clone()
		defer transport.CloseIdleConnections()
	}
	a.read, a.reread = false, false // what an attempt before this one got
	resp, err := transport.RoundTrip(req)
	if err != nil {
		a.Err = NoResponse(ctx, err)
		return used && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
			errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "server closed idle connection"))
	}
	defer resp.Body.Close()
	if r.Path == MCPPath && toSlash(resp) && r.Repeatable() {
		c.slash.Store(true)
		return c.Exchange(ctx, r, a, limit)
	}
	a.Status, a.Header = resp.StatusCode, resp.Header
	if err := a.receive(ctx, resp, r.Until); err != nil {
		a.Err = NoResponse(ctx, err)
	}
	return false
}

// receive reads a body to its end, or an event stream until it holds what is waited for.
func (a *Response) receive(ctx context.Context, resp *http.Response, until func([]byte) bool) error {
	if until != nil && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		until = nil
	}
	held, err := int64(uncounted), a.hold(ctx, headBytes(resp.Header))
	var whole bytes.Buffer
	if 0 < resp.ContentLength && resp.ContentLength <= 1<<20 {
		whole.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	body := io.LimitReader(resp.Body, MaxResponse+1)
	for err == nil {
		whole.Grow(max(bytes.MinRead, min(whole.Len(), 32<<10)))
		free := whole.AvailableBuffer()
		n, failed := body.Read(free[:cap(free)])
		whole.Write(free[:n])
		switch length := int64(whole.Len()); {
		case length > MaxResponse:
			whole.Truncate(MaxResponse)
			err = fmt.Errorf("no response is read beyond %d MiB", MaxResponse>>20)
		case length > held:
			err = a.hold(ctx, max(held, length-held))
			held += max(held, length-held)
		}
		switch a.Body = whole.Bytes(); {
		case until != nil && until(a.Body), failed == io.EOF:
			return err
		case failed != nil:
			return failed
		}
	}
	return err
}
