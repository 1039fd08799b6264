package reports_test

import (
	"fmt"

	"github.com/bridgecheck/bridgecheck/reports"
)

// A check found that an unknown tool is described with 200; its finding blames the first exchange of the evidence.
func Example() {
	result := reports.Result{
		ID: "describe/unknown-404", Level: reports.MUST, Area: "describe", Verdict: reports.Fail,
		Evidence: []reports.Exchange{{
			Identity:    "agent",
			Request:     reports.Message{Method: "GET", URL: "http://localhost:8081/mcp/tools/describe?name=no.such", Header: map[string]string{"Authorization": "Basic [redacted]"}},
			Credentials: []reports.Credential{{Header: "Authorization", Scheme: "Basic", User: "agent"}},
			Response:    &reports.Message{Status: 200, Body: "{}"},
		}},
		Findings: []reports.Finding{{Request: new(0), Subject: "describe no.such as agent", Expected: "404 tool_not_found", Actual: "200 {}"}},
	}
	result.Conclude()
	report := &reports.Report{Target: reports.Target{URL: "http://localhost:8081"}, Results: []reports.Result{result}}
	report.Summarize()

	fmt.Println(report.Headline())
	fmt.Println(report.Results[0].Message)
	fmt.Println(report.Results[0].Curl)
	// Output:
	// not conformant: 1 clause fails
	// describe no.such as agent: expected 404 tool_not_found, got 200 {}
	// curl -i -u "agent:$AGENT_PASSWORD" 'http://localhost:8081/mcp/tools/describe?name=no.such'
}

// A clause that failed in one setup fails in the merged report.
func ExampleMerge() {
	run := func(capability string, v reports.Verdict) *reports.Report {
		return &reports.Report{Capabilities: []string{"tools", capability}, Results: []reports.Result{{ID: "list/names-unique", Level: reports.MUST, Verdict: v}}}
	}
	merged, err := reports.Merge(run("naming-id", reports.Pass), run("naming-underscore", reports.Fail))
	if err != nil {
		panic(err)
	}
	fmt.Println(merged.Capabilities, merged.Results[0].Verdict)
	// Output: [tools naming-id naming-underscore] fail
}
