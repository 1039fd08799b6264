package reports

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// failing is a result of a clause with one finding on a response.
func failing(id, expected string, response *Message, why string) Result {
	return Result{ID: id, Level: MUST, Verdict: Fail, Message: id + " is wrong", Evidence: []Exchange{{Response: response, Error: why}},
		Findings: []Finding{{Request: new(0), Subject: "x " + id, Expected: expected, Actual: "other " + id}}}
}

func response(status int, contentType, body string) *Message {
	m := &Message{Status: status, Body: body}
	if contentType != "" {
		m.Header = map[string]string{"content-type": contentType}
	}
	return m
}

// lacking is a result whose finding names a header that is missing.
func lacking(header string, r Result) Result {
	r.Findings[0].Missing = header
	return r
}

// beside is a result with one finding more.
func beside(f Finding, r Result) Result {
	r.Findings = append(r.Findings, f)
	return r
}

// atMCP is a result whose request went to the endpoint of MCP.
func atMCP(r Result) Result {
	r.Evidence[0].Request.URL = "http://b/mcp"
	return r
}

// ranAs is a result of the caller agent in whose exchange a call reached the site as an account.
func ranAs(user string, r Result) Result {
	e := &r.Evidence[0]
	e.Credentials = []Credential{{Header: "Authorization", Scheme: "Basic", User: "agent"}}
	e.Drupal = append(e.Drupal, Upstream{User: user, Method: "content.get", Ran: true})
	return r
}

// twice is a result whose finding says that it was encoded twice.
func twice(r Result) Result { return saying(EncodedTwice, r) }

func saying(actual string, r Result) Result {
	r.Findings[0].Actual = actual
	return r
}

// counted is a result whose response has a Content-Length.
func counted(r Result) Result {
	m := r.Evidence[0].Response
	m.Header["content-length"] = fmt.Sprint(len(m.Body))
	return r
}

// unknown is a result of the caller agent in whose exchange the site refused an anonymous request.
func unknown(r Result) Result {
	r = ranAs("", r)
	r.Evidence[0].Drupal[0] = Upstream{Status: 401}
	return r
}

func TestGroups(t *testing.T) {
	const json, envelope = "application/json; charset=utf-8", `{"error":{"code":"%s","message":"m"}}`
	coded := func(code string) string { return fmt.Sprintf(envelope, code) }
	for _, c := range []struct {
		name     string
		one, two Result
		same     bool
		cause    string // of the first group; "": not tested
	}{
		{"closed connections", failing("a/1", "200", nil, "closed"), failing("b/2", "404 tool_not_found", nil, "closed"), true, "no response: closed"},
		{"a closed connection and a time-out", failing("a/1", "200", nil, "closed"), failing("b/2", "200", nil, "no response"), false, ""},
		{"crashes", failing("a/1", "200", response(500, "text/html", "<p>1"), ""), failing("b/2", "404", response(500, "text/html", "<p>2"), ""), true, "500 text/html with a body that is no JSON"},
		{"a bridge that ended", Result{ID: "access/1", Verdict: Fail, Findings: []Finding{{Expected: ToGoOn, Actual: "it ended by itself: exit status 3"}}}, Result{ID: "list/2", Verdict: Fail, Findings: []Finding{{Expected: ToGoOn, Actual: "it ended by itself: exit status 3"}}}, true, "the bridge ended by itself: exit status 3"},
		{"an exchange that was left out", beside(Finding{Expected: "404", Actual: "200"}, failing("a/1", "200", nil, "closed")), failing("b/2", "404", nil, "closed"), true, "no response: closed"},
		{"a crash and an unavailable site", failing("a/1", "200", response(500, json, coded("x")), ""), failing("b/2", "200", response(502, json, coded("x")), ""), false, ""},
		{"wrong envelopes", failing("a/1", "404 tool_not_found", response(404, json, `{"detail":"one"}`), ""), failing("b/2", "400 invalid_params", response(400, json, `{"detail":"two"}`), ""), true, "error responses without {error: {code, message}}: application/json with detail"},
		{"two wrong envelopes", failing("a/1", "404", response(404, json, `{"detail":"one"}`), ""), failing("b/2", "404", response(404, json, `{"error":"two"}`), ""), false, ""},
		{"refused credentials", failing("a/1", "200", response(401, json, coded("authentication_required")), ""), failing("b/2", "400", response(401, json, coded("authentication_required")), ""), true, "401 authentication_required"},
		{"refusals in place of different responses", failing("a/1", "404 tool_not_found", response(400, json, coded("invalid_params")), ""), failing("b/2", "200", response(400, json, coded("invalid_params")), ""), false, ""},
		{"a missing header", lacking("Vary", failing("a/1", "x", response(200, json, `{"tools":[]}`), "")), lacking("Vary", failing("b/2", "y", response(400, json, coded("z")), "")), true, "a response without the header Vary"},
		{"two missing headers", lacking("Vary", failing("a/1", "x", response(200, json, `{}`), "")), lacking("Allow", failing("b/2", "x", response(200, json, `{}`), "")), false, ""},
		{"no content type", failing("a/1", "x", response(200, "", `{"tools":[]}`), ""), failing("b/2", "y", response(200, "", `{"tool":{}}`), ""), true, "a response with Content-Type missing"},
		{"content that is no JSON", failing("a/1", "x", response(200, json, `{"tools":`), ""), failing("b/2", "y", response(200, json, `nothing`), ""), true, "a response with Content-Type application/json that is no JSON"},
		{"redirects", failing("a/1", "x", response(302, "", ""), ""), failing("b/2", "y", response(302, "text/html", "moved"), ""), true, "302, a redirect"},
		{"a version that does not change", failing("a/1", "not 304", response(304, "", ""), ""), failing("b/2", "not 304", response(304, "", ""), ""), false, ""},
		{"success where a refusal is expected", failing("a/1", "404 tool_not_found", response(200, json, `{"tools":[1]}`), ""), failing("b/2", "404 tool_not_found", response(200, json, `{"tools":[]}`), ""), true, "200 with tools in place of 404 tool_not_found"},
		{"errors with 200", failing("a/1", "404 tool_not_found", response(200, json, coded("x")), ""), failing("b/2", "400", response(200, json, coded("y")), ""), true, "errors with the status 200"},
		{"errors as texts with 200", failing("access/no-cross-talk", "a refusal that names no tool", response(200, json, `{"error":"no"}`), ""), failing("invoke/unknown-404", "404 tool_not_found", response(200, json, `{"error":"no"}`), ""), true, "errors with the status 200"},
		{"errors of MCP", atMCP(failing("mcp/a", "a result", response(200, json, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602}}`), "")), atMCP(failing("mcp/b", "another result", response(200, json, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602}}`), "")), false, ""},
		{"callers who get what is denied", failing("access/list-403", "403", response(200, json, `{"tools":[]}`), ""), failing("invoke/denied", "a refusal", response(200, json, `{"result":1}`), ""), true, "callers get what the site denies them"},
		{"calls as another account, and what that may see", ranAs("service", failing("access/anonymous", "401", response(200, json, `{"result":1}`), "")), failing("access/filtered-by-method", "the tools of agent", response(200, json, `{"tools":[]}`), ""), true, "calls run at the site as the account service, which is not their caller's"},
		{"a call of another caller beside", ranAs("agent", ranAs("service", failing("access/anonymous", "401", response(200, json, `{"result":1}`), ""))), failing("access/filtered-by-method", "the tools of agent", response(200, json, `{"tools":[]}`), ""), false, ""},
		{"no credentials reach the site", unknown(failing("access/anonymous", "200", response(401, json, coded("x")), "")), unknown(failing("b/2", "200 with a result", response(403, json, coded("y")), "")), true, "requests reach the site without their caller's credentials"},
		{"a caller who is to be refused", unknown(failing("access/anonymous", "403", response(401, json, coded("x")), "")), failing("b/2", "200", response(401, json, coded("x")), ""), true, "401 x"},
		{"a refused caller beside another", ranAs("service", failing("access/no-cross-talk", "403", response(404, json, coded("tool_not_found")), "")), failing("access/filtered-by-method", "the tools of agent", response(200, json, `{"tools":[]}`), ""), false, ""},
		{"a cache that callers share", failing("access/no-cross-talk", "a page without tools of another", response(200, json, `{"tools":[]}`), ""), failing("access/list-403", "403", response(200, json, `{"tools":[1]}`), ""), true, "callers get what is another caller's: a cache or a variable that they share"},
		{"a missing tool that is not 404", failing("describe/unknown-404", "404 tool_not_found", response(400, json, coded("tool_not_found")), ""), failing("access/per-credential", "403 or 404", response(400, json, coded("tool_not_found")), ""), true, "tool_not_found with the status 400"},
		{"a hidden tool alone that is not 404", failing("describe/hidden-404", "404 tool_not_found", response(400, json, coded("tool_not_found")), ""), failing("invoke/denied", "403 or 404", response(400, json, coded("tool_not_found")), ""), false, ""},
		{"a leak in an error, and an error", failing("invoke/no-trace-leak", "not to contain an internal text of the site", response(500, json, coded("x")), ""), failing("b/2", "404", response(500, json, coded("x")), ""), false, "invoke/no-trace-leak is wrong"},
		{"requests that the checks gave up", failing("upstream/cancel", "the end of its request to the site", nil, "context canceled"), failing("b/2", "x", nil, "context canceled"), false, "upstream/cancel is wrong"},
		{"errors of the site as results", failing("access/no-cross-talk", "an error that is not about x", response(200, json, `{"result":{"code":-32000,"message":"no"}}`), ""), failing("invoke/execution-error-500", "500 execution_error", response(200, json, `{"result":{"code":-32603,"message":"no","data":1}}`), ""), true, "errors of the site that callers get as results"},
		{"a null for an error, whoever calls", failing("access/no-cross-talk", "an error that is not about x", response(200, json, `{"result":null}`), ""), failing("invoke/execution-error-500", "500 execution_error", response(200, json, `{"result":null}`), ""), true, "errors of the site that callers get as results"},
		{"results in results", twice(failing("invoke/result-exact", "1", response(200, json, `{"result":"[1]"}`), "")), twice(failing("load/concurrent-exact", "2", response(200, json, `{"result":"[2]"}`), "")), true, "results that were encoded twice: a string that holds the JSON"},
		{"numbers as codes", failing("errors/envelope", "404", response(404, json, `{"error":{"code":404,"message":"m"}}`), ""), failing("upstream/down", "502 or 503", response(502, json, `{"error":{"code":502,"message":"m","data":1}}`), ""), true, "error responses in which error.code is a number, which must be a string"},
		{"a crash with a number as code", failing("errors/envelope", "404", response(404, json, `{"error":{"code":404,"message":"m"}}`), ""), failing("b/2", "200", response(500, json, `{"error":{"code":500,"message":"m"}}`), ""), false, ""},
		{"another content type with right bodies", saying(`Content-Type "text/html"`, failing("list/answers-json", "JSON", response(200, "text/html", `{"tools":[]}`), "")), saying(`500 with Content-Type "text/html": {`, failing("errors/envelope", "JSON", response(500, "text/html", coded("execution_error")), "")), true, "a response with Content-Type text/html"},
		{"a length in characters", counted(failing("list/answers-json", "JSON", response(200, json, `{"tools":["é"]`), "")), counted(failing("errors/envelope", "JSON", response(404, json, `{"error":{"message":"é`), "")), true, "bodies that end in the middle, at their Content-Length"},
		{"a body that ends early and has no long characters", counted(failing("list/answers-json", "JSON", response(200, json, `{"tools":["e"]`), "")), counted(failing("errors/envelope", "JSON", response(404, json, `{"error":{"message":"é`), "")), false, ""},
		{"different values in good responses", failing("a/1", "a title", response(200, json, `{"tools":[1]}`), ""), failing("b/2", "a name", response(200, json, `{"tools":[]}`), ""), false, ""},
		{"no request", Result{ID: "a/1", Verdict: Fail, Message: "one", Findings: []Finding{{Message: "same"}}}, Result{ID: "b/2", Verdict: Fail, Findings: []Finding{{Message: "same"}}}, false, "one"},
		{"results without findings", Result{ID: "a/1", Verdict: Error, Message: "the mock stopped"}, Result{ID: "b/2", Verdict: Error, Message: "the mock stopped"}, true, "the mock stopped"},
		{"verdicts without findings", Result{ID: "a/1", Verdict: Error, Message: "x"}, Result{ID: "b/2", Verdict: Warn, Message: "x"}, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			groups := (&Report{Results: []Result{c.one, c.two}}).Groups()
			if same := len(groups) == 1; same != c.same || c.cause != "" && groups[0].Cause != c.cause {
				t.Errorf("got %+v, expected one group: %t, of %q", groups, c.same, c.cause)
			}
		})
	}
}

func TestTheFirstCauseExplainsMostFailures(t *testing.T) {
	r := &Report{Results: []Result{
		failing("a/1", "404", response(200, "application/json", "{}"), ""),
		failing("b/1", "x", nil, "closed"),
		failing("b/2", "y", nil, "closed"),
		{ID: "b/3", Level: MUST, Verdict: NotTestable, Message: "blocked", Evidence: []Exchange{{Error: "closed"}}, Findings: []Finding{{Request: new(0)}}},
		{ID: "b/4", Level: MUST, Verdict: Known, Evidence: []Exchange{{Error: "closed"}}, Findings: []Finding{{Request: new(0), KnownReason: "known"}}},
	}}
	g, ok := r.FirstCause()
	must.Expect(t, ok && fmt.Sprint(g.Clauses) == "[b/1 b/2 b/3]" && g.Failing == 2 && g.Explains(r) == "no response: closed: explains 2 of 3 failures",
		"got %+v, %t, %q", g, ok, g.Explains(r))
	first, _ := r.First()
	must.Expect(t, first.ID == "b/1", "the first fault is %s, expected the first of the cause, b/1", first.ID)
	r.Results = r.Results[:2]
	g, ok = r.FirstCause()
	must.Expect(t, !ok, "%+v explains one failure each and counts as a cause of many", g)
	first, _ = r.First()
	must.Expect(t, first.ID == "a/1", "the first fault is %s, expected the first in the order of the contract, a/1", first.ID)
}

// What does most harm comes first, however few clauses show it, and a cause is shown by its own clause with its own remedy.
func TestTheGravestCauseComesFirst(t *testing.T) {
	remedied := func(r Result) Result { r.Remedy = "fix " + r.ID; return r }
	const json = "application/json"
	envelope := func(id string) Result { return remedied(failing(id, "404", response(404, json, `{"detail":"x"}`), "")) }
	missing := func(id string) Result {
		return remedied(failing(id, "404", response(400, json, `{"error":{"code":"tool_not_found"}}`), ""))
	}
	withheld := func(r Result) Result { r.Findings[0].Withheld = true; return r }
	leak := remedied(failing("access/list-403", "403", response(200, json, `{"tools":[]}`), ""))
	wrongResult := remedied(failing("invoke/result-exact", "1", response(200, json, `{"result":2}`), ""))
	form := remedied(failing("mapping/input-object", "an object", response(200, json, `{"tools":[]}`), ""))
	forwarded := remedied(Result{ID: "access/credentials-forwarded", Level: MUST, Verdict: Fail, Message: "calls as service"})
	as := func(r Result) Result { return ranAs("service", remedied(r)) }
	for _, c := range []struct {
		name           string
		results        []Result
		clause, remedy string
	}{
		{"a leak among errors of one kind", []Result{envelope("list/cursor-malformed"), envelope("describe/unknown-404"), envelope("errors/envelope"), leak}, "access/list-403", "fix access/list-403"},
		{"a wrong result among them", []Result{form, envelope("list/cursor-malformed"), envelope("describe/unknown-404"), wrongResult}, "invoke/result-exact", "fix invoke/result-exact"},
		{"the protocol before form", []Result{form, envelope("list/cursor-malformed")}, "list/cursor-malformed", causeKinds[wrongEnvelope].remedy},
		{"the cause's own clause", []Result{envelope("list/cursor-malformed"), envelope("invoke/unknown-404"), envelope("errors/envelope")}, "errors/envelope", "fix errors/envelope"},
		{"the cause's own clause does not fail", []Result{envelope("list/cursor-malformed"), envelope("invoke/unknown-404")}, "invoke/unknown-404", causeKinds[wrongEnvelope].remedy},
		{"another account", []Result{as(failing("invoke/denied", "403", response(200, json, `{"result":1}`), "")), leak, forwarded}, "invoke/denied", causeKinds[wrongAccount].remedy},
		{"no bridge", []Result{remedied(failing("access/list-403", "a list", response(401, json, `{"error":{"code":"x"}}`), "")), leak}, "access/list-403", "fix access/list-403"},
		{"a missing tool that is not 404", []Result{missing("describe/unknown-404"), missing("describe/hidden-404"), missing("invoke/denied")}, "describe/unknown-404", causeKinds[wrongStatus].remedy},
		{"a leak in an error", []Result{remedied(failing("invoke/no-trace-leak", "not to contain an internal text of the site", response(500, json, `{"error":{"code":"x"}}`), ""))}, "invoke/no-trace-leak", "fix invoke/no-trace-leak"},
		{"an error that is due, of one clause", []Result{remedied(failing("invoke/runs-once", "one call", response(502, json, `{"error":{"code":"upstream_error"}}`), ""))}, "invoke/runs-once", "fix invoke/runs-once"},
		{"errors of many clauses", []Result{remedied(failing("invoke/runs-once", "200", response(502, json, `{"error":{"code":"upstream_error"}}`), "")), remedied(failing("invoke/result-exact", "200", response(502, json, `{"error":{"code":"upstream_error"}}`), ""))}, "invoke/runs-once", causeKinds[namedError].remedy},
		{"a wrong result that is not another caller's, at once", []Result{withheld(remedied(failing("load/concurrent-exact", "3", response(200, json, `{"result":2}`), ""))), wrongResult, remedied(failing("invoke/empty-arguments", "1", response(200, json, `{"result":2}`), ""))}, "invoke/result-exact", "fix invoke/result-exact"},
		{"no response, of one clause", []Result{remedied(failing("upstream/timeout", "504", nil, "no response in time"))}, "upstream/timeout", "fix upstream/timeout\n" + causeKinds[noResponse].remedy},
		{"form alone", []Result{form}, "mapping/input-object", "fix mapping/input-object"},
	} {
		r := &Report{Results: c.results}
		first, ok := r.First()
		if groups := r.Groups(); !ok || first.ID != c.clause || groups[0].Clause != c.clause || groups[0].Remedy != c.remedy {
			t.Errorf("%s: it begins with %s, and the first cause is %q of %s: %q", c.name, first.ID, groups[0].Cause, groups[0].Clause, groups[0].Remedy)
		}
	}
	got := (Result{ID: "access/no-cross-talk", BlockedBy: []string{"invoke/answers-result"}}).Severity()
	must.Expect(t, got == Execution, "a failed positive control of an exposure: want execution, got %v", got)
	lacks, shows := Finding{Withheld: true}, Finding{}
	must.Equal(t, (Result{ID: "access/filtered-by-method", Findings: []Finding{lacks, lacks}}).Severity(), Protocol, "severity of tools that are missing")
	must.Equal(t, (Result{ID: "access/filtered-by-method", Findings: []Finding{lacks, shows}}).Severity(), Exposure, "severity of a tool that is not the caller's")
	must.Equal(t, (Result{ID: "nothing/known"}).Severity(), Protocol, "severity of a clause of no row")
}

// Grouping loses no finding that is to be acted on, and has none twice.
func TestGroupsPartitionTheFindings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := rapid.SampledFrom([]*Message{nil, response(500, "text/html", "x"), response(404, "application/json", "{}"), response(200, "application/json", `{"tools":[]}`),
			{Status: 200, Body: "x", Truncated: 1}, {Status: 200, Body: "eA==", Encoding: "base64"}, response(-1, "a/b/c", "null")})
		r := &Report{}
		for i := range rapid.IntRange(0, 8).Draw(t, "results") {
			result := Result{ID: fmt.Sprintf("a/%d", i), Level: MUST, Verdict: rapid.SampledFrom(Verdicts()).Draw(t, "verdict")}
			for range rapid.IntRange(0, 3).Draw(t, "exchanges") {
				result.Evidence = append(result.Evidence, Exchange{Response: messages.Draw(t, "response"), Error: rapid.SampledFrom([]string{"", "closed"}).Draw(t, "error")})
			}
			for range rapid.IntRange(0, 4).Draw(t, "findings") {
				f := Finding{Expected: rapid.SampledFrom([]string{"", "404", "200"}).Draw(t, "expected"), KnownReason: rapid.SampledFrom([]string{"", "", "known"}).Draw(t, "known")}
				if rapid.Bool().Draw(t, "blames") {
					f.Request = new(rapid.IntRange(-1, 3).Draw(t, "request"))
				}
				result.Findings = append(result.Findings, f)
			}
			r.Results = append(r.Results, result)
		}
		seen := map[member]int{}
		for _, g := range r.Groups() {
			found := 0
			for _, m := range g.members {
				seen[m]++
				if m.finding >= 0 {
					found++
				}
			}
			must.Assert(t, found == g.Findings && len(g.Clauses) > 0, "the group %+v counts %d findings", g, found)
		}
		for i, result := range r.Results {
			shown := result.Verdict == Fail || result.Verdict == Error || result.Verdict == Fixed || result.Verdict == Warn || result.Verdict == NotTestable
			for j, f := range result.Findings {
				want := 0
				if shown && f.KnownReason == "" {
					want = 1
				}
				n := seen[member{i, j}]
				must.Assert(t, n == want, "finding %d of %s (%s) is in %d groups, expected %d", j, result.ID, result.Verdict, n, want)
			}
			want := map[bool]int{true: 1}[shown && len(result.Findings) == 0]
			must.Assert(t, seen[member{i, -1}] == want, "%s without findings is in %d groups, expected %d", result.ID, seen[member{i, -1}], want)
		}
	})
}
