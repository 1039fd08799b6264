package sample

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/reports"
)

// Hostile is what a bad bridge would like a reader's browser, terminal or XML parser to act on.
const Hostile = `<script>window.pwned=1</script></script><img src=x onerror=pwned=1> ]]> --> ` + "\x1b[31mred\x00 \u202egnp.exe \xff\uFFFE" + ` |*_[x](javascript:pwned=1)_*| ` + "```" + ` &amp; {{.}} %0A::error::x`

// Started is when the sample runs began.
var Started = time.Date(2026, 11, 21, 7, 30, 0, 0, time.UTC)

// Every is a report with every verdict in it, and hostile text wherever a bridge can put some.
func Every() *reports.Report {
	r := &reports.Report{
		Schema:       reports.SchemaVersion,
		Tool:         reports.Tool{Name: "bridgecheck", Version: "0.1.0", Commit: "abc1234"},
		Ledger:       reports.Ledger{Revision: "2026-11-21", Checked: 12, Unchecked: []string{"load/concurrent-exact"}},
		Target:       reports.Target{URL: "http://127.0.0.1:8081", Name: "Example bridge", Version: "2.3", Organisation: "Example", Contact: "bridge@example.org"},
		Started:      Started,
		DurationMS:   1234,
		Capabilities: []string{"tools", "naming-id", "exposure-attribute"},
		Settings:     map[string]any{"page_size": 50, "timeout": "10s"},
		Environment:  &reports.Environment{OS: "linux", Arch: "amd64", Go: "go1.26"},
		Seed:         9007199254740993,
		Results: []reports.Result{
			{ID: "list/answers-json", Level: reports.MUST, Area: "list", Verdict: reports.Pass, Text: "GET /mcp/tools/list responds with 200.", Source: "plan2", DurationMS: 3.5},
			{ID: "list/has-tools-array", Level: reports.MUST, Area: "list", Verdict: reports.Pass, DurationMS: 1.25},
			{ID: "list/description-not-empty", Level: reports.SHOULD, Area: "list", Verdict: reports.Warn, Message: "tool content.get has an empty description", DurationMS: 2, Expected: "a description", Actual: `""`},
			{ID: "mapping/no-params-object", Level: reports.MUST, Area: "mapping", Verdict: reports.Fail, Text: "A method without parameters gives `properties: {}`, never `[]`.", Source: "seen",
				Why: "Real clients throw the whole list away for it.", Remedy: "In PHP, cast the empty array: (object) [].",
				Message: "tool cache.rebuild: inputSchema.properties is [], want {}", DurationMS: 12,
				Expected: `{"type":"object","properties":{}}`, Actual: `{"type":"object","properties":[]}`,
				Curl: `curl -u "$AGENT_USER:$AGENT_PASSWORD" 'http://127.0.0.1:8081/mcp/tools/list'`},
			{ID: "describe/reflects-safely", Level: reports.MUST, Area: "describe", Verdict: reports.Fail, Text: "A name echoed in a message stays inside a JSON string.", Source: "http",
				Message: "describe: " + Hostile, Expected: "application/json", Actual: Hostile + "\n" + strings.Repeat("A", 1<<20), DurationMS: 8,
				Curl: "curl 'http://127.0.0.1:8081/mcp/tools/describe?name=" + Hostile + "'"},
			{ID: "describe/answers-tool", Level: reports.MUST, Area: "describe", Verdict: reports.Known, Message: "500 for every tool", KnownReason: "issue 12 " + Hostile, DurationMS: 2},
			{ID: "describe/unknown-404", Level: reports.MUST, Area: "describe", Verdict: reports.Fixed, Message: "the baseline says that it fails, and it passes", DurationMS: 2},
			{ID: "invoke/answers-result", Level: reports.MUST, Area: "invoke", Verdict: reports.Error, Message: "the mock Drupal stopped", DurationMS: 100},
			{ID: "invoke/denied", Level: reports.MUST, Area: "invoke", Verdict: reports.NotTestable, Message: "no tool that the agent lacks is known", Remedy: "Name one under invocations."},
			{ID: "invoke/null-result", Level: reports.SHOULD, Area: "invoke", Verdict: reports.NotTestable, Message: "no tool gives null"},
			{ID: "mcp/origin", Level: reports.MUST, Area: "mcp", Verdict: reports.NotApplicable, Capability: "mcp", Message: "the bridge does not claim mcp"},
		},
	}
	fail := &r.Results[4]
	fail.Note = "and 1 more: " + Hostile
	fail.Findings = []reports.Finding{
		{Request: new(1), Subject: "describe " + Hostile, Expected: "application/json", Actual: Hostile, Tool: "content.get", Identity: "outsider", Row: Hostile, Message: "describe: " + Hostile},
		{Message: Hostile, Tool: Hostile, Identity: Hostile, KnownReason: Hostile},
	}
	fail.Evidence = []reports.Exchange{
		{Identity: "agent", At: Started, Request: reports.Message{Method: "GET", URL: "http://127.0.0.1:8081/mcp/tools/describe?name=content.get", Header: map[string]string{"Authorization": "$AGENT"}},
			Response: &reports.Message{Status: 200, Header: map[string]string{"Content-Type": "application/json"}, Body: `{"tool":{"name":"content.get"}}`, DurationMS: 4},
			Drupal:   []reports.Upstream{{At: Started.Add(time.Millisecond), User: "agent", HTTP: "POST /jsonrpc", Method: "content.get", Params: json.RawMessage(`{"id":9007199254740993}`), Ran: true, Status: 200, DurationMS: 2}}},
		{Identity: "outsider", At: Started.Add(5 * time.Millisecond), Request: reports.Message{Method: "GET", URL: "http://127.0.0.1:8081/mcp/tools/describe?name=x"}, Credentials: []reports.Credential{{Header: "Authorization", Scheme: "Basic", User: Hostile}},
			Response: &reports.Message{Status: 404, Header: map[string]string{"Content-Type": "text/html"}, Body: Hostile, DurationMS: 3}},
		{Identity: "agent", At: Started.Add(9 * time.Millisecond), Request: reports.Message{Method: "GET", URL: "http://127.0.0.1:8081/x"}, Error: "connection reset"},
		{Identity: "agent", At: Started.Add(9 * time.Millisecond), Request: reports.Message{Method: "GET", URL: "http://127.0.0.1:8081/y"}, Response: &reports.Message{Status: 200, Body: "/wCA", Encoding: "base64"}},
	}
	r.Summarize()
	return r
}

// Kept is a small conformant report.
func Kept() *reports.Report {
	r := Every()
	r.Results = r.Results[:2]
	r.Ledger.Checked = 2
	r.Summarize()
	return r
}

// KeptWith is Kept with more results.
func KeptWith(more ...reports.Result) *reports.Report {
	r := Kept()
	r.Results = append(r.Results, more...)
	r.Summarize()
	return r
}

// Strict, Filtered, Sampled, CutShort and WithProblem change a report and return it.
func Strict(r *reports.Report) *reports.Report   { r.Strict = true; return r }
func Filtered(r *reports.Report) *reports.Report { r.Filtered = true; return r }
func Sampled(r *reports.Report) *reports.Report  { r.Sample = 10; return r }
func CutShort(r *reports.Report) *reports.Report { r.CutShort = "interrupted"; return r }
func WithProblem(r *reports.Report) *reports.Report {
	r.BaselineProblems = []reports.BaselineProblem{{File: "baseline.yaml", Line: 3, Clause: "list/x", Text: "expired on 2026-01-01"}}
	return r
}
