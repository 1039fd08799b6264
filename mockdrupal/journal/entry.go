package journal

import (
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// Entry is one request that reached the site.
type Entry struct {
	Seq        int64       `json:"seq"`    // 1, 2, 3, … in the order of arrival
	Start      time.Time   `json:"start"`  // real time, whatever the site's clock shows
	End        time.Time   `json:"end"`    // zero while the request is under way
	User       string      `json:"user"`   // the account's name; "" when anonymous or refused
	Scheme     string      `json:"scheme"` // basic, bearer, cookie, or "" when no credentials were accepted
	Conn       int64       `json:"conn"`   // number of the connection
	HTTPMethod string      `json:"http_method"`
	Path       string      `json:"path"`
	Host       string      `json:"host"`                  // the header Host, which net/http keeps apart
	RawQuery   string      `json:"query"`                 // as received; tokens and secrets as hashes
	Route      string      `json:"route"`                 // jsonrpc, methods, method, login, …; "" when no route matched
	Header     http.Header `json:"header"`                // as received; credentials and the values of cookies as hashes
	Cookies    []Cookie    `json:"cookies,omitempty"`     // the cookies that the request carried, in order
	Body       []byte      `json:"body"`                  // its first MaxBody bytes; a hash on routes that receive credentials
	BodyBytes  int64       `json:"body_bytes"`            // how many bytes there were
	Calls      []Call      `json:"calls"`                 // the JSON-RPC calls in it, in order
	Status     int         `json:"status"`                // 0 when the connection ended without a response
	SetCookies []Cookie    `json:"set_cookies,omitempty"` // the cookies that the response set
	BytesOut   int64       `json:"bytes_out"`             // bytes of the response's body that were handed to the connection
	BytesTaken int64       `json:"bytes_taken"`           // bytes that the connection took since the request arrived, headers included; see Conn
	Fault      string      `json:"fault"`                 // kind of the fault that was applied
}

// MaxBody is how many bytes of a request's body the journal keeps.
const MaxBody = 64 << 10

// Cookie is a cookie's name and the Hash of its value.
type Cookie struct {
	Name string `json:"name"`
	Hash string `json:"hash"`
}

// SentCookie reports whether the request carried a cookie with this name and value.
func (e Entry) SentCookie(name, value string) bool {
	return slices.Contains(e.Cookies, Cookie{name, Hash(value)})
}

// Call is one JSON-RPC call of a request.
type Call struct {
	Method       string
	ID           fixtures.Raw // as sent; nil when there was none
	Params       fixtures.Raw // as sent, byte for byte; nil when there were none
	Ran          bool         // the method's code ran (it may have failed)
	Notification bool
}

// callJSON keeps id and params as text: every byte, as it was sent.
type callJSON struct {
	Method       string  `json:"method"`
	ID           *string `json:"id,omitempty"`
	Params       *string `json:"params,omitempty"`
	Ran          bool    `json:"ran"`
	Notification bool    `json:"notification,omitempty"`
}

// MarshalJSON writes id and params as texts that hold the JSON as it was sent.
func (c Call) MarshalJSON() ([]byte, error) {
	return json.Marshal(callJSON{c.Method, text(c.ID), text(c.Params), c.Ran, c.Notification})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Call) UnmarshalJSON(data []byte) error {
	var w callJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*c = Call{w.Method, raw(w.ID), raw(w.Params), w.Ran, w.Notification}
	return nil
}

func text(r fixtures.Raw) *string {
	if r == nil {
		return nil
	}
	s := string(r)
	return &s
}

func raw(s *string) fixtures.Raw {
	if s == nil {
		return nil
	}
	return fixtures.Raw(*s)
}

// Filter selects entries of the journal. A zero field selects all.
type Filter struct {
	After  int64  // only entries with a higher number
	User   string // the account's name; "anonymous" for the anonymous ones
	Method string // a path.Match pattern that the id of at least one call matches
	Route  string
	Status int
	Fault  string
	Ran    bool // only requests of which a method ran
	Limit  int  // the last so many; 0: all
}

func (f Filter) selects(e *Entry) bool {
	return (f.User == "" || f.User == e.User || f.User == fixtures.Anonymous && e.User == "") &&
		(f.Route == "" || f.Route == e.Route) &&
		(f.Status == 0 || f.Status == e.Status) &&
		(f.Fault == "" || f.Fault == e.Fault) &&
		(f.Method == "" || slices.ContainsFunc(e.Calls, func(c Call) bool { return Matches(f.Method, c.Method) })) &&
		(!f.Ran || slices.ContainsFunc(e.Calls, func(c Call) bool { return c.Ran }))
}

// Matches reports whether a method's id matches a path.Match pattern; the pattern * matches every id, with slashes too.
func Matches(pattern, id string) bool {
	ok, err := path.Match(pattern, id)
	return err == nil && ok || pattern == "*"
}
