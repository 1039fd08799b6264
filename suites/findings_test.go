package suites_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
)

// shown is a bridge of n tools that hold the given members beside a name; it knows no tool on describe.
type shown struct {
	n       int
	members func(i int) map[string]any
	slow    time.Duration // of describe
	asked   atomic.Int64
}

func (s *shown) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/describe") {
		select {
		case <-time.After(s.slow):
		case <-r.Context().Done():
			return
		}
	}
	if !strings.HasSuffix(r.URL.Path, "/list") {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error":{"code":"tool_not_found","message":"none"}}`)
		return
	}
	tools := []any{}
	for i := range s.n {
		tool := map[string]any{"name": fmt.Sprintf("tool.%d", i), "description": "does", "inputSchema": map[string]any{"type": "object"}}
		maps.Copy(tool, s.members(i))
		tools = append(tools, tool)
	}
	json.NewEncoder(w).Encode(map[string]any{"tools": tools})
}

func nothing(int) map[string]any { return nil }

// runShown returns the result of one clause.
func runShown(t *testing.T, s http.Handler, clause string) reports.Result {
	t.Helper()
	report := must.Get(suites.Run(context.Background(), suites.Target{URL: serveAt(t, s)}, suites.Options{Callers: suites.Callers{Credentials: map[suites.Identity]suites.Credentials{suites.Agent: {User: "agent", Password: "secret-of-agent"}}}, Connection: suites.Connection{Timeout: 200 * time.Millisecond}, Only: []string{clause}}))(t)
	return report.Results[0]
}

func TestACheckReportsEveryWrongTool(t *testing.T) {
	r := runShown(t, &shown{n: 5, members: func(i int) map[string]any {
		if i%2 == 0 {
			return nil
		}
		return map[string]any{"inputSchema": map[string]any{"type": "object", "properties": []any{}}}
	}}, "mapping/input-object")
	own := slices.DeleteFunc(slices.Clone(r.Findings), func(f reports.Finding) bool { return f.Identity != "agent" }) // callers without permission are tested, too
	must.Assert(t, len(own) == 2 && r.Verdict == reports.Fail && len(r.Tested) == 5,
		"%s with %d of %d: %+v", r.Verdict, len(r.Findings), len(r.Tested), r.Findings)
	for i, f := range r.Findings {
		want := fmt.Sprintf("tool.%d", 2*i+1)
		must.Expect(t, f.Tool == want && f.Identity == "agent" && strings.Contains(f.Message, want), "the finding is %+v, want %s as agent", f, want)
	}
	must.Expect(t, strings.HasSuffix(r.Message, `(and 1 more: "tool.3")`) && r.Actual == "the properties []",
		"the message is %q, of which %q came", r.Message, r.Actual)
}

func TestToolsThatAreAllWrongCostNoMoreThanRightOnes(t *testing.T) {
	const n = 300
	long := strings.Repeat("x", 10<<10)
	s := &shown{n: n, members: func(int) map[string]any {
		return map[string]any{"inputSchema": map[string]any{"type": "object", "properties": long}}
	}}
	r := runShown(t, s, "mapping/input-object")
	size := len(r.Message)
	for _, f := range r.Findings {
		size += len(f.Message)
	}
	must.Expect(t, len(r.Findings) == 101 && size <= 100<<10, "there are %d findings of %d bytes", len(r.Findings), size)
	last := r.Findings[len(r.Findings)-1]
	must.Expect(t, last.Tool == "" && strings.Contains(last.Message, "was not tested"), "the last finding is %+v", last)
	every := &shown{n: n, members: nothing}
	runShown(t, every, "describe/answers-tool")
	asked := every.asked.Load()
	must.Expect(t, asked <= n, "%d tools that cannot be described took %d requests", n, asked)
}

func TestToolsWithoutAResponseAreNotAllWaitedFor(t *testing.T) {
	began := time.Now()
	r := runShown(t, &shown{n: 50, members: nothing, slow: time.Minute}, "describe/answers-tool")
	must.Need(t, !strings.HasPrefix(r.Message, "the machine is overloaded"), "%v", "SKIPPED: "+r.Message)
	tools := slices.DeleteFunc(slices.Clone(r.Findings), func(f reports.Finding) bool { return f.Tool == "" })
	must.Expect(t, len(tools) == 3 && len(r.Findings) == 4, "the findings are %+v", r.Findings)
	took := time.Since(began)
	must.Expect(t, took <= 5*time.Second, "it took %v", took)
}

// lenient has no tools, and refuses every body that is no JSON but for those that hold one of the texts.
type lenient []string

func (l lenient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/list") {
		(&shown{}).ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	status, code := http.StatusBadRequest, "invalid_json"
	if !strings.HasSuffix(r.URL.Path, "/invoke") || json.Valid(body) && utf8.Valid(body) || slices.ContainsFunc(l, func(part string) bool { return strings.Contains(string(body), part) }) {
		status, code = http.StatusNotFound, "tool_not_found"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"code":%q,"message":"no"}}`, code)
}

func TestACheckReportsEveryWrongRow(t *testing.T) {
	r := runShown(t, lenient{"NaN", "/* none */"}, "invoke/malformed-json")
	own := slices.DeleteFunc(slices.Clone(r.Findings), func(f reports.Finding) bool { return f.Identity != "agent" }) // callers without permission are tested, too
	must.Assert(t, len(own) == 3 && r.Verdict == reports.Fail && strings.Contains(own[1].Message, "as agent (a comment): expected 400"),
		"%s with %+v", r.Verdict, r.Findings)
	must.Expect(t, strings.Contains(r.Message, "as agent (NaN): expected 400 invalid_json, got 404") && strings.Contains(r.Message, " more: a comment"),
		"the message is %q", r.Message)
	must.Expect(t, strings.HasPrefix(r.Actual, "404 ") && !strings.Contains(r.Actual, "NaN") && strings.Contains(r.Curl, "NaN"),
		"what came is %q, by %s", r.Actual, r.Curl)
	all := runShown(t, lenient{""}, "invoke/malformed-json")
	must.Expect(t, len(all.Findings) >= 10 && strings.HasSuffix(all.Message, " more: white space, …)"),
		"%d rows are wrong, and the message is %q", len(all.Findings), all.Message)
}

func TestANegatedExpectationBlamesItsResponse(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/", lenient{})
	mux.HandleFunc("/mcp/tools/LIST", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<p>Not found</p>")
	})
	r := runShown(t, mux, "http/trailing-and-case")
	want := `GET /mcp/tools/LIST as agent: expected not HTML, got Content-Type "text/html": 200 <p>Not found</p>`
	must.Expect(t, r.Message == want && strings.HasSuffix(r.Curl, "/mcp/tools/LIST"), "the message is %q, by %s", r.Message, r.Curl)
}
