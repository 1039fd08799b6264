package reports_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/format"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

func TestConclude(t *testing.T) {
	unknown := reports.Finding{Subject: "GET /x as agent", Expected: "404", Actual: "200", Tool: "a.b", Identity: "agent", Request: new(1)}
	evidence := []reports.Exchange{{}, {Request: reports.Message{Method: "GET", URL: "http://b/x"}}}
	with := func(f reports.Finding, edit func(*reports.Finding)) reports.Finding { edit(&f); return f }
	for _, c := range []struct {
		name                   string
		findings               []reports.Finding
		message, subject, curl string
	}{
		{"nothing is wrong", nil, "as it was", "as it was", ""},
		{"one", []reports.Finding{unknown}, "GET /x as agent: expected 404, got 200", "GET /x as agent", "curl -i http://b/x"},
		{"a row", []reports.Finding{with(unknown, func(f *reports.Finding) { f.Row = "a blank" })}, "GET /x as agent (a blank): expected 404, got 200", "GET /x as agent (a blank)", "curl -i http://b/x"},
		{"a row that the subject names", []reports.Finding{with(unknown, func(f *reports.Finding) { f.Row = "/x" })}, "GET /x as agent: expected 404, got 200", "GET /x as agent", "curl -i http://b/x"},
		{"several tools", []reports.Finding{unknown, with(unknown, func(f *reports.Finding) { f.Tool = "c.d" })}, `GET /x as agent: expected 404, got 200 (and 1 more: "c.d")`, `GET /x as agent (and 1 more: "c.d")`, "curl -i http://b/x"},
		{"two that are the same", []reports.Finding{unknown, unknown}, `GET /x as agent: expected 404, got 200 (and 1 more: "a.b")`, "GET /x as agent (and 1 more: \"a.b\")", "curl -i http://b/x"},
		{"the first is known", []reports.Finding{with(unknown, func(f *reports.Finding) { f.KnownReason, f.Actual = "issue 1", "500" }), unknown}, `GET /x as agent: expected 404, got 200 (and 1 more: "a.b")`, "GET /x as agent (and 1 more: \"a.b\")", "curl -i http://b/x"},
		{"all are known", []reports.Finding{with(unknown, func(f *reports.Finding) { f.KnownReason = "issue 1" })}, "GET /x as agent: expected 404, got 200", "GET /x as agent", "curl -i http://b/x"},
		{"a message alone", []reports.Finding{{Message: "100 are wrong"}}, "100 are wrong", "100 are wrong", ""},
		{"no such exchange", []reports.Finding{with(unknown, func(f *reports.Finding) { f.Request = new(7) })}, "GET /x as agent: expected 404, got 200", "GET /x as agent", ""},
		{"text that looks like a message", []reports.Finding{{Subject: "x: expected y, got z", Expected: "a, got b", Actual: "c: expected d"}}, "x: expected y, got z: expected a, got b, got c: expected d", "x: expected y, got z", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := reports.Result{Message: "as it was", Verdict: reports.Fail, Findings: c.findings, Evidence: evidence}
			r.Conclude()
			for range 2 { // concluding again changes nothing
				must.Expect(t, r.Message == c.message && r.Subject() == c.subject && r.Curl == c.curl,
					"message %q, subject %q, curl %q; want %q, %q, %q", r.Message, r.Subject(), r.Curl, c.message, c.subject, c.curl)
				r.Conclude()
			}
			if lead, ok := r.Lead(); ok && (r.Expected != lead.Expected || r.Actual != lead.Actual) {
				t.Errorf("expected %q and got %q, want those of %+v", r.Expected, r.Actual, lead)
			}
		})
	}
}

// A line has room for what came, not for what was sent.
func TestBriefLeavesBodiesOut(t *testing.T) {
	for want, f := range map[string]reports.Finding{
		"POST /x {…} as agent (deep): expected a to run once, got 500 {…}, and it ran 2 times": {Subject: `POST /x {"a":{"b":"… (9 bytes more) as agent`, Row: "deep", Expected: "a to run once", Actual: `500 {"error":{}}, and it ran 2 times`},
		`GET /x as agent: expected 404, got 200 {"tools":[]}`:                                  {Subject: "GET /x as agent", Expected: "404", Actual: `200 {"tools":[]}`},
	} {
		r := reports.Result{Verdict: reports.Fail, Findings: []reports.Finding{f, f}}
		if r.Conclude(); r.Brief() != want {
			t.Errorf("got  %q,\nwant %q", r.Brief(), want)
		}
	}
}

// Where there is less room the row goes first, then the request, then what was expected; what came stays.
func TestBriefInLittleRoomKeepsWhatCame(t *testing.T) {
	r := reports.Result{Verdict: reports.Fail, Findings: []reports.Finding{{Subject: `POST /mcp/tools/invoke {"a":1} as agent`, Row: "the site is slow and sends a text",
		Expected: "500, 502 or 503 with the envelope and nothing of it", Actual: "200 with all"}}}
	r.Conclude()
	for room, want := range map[int]string{
		1000: "POST /mcp/tools/invoke {…} as agent (the site is slow and sends a text): expected 500, 502 or 503 with the envelope and nothing of it, got 200 with all",
		130:  "POST /mcp/tools/invoke {…} as agent: expected 500, 502 or 503 with the envelope and nothing of it, got 200 with all",
		100:  "POST /mcp/tools/invoke…: expected 500, 502 or 503 with the envelope and nothing o…, got 200 with all",
		10:   "POST /mcp/tools/invoke…: expected 500, 502 or 503 with th…, got 200 with all",
	} {
		if got := r.BriefIn(room); got != want {
			t.Errorf("in %d characters: got\n%q, want\n%q", room, got, want)
		}
	}
}

// One of many findings is named, by a plain name if there is one.
func TestNotesNameOnePlainFinding(t *testing.T) {
	named := func(row string) reports.Finding {
		return reports.Finding{Subject: "x", Row: row, Expected: "a", Actual: "b"}
	}
	r := reports.Result{Findings: []reports.Finding{named(""), named("calls for 'Straße “q”'"), named("a blank"), named("a tab")}}
	if r.Conclude(); r.Note != "and 3 more: a blank, …" {
		t.Errorf("the note is %q", r.Note)
	}
}

func TestFindingsFollowTheirExchangesWhenEvidenceIsCut(t *testing.T) {
	r := sample.Kept()
	result := &r.Results[0]
	result.Verdict = reports.Fail
	for i := range 300 {
		result.Evidence = append(result.Evidence, reports.Exchange{Request: reports.Message{Method: "GET", URL: fmt.Sprintf("http://b/%d", i)}})
	}
	result.Findings = []reports.Finding{{Message: "a", Request: new(150)}, {Message: "b", Request: new(299)}, {Message: "c"}, {Message: "d", Request: new(1000)}}
	result.Conclude()
	read := must.Get(r.Canonical())(t)
	got := read.Results[0]
	n := len(got.Evidence)
	must.Expect(t, n == 64 && got.EvidenceOmitted == 300-64, "%d exchanges are left and %d omitted", n, got.EvidenceOmitted)
	for i, want := range []string{"http://b/150", "http://b/299", "", ""} {
		blamed := ""
		if at := got.Findings[i].Request; at != nil {
			blamed = got.Evidence[*at].Request.URL
		}
		must.Expect(t, blamed == want, "finding %d blames %q, want %q", i, blamed, want)
	}
	must.Expect(t, *result.Findings[0].Request == 150, "writing changed the report")
}

// A report that an earlier bridgecheck wrote, before findings held more than a message.
func TestEarlierReportsAreRead(t *testing.T) {
	r := must.Get(reports.ReadFile("testdata/report-before-findings.json"))(t)
	failed := r.With(reports.Fail)[0]
	must.Expect(t, len(failed.Findings) == 2 && failed.Findings[1].Tool == "content.list" && failed.Findings[0].Request == nil,
		"the findings are %+v", failed.Findings)
	must.Expect(t, failed.Subject() == failed.Message && failed.Expected == "`{}`" && strings.HasPrefix(failed.Curl, "curl -i "),
		"the failure is %q, expected %q, by %q", failed.Subject(), failed.Expected, failed.Curl)
	err := format.WriteAll(r, t.TempDir())
	must.Expect(t, err == nil, "%v", err)
}

func TestCurlIsWhatAShellTakesItFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringOf(rapid.RuneFrom([]rune("aZ09 '\"\\$`{}[]:;&|<>()*?!#~%ä日🔑")))
		user, header, body := "u"+letters.Draw(t, "user"), "h"+letters.Draw(t, "header"), "b"+letters.Draw(t, "body")
		e := reports.Exchange{
			Identity: "agent 2",
			Request:  reports.Message{Method: "POST", URL: "http://h/?" + letters.Draw(t, "query"), Header: map[string]string{"Authorization": "Basic [redacted]", "X-Key": "[redacted]", "X-Plain": header}, Body: body},
			Credentials: []reports.Credential{
				{Header: "Authorization", Scheme: "Basic", User: user}, {Header: "x-key"},
			},
		}
		shell := exec.Command("sh", "-c", "set -- "+e.Curl()+`; for word; do printf '%s\n' "$word"; done`)
		shell.Env = []string{`AGENT_2_PASSWORD=p"a$s'`, "AGENT_2_X_KEY=k-1"}
		out, err := shell.CombinedOutput()
		must.Assert(t, err == nil, "%v: %s", err, out)
		words := []string{"curl", "-i", "-X", "POST"}
		if strings.ContainsAny(e.Request.URL, "[]{}") {
			words = append(words, "-g")
		}
		words = append(words, "-u", user+`:p"a$s'`, "-H", "X-Key: k-1", "-H", "X-Plain: "+header, "-H", "Content-Type:", "--data-binary", body, e.Request.URL)
		want := strings.Join(words, "\n") + "\n"
		must.Assert(t, string(out) == want, "%s\nis read as\n%s\nwant\n%s", e.Curl(), out, want)
	})
}

func TestNewRequestNeedsTheWholeRequestAndItsCredentials(t *testing.T) {
	e := reports.Exchange{Identity: "agent", Request: reports.Message{Method: "GET", URL: "http://b/x", Header: map[string]string{"Authorization": "Bearer [redacted]", "Accept": "a/b"}},
		Credentials: []reports.Credential{{Header: "Authorization", Scheme: "Bearer"}}}
	must.Refuse(e.NewRequest(t.Context(), func(string) string { return "" }))(t, "AGENT_TOKEN is not set")
	req, err := e.NewRequest(t.Context(), func(name string) string { return map[string]string{"AGENT_TOKEN": "t-1"}[name] })
	must.Expect(t, err == nil && req.Header.Get("Authorization") == "Bearer t-1" && req.Header.Get("Accept") == "a/b",
		"the request is %+v: %v", req, err)
	for name, cut := range map[string]reports.Message{"cut": {Method: "POST", URL: "http://b", Truncated: 3}, "no base64": {Method: "POST", URL: "http://b", Encoding: "base64", Body: "!"}, "no request": {}} {
		e := reports.Exchange{Request: cut}
		_, err := e.NewRequest(t.Context(), os.Getenv)
		must.Expect(t, err != nil && e.Curl() == "", "%s: the curl line is %q, and the error %v", name, e.Curl(), err)
	}
}
