package mutants

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// exchange is one request with the response of the bridge, which a mutant changes before the caller receives it.
type exchange struct {
	Request *http.Request
	Sent    []byte // the request's body
	Status  int
	Header  http.Header
	Body    []byte
	Method  string // of the request as received: the bridge gets a HEAD as a GET, so that there is a body to change
	gzipped bool   // the caller accepts gzip: the body is compressed after the change
	next    http.Handler
}

// Send sends another request of the same caller to the bridge behind the mutant.
func (x *exchange) Send(method, target string, body []byte) *exchange {
	r := x.Request.Clone(x.Request.Context())
	r.Method = method
	u, err := r.URL.Parse(target)
	if err != nil {
		panic(err)
	}
	r.URL, r.RequestURI = u, target
	return record(x.next, r, body)
}

// Object decodes the body of the response; nil when it is no object.
func (x *exchange) Object() map[string]any { return decode(x.Body) }

// Set replaces the response by a JSON document.
func (x *exchange) Set(status int, v any) {
	x.Status, x.Body = status, encode(v)
	x.Header.Set("Content-Type", "application/json")
}

// Refuse replaces the response by an error in the contract's envelope.
func (x *exchange) Refuse(status int, code, message string) {
	x.Set(status, map[string]any{"error": map[string]any{"code": code, "message": message}})
}

func decode(data []byte) map[string]any {
	if v, err := exact.Parse(data); err == nil {
		object, _ := v.(map[string]any)
		return object
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var object map[string]any
	if dec.Decode(&object) != nil {
		return nil
	}
	return object
}

func encode(v any) []byte {
	data, err := exact.Write(v)
	if err != nil {
		panic(err)
	}
	return data
}

// record passes a request to the bridge and returns the exchange, uncompressed, as a mutant changes plain bytes.
func record(next http.Handler, r *http.Request, body []byte) *exchange {
	x := &exchange{Sent: body, Method: r.Method, next: next, gzipped: takesGzip(r)}
	x.Request = r.Clone(r.Context())
	x.Request.Header.Del("Accept-Encoding")
	if r.Method == http.MethodHead && toToolViews(r) {
		x.Request.Method = http.MethodGet
	}
	x.Request.Body, x.Request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	rec := httptest.NewRecorder()
	next.ServeHTTP(rec, x.Request)
	x.Status, x.Header, x.Body = rec.Code, rec.Header(), rec.Body.Bytes()
	return x
}

// takesGzip reports whether the caller accepts gzip.
func takesGzip(r *http.Request) bool {
	wanted := r.Header.Get("Accept-Encoding")
	return strings.Contains(wanted, "gzip") && !strings.Contains(strings.ReplaceAll(wanted, " ", ""), "gzip;q=0")
}

// writeTo writes the response. Of the response to a HEAD the server sends only the headers.
func (x *exchange) writeTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), x.Header)
	if x.gzipped && x.Status == http.StatusOK && len(x.Body) > 1<<10 && x.Header.Get("Content-Encoding") == "" {
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		zip.Write(x.Body) //nolint:errcheck // a buffer does not fail
		zip.Close()       //nolint:errcheck // likewise
		x.Body = packed.Bytes()
		w.Header().Set("Content-Encoding", "gzip")
	}
	if x.Method != http.MethodHead || toToolViews(x.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(x.Body)))
	}
	w.WriteHeader(x.Status)
	w.Write(x.Body) //nolint:errcheck // the caller has gone
}

// maxBuffered is the largest request body that a mutant reads, in bytes; a larger one goes to the bridge unread.
const maxBuffered = 4 << 20

// isSmall reports whether a request declares a body that a mutant may read.
func isSmall(r *http.Request) bool { return r.ContentLength >= 0 && r.ContentLength <= maxBuffered }

// isStream reports whether the response is a stream of events, which does not end by itself.
func isStream(r *http.Request) bool {
	return r.Header.Get("Accept") == "text/event-stream" || r.Header.Get("Mcp-Method") == "subscriptions/listen"
}

// walkObjects changes every object of a document in place, the inner ones first.
func walkObjects(v any, change func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			walkObjects(member, change)
		}
		change(v)
	case []any:
		for _, item := range v {
			walkObjects(item, change)
		}
	}
}

// invoked returns the name of the tool in an invoke request.
func (x *exchange) invoked() string {
	name, _ := decode(x.Sent)["name"].(string)
	return name
}

// caller returns the user name of HTTP Basic authentication; "" without it.
func caller(r *http.Request) string {
	name, _, _ := r.BasicAuth()
	return name
}

func authorized(r *http.Request) string { return r.Header.Get("Authorization") }

// errorMessage returns the message of a refusal.
func (x *exchange) errorMessage() string {
	message, _ := objectIn(x.Object(), "error")["message"].(string)
	return message
}

// described returns the name in a describe request.
func (x *exchange) described() string { return x.Request.URL.Query().Get("name") }

// named returns the name of the tool in a describe or an invoke request.
func (x *exchange) named() string {
	if toInvoke(x.Request) {
		return x.invoked()
	}
	return x.described()
}

// mapValues returns a document with every value changed, the inner ones first.
func mapValues(v any, change func(any) any) any { return exact.Mapped(v, change) }

func readBody(r *http.Request) []byte {
	if r.Body == nil {
		return nil
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	return body
}

func setBody(r *http.Request, body []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
}

// peekBody reads the body of a request and leaves it for the bridge.
func peekBody(r *http.Request) []byte {
	body := readBody(r)
	setBody(r, body)
	return body
}

// withBody returns a copy of a request with a body of its own.
func withBody(r *http.Request, body []byte) *http.Request {
	r = r.Clone(r.Context())
	setBody(r, body)
	return r
}

// roundToFloat64 returns a document with every number as a float64.
func roundToFloat64(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var lossy any
	if json.Unmarshal(data, &lossy) != nil {
		return v
	}
	return lossy
}

func (x *exchange) anonymous() bool {
	return authorized(x.Request) == "" && x.Request.Header.Get("Cookie") == ""
}

// lists reports whether the caller may list tools at this moment.
func (x *exchange) lists() bool {
	return x.Send(http.MethodGet, siblingPath(x.Request, "list"), nil).Status == http.StatusOK
}

// as returns the exchange with the credentials of a built-in account.
func (x *exchange) as(user string) *exchange {
	other := *x
	other.Request = x.Request.Clone(x.Request.Context())
	other.Request.Header.Set("Authorization", basicAuth(user))
	return &other
}

// tool requests the description of a tool for the caller.
func (x *exchange) tool(name string) (tool, bool) {
	target := siblingPath(x.Request, "describe") + "?" + url.Values{"name": {name}}.Encode()
	t, ok := x.Send(http.MethodGet, target, nil).Object()["tool"].(tool)
	return t, ok
}

// names requests all pages of the list for the caller and returns the names.
func (x *exchange) names() []string {
	var names []string
	for cursor := ""; ; {
		target := siblingPath(x.Request, "list")
		if cursor != "" {
			target += "?" + url.Values{"cursor": {cursor}}.Encode()
		}
		object := x.Send(http.MethodGet, target, nil).Object()
		tools, _ := object["tools"].([]any)
		for _, t := range tools {
			names = append(names, t.(tool)["name"].(string))
		}
		if cursor, _ = object["nextCursor"].(string); cursor == "" {
			return names
		}
	}
}

// siblingPath returns the path of another of the three endpoints.
func siblingPath(r *http.Request, endpoint string) string {
	return path.Join(path.Dir(r.URL.Path), endpoint)
}

// recode changes the code of a refusal.
func (x *exchange) recode(from, to string) {
	object := x.Object()
	if e, ok := object["error"].(map[string]any); ok && e["code"] == from {
		e["code"] = to
		x.Body = encode(object)
	}
}

// page replaces the response by an HTML page, like Drupal's own errors.
func (x *exchange) page(status int, text string) {
	x.Status, x.Body = status, []byte("<!DOCTYPE html>\n<html><head><title>Error</title></head><body>"+text+"</body></html>\n")
	x.Header.Set("Content-Type", "text/html; charset=UTF-8")
}

// runOnceAllowed runs as the service account what was once allowed to the same key, even if the site denies it now; "" is no key.
func runOnceAllowed(key func(x *exchange) string) func(*siteClient) middleware {
	allowed := newSet()
	return withSite(toInvoke, func(site *siteClient, x *exchange) {
		who := key(x)
		called := who + "\x00" + x.invoked()
		switch {
		case who == "":
		case x.Status == http.StatusOK:
			allowed.add(called)
		case (x.Status == http.StatusForbidden || x.Status == http.StatusNotFound) && allowed.has(called) && x.lists():
			site.run(x, basicAuth("service"))
		}
	})
}

// useFirstToken handles all tokens of a user like the first one received.
func useFirstToken(matches func(*http.Request) bool) func(*siteClient) middleware {
	tokens := newMemory[string]()
	return func(site *siteClient) middleware {
		return beforeBridge(func(r *http.Request) {
			token := authorized(r)
			if !strings.HasPrefix(token, "Bearer ") {
				return
			}
			if user, ok := site.call(token, "whoami", map[string]any{})["result"].(map[string]any); ok {
				if first := tokens.keep(fmt.Sprint(user["name"]), token); matches(r) {
					r.Header.Set("Authorization", first)
				}
			}
		})
	}
}

// sharedClient sends a call with the credentials of another call that is under way, if there is one.
func sharedClient() transport {
	var (
		mu    sync.Mutex
		under []string
	)
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !isCall(r) {
			return next.RoundTrip(r)
		}
		own := authorized(r)
		r = r.Clone(r.Context())
		mu.Lock()
		if len(under) > 0 {
			r.Header.Set("Authorization", under[0])
		}
		under = append(under, own)
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			under = slices.Delete(under, slices.Index(under, own), slices.Index(under, own)+1)
		}()
		return next.RoundTrip(r)
	})
}

// shareFirstResponse sends every caller the first good response to a request.
func shareFirstResponse(matches func(*http.Request) bool, key func(*http.Request) string) middleware {
	responses := newMemory[*exchange]()
	return onResponse(matches, func(x *exchange) {
		if x.Method != http.MethodGet {
			return
		}
		if first, ok := responses.get(key(x.Request)); ok {
			x.Status, x.Header, x.Body = first.Status, first.Header.Clone(), first.Body
			return
		}
		if x.Status == http.StatusOK {
			kept := *x
			kept.Header = x.Header.Clone()
			responses.put(key(x.Request), &kept)
		}
	})
}

// swapUnderLoad sends a caller the last response to another caller while at least busy requests are under way.
func swapUnderLoad(matches func(*http.Request) bool, busy int64, concerns func(x *exchange) bool) middleware {
	var (
		under atomic.Int64
		mu    sync.Mutex
		last  *exchange
	)
	return counting(&under, onResponse(matches, func(x *exchange) {
		if !concerns(x) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		mine := *x
		same := func(header string) bool { return last.Request.Header.Get(header) == x.Request.Header.Get(header) }
		if last != nil && under.Load() >= busy && !(same("Authorization") && same("Cookie")) {
			x.Status, x.Body = last.Status, last.Body
		}
		last = &mine
	}))
}

// shareDescribedName describes for each caller what the last one asked for.
func shareDescribedName() middleware {
	var last atomic.Value
	return beforeBridge(func(r *http.Request) {
		if toDescribe(r) {
			last.Store(r.URL.RawQuery)
			time.Sleep(time.Millisecond)
			r.URL.RawQuery = last.Load().(string)
		}
	})
}

// shareCall runs for each tools/call what the last one asked for.
func shareCall() middleware {
	var last atomic.Value
	return onMCPCall(func(params map[string]any) {
		last.Store(maps.Clone(params))
		time.Sleep(time.Millisecond)
		clear(params)
		maps.Copy(params, last.Load().(map[string]any))
	})
}

// counting counts in under the requests that are under way.
func counting(under *atomic.Int64, change middleware) middleware {
	return func(next http.Handler) http.Handler {
		changed := change(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			under.Add(1)
			defer under.Add(-1)
			changed.ServeHTTP(w, r)
		})
	}
}

// connectionKey is the context key of a connection's firstCaller.
type connectionKey struct{}

// firstCaller holds the Authorization header of the first request of a connection.
type firstCaller struct {
	once  sync.Once
	value string
}

func storeFirstCaller(s *http.Server) {
	s.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, &firstCaller{})
	}
}

// useFirstCaller handles a request as one of the first caller of the connection while at least busy requests are under way.
func useFirstCaller(busy int64) middleware {
	var under atomic.Int64
	return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		defer under.Add(-1)
		crowded := under.Add(1) >= busy
		if first, ok := r.Context().Value(connectionKey{}).(*firstCaller); ok {
			first.once.Do(func() { first.value = authorized(r) })
			if crowded {
				r.Header.Set("Authorization", first.value)
			}
		}
		next.ServeHTTP(w, r)
	})
}

// actAsSessionOwner handles requests of a session that concerns selects with the credentials of the caller that opened the session.
func actAsSessionOwner(concerns func(r *http.Request, owner string) bool) middleware {
	return inOwnedSession(func(_ http.ResponseWriter, r *http.Request, _ http.Handler, owner string) (handled bool) {
		if concerns(r, owner) {
			r.Header.Set("Authorization", owner)
		}
		return false
	})
}

// inOwnedSession lets the requests of a session pass a function that knows who opened it, by Authorization, and may respond itself.
func inOwnedSession(serve func(w http.ResponseWriter, r *http.Request, next http.Handler, owner string) (handled bool)) middleware {
	owners := newMemory[string]() // by session id
	return throughWhere(toMCP, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		id := r.Header.Get("Mcp-Session-Id")
		if owner, known := owners.get(id); known && serve(w, r, next, owner) {
			return
		}
		if id != "" || isStream(r) {
			next.ServeHTTP(w, r)
			return
		}
		x := record(next, r, readBody(r))
		if opened := x.Header.Get("Mcp-Session-Id"); opened != "" {
			owners.put(opened, authorized(r))
		}
		x.writeTo(w)
	})
}

// inLatin1 reads the bytes of a text of UTF-8 as Latin-1.
func inLatin1(text string) string {
	var latin strings.Builder
	for _, b := range []byte(text) {
		latin.WriteRune(rune(b))
	}
	return latin.String()
}
