// Package proxy is a recording proxy: it stands between a bridge and a real Drupal, keeps the journal that a mock keeps
// and offers the faults that need no knowledge of the site. It authenticates nobody and caches nothing.
//
// Its invariant: it changes nothing that passes through it beside what a proxy must: hop-by-hop headers, Host, and
// Accept-Encoding, because it reads the responses.
//
// A request passes the recorder, as in the mock; here it is forwarded. Who made it is known by the name that Basic
// credentials carry, or by a hash of a token or session; whether a method ran is concluded from the site's response.
package proxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/authkind"
	"github.com/bridgecheck/bridgecheck/mockdrupal/credentials"
	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
	"github.com/bridgecheck/bridgecheck/mockdrupal/recorder"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// Proxy is a recorder with a real site behind it. It is an http.Handler, safe for use by many goroutines.
type Proxy struct {
	*recorder.Recorder
	site *site
}

// Options are the settings of a proxy. The zero value is a proxy with the system's TLS.
type Options struct {
	Transport    http.RoundTripper // towards the site; nil: one of the proxy's own
	JournalLimit int               // entries that the journal keeps; 0: journal.DefaultLimit
	// Accepts reports whether the site accepts a password, for the journal's user; nil: unknown, every name is believed.
	Accepts func(name, password string) bool
}

// New returns a proxy before the site at a base URL, which may have a path.
func New(base *url.URL, o Options) (*Proxy, error) {
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("the site %q is no http or https address", base.Redacted())
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 256, DisableCompression: true}
	}
	routes := slices.Concat(route.Drupal(), route.Module())
	s := &site{base: base, transport: o.Transport, accepts: o.Accepts, routes: routes, table: route.NewTable(routes)}
	return &Proxy{recorder.New(s, recorder.Options{JournalLimit: o.JournalLimit}), s}, nil
}

// Listen starts the proxy on an address ("127.0.0.1:0" picks a port). It fails when the address is taken.
func (p *Proxy) Listen(address string) (*recorder.Server, error) {
	return p.Recorder.Listen(address, p)
}

// Site is the base URL of the site behind the proxy.
func (p *Proxy) Site() *url.URL { return p.site.base }

// Reachable fails, and says why, when the site behind the proxy accepts no connections.
func (p *Proxy) Reachable(ctx context.Context) error {
	port := cmp.Or(p.site.base.Port(), map[string]string{"http": "80", "https": "443"}[p.site.base.Scheme])
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(p.site.base.Hostname(), port))
	if err != nil {
		return err
	}
	return conn.Close()
}

// site is the Drupal behind the proxy.
type site struct {
	base      *url.URL
	transport http.RoundTripper
	accepts   func(name, password string) bool // nil: unknown
	routes    []route.Route
	table     *route.Table
	discovery discovery
}

// Begin names the request's route and caller.
func (s *site) Begin(x *exchange.Exchange) func() {
	if i, vars := s.table.Find(x.Path); i >= 0 {
		x.Route, x.Named = s.routes[i].Name, vars["id"]
	}
	user, scheme := caller(x.Request)
	if name, password, ok := credentials.ReadBasic(x.Request.Header); ok && s.accepts != nil && !s.accepts(name, password) {
		user, scheme = "", ""
	}
	x.User, x.Title = user, s.base.Host
	x.NoteCaller(user, scheme)
	return func() { s.forward(x) }
}

// Routes lists the names of the routes that a Drupal site has.
func (s *site) Routes() []string { return s.table.Names() }

// CheckUser accepts every name: the proxy does not know the accounts.
func (*site) CheckUser(string) error { return nil }

// CheckMethod accepts every pattern: the proxy does not know the methods.
func (*site) CheckMethod(string) error { return nil }

// State returns what discovery showed of the site last. It fails when there was none.
func (s *site) State() (any, error) { return s.discovery.now() }

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

// forward responds as the real site does. Where that does not respond, the client gets what a web server before a broken
// site says.
func (s *site) forward(x *exchange.Exchange) {
	x.NoteCalls(callsOf(x))
	if before, ok := x.Past.(past); ok {
		if x.Response = before.response(x); x.Response != nil {
			return
		}
	}
	response, err := s.ask(x)
	switch {
	case errors.Is(err, context.Canceled):
		x.Done = true // the client went away
		return
	case err != nil:
		x.Response = exchange.Page(http.StatusBadGateway, "The proxy cannot reach the site")
		return
	}
	x.Note(func(e *journal.Entry) {
		for i := range e.Calls {
			e.Calls[i].Ran = ran(e.Calls[i], response)
		}
	})
	s.discovery.note(x, response)
	x.Response = response
}

// callsOf are the calls of methods that a request makes: by JSON-RPC, which the MCP module takes at an endpoint for each tool as well, or
// by that module's invoke.
func callsOf(x *exchange.Exchange) []journal.Call {
	switch x.Route {
	case route.JSONRPC, route.MCPTool:
		return slices.Clone(x.Calls())
	case route.MCPInvoke:
		var of struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if json.Unmarshal(x.Body, &of) == nil {
			return []journal.Call{{Method: of.Name, Params: of.Arguments}}
		}
	}
	return []journal.Call{}
}

// maxResponse is how much of a response the proxy reads.
const maxResponse = 64 << 20

func (s *site) ask(x *exchange.Exchange) (*exchange.Response, error) {
	to := *s.base
	to.User = nil
	to.RawQuery = x.Request.URL.RawQuery
	to = *to.JoinPath(x.Request.URL.EscapedPath())
	req, err := http.NewRequestWithContext(x.Request.Context(), x.Request.Method, to.String(), bytes.NewReader(x.Body))
	if err != nil {
		return nil, err
	}
	req.Header = x.Request.Header.Clone()
	dropHopByHop(req.Header)
	req.Header.Set("Accept-Encoding", "identity")
	if len(x.Body) == 0 && x.Request.ContentLength == 0 {
		req.Body = http.NoBody
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return nil, err
	}
	dropHopByHop(resp.Header)
	resp.Header.Del("Content-Length") // the exchange sets it, unless a fault lies about it
	return &exchange.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// refusedUnrun are the JSON-RPC codes with which the jsonrpc module refuses a call before its method runs.
var refusedUnrun = []int64{-32700, -32600, -32601, invalidParams}

const invalidParams = -32602

// ran concludes from the site's response whether a call's method ran: it did unless the response says that the call was
// refused.
func ran(c journal.Call, r *exchange.Response) bool {
	switch r.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusUnsupportedMediaType:
		return false
	}
	docs := php.Elements(r.Body)
	if docs == nil {
		docs = [][]byte{r.Body}
	}
	var lost bool // a refusal without an id may be this call's: the module loses ids
	for _, doc := range docs {
		var response struct {
			ID    json.RawMessage `json:"id"`
			Error *struct {
				Code int64 `json:"code"`
			} `json:"error"`
		}
		if json.Unmarshal(doc, &response) != nil {
			continue
		}
		refused := response.Error != nil && slices.Contains(refusedUnrun, response.Error.Code)
		if refused && response.Error.Code == invalidParams && r.Status == http.StatusOK {
			refused = false // the method's own: arguments that the module refuses make the response a 400
		}
		if len(response.ID) > 0 && bytes.Equal(response.ID, c.ID) {
			return !refused
		}
		lost = lost || refused && (len(response.ID) == 0 || string(response.ID) == "null")
	}
	return !lost
}

// caller is who a request says it comes from, and how. The proxy does not check it: the site does.
func caller(r *http.Request) (user, scheme string) {
	if name, _, ok := credentials.ReadBasic(r.Header); ok {
		return name, authkind.Basic
	}
	if token, ok := credentials.ReadBearer(r.Header); ok {
		return journal.Hash(token), authkind.Bearer
	}
	if credentials.HasSession(r) {
		return journal.Hash(r.Header.Get("Cookie")), authkind.Cookie
	}
	return "", ""
}

// CallerName is the name under which a proxy's journal shows a caller with this Authorization or Cookie header.
func CallerName(h http.Header) string {
	user, _ := caller(&http.Request{Header: h})
	return user
}
