package mockdrupal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// Proxy stands between a bridge and a real Drupal. It keeps the journal that a mock keeps and offers the faults that
// need no knowledge of the site; who called it knows by the name that Basic credentials carry, or by a hash of a token
// or session; and whether a method ran it reads from the site's answer. It changes nothing that passes through it
// beside what a proxy must: hop-by-hop headers, Host, and Accept-Encoding, for it has to read the answers.
type Proxy struct{ front *Drupal }

// ProxyOptions are the settings of a proxy. The zero value is a proxy with the system's TLS.
type ProxyOptions struct {
	Transport    http.RoundTripper // towards the site; nil: one of the proxy's own
	JournalLimit int               // entries that the journal keeps; 0: 10,000
}

// NewProxy returns a proxy before the site at a base URL, which may have a path.
func NewProxy(site *url.URL, o ProxyOptions) (*Proxy, error) {
	if site.Scheme != "http" && site.Scheme != "https" || site.Host == "" {
		return nil, fmt.Errorf("the site %q is no http or https address", site.Redacted())
	}
	front, err := New(&fixtures.Site{Name: site.Host, Title: site.Host}, Options{JournalLimit: o.JournalLimit})
	if err != nil {
		return nil, err
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 256, DisableCompression: true}
	}
	front.behind = &realSite{base: site, transport: o.Transport}
	return &Proxy{front}, nil
}

// Journal returns the journal of all requests.
func (p *Proxy) Journal() *Journal { return p.front.Journal() }

// Arm puts a fault in force and returns how to end it. It fails for a fault that is unknown, incomplete or needs to know
// the site.
func (p *Proxy) Arm(f Fault) (disarm func(), err error) { return p.front.Arm(f) }

// DisarmAll ends all faults.
func (p *Proxy) DisarmAll() { p.front.DisarmAll() }

// ServeHTTP passes one request on, or answers as an armed fault has it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.front.ServeHTTP(w, r) }

// Listen starts the proxy on an address ("127.0.0.1:0" picks a port).
func (p *Proxy) Listen(address string) (*Server, error) { return p.front.Listen(address) }

// realSite is the Drupal behind a proxy.
type realSite struct {
	base      *url.URL
	transport http.RoundTripper
}

// hopByHop are the headers that belong to one connection.
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func dropHopByHop(h http.Header) {
	for _, names := range h.Values("Connection") {
		for name := range strings.SplitSeq(names, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
}

// forward answers as the real site does. Where that does not answer, the caller gets what a web server before a broken
// site says.
func (x *exchange) forward() *Answer {
	calls := []Call{}
	if x.entry.Route == RouteJSONRPC {
		calls = slices.Clone(x.sketches())
	}
	x.note(func(e *Entry) { e.Calls = calls })
	a, err := x.d.behind.ask(x)
	switch {
	case errors.Is(err, context.Canceled):
		x.aborted = true // the caller went away
		return nil
	case err != nil:
		return page(http.StatusBadGateway, "The proxy cannot reach the site")
	}
	x.note(func(e *Entry) {
		for i := range e.Calls {
			e.Calls[i].Ran = ran(e.Calls[i], a)
		}
	})
	return a
}

func (s *realSite) ask(x *exchange) (*Answer, error) {
	to := *s.base
	to.User = nil
	to.RawQuery = x.r.URL.RawQuery
	to = *to.JoinPath(x.r.URL.EscapedPath())
	req, err := http.NewRequestWithContext(x.r.Context(), x.r.Method, to.String(), bytes.NewReader(x.body))
	if err != nil {
		return nil, err
	}
	req.Header = x.r.Header.Clone()
	dropHopByHop(req.Header)
	req.Header.Set("Accept-Encoding", "identity")
	if len(x.body) == 0 && x.r.ContentLength == 0 {
		req.Body = http.NoBody
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRequest))
	if err != nil {
		return nil, err
	}
	dropHopByHop(resp.Header)
	resp.Header.Del("Content-Length") // set anew, unless a fault lies about it
	return &Answer{status: resp.StatusCode, header: resp.Header, body: body}, nil
}

// refusedUnrun are the JSON-RPC codes with which the jsonrpc module turns a call away before its method runs.
var refusedUnrun = []int64{-32700, -32600, -32601, -32602}

// ran judges by the site's answer whether a call's method ran: it did unless the answer says that it was turned away.
func ran(c Call, a *Answer) bool {
	switch a.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return false
	}
	docs := php.Elements(a.body)
	if docs == nil {
		docs = [][]byte{a.body}
	}
	var lost bool // a refusal without an id may be this call's: the module loses ids
	for _, doc := range docs {
		var answer struct {
			ID    json.RawMessage `json:"id"`
			Error *struct {
				Code int64 `json:"code"`
			} `json:"error"`
		}
		if json.Unmarshal(doc, &answer) != nil {
			continue
		}
		refused := answer.Error != nil && slices.Contains(refusedUnrun, answer.Error.Code)
		if len(answer.ID) > 0 && bytes.Equal(answer.ID, c.ID) {
			return !refused
		}
		lost = lost || refused && (len(answer.ID) == 0 || string(answer.ID) == "null")
	}
	return !lost
}

// named is who a request to a proxy says it comes from. Nobody checks it here: the site does.
func named(r *http.Request) caller {
	c := caller{user: &fixtures.User{}}
	if name, _, ok := basicCredentials(r); ok {
		c.user.Name, c.sent = name, schemeBasic
	} else if token, ok := bearerToken(r); ok {
		c.user.Name, c.sent = hashed(token), schemeBearer
	} else if sendsSession(r) {
		c.user.Name, c.sent = hashed(r.Header.Get("Cookie")), schemeCookie
	}
	c.scheme = c.sent
	return c
}

// hashed stands for a credential in the journal: the same one gives the same text, and the text does not give it away.
func hashed(credential string) string {
	sum := sha256.Sum256([]byte(credential))
	return "sha256:" + hex.EncodeToString(sum[:6])
}

// CredentialName is the name under which a proxy's journal shows a caller who signs in with this Authorization or Cookie
// header.
func CredentialName(h http.Header) string { return named(&http.Request{Header: h}).user.Name }

// reachable tells whether somebody listens at the site's address.
func (s *realSite) reachable(ctx context.Context) error {
	port := s.base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[s.base.Scheme]
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(s.base.Hostname(), port))
	if err != nil {
		return err
	}
	return conn.Close()
}

// Reachable tells whether the site behind the proxy takes connections; an error says why not.
func (p *Proxy) Reachable(ctx context.Context) error { return p.front.behind.reachable(ctx) }
