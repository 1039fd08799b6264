package mutants

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/suites/exact"
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
	return strings.Contains(wanted, "gzip") && !strings.Contains(wanted, "gzip;q=0")
}

// writeTo writes the response. Of the response to a HEAD the server sends only the headers.
func (x *exchange) writeTo(w http.ResponseWriter) {
	for name, values := range x.Header {
		w.Header()[name] = values
	}
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

// errorMessage returns the message of a refusal.
func (x *exchange) errorMessage() string {
	e, _ := x.Object()["error"].(map[string]any)
	message, _ := e["message"].(string)
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
func mapValues(v any, change func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = mapValues(member, change)
		}
		return change(out)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = mapValues(item, change)
		}
		return change(out)
	}
	return change(v)
}

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
	return x.Request.Header.Get("Authorization") == "" && x.Request.Header.Get("Cookie") == ""
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
