package selftest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// front is the shape of Mutant.Front.
type front = func(next http.Handler) http.Handler

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

// Ask puts another request of the same caller to the bridge behind the mutant.
func (x *exchange) Ask(method, target string, body []byte) *exchange {
	r := x.Request.Clone(x.Request.Context())
	r.Method = method
	u, err := r.URL.Parse(target)
	if err != nil {
		panic(err)
	}
	r.URL, r.RequestURI = u, target
	return answer(x.next, r, body)
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

// answer lets the bridge answer and keeps what it says. Compression is left out: a mutant changes plain bytes.
func answer(next http.Handler, r *http.Request, body []byte) *exchange {
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

// send writes the answer as it is now. Of the answer to a HEAD the server sends the headers alone.
func (x *exchange) send(w http.ResponseWriter) {
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

// maxKept is the largest body that passes through a mutant's hands; a larger one goes to the bridge as it is.
const maxKept = 4 << 20

// small tells whether a request says that its body may pass through a mutant's hands.
func small(r *http.Request) bool { return r.ContentLength >= 0 && r.ContentLength <= maxKept }

// isStream tells whether the answer is one that does not end by itself.
func isStream(r *http.Request) bool {
	return r.Header.Get("Accept") == "text/event-stream" || r.Header.Get("Mcp-Method") == "subscriptions/listen"
}

// onAnswer changes the answers to the requests that match.
func onAnswer(matches func(*http.Request) bool, change func(x *exchange)) front {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !matches(r) || !small(r) || isStream(r) {
				next.ServeHTTP(w, r)
				return
			}
			x := answer(next, r, drain(r))
			change(x)
			x.send(w)
		})
	}
}

// onRequest changes or answers requests before the bridge sees them; handled says that the answer is written.
func onRequest(change func(w http.ResponseWriter, r *http.Request, next http.Handler) (handled bool)) front {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !change(w, r, next) {
				next.ServeHTTP(w, r)
			}
		})
	}
}

func everything(*http.Request) bool    { return true }
func toList(r *http.Request) bool      { return strings.HasSuffix(r.URL.Path, "/mcp/tools/list") }
func toDescribe(r *http.Request) bool  { return strings.HasSuffix(r.URL.Path, "/mcp/tools/describe") }
func toInvoke(r *http.Request) bool    { return strings.HasSuffix(r.URL.Path, "/mcp/tools/invoke") }
func toToolViews(r *http.Request) bool { return toList(r) || toDescribe(r) }

// page is a list answer taken apart.
type page struct {
	*exchange
	Tools  []any
	Cursor string // the cursor that was asked for; "" on the first page
	Object map[string]any
}

// onList changes every good page of a list.
func onList(change func(p *page)) front {
	return onAnswer(toList, func(x *exchange) {
		object := x.Object()
		tools, ok := object["tools"].([]any)
		if x.Status != http.StatusOK || !ok {
			return
		}
		p := &page{exchange: x, Tools: tools, Cursor: x.Request.URL.Query().Get("cursor"), Object: object}
		change(p)
		if p.Object != nil {
			if _, kept := p.Object["tools"]; kept {
				p.Object["tools"] = p.Tools
			}
			x.Body = encode(p.Object)
		}
	})
}

// tool is one tool of an answer.
type tool = map[string]any

// onTool changes every tool wherever it is shown, in list and in describe.
func onTool(change func(t tool)) front {
	return onAnswer(toToolViews, func(x *exchange) {
		object := x.Object()
		if x.Status != http.StatusOK || object == nil {
			return
		}
		tools, _ := object["tools"].([]any)
		if one, ok := object["tool"]; ok {
			tools = []any{one}
		}
		for _, t := range tools {
			if t, ok := t.(tool); ok {
				change(t)
			}
		}
		x.Body = encode(object)
	})
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

// onInvoke changes the answers of invoke.
func onInvoke(change func(x *exchange)) front { return onAnswer(toInvoke, change) }

// onResult changes the results of invokes that succeed.
func onResult(change func(result any) any) front {
	return onInvoke(func(x *exchange) {
		object := x.Object()
		if result, ok := object["result"]; ok && x.Status == http.StatusOK {
			object["result"] = change(result)
			x.Body = encode(object)
		}
	})
}

// onRefusal changes every 4xx and 5xx of the three endpoints.
func onRefusal(change func(x *exchange)) front {
	return onAnswer(everything, func(x *exchange) {
		if x.Status >= 400 {
			change(x)
		}
	})
}

// onError changes the error object of every refusal.
func onError(change func(x *exchange, e map[string]any)) front {
	return onRefusal(func(x *exchange) {
		object := x.Object()
		if e, ok := object["error"].(map[string]any); ok {
			change(x, e)
			x.Body = encode(object)
		}
	})
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

// onCode changes the refusals that carry the error code.
func onCode(code string, change func(x *exchange)) front {
	return onRefusal(func(x *exchange) {
		if e, _ := x.Object()["error"].(map[string]any); e["code"] == code {
			change(x)
		}
	})
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

// onInput changes the inputSchema of every tool.
func onInput(change func(schema map[string]any)) front {
	return onTool(func(t tool) {
		if schema, ok := t["inputSchema"].(map[string]any); ok {
			change(schema)
		}
	})
}

// onProperties changes the property list of every tool with parameters.
func onProperties(change func(schema, properties map[string]any)) front {
	return onInput(func(schema map[string]any) {
		if properties, ok := schema["properties"].(map[string]any); ok && len(properties) > 0 {
			change(schema, properties)
		}
	})
}

// onProperty changes the schema of every parameter.
func onProperty(change func(property map[string]any)) front {
	return onProperties(func(_, properties map[string]any) {
		for _, p := range properties {
			if p, ok := p.(map[string]any); ok {
				change(p)
			}
		}
	})
}

// onNested changes the schemas within the schema of every parameter.
func onNested(change func(schema map[string]any)) front {
	return onProperty(func(property map[string]any) {
		for _, member := range property {
			walk(member, change)
		}
	})
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

// onStrings makes a change of strings one of any value.
func onStrings(change func(string) string) func(any) any {
	return func(v any) any {
		if s, ok := v.(string); ok {
			return change(s)
		}
		return v
	}
}
