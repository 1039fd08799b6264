package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// Response is what the bridge said to one request, with the request beside it.
type Response struct {
	*Target  // that the request was sent to
	Who      Identity
	Base     string // URL of the target, or of its replica
	Method   string
	Path     string
	RawQuery string
	Sent     http.Header
	Shown    string // the body of the request
	Unseen   int    // bytes of it that Shown lacks
	Asked    any    // id of the JSON-RPC request; nil where it was none
	At       time.Time
	Took     time.Duration

	Elsewhere bool // the request names another server than the target, in its Host or in an absolute form

	Status int
	Header http.Header
	Body   []byte
	Err    error // why no (whole) response came

	parsed  any
	failed  error
	read    bool
	lenient any // what a lenient reading of a wrong body gave
	reread  bool
	viewed  bool // what it says is a view of what came by MCP
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

// Throttled reports whether the bridge, or a proxy, which often does not say for how long, refused the request because of how many
// came before it: any bridge may, and a run sends more credentials than people do. A nil response was not.
func (a *Response) Throttled() bool {
	return a != nil && (a.Status == http.StatusTooManyRequests && (a.Header.Get("Retry-After") != "" || a.MadeBy() != nil) || a.ThrottledByMCP())
}

// ThrottledByMCP reports whether a call of a tool by MCP, which has neither status nor code for it, failed with words of a limit.
func (a *Response) ThrottledByMCP() bool {
	return a.Status == http.StatusOK && strings.Contains(a.Shown, `"tools/call"`) && bytes.Contains(a.Body, []byte(`"isError"`)) && ofLimit.Match(a.Body)
}

var ofLimit = regexp.MustCompile(`(?i)too often|too many (calls|requests)|rate.?limit|throttled`)

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
	came := strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, exact.Cut(OneLine(string(a.Body)), 200)))
	if bytes.HasPrefix(a.Body, []byte("{")) && a.Header.Get("Content-Encoding") == "" { // the beginning does not show what is wrong behind it
		_, err := a.JSON()
		if _, never := err.(unread); err != nil && !never {
			came += fmt.Sprintf(", which is no valid JSON: %v", err)
		}
	}
	return came
}

// OneLine is a text without line breaks and repeated spaces.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// JSON is the body, read strictly (package exact).
func (a *Response) JSON() (any, error) {
	if !a.read {
		a.parsed, a.failed = a.parse()
		a.read = true
	}
	return a.parsed, a.failed
}

// Object is the body as a JSON object; nil when it is none. It is read leniently where the strict reading fails, so
// that a fault of form does not hide what the response says: list/answers-json and errors/envelope test the form.
func (a *Response) Object() map[string]any {
	v, err := a.JSON()
	if err != nil {
		if !a.reread {
			a.lenient, a.reread = a.readLeniently(err), true
		}
		v = a.lenient
	}
	object, _ := v.(map[string]any)
	return object
}

// readLeniently is the first value of a body that is wrong; nil where there is none.
func (a *Response) readLeniently(wrong error) (v any) {
	if _, never := wrong.(unread); never {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(a.Body, []byte("\ufeff"))))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return nil
	}
	return v
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

// Names are the names of the tools of a list response, in order.
func (a *Response) Names() []string { return NamesOf(a.Tools()) }

// NamesOf are the names of tools, in order.
func NamesOf(tools []Tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name()
	}
	return names
}

// Invoked is the tool and the arguments in the body of an invoke, or of tools/call; "" and nil where it is none.
func (a *Response) Invoked() (tool string, arguments json.RawMessage) {
	type call struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	var body struct {
		call
		Params call `json:"params"`
	}
	if json.Unmarshal([]byte(a.Shown), &body) != nil {
		return "", nil
	}
	if a.Asked != nil {
		return body.Params.Name, body.Params.Arguments
	}
	return body.Name, body.Arguments
}

// Is reports whether the response has one of the statuses. What came by MCP in place of the three endpoints is a success or
// an error, whatever its status.
func (a *Response) Is(statuses ...int) bool {
	if a.viewed {
		return (a.ErrorObject() != nil) == (statuses[0] >= http.StatusBadRequest)
	}
	return slices.Contains(statuses, a.Status)
}

// HasCode reports whether the error has one of the codes. MCP has none of the contract's.
func (a *Response) HasCode(codes ...string) bool {
	return a.Target != nil && a.MCPOnly || slices.Contains(codes, a.Code())
}

// RefusedForLength reports whether the server refused a request for its length, before it looked where it goes (such
// refusals need no envelope, errors/envelope).
func (a *Response) RefusedForLength() bool {
	return a.Status == http.StatusRequestURITooLong || a.Status == http.StatusRequestHeaderFieldsTooLarge
}

// Failing reports whether a status is that of a site, or of what stands before it, that cannot serve.
func Failing(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// longestPause bounds what a Retry-After is read as, in seconds, so that no number of a bridge's overflows.
const longestPause = 1 << 30

// Bearer is the Bearer challenge of the response; nil without one, or without a header that can be read.
func (a *Response) Bearer() map[string]string {
	challenges, err := oauthex.ParseWWWAuthenticate(a.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil
	}
	for _, c := range challenges {
		if strings.EqualFold(c.Scheme, "bearer") {
			if c.Params == nil {
				return map[string]string{}
			}
			return c.Params
		}
	}
	return nil
}

// Challenges is the status and the challenges of the response, for people.
func (a *Response) Challenges() string {
	return fmt.Sprintf("%d, WWW-Authenticate %q", a.Status, strings.Join(a.Header.Values("WWW-Authenticate"), ", "))
}

// Busy reports whether the response is that the site cannot serve now, and how long it asks to wait.
func (a *Response) Busy() (pause time.Duration, busy bool) {
	refused := a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != ""
	if pause, told := a.RetryAfter(); refused && told {
		return pause, true
	}
	return time.Second, refused || a.ThrottledByMCP()
}

// RetryAfter reads the header of that name: seconds, or a date.
func (a *Response) RetryAfter() (pause time.Duration, ok bool) {
	after := a.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil {
		return time.Duration(max(0, min(seconds, longestPause))) * time.Second, true
	}
	at, err := http.ParseTime(after)
	return max(0, time.Until(at)), err == nil
}

// Unmet is what MustSucceed and MustMeet panic with where the positive control of a refusal fails.
type Unmet struct {
	Response *Response
	Want     types.GomegaMatcher // nil: a success
	Clauses  []string            // that test it; nil: not known
}

// MustSucceed is for the positive control of a refusal: the smallest request that has to succeed, so that a bridge that refuses
// everything does not pass. If the positive control itself fails, the check is blocked by the clauses that test it; without
// clauses, by any clause that fails.
func (a *Response) MustSucceed(clauses ...string) *Response {
	if !a.Succeeded() {
		panic(Unmet{a, nil, clauses})
	}
	return a
}

// MustMeet is MustSucceed for a positive control that has to match more than a success.
func (a *Response) MustMeet(want types.GomegaMatcher, clauses ...string) *Response {
	if ok, err := want.Match(a); err != nil || !ok {
		panic(Unmet{a, want, clauses})
	}
	return a
}
