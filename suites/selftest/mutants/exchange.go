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

// exchange is one request with the bridge's answer to it, which a mutant changes before the caller sees it.
type exchange struct {
	Request *http.Request
	Sent    []byte // the request's body
	Status  int
	Header  http.Header
	Body    []byte
	Method  string // of the request as it came: a HEAD is put to the bridge as a GET, so that there is a body to change
	gzipped bool   // the caller takes gzip, which goes on after the change
	next    http.Handler
}

// Send puts another request of the same caller to the bridge behind the mutant.
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

// Object decodes the answer; nil when it is no object.
func (x *exchange) Object() map[string]any { return decode(x.Body) }

// Set replaces the answer by a JSON document.
func (x *exchange) Set(status int, v any) {
	x.Status, x.Body = status, encode(v)
	x.Header.Set("Content-Type", "application/json")
}

// Refuse replaces the answer by an error in the contract's envelope.
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

// record lets the bridge answer and keeps what it says. Compression is left out: a mutant changes plain bytes.
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

// takesGzip tells whether the caller takes gzip.
func takesGzip(r *http.Request) bool {
	wanted := r.Header.Get("Accept-Encoding")
	return strings.Contains(wanted, "gzip") && !strings.Contains(wanted, "gzip;q=0")
}

// writeTo writes the answer as it is now. Of the answer to a HEAD the server sends the headers alone.
func (x *exchange) writeTo(w http.ResponseWriter) {
	for name, values := range x.Header {
		w.Header()[name] = values
	}
	if x.gzipped && x.Status == http.StatusOK && len(x.Body) > 1<<10 && x.Header.Get("Content-Encoding") == "" {
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		zip.Write(x.Body) //nolint:errcheck // a buffer takes all
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

// maxBuffered is the largest body that passes through a mutant's hands; a larger one goes to the bridge as it is.
const maxBuffered = 4 << 20

// isSmall tells whether a request says that its body may pass through a mutant's hands.
func isSmall(r *http.Request) bool { return r.ContentLength >= 0 && r.ContentLength <= maxBuffered }

// isStream tells whether the answer is one that does not end by itself.
func isStream(r *http.Request) bool {
	return r.Header.Get("Accept") == "text/event-stream" || r.Header.Get("Mcp-Method") == "subscriptions/listen"
}

// walk changes every object of a document, the inner ones first.
func walk(v any, change func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			walk(member, change)
		}
		change(v)
	case []any:
		for _, item := range v {
			walk(item, change)
		}
	}
}

// invoked gives the name of the tool that an invoke asks for.
func (x *exchange) invoked() string {
	name, _ := decode(x.Sent)["name"].(string)
	return name
}

// caller is the user name that a request signs in with by HTTP Basic; "" for others.
func caller(r *http.Request) string {
	name, _, _ := r.BasicAuth()
	return name
}

// errorMessage is the message of a refusal.
func (x *exchange) errorMessage() string {
	e, _ := x.Object()["error"].(map[string]any)
	message, _ := e["message"].(string)
	return message
}

// described gives the name that a describe asks for.
func (x *exchange) described() string { return x.Request.URL.Query().Get("name") }

// named gives the name of the tool that a describe or an invoke asks for.
func (x *exchange) named() string {
	if toInvoke(x.Request) {
		return x.invoked()
	}
	return x.described()
}

// mapped rebuilds a document with every value changed, the inner ones first.
func mapped(v any, change func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = mapped(member, change)
		}
		return change(out)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = mapped(item, change)
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

// rounded gives a document back with every number as a float64 would hold it.
func rounded(v any) any {
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

// lists tells whether the caller may still list tools.
func (x *exchange) lists() bool {
	return x.Send(http.MethodGet, sibling(x.Request, "list"), nil).Status == http.StatusOK
}

// as is the same exchange with the credentials of a built-in account.
func (x *exchange) as(user string) *exchange {
	other := *x
	other.Request = x.Request.Clone(x.Request.Context())
	other.Request.Header.Set("Authorization", basicAuth(user))
	return &other
}

// tool describes a tool to the caller.
func (x *exchange) tool(name string) (tool, bool) {
	target := sibling(x.Request, "describe") + "?" + url.Values{"name": {name}}.Encode()
	t, ok := x.Send(http.MethodGet, target, nil).Object()["tool"].(tool)
	return t, ok
}

// names lists all tools of the caller.
func (x *exchange) names() []string {
	var names []string
	for cursor := ""; ; {
		target := sibling(x.Request, "list")
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

// sibling is the path of another of the three endpoints.
func sibling(r *http.Request, endpoint string) string {
	return path.Join(path.Dir(r.URL.Path), endpoint)
}

// recode gives a refusal another code.
func (x *exchange) recode(from, to string) {
	object := x.Object()
	if e, ok := object["error"].(map[string]any); ok && e["code"] == from {
		e["code"] = to
		x.Body = encode(object)
	}
}

// page replaces the answer by an HTML page, as Drupal's own errors are.
func (x *exchange) page(status int, text string) {
	x.Status, x.Body = status, []byte("<!DOCTYPE html>\n<html><head><title>Error</title></head><body>"+text+"</body></html>\n")
	x.Header.Set("Content-Type", "text/html; charset=UTF-8")
}
