package suites_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bridgecheck/reports"
	"bridgecheck/suites"
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
		for name, value := range s.members(i) {
			tool[name] = value
		}
		tools = append(tools, tool)
	}
	json.NewEncoder(w).Encode(map[string]any{"tools": tools})
}

func nothing(int) map[string]any { return nil }

// judgeShown gives the result of one clause.
func judgeShown(t *testing.T, s *shown, clause string) reports.Result {
	t.Helper()
	report, err := suites.Run(context.Background(), suites.Target{URL: serveAt(t, s)}, suites.Options{
		Only: []string{clause}, Timeout: 200 * time.Millisecond,
		Credentials: map[suites.Identity]suites.Credentials{suites.Agent: {User: "agent", Password: "secret-of-agent"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return report.Results[0]
}

func TestACheckTellsOfEveryToolThatIsWrong(t *testing.T) {
	r := judgeShown(t, &shown{n: 5, members: func(i int) map[string]any {
		if i%2 == 0 {
			return nil
		}
		return map[string]any{"inputSchema": map[string]any{"type": "object", "properties": []any{}}}
	}}, "mapping/input-object")
	if len(r.Findings) != 2 || r.Verdict != reports.Fail || len(r.Judged) != 5 {
		t.Fatalf("%s with %d of %d: %+v", r.Verdict, len(r.Findings), len(r.Judged), r.Findings)
	}
	for i, f := range r.Findings {
		if want := fmt.Sprintf("tool.%d", 2*i+1); f.Tool != want || f.Identity != "agent" || !strings.Contains(f.Message, want) {
			t.Errorf("the finding is %+v, want %s as agent", f, want)
		}
	}
	if !strings.HasSuffix(r.Message, `(and 1 more: "tool.3")`) || r.Actual != `the properties [] for "tool.1"` {
		t.Errorf("the message is %q, of which %q came", r.Message, r.Actual)
	}
}

func TestToolsThatAreAllWrongCostNoMoreThanRightOnes(t *testing.T) {
	const n = 300
	long := strings.Repeat("x", 10<<10)
	s := &shown{n: n, members: func(int) map[string]any {
		return map[string]any{"inputSchema": map[string]any{"type": "object", "properties": long}}
	}}
	r := judgeShown(t, s, "mapping/input-object")
	size := len(r.Message)
	for _, f := range r.Findings {
		size += len(f.Message)
	}
	if len(r.Findings) != 101 || size > 100<<10 {
		t.Errorf("there are %d findings of %d bytes", len(r.Findings), size)
	}
	if last := r.Findings[len(r.Findings)-1]; last.Tool != "" || !strings.Contains(last.Message, "was not judged") {
		t.Errorf("the last finding is %+v", last)
	}
	every := &shown{n: n, members: nothing}
	judgeShown(t, every, "describe/answers-tool")
	if asked := every.asked.Load(); asked > n {
		t.Errorf("%d tools that cannot be described took %d requests", n, asked)
	}
}

func TestToolsThatGetNoAnswerAreNotAllWaitedFor(t *testing.T) {
	began := time.Now()
	r := judgeShown(t, &shown{n: 50, members: nothing, slow: time.Minute}, "describe/answers-tool")
	if tools := slices.DeleteFunc(slices.Clone(r.Findings), func(f reports.Finding) bool { return f.Tool == "" }); len(tools) != 3 || len(r.Findings) != 4 {
		t.Errorf("the findings are %+v", r.Findings)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
