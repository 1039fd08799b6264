package check

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// Response is what the bridge said to one request, with the request beside it.
type Response struct {
	Who      Identity
	base     string // URL that the request was sent to; "": that of the run
	Method   string
	Path     string
	RawQuery string
	Sent     http.Header
	At       time.Time
	Took     time.Duration

	Status int
	Header http.Header
	Body   []byte
	Err    error // why no (whole) response came

	T      *T
	Shown  string // the body of the request
	unseen int    // bytes of it that Shown lacks
	asked  any    // id of the JSON-RPC request; nil where it was none
	parsed any
	failed error
	read   bool
	viewed bool             // what it says is a view of what came by MCP
	again  func() *Response // sends the request by itself; nil: it was
}

// Subject names the request in a message: `invoke no.such.tool as agent`.
func (a *Response) Subject() string {
	what := a.Method + " " + a.Path
	if a.RawQuery != "" {
		what += "?" + a.RawQuery
	}
	if a.Method == http.MethodPost && a.Shown != "" {
		what += " " + a.Shown
	}
	return exact.Cut(what, 160) + " as " + a.Who.String()
}

// Throttled reports whether the bridge refused the request because of how many came before it: any bridge may, and a run
// sends more credentials than people do. A nil response was not.
func (a *Response) Throttled() bool {
	return a != nil && a.Status == http.StatusTooManyRequests && a.Header.Get("Retry-After") != ""
}

// Outcome says in one line what came.
func (a *Response) Outcome() string {
	switch {
	case a.Status == 0:
		if why := a.Err.Error(); strings.HasPrefix(why, "no response") {
			return why
		}
		return "no response: " + a.Err.Error()
	case a.Err != nil:
		return fmt.Sprintf("%d, then %v", a.Status, a.Err)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, exact.Cut(OneLine(string(a.Body)), 200)))
}

func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// JSON is the body, read strictly (package exact).
func (a *Response) JSON() (any, error) {
	if !a.read {
		a.parsed, a.failed = a.T.bodies.parse(a.Body)
		a.read = true
	}
	return a.parsed, a.failed
}

// documents are the bodies that were read before: a bridge says the same again and again. What they hold is shared and
// never changed.
type documents struct {
	mu   sync.Mutex
	read map[string]document
}

type document struct {
	value any
	err   error
}

// maxRemembered bounds the bodies worth remembering, in bytes: huge ones come once.
const maxRemembered = 256 << 10

func (d *documents) parse(body []byte) (any, error) {
	if len(body) > maxRemembered {
		return exact.Parse(body)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.read[string(body)]
	if !ok {
		if d.read == nil {
			d.read = map[string]document{}
		}
		known.value, known.err = exact.Parse(body)
		d.read[string(body)] = known
	}
	return known.value, known.err
}

// Object is the body as a JSON object; nil when it is none. It is read leniently where the strict reading fails, so
// that a fault of form does not hide what the response says: list/answers-json and errors/envelope test the form.
func (a *Response) Object() map[string]any {
	v, err := a.JSON()
	if err != nil {
		dec := json.NewDecoder(strings.NewReader(strings.TrimPrefix(string(a.Body), "\ufeff")))
		dec.UseNumber()
		if dec.Decode(&v) != nil {
			return nil
		}
	}
	object, _ := v.(map[string]any)
	return object
}

// Member is a member of the body's object.
func (a *Response) Member(name string) (any, bool) {
	v, ok := a.Object()[name]
	return v, ok
}

// Code is the error's code; "" without one.
func (a *Response) Code() string {
	code, _ := a.ErrorObject()["code"].(string)
	return code
}

// Message is the error's message; "" without one.
func (a *Response) Message() string {
	message, _ := a.ErrorObject()["message"].(string)
	return message
}

func (a *Response) ErrorObject() map[string]any {
	object, _ := a.Object()["error"].(map[string]any)
	return object
}

// Succeeded reports whether the whole of a 2xx came, without an error in it.
func (a *Response) Succeeded() bool {
	return a.Err == nil && a.Status >= 200 && a.Status <= 299 && a.ErrorObject() == nil
}

// IsError reports whether the response refuses: a 4xx or 5xx, or nothing at all.
func (a *Response) IsError() bool {
	return a.Status == 0 || a.Status >= 400 || a.viewed && a.ErrorObject() != nil
}

// Tool is one tool as a list or describe response shows it.
type Tool map[string]any

// Name is the tool's name; "" where it is missing or no string.
func (t Tool) Name() string {
	name, _ := t["name"].(string)
	return name
}

// Input is the tool's inputSchema; nil where it is no object.
func (t Tool) Input() map[string]any {
	schema, _ := t["inputSchema"].(map[string]any)
	return schema
}

// Tools are the tools of a list response; items that are no objects are left out.
func (a *Response) Tools() []Tool {
	list, _ := a.Object()["tools"].([]any)
	tools := make([]Tool, 0, len(list))
	for _, item := range list {
		if tool, ok := item.(map[string]any); ok {
			tools = append(tools, tool)
		}
	}
	return tools
}

// Tool is the tool of a describe response; nil without one.
func (a *Response) Tool() Tool {
	tool, _ := a.Object()["tool"].(map[string]any)
	return tool
}

// NextCursor is the cursor of a list response; "" at the end.
func (a *Response) NextCursor() string {
	cursor, _ := a.Object()["nextCursor"].(string)
	return cursor
}

// ParsedBody is the body as JSON, nil where it is none.
func (a *Response) ParsedBody() any {
	v, err := a.JSON()
	if err != nil {
		return nil
	}
	return v
}
