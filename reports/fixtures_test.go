package reports

import (
	"encoding/json"
	"strings"
	"time"
)

// hostile is what a bad bridge would like a reader's browser, terminal or XML parser to act on.
const hostile = `<script>window.pwned=1</script></script><img src=x onerror=pwned=1> ]]> --> ` + "\x1b[31mred\x00 \u202egnp.exe \xff\uFFFE" + ` |*_[x](javascript:pwned=1)_*| ` + "```" + ` &amp; {{.}} %0A::error::x`

var started = time.Date(2026, 11, 21, 7, 30, 0, 0, time.UTC)

// every is a report with every verdict in it, and hostile text wherever a bridge can put some.
func every() *Report {
	r := &Report{
		Schema:       SchemaVersion,
		Tool:         Tool{Name: "bridgecheck", Version: "0.1.0", Commit: "abc1234"},
		Ledger:       Ledger{Revision: "2026-11-21", Checked: 12, Unchecked: []string{"load/concurrent-exact"}},
		Target:       Target{URL: "http://127.0.0.1:8081", Name: "Example bridge", Version: "2.3", Organisation: "Example", Contact: "bridge@example.org"},
		Started:      started,
		DurationMS:   1234,
		Capabilities: []string{"tools", "naming-id", "exposure-attribute"},
		Settings:     map[string]any{"page_size": 50, "timeout": "10s"},
		Environment:  &Environment{OS: "linux", Arch: "amd64", Go: "go1.26"},
		Seed:         9007199254740993,
		Results: []Result{
			{ID: "list/answers-json", Level: MUST, Area: "list", Verdict: Pass, Text: "GET /mcp/tools/list answers 200.", Source: "plan2", DurationMS: 3.5},
			{ID: "list/has-tools-array", Level: MUST, Area: "list", Verdict: Pass, DurationMS: 1.25},
			{ID: "list/description-not-empty", Level: SHOULD, Area: "list", Verdict: Warn, Message: "tool content.get has an empty description", DurationMS: 2, Expected: "a description", Actual: `""`},
			{ID: "mapping/no-params-object", Level: MUST, Area: "mapping", Verdict: Fail, Text: "A method without parameters gives `properties: {}`, never `[]`.", Source: "seen",
				Why: "Real clients throw the whole list away for it.", Remedy: "In PHP, cast the empty array: (object) [].",
				Message: "tool cache.rebuild: inputSchema.properties is [], want {}", DurationMS: 12,
				Expected: `{"type":"object","properties":{}}`, Actual: `{"type":"object","properties":[]}`,
				Curl: `curl -u "$AGENT_USER:$AGENT_PASSWORD" 'http://127.0.0.1:8081/mcp/tools/list'`},
			{ID: "describe/reflects-safely", Level: MUST, Area: "describe", Verdict: Fail, Text: "A name echoed in a message stays inside a JSON string.", Source: "http",
				Message: "describe: " + hostile, Expected: "application/json", Actual: hostile + "\n" + strings.Repeat("A", 1<<20), DurationMS: 8,
				Curl: "curl 'http://127.0.0.1:8081/mcp/tools/describe?name=" + hostile + "'"},
			{ID: "describe/answers-tool", Level: MUST, Area: "describe", Verdict: Known, Message: "500 for every tool", KnownReason: "issue 12 " + hostile, DurationMS: 2},
			{ID: "describe/unknown-404", Level: MUST, Area: "describe", Verdict: Fixed, Message: "the baseline says that it fails, and it passes", DurationMS: 2},
			{ID: "invoke/answers-result", Level: MUST, Area: "invoke", Verdict: Error, Message: "the mock Drupal stopped", DurationMS: 100},
			{ID: "invoke/denied", Level: MUST, Area: "invoke", Verdict: NotTestable, Message: "no tool that the agent lacks is known", Remedy: "Name one under invocations."},
			{ID: "invoke/null-result", Level: SHOULD, Area: "invoke", Verdict: NotTestable, Message: "no tool gives null"},
			{ID: "mcp/origin", Level: MUST, Area: "mcp", Verdict: NotApplicable, Capability: "mcp", Message: "the bridge does not claim mcp"},
		},
	}
	fail := &r.Results[4]
	fail.Evidence = []Exchange{
		{Identity: "agent", At: started, Request: Message{Method: "GET", URL: "http://127.0.0.1:8081/mcp/tools/describe?name=content.get", Header: map[string]string{"Authorization": "$AGENT"}},
			Response: &Message{Status: 200, Header: map[string]string{"Content-Type": "application/json"}, Body: `{"tool":{"name":"content.get"}}`, DurationMS: 4},
			Drupal:   []Upstream{{At: started.Add(time.Millisecond), User: "agent", HTTP: "POST /jsonrpc", Method: "content.get", Params: json.RawMessage(`{"id":9007199254740993}`), Ran: true, Status: 200, DurationMS: 2}}},
		{Identity: "outsider", At: started.Add(5 * time.Millisecond), Request: Message{Method: "GET", URL: "http://127.0.0.1:8081/mcp/tools/describe?name=x"},
			Response: &Message{Status: 404, Header: map[string]string{"Content-Type": "text/html"}, Body: hostile, DurationMS: 3}},
		{Identity: "agent", At: started.Add(9 * time.Millisecond), Request: Message{Method: "GET", URL: "http://127.0.0.1:8081/x"}, Error: "connection reset"},
		{Identity: "agent", At: started.Add(9 * time.Millisecond), Request: Message{Method: "GET", URL: "http://127.0.0.1:8081/y"}, Response: &Message{Status: 200, Body: "/wCA", Encoding: "base64"}},
	}
	r.Summarize()
	return r
}

// kept is a small conformant report.
func kept() *Report {
	r := every()
	r.Results = r.Results[:2]
	r.Ledger.Checked = 2
	r.Summarize()
	return r
}

// keptWith is kept with more results.
func keptWith(more ...Result) *Report {
	r := kept()
	r.Results = append(r.Results, more...)
	r.Summarize()
	return r
}

func verdictsOf(r *Report) map[string]Verdict {
	verdicts := map[string]Verdict{}
	for _, result := range r.Results {
		verdicts[result.ID] = result.Verdict
	}
	return verdicts
}
