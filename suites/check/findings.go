package check

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// Bounds of what one check notes: a bridge where everything is wrong costs no more than one where nothing is.
const (
	maxFindings = 100
	maxTimeouts = 3   // parts without a response in time
	keptFinding = 500 // bytes of a finding's message
)

// Part is what a check tests apart from the rest: one tool, one caller, one tool as one caller, or one row of a table,
// by what is wrong with it. "" stands for all.
type Part struct {
	Tool, Identity, row string
}

// findings are what the running check has noted.
type findings struct {
	noted    []Finding
	tested   []Part
	timeouts int
	leftOut  string // why the first tool that the check left out was not tested
}

// LeaveOut notes that the check does not test a tool, where the error says that the schema in this member is beyond what can be: a
// check that finds nothing wrong with the others does not pass.
func (t *T) LeaveOut(tool, member string, err error) {
	var beyond jsonschema.BeyondError
	if f := &t.findings; f.leftOut == "" && errors.As(err, &beyond) {
		f.leftOut = fmt.Sprintf("the %s of the tool %s is not tested: %s", member, exact.Cut(tool, 80), beyond)
	}
}

// For compares one part of a check: a tool as a caller sees it, or, where tool is "", all that the caller sees. Where an
// assertion in it fails, the fault is noted and the check goes on with its next part; it fails when it ends. A part that
// was found wrong is not tested again.
func (t *T) For(who Identity, tool string, test func()) {
	t.part(Part{Tool: tool, Identity: t.stableIdentity(who)}, test)
}

// Row is For for one row of a table, with its name: what the caller sends, of the tool if it is about one.
func (t *T) Row(who Identity, tool, name string, test func()) {
	t.part(Part{tool, t.stableIdentity(who), name}, test)
}

func (t *T) part(p Part, test func()) {
	f := &t.findings
	if why := f.enough(); why != "" {
		if f.noted[len(f.noted)-1].Subject != why {
			f.noted = append(f.noted, Finding{Subject: why})
		}
		return
	}
	if f.holds(p) {
		return
	}
	t.Blame(nil)
	found := t.found(test)
	for found != nil && found.resend != nil {
		found.resend()
		t.Blame(nil)
		found = t.found(test)
	}
	f.tested = append(f.tested, p)
	if found == nil {
		return
	}
	if t.runEnded() { // what it waited for was interrupted
		t.cutShort()
	}
	noted := found.About(p.row)
	noted.Tool, noted.Identity, noted.Row = p.Tool, p.Identity, p.row
	f.noted = append(f.noted, noted)
	if noted.Response != nil && errors.Is(noted.Response.Err, client.ErrTimeout) {
		f.timeouts++
	}
}

// Each tests every response apart from the others.
func (t *T) Each(responses []*Response, test func(a *Response)) {
	for _, a := range responses {
		t.Row(a.Who, "", a.Subject(), func() { test(a) })
	}
}

// EachTool tests every tool of a listing apart from the others.
func (t *T) EachTool(list Listing, test func(page *Response, tool Tool)) {
	for _, page := range list.Pages {
		for _, tool := range page.Tools() {
			t.For(page.Who, tool.Name(), func() { test(page, tool) })
		}
	}
}

// HasFindings reports whether the running check has noted a fault already.
func (t *T) HasFindings() bool { return len(t.findings.noted) > 0 }

// enough says why the rest is not tested; "" as long as it is.
func (f *findings) enough() string {
	switch {
	case f.timeouts >= maxTimeouts:
		return fmt.Sprintf("%d got no response within the time-out: the rest was not tested", f.timeouts)
	case len(f.noted) >= maxFindings:
		return fmt.Sprintf("%d are wrong: the rest was not tested", maxFindings)
	}
	return ""
}

// holds reports whether a part was found wrong, all that it belongs to, or a row that belongs to it. Of accounts that were
// made for the check nobody knows which it was.
func (f *findings) holds(p Part) bool {
	return slices.ContainsFunc(f.noted, func(n Finding) bool {
		switch {
		case n.Tool != p.Tool || n.Identity != p.Identity:
			return false
		case n.Row == p.row:
			return p != Part{}
		}
		return (n.Row == "" || p.row == "") && p.Tool+p.Identity != ""
	})
}

// Found reports whether the running check has a finding about the tool as the caller sees it.
func (t *T) Found(who Identity, tool string) bool {
	return t.findings.holds(Part{Tool: tool, Identity: t.stableIdentity(who)})
}

// stableIdentity is the name of a caller as a finding has it: "" for an account that was made for the check, whose name is
// another one in the next run.
func (t *T) stableIdentity(who Identity) string {
	if t.Drupal != nil && t.Drupal.Made(who) {
		return ""
	}
	return who.String()
}

// reported returns the findings of a check by what ended it, without secrets; none where it noted none, or where it broke.
func (t *T) reported(ended any) []Finding {
	all := slices.Clone(t.findings.noted)
	if len(all) == 0 {
		return nil
	}
	switch e := ended.(type) {
	case failed:
		all = append(all, *t.failed)
	case stopped:
		all = append(all, e.Finding)
	case broke:
		return nil
	}
	for i, f := range all {
		all[i] = t.redacted(f)
	}
	return all
}

// redacted is a finding without secrets, of bounded length.
func (t *T) redacted(f Finding) Finding {
	for _, text := range []*string{&f.Subject, &f.Expected, &f.Actual, &f.Tool, &f.Row} {
		*text = exact.Cut(t.Redact.Text(*text), keptFinding)
	}
	return f
}

// keptInMemory are the clauses that fail of several processes that do not share what each keeps for its callers.
var keptInMemory = []string{"mcp/*", "list/cursor-*", "list/pages-*", "fresh/notify", "http/head"}

// asReported are findings about a clause as a report has them, with what a proxy has to do with them; at gives where the
// evidence has the exchange of a response.
func (t *T) asReported(clause string, all []Finding, at func(*Response) *int) []reports.Finding {
	list := make([]reports.Finding, len(all))
	for i, f := range all {
		list[i] = reports.Finding{Tool: f.Tool, Identity: f.Identity, Row: f.Row, Request: at(f.Response),
			Subject: f.Subject, Expected: f.Expected, Actual: f.Actual, Missing: f.Missing, Withheld: f.Withheld, Proxy: t.Redact.Text(f.Response.WhoMade())}
		said := &list[i].Actual
		if f.Expected == "" {
			list[i].Subject, list[i].Message = "", f.Subject
			said = &list[i].Message
		}
		switch why := t.Suspects(clause, f.Response); {
		case list[i].Proxy != "" || t.NotABridge != "":
		case t.several && (f.Response != nil && strings.HasSuffix(f.Response.Path, client.MCPPath) ||
			slices.ContainsFunc(keptInMemory, func(pattern string) bool { ok, _ := path.Match(pattern, clause); return ok })):
			*said += "; several processes are behind this URL, as lists have shown: they need keys and a store in common (the reference bridge: session_keys, shared), or the proxy has to send a caller to one of them"
		case why != "" && !t.Owned: // what the run has started in front of the bridge is a part of it
			*said += "; " + t.Redact.Text(why)
		}
	}
	return list
}
