package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// Remedy does to a mutant what the fix of a clause in suites/contract/reasons says, and nothing else: the bridge that comes
// out of it must keep the clause. It stands in front of the mutant, at the site's end of its Transport, or in both places.
type Remedy struct {
	Clause string
	Mutant string // that fails the clause by its golden set

	Front func(site *siteClient) middleware
	Auth  func(b testbed.Backends) middleware // a Front that knows issuer and audience
	After transport                           // between the mutant's Transport and the site
}

// Remedies lists what can be applied from outside of a bridge: the tables, and the remedies that mutants have of their own.
func Remedies() []Remedy {
	all := slices.Concat(listRemedies(), toolRemedies(), invokeRemedies(), errorRemedies(), siteRemedies(), mcpRemedies(), authRemedies())
	for _, m := range Mutants() {
		if m.Remedy != nil {
			all = append(all, Remedy{Clause: m.Breaks[0], Mutant: m.Name, Front: front(m.Remedy)})
		}
	}
	return all
}

// Apply returns the mutant with the remedy.
func (r Remedy) Apply(m Mutant) Mutant {
	outermost := m.AuthMiddleware
	m.AuthMiddleware = func(b testbed.Backends) middleware {
		return func(handler http.Handler) http.Handler {
			if outermost != nil {
				handler = outermost(b)(handler)
			}
			if r.Front != nil {
				handler = r.Front(&siteClient{b.SiteURL, b.Transport})(handler)
			}
			if r.Auth != nil {
				handler = r.Auth(b)(handler)
			}
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sentKey{}, r.Header.Clone())))
			})
		}
	}
	if r.After != nil {
		inner := m.Transport
		m.Transport = func(site http.RoundTripper) http.RoundTripper {
			if site = r.After(site); inner != nil {
				site = inner(site)
			}
			return site
		}
	}
	return m
}

// sentKey is the context key of the caller's own headers, which a mutant may replace on the way.
type sentKey struct{}

// front is a remedy that asks the site nothing.
func front(m middleware) func(*siteClient) middleware {
	return func(*siteClient) middleware { return m }
}

// errorOf returns the error object of a response; nil without one.
func errorOf(x *exchange) map[string]any {
	return objectIn(x.Object(), "error")
}

// ask sends a request of the same caller to the site and returns the body of the response, decoded.
func (w *siteClient) ask(r *http.Request, method, path string, body []byte) (status int, header http.Header, object map[string]any) {
	req, err := http.NewRequestWithContext(r.Context(), method, w.site+path, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	sent, _ := r.Context().Value(sentKey{}).(http.Header)
	for _, name := range []string{"Authorization", "Cookie", "Accept-Language"} {
		if v := sent.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0, nil, nil
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, testbed.MaxResponse))
	if err != nil {
		return 0, nil, nil
	}
	return resp.StatusCode, resp.Header, decode(data)
}

// methods returns the attributes of the methods that the site shows the caller, and whether the caller may discover tools.
func (w *siteClient) methods(r *http.Request) (methods map[string]map[string]any, discovers bool) {
	_, _, index := w.ask(r, http.MethodGet, "/jsonrpc/methods", nil)
	methods = map[string]map[string]any{}
	data, _ := index["data"].([]any)
	for _, m := range data {
		m, _ := m.(map[string]any)
		id, _ := m["id"].(string)
		methods[id], _ = m["attributes"].(map[string]any)
	}
	mcp := objectIn(objectIn(index, "meta"), "mcp")
	discovers, _ = mcp["discovery"].(bool)
	return methods, discovers
}

// call is what one request to the bridge, and the request to the site that it leads to, have in common.
type call struct {
	mu        sync.Mutex
	header    http.Header // of the caller's request
	arguments json.RawMessage
	status    int // of the site's response, 0 before it
	challenge string
	reply     struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code    int             `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		} `json:"error"`
	}
}

type callKey struct{}

// withCall gives the remedies at the site's end what the caller sent, and change what the site sent.
func withCall(change func(x *exchange, c *call)) middleware {
	return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !toInvoke(r) || !isSmall(r) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, &call{header: r.Header.Clone()})))
			return
		}
		body := readBody(r)
		c := &call{header: r.Header.Clone()}
		var sent struct {
			Arguments json.RawMessage `json:"arguments"`
		}
		if json.Unmarshal(body, &sent) == nil {
			c.arguments = sent.Arguments
		}
		x := record(next, r.WithContext(context.WithValue(r.Context(), callKey{}, c)), body)
		c.mu.Lock()
		defer c.mu.Unlock()
		if change != nil {
			change(x, c)
		}
		x.writeTo(w)
	})
}

// atTheSite changes a call before it is sent, and notes the response.
func atTheSite(change func(r *http.Request, c *call)) transport {
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		c, ok := r.Context().Value(callKey{}).(*call)
		if !ok {
			return next.RoundTrip(r)
		}
		if change != nil {
			r = r.Clone(r.Context())
			change(r, c)
		}
		resp, err := next.RoundTrip(r)
		if err != nil || !isCall(r) {
			return resp, err
		}
		body, _ := readAhead(resp)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.status, c.challenge = resp.StatusCode, resp.Header.Get("WWW-Authenticate")
		_ = json.Unmarshal(body, &c.reply) // what is no JSON leaves it empty
		return resp, nil
	})
}

// member replaces the raw value of a member in an object's text.
func member(object []byte, name string, value json.RawMessage) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return object
	}
	members[name] = value
	names := make([]string, 0, len(members))
	for n := range members {
		names = append(names, n)
	}
	slices.Sort(names)
	var b bytes.Buffer
	for i, n := range names {
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		b.Write(encode(n))
		b.WriteByte(':')
		b.Write(members[n])
	}
	b.WriteByte('}')
	return b.Bytes()
}
