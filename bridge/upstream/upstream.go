// Package upstream alone knows the Drupal site: how it is reached, how its JSON-RPC works, and what its responses mean. It
// decides nothing about tools. A method call is sent once: a request that was sent is never sent again, because the bridge
// cannot know whether the method ran.
package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/body"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// Options says how the site is reached.
type Options struct {
	Site        *url.URL          // the site's base address; no other host is ever called
	Timeout     time.Duration     // for one request, from dialling to the last byte
	MaxAnswer   int64             // longest response to a call that is read, in bytes; a document may be listFactor times as long
	MaxInFlight int               // requests at the site at one time; 0: no limit
	MaxWaiting  int               // requests that may wait for one of those places
	Transport   http.RoundTripper // nil: NewTransport(nil)
	Now         func() time.Time
	Observe     Observer // receives every request to the site; nil: none
}

// listFactor is how much longer than a result a list of all methods may be: 100,000 methods take some 100 MB.
const listFactor = 8

// Observer receives each request to the site that ended: what it was for (discovery, call), with what outcome (ok or a
// fault's code), and how long it took.
type Observer func(purpose, outcome string, took time.Duration)

// Client speaks with one site. It is safe for many callers at once.
type Client struct {
	o       Options
	rt      http.RoundTripper
	rpc     *http.Request // what all calls have in common
	lastID  atomic.Int64
	breaker *breaker
	gate    *fair.Gate
}

// NewTransport is the pooled transport that the bridge uses; tlsConfig may be nil.
// The standard library's two idle connections a host would halve the throughput.
func NewTransport(tlsConfig *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 256,
		MaxIdleConns:        256,
		IdleConnTimeout:     60 * time.Second,
		// The bridge caps what it reads; a compressed response could be small in transit and endless in memory.
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// New makes a client of the site. The error is for an address that is not valid.
func New(o Options) (*Client, error) {
	rpc, err := http.NewRequest(http.MethodPost, join(o.Site, "/jsonrpc"), nil)
	if err != nil {
		return nil, fmt.Errorf("the site's address: %w", err)
	}
	c := &Client{o: o, rt: o.Transport, rpc: rpc, breaker: newBreaker(o.Now), gate: fair.NewGate(o.MaxInFlight, o.MaxWaiting)}
	if c.rt == nil {
		c.rt = NewTransport(nil)
	}
	return c, nil
}

// Close lets idle connections go.
func (c *Client) Close() {
	if t, ok := c.rt.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Ready reports whether the site is thought to be up.
func (c *Client) Ready() bool { return c.breaker.closed() }

// Document is what the site gave for a GET.
type Document struct {
	ETag      string
	Unchanged bool // 304: what was known before still holds
}

// Get has read read a JSON document of the site as the caller, while it arrives. etag, where not empty, asks for news only.
// Faults: AuthRequired, AccessDenied, and those of a site that is not well; beside them the errors of read.
func (c *Client) Get(ctx context.Context, who caller.Caller, path, query, etag string, read func(io.Reader) error) (Document, error) {
	target := join(c.o.Site, path)
	if query != "" {
		target += "?" + query
	}
	var unread error // what read says of a document that arrived
	res, err := c.do(ctx, who, "discovery", listFactor*c.o.MaxAnswer, func(in io.Reader) error {
		arriving := &arriving{in: in}
		unread = read(arriving)
		return arriving.err
	}, func(ctx context.Context) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
		if err == nil && etag != "" {
			req.Header.Set("If-None-Match", etag)
		}
		return req, err
	})
	switch {
	case err != nil:
		return Document{}, err
	case unread != nil:
		return Document{}, badResponse(unread)
	case res.status == http.StatusOK:
		const longest = 256 // one is kept for each caller
		tag := res.header.Get("ETag")
		if len(tag) > longest {
			tag = ""
		}
		return Document{ETag: tag}, nil
	case res.status == http.StatusNotModified && etag != "":
		return Document{Unchanged: true}, nil
	}
	return Document{}, res.refusal(who)
}

// arriving keeps the error of a reader, other than its end.
type arriving struct {
	in  io.Reader
	err error
}

func (a *arriving) Read(b []byte) (int, error) {
	n, err := a.in.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		a.err = err
	}
	return n, err
}

// Call runs a method as the caller and gives the bytes of its result. params is a JSON object or array.
// A JSON-RPC error comes back as *RPCError, all else as a fault.
func (c *Client) Call(ctx context.Context, who caller.Caller, method string, params []byte) ([]byte, error) {
	id := strconv.FormatInt(c.lastID.Add(1), 10)
	sent := encodeRequest(method, params, id)
	res, err := c.do(ctx, who, "call", c.o.MaxAnswer, nil, func(ctx context.Context) (*http.Request, error) {
		return c.post(ctx, sent), nil
	})
	if err != nil {
		return nil, err
	}
	if res.status == http.StatusUnauthorized || res.status == http.StatusForbidden {
		return nil, res.refusal(who)
	}
	result, err := decodeResponse(res.body, id)
	switch {
	case err == nil && res.status >= 200 && res.status < 300:
		return result, nil
	case err == nil:
		return nil, badResponse(fmt.Errorf("a result with HTTP status %d", res.status))
	}
	if rpc, ok := errors.AsType[*RPCError](err); ok {
		return nil, rpc
	}
	if res.status < 200 || res.status > 299 {
		return nil, res.refusal(who)
	}
	return nil, err
}

// post is a JSON-RPC request. Its body can be had again, for a connection that turns out to be closed before anything
// was sent.
func (c *Client) post(ctx context.Context, body []byte) *http.Request {
	req := c.rpc.WithContext(ctx)
	req.Header = http.Header{"Content-Type": jsonType}
	req.ContentLength = int64(len(body))
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return req
}

// jsonType is a header's value, shared by all requests.
var jsonType = []string{"application/json"}

// response is the site's response, read to its end.
type response struct {
	status int
	header http.Header
	body   []byte
}

// do sends one request as the caller and reads the whole response, within the time, the size and the site's capacity. The
// request is made when its turn has come, of the context that limits it. read, where not nil, gets the body of a 200.
func (c *Client) do(
	ctx context.Context, who caller.Caller, purpose string, longest int64, read func(io.Reader) error, request func(context.Context) (*http.Request, error),
) (res response, err error) {
	start := time.Now()
	if c.o.Observe != nil {
		defer func() { c.o.Observe(purpose, outcome(res, err), time.Since(start)) }()
	}
	owner := who.Owner()
	if err := c.enter(ctx, owner); err != nil {
		return response{}, err
	}
	defer c.leave(owner)
	if err := c.breaker.allow(); err != nil {
		return response{}, err
	}
	limited, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	req, err := request(limited)
	if err != nil {
		return response{}, fault.New(fault.InternalError, "The request to the site could not be made.").Because(err)
	}
	req.Header["Accept"] = jsonType
	who.Sign(req.Header)
	res, err = c.roundTrip(req, longest, read)
	c.breaker.report(start, err, ctx.Err() != nil)
	if err != nil {
		return response{}, explain(silence{err, ctx, limited})
	}
	return res, nil
}

// roundTrip uses the transport itself, not http.Client: it follows no redirect, keeps no cookie, repeats nothing.
func (c *Client) roundTrip(req *http.Request, longest int64, consume func(io.Reader) error) (response, error) {
	res, err := c.rt.RoundTrip(req)
	if err != nil {
		return response{}, err
	}
	defer res.Body.Close()
	if res.ContentLength > longest {
		return response{}, errTooLong
	}
	if consume != nil && res.StatusCode == http.StatusOK {
		return response{res.StatusCode, res.Header, nil}, consume(&bounded{res.Body, longest})
	}
	read, err := body.All(io.LimitReader(res.Body, longest+1), res.ContentLength, fair.From(req.Context()))
	switch {
	case err != nil && len(read) > long && !errors.Is(err, fair.ErrNoMemory):
		return response{}, fmt.Errorf("%w: %d bytes came, then %w", errTooLong, len(read), err)
	case err != nil:
		return response{}, err
	case int64(len(read)) > longest:
		return response{}, errTooLong
	}
	return response{res.StatusCode, res.Header, read}, nil
}

// bounded is a reader of at most left bytes; more are an error.
type bounded struct {
	in   io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

// long is where a response that does not end in time is too much rather than too slow.
const long = 1 << 20

var errTooLong = errors.New("the response is longer than the bridge reads")

func outcome(res response, err error) string {
	if err != nil {
		return string(fault.From(err).Code)
	}
	return strconv.Itoa(res.status)
}

// join puts a path below the site's base address, as it is: no cleaning, no second host.
func join(site *url.URL, path string) string {
	u := *site
	u.RawQuery, u.Fragment, u.User = "", "", nil
	return strings.TrimSuffix(u.String(), "/") + path
}
