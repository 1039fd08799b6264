package callpage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// Request is one to send as it stands, with the credentials of the caller.
type Request struct {
	Method  string  `json:"method"`
	Path    string  `json:"path"`    // below the bridge's URL, with the query
	Header  string  `json:"header"`  // a line each
	Body    *string `json:"body"`    // nil: the bytes of the report, which a form may not be able to hold
	Session bool    `json:"session"` // in a new session of MCP
}

// failureView is a failed clause of the report, and one of its exchanges ready to send again.
type failureView struct {
	reports.Result
	At      int // the exchange
	Request Request
	Session string        // of MCP, in which the request was sent; "": in none
	Unknown string        // its caller, whose credentials nobody has; "": they are known
	Faults  []fault.Fault // of the site at that time, as far as the report tells
	Call    *Call         // the same as a call of a tool; nil: it is none
}

// failed are the results of the report that say what is wrong.
func (s *server) failed() []reports.Result {
	if s.Report == nil {
		return nil
	}
	return s.Report.With(reports.Fail, reports.Warn, reports.Known)
}

// exchange is one of a failed clause; false where the report has none of it.
func (s *server) exchange(clause string, at int) (reports.Result, reports.Exchange, bool) {
	for _, r := range s.failed() {
		if r.ID == clause && 0 <= at && at < len(r.Evidence) {
			return r, r.Evidence[at], true
		}
	}
	return reports.Result{}, reports.Exchange{}, false
}

// failure is the exchange that the address of the page names; nil: none.
func (s *server) failure(query url.Values, callers []callerView) *failureView {
	at, err := strconv.Atoi(query.Get("exchange"))
	if err != nil {
		for _, r := range s.failed() {
			if lead, ok := r.Lead(); ok && r.ID == query.Get("clause") && lead.Request != nil {
				at = *lead.Request
			}
		}
	}
	result, e, there := s.exchange(query.Get("clause"), at)
	if !there {
		return nil
	}
	v := &failureView{Result: result, At: at, Request: Request{Method: e.Request.Method, Path: pathOf(e.Request.URL, s.Report.Target.URL)}, Call: callOf(e)}
	for _, name := range slices.Sorted(maps.Keys(e.Request.Header)) {
		value := e.Request.Header[name]
		if http.CanonicalHeaderKey(name) == "Mcp-Session-Id" {
			v.Session = value
		}
		if !strings.Contains(value, redact.Mark) { // those come with the caller
			v.Request.Header += name + ": " + value + "\n"
		}
	}
	v.Request.Session = v.Session != "" && (e.Response == nil || e.Response.Status != http.StatusNotFound) // which an unknown session gets
	if e.Request.Encoding == "" {
		v.Request.Body = &e.Request.Body
	}
	if e.Account == nil && !slices.ContainsFunc(callers, func(c callerView) bool { return c.Name == e.Identity }) {
		v.Unknown = e.Identity
	}
	for _, up := range e.Drupal {
		if had := faultOf(up); had.Kind != "" && !slices.Contains(v.Faults, had) {
			v.Faults = append(v.Faults, had)
		}
	}
	return v
}

// faultOf is the fault that a request met at the site, to arm again: the report has its kind, and what it did.
func faultOf(up reports.Upstream) fault.Fault {
	f := fault.Fault{Kind: up.Fault}
	switch up.Fault {
	case fault.Status:
		f.Status = up.Status
	case fault.Delay, fault.DelayBody:
		f.Delay = time.Duration(up.DurationMS) * time.Millisecond
	}
	if slices.ContainsFunc(fault.Kinds(), func(k fault.Kind) bool { return k.Name == f.Kind && k.Call }) {
		f.Method = up.Method
	}
	return f
}

// pathOf is an address without that of the bridge which the report is of, or of one of its replicas.
func pathOf(address, target string) string {
	path, ok := strings.CutPrefix(address, strings.TrimSuffix(target, "/"))
	if !ok || !strings.HasPrefix(path, "/") {
		_, path, _ = strings.Cut(address, "://")
		_, path, _ = strings.Cut(path, "/")
		path = "/" + path
	}
	return path
}

// callOf is an exchange as the call of a tool; nil where it is none, or has more than that.
func callOf(e reports.Exchange) *Call {
	type params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	c, p := &Call{Caller: e.Identity, Way: REST}, params{}
	u, err := url.Parse(e.Request.URL)
	if err != nil || e.Request.Method != http.MethodPost || e.Request.Truncated > 0 || e.Request.Encoding != "" {
		return nil
	}
	switch {
	case strings.HasSuffix(u.Path, client.InvokePath):
		err = strict(e.Request.Body, &p)
	case strings.HasSuffix(u.Path, client.MCPPath):
		var message struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
			Params  params          `json:"params"`
		}
		err = strict(e.Request.Body, &message)
		if c.Way, p = MCP, message.Params; message.Method != "tools/call" {
			return nil
		}
	}
	if err != nil || p.Name == "" || p.Arguments == nil {
		return nil
	}
	c.Tool, c.Arguments = p.Name, p.Arguments
	return c
}

// complete checks a request to send as it stands, and takes the body from the report where the page does not give it.
func (s *server) complete(ctx context.Context, call *Call) error {
	r := call.Request
	if r == nil || r.Method == "" || !strings.HasPrefix(r.Path, "/") { // what stands before a path could make another host of the bridge's
		return fmt.Errorf("a request has a method, and a path that begins with /")
	}
	if r.Body != nil {
		return nil
	}
	_, e, there := s.exchange(call.Clause, call.Exchange)
	if !there {
		return fmt.Errorf("the report has no exchange %d of %q", call.Exchange, call.Clause)
	}
	old, err := e.NewRequest(ctx, func(string) string { return redact.Mark })
	if err != nil {
		return err
	}
	body := ""
	if old.Body != nil {
		data, err := io.ReadAll(old.Body)
		if err != nil {
			return err
		}
		body = string(data)
	}
	r.Body = &body
	return nil
}
