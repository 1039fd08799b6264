package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/selftest/mutants"
)

var (
	manySeeds   = flag.Int("seeds", 2, "seeds for which runs with one worker and with several are compared")
	manyMutants = flag.Int("mutants", 4, "mutants for which they are compared")
)

// mutant is a bridge for --exec: the mutant that $MUTANT names.
func mutant() {
	m, _ := mutants.Find(os.Getenv("MUTANT"))
	o := bridge.Options{Drupal: os.Getenv("DRUPAL_URL"), DiscoveryTTL: time.Second, PermissionTTL: time.Second, UpstreamTimeout: 2 * time.Second,
		AddressFailures: 100000, TotalFailures: 100000}
	if m.Transport != nil {
		o.Transport = m.Transport(&http.Transport{})
	}
	if m.Options != nil {
		m.Options(&o)
	}
	b, err := bridge.New(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var handler http.Handler = b
	if m.Middleware != nil {
		handler = m.Middleware(handler)
	}
	fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Getenv("BRIDGE_LISTEN"), handler))
}

// What a run finds does not depend on how many workers find it.
func TestReportsAreTheSameForEveryNumberOfWorkers(t *testing.T) {
	for seed := range *manySeeds {
		t.Run(fmt.Sprintf("in process, seed %d", seed+1), func(t *testing.T) {
			sameForJobs(t, "--seed", fmt.Sprint(seed+1), "--skip", "load", "--skip", "upstream", "--skip", "fresh/notify", "--skip", "auth/server-hangs", "--cases", "100")
		})
	}
	tested := []string{}
	for _, m := range mutants.Mutants() {
		if (m.Middleware != nil || m.Transport != nil || m.Options != nil) && m.Profile == "" && m.Fixture == "" && !m.MCP {
			tested = append(tested, m.Name)
		}
	}
	for i := range *manyMutants {
		name := tested[i*len(tested) / *manyMutants]
		t.Run("mutant "+name, func(t *testing.T) {
			t.Setenv("MUTANT", name)
			sameForJobs(t, "--exec", "mutant", "--env", "MUTANT", "--only", "list/*", "--only", "describe/*", "--only", "errors/*", "--only", "invoke/*", "--cases", "50")
		})
	}
}

// sameForJobs compares a run in one worker with the same in four.
func sameForJobs(t *testing.T, args ...string) {
	t.Helper()
	one, four := runJobs(t, "1", args), runJobs(t, "4", args)
	if len(one.results) < 20 {
		t.Fatalf("the run has %d clauses: %s", len(one.results), one.stdout)
	}
	if one.code != four.code || one.stdout != four.stdout {
		t.Errorf("one worker ends with %d and says\n%s\nfour end with %d and say\n%s", one.code, one.stdout, four.code, four.stdout)
	}
	if len(one.results) != len(four.results) {
		t.Fatalf("one worker has %d results, four have %d", len(one.results), len(four.results))
	}
	for i := range one.results {
		if one.results[i] != four.results[i] {
			at := 0
			for at < min(len(one.results[i]), len(four.results[i])) && one.results[i][at] == four.results[i][at] {
				at++
			}
			show := func(s string) string { return s[:min(len(s), 60)] + " … " + s[max(0, at-100):min(len(s), at+200)] }
			t.Errorf("one worker:\n%s\nfour:\n%s", show(one.results[i]), show(four.results[i]))
		}
	}
}

// outcomeOfRun is what a run gave, without times and ports.
type outcomeOfRun struct {
	code    int
	stdout  string
	results []string
}

var variable = regexp.MustCompile(`127\.0\.0\.1:\d+|[0-9.]+ ?m?s\b|/[^ ]*/report`)

func runJobs(t *testing.T, jobs string, args []string) outcomeOfRun {
	t.Helper()
	dir := t.TempDir()
	var out, errs strings.Builder
	code := execute(t.Context(), append([]string{"run", "--jobs", jobs, "--report-dir", dir}, args...), &out, &errs)
	report, err := reports.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatalf("exit code %d, %s%s: %v", code, out.String(), errs.String(), err)
	}
	if strings.Contains(errs.String(), "one worker tests all") {
		t.Log(errs.String())
	}
	o := outcomeOfRun{code: code, stdout: variable.ReplaceAllString(strings.ReplaceAll(out.String(), dir, "DIR"), "…")}
	for _, r := range report.Results {
		r.DurationMS = 0
		for i := range r.Evidence {
			// What the bridge said while nothing was wrong depends on what its caches and the site hold; what is wrong is in the findings.
			e := &r.Evidence[i]
			e.At, e.Drupal, e.Request.DurationMS = time.Time{}, nil, 0
			delete(e.Request.Header, "Mcp-Session-Id")
			if e.Response != nil {
				e.Response = &reports.Message{Status: e.Response.Status}
			}
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		o.results = append(o.results, variable.ReplaceAllString(string(text), "…"))
	}
	return o
}
