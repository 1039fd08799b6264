package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
)

var (
	manySeeds   = flag.Int("seeds", 1, "seeds for which runs with one worker and with several are compared")
	manyMutants = flag.Int("mutants", 2, "mutants for which they are compared")
)

// quick are options of the reference bridge before a site: short waits, and any number of wrong credentials.
func quick(drupal string) bridge.Options {
	return bridge.Options{
		Drupal:           drupal,
		DiscoveryOptions: bridge.DiscoveryOptions{DiscoveryTTL: time.Second, PermissionTTL: time.Second},
		CallOptions:      bridge.CallOptions{UpstreamTimeout: 2 * time.Second},
		CallerOptions:    bridge.CallerOptions{AddressFailures: 100000, TotalFailures: 100000},
	}
}

// mutant is a bridge for --exec: the mutant that its argument names.
func mutant() {
	m, ok := mutants.Find(os.Args[1])
	if !ok {
		fmt.Fprintln(os.Stderr, "there is no mutant", os.Args[1])
		os.Exit(1)
	}
	o := quick(os.Getenv("DRUPAL_URL"))
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
			t.Parallel()
			sameForJobs(t, "1", "--seed", fmt.Sprint(seed+1), "--skip", "load", "--skip", "upstream",
				"--skip", "fresh/notify", "--skip", "auth/server-hangs", "--cases", "100")
		})
	}
	tested := []string{}
	for _, m := range mutants.Mutants() {
		if (m.Middleware != nil || m.Transport != nil || m.Options != nil) && m.Profile == "" && m.Fixture == "" && !m.MCP {
			tested = append(tested, m.Name)
		}
	}
	many := *manyMutants
	if testing.Short() {
		many = 1
	}
	for i := range many {
		name := tested[i*len(tested)/many]
		t.Run("mutant "+name, func(t *testing.T) {
			t.Parallel()
			sameForJobs(t, "2", "--exec", "mutant "+name, "--only", "list/*", "--only", "describe/*", "--only", "errors/*", "--only", "invoke/*", "--cases", "50")
		})
	}
}

// sameForJobs compares a run in so few workers with the same in eight. With one a bridge of --exec is one process, and
// invoke/runs-once does not end it.
func sameForJobs(t *testing.T, few string, args ...string) {
	t.Helper()
	same(t, runJobs(t, few, args), runJobs(t, "8", args))
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// same compares what one worker found with what several did.
func same(t *testing.T, one, several outcomeOfRun) {
	t.Helper()
	must.Assert(t, len(one.results) >= 15, "the run has %d clauses: %s", len(one.results), one.stdout)
	// What lies between the verdicts groups clauses by what is blamed, which may be another request where workers share a bridge.
	must.Expect(t, one.code == several.code && lastLine(one.stdout) == lastLine(several.stdout),
		"one worker ends with %d and says\n%s\nseveral end with %d and say\n%s", one.code, one.stdout, several.code, several.stdout)
	must.Assert(t, len(one.results) == len(several.results),
		"one worker has %d results, several have %d", len(one.results), len(several.results))
	for i, a := range one.results {
		b := several.results[i]
		at := 0
		for at < min(len(a), len(b)) && a[at] == b[at] {
			at++
		}
		if a != b {
			show := func(s string) string { return s[:min(len(s), 60)] + " … " + s[max(0, at-100):min(len(s), at+200)] }
			t.Errorf("one worker:\n%s\nseveral:\n%s", show(a), show(b))
		}
	}
}

// Workers share a bridge of --url where the checks only read. What fails while others are at it is tested again alone: a bridge
// that does not bear them is not blamed, and one with a fault is.
func TestWorkersShareABridge(t *testing.T) {
	anyCase, ok := mutants.Find("describe-any-case")
	must.Assert(t, ok, "there is no mutant describe-any-case")
	for name, broken := range map[string]func(http.Handler) http.Handler{
		"conformant":                 nil,
		"with a fault":               anyCase.Middleware,
		"that does not bear company": refuseCompany,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, most := servedBridge(t, broken)
			args := []string{"--url", url, "--only", "list/*", "--only", "describe/*", "--only", "errors/*", "--cases", "50"}
			one := runJobs(t, "1", args)
			n := most.Swap(0)
			must.Expect(t, n <= 4, "%d requests were under way at once with one worker", n)
			same(t, one, runJobs(t, "4", args))
			n = most.Load()
			must.Expect(t, n >= 2, "with four workers no two requests were under way at once")
			fails := strings.Contains(one.stdout, "describe/name-exact")
			must.Expect(t, fails == (name == "with a fault"), "describe/name-exact fails: %t\n%s", fails, one.stdout)
		})
	}
}

// servedBridge serves the reference bridge over the mock with a middleware, if there is one. most is how many requests were under
// way at once.
func servedBridge(t *testing.T, middleware func(http.Handler) http.Handler) (address string, most *atomic.Int64) {
	t.Helper()
	site := must.Get(fixtures.Builtin("default"))(t)
	drupal := must.Get(mockdrupal.New(site, mockdrupal.Options{}))(t)
	behind := must.Get(drupal.Listen("127.0.0.1:0"))(t)
	t.Cleanup(func() { behind.Close() })
	b := must.Get(bridge.New(bridge.Options{Drupal: behind.URL, CallOptions: bridge.CallOptions{UpstreamTimeout: 2 * time.Second}, CallerOptions: bridge.CallerOptions{AddressFailures: 100000, TotalFailures: 100000}}))(t)
	var handler http.Handler = b
	if middleware != nil {
		handler = middleware(handler)
	}
	var now atomic.Int64
	most = &atomic.Int64{}
	server := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer now.Add(-1)
		for n := now.Add(1); n > most.Load(); {
			most.Store(n)
		}
		time.Sleep(5 * time.Millisecond) // so that there is company
		handler.ServeHTTP(w, r)
	}))
	return strings.Replace(server.URL, "http://", "http://agent:agent-pass@", 1), most
}

// refuseCompany serves one request at a time, and breaks down over a second.
func refuseCompany(next http.Handler) http.Handler {
	var serving atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer serving.Add(-1)
		if serving.Add(1) > 1 {
			http.Error(w, "out of order", http.StatusInternalServerError)
			return
		}
		time.Sleep(2 * time.Millisecond)
		next.ServeHTTP(w, r)
	})
}

// shortLived is a bridge for --exec: that of mutant, and the first that makes the file $FIRST is killed within a second.
func shortLived() {
	if _, err := os.OpenFile(os.Getenv("FIRST"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		time.AfterFunc(time.Second, func() {
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
		})
	}
	mutant()
}

// Where somebody ends a bridge, the checks for which it was started are tested again, and no others.
func TestWhatABridgeLeftUntestedIsTestedAgain(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: bridges that end by themselves are not run")
	must.Need(t, runtime.GOOS != "windows", "NOT TESTED: Windows does not say that a process was killed")
	t.Setenv("FIRST", filepath.Join(t.TempDir(), "first"))
	args := []string{"--exec", "shortLived describe-any-case", "--env", "FIRST", "--only", "list/*", "--only", "describe/*", "--cases", "50"}
	several := runJobs(t, "3", args)
	must.Expect(t, strings.Contains(several.stderr, "bridgecheck: 1 of "), "nothing was tested again: %s", several.stderr)
	same(t, runJobs(t, "1", args), several)
}

// crashes is a bridge for --exec: the reference bridge, which ends by itself at a request of the method that its argument names.
func crashes() {
	b, err := bridge.New(quick(os.Getenv("DRUPAL_URL")))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Getenv("BRIDGE_LISTEN"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == os.Args[1] {
			fmt.Fprintf(os.Stderr, "panic: %s is not handled\n", r.Method)
			os.Exit(2)
		}
		b.ServeHTTP(w, r)
	})))
}

// A bridge that ends by itself fails the clause that was tested, also a SHOULD, and nothing else is left untested for it.
func TestABridgeThatEndsFailsTheClause(t *testing.T) {
	for method, clause := range map[string]string{"HEAD": "http/head", "none": ""} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			args := []string{"--exec", "crashes " + method, "--only", "http/*", "--only", "describe/*"}
			for _, jobs := range []string{"1", "3"} {
				outcome, failed := runJobs(t, jobs, args), []string{}
				for _, text := range outcome.results {
					var r reports.Result
					must.Do(t, json.Unmarshal([]byte(text), &r))
					switch {
					case r.Verdict == reports.Fail:
						failed = append(failed, r.ID)
						const said = "the bridge, after HEAD /mcp/tools/describe?name=content.list as agent: expected to go on running, " +
							"got it ended by itself: exit status 2; the last lines of bridge.log: "
						must.Expect(t, strings.Contains(r.Message, said) && r.Curl != "",
							"%s fails because %s, as %q shows", r.ID, r.Message, r.Curl)
					case r.Verdict != reports.Pass && r.Verdict != reports.NotApplicable:
						t.Errorf("%s is %s: %s", r.ID, r.Verdict, r.Message)
					}
				}
				if got := strings.Join(failed, " "); got != clause || (outcome.code == exitOK) != (clause == "") {
					t.Errorf("with --jobs %s %q failed, and the run ended with %d: %s%s", jobs, got, outcome.code, outcome.stdout, outcome.stderr)
				}
			}
		})
	}
}

// One that ends at every call leaves untested what comes after the third end of a bundle, whatever the number of workers.
func TestABridgeThatEndsAgainAndAgain(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: bridges that end by themselves are not run")
	t.Parallel()
	args := []string{"--exec", "crashes POST", "--only", "invoke/*", "--cases", "20"}
	verdicts := make([][]string, 2)
	t.Run("jobs", func(t *testing.T) {
		for i, jobs := range []string{"1", "3"} {
			t.Run(jobs, func(t *testing.T) {
				t.Parallel()
				outcome := runJobs(t, jobs, args)
				must.Expect(t, outcome.code == 1 && strings.Contains(outcome.stdout, bridgeEnded),
					"the run ended with %d: %s", outcome.code, outcome.stdout)
				for _, text := range outcome.results {
					var r reports.Result
					must.Do(t, json.Unmarshal([]byte(text), &r))
					verdicts[i] = append(verdicts[i], r.ID+" "+string(r.Verdict))
				}
			})
		}
	})
	must.Expect(t, slices.Equal(verdicts[0], verdicts[1]), "one worker: %q\nthree: %q", verdicts[0], verdicts[1])
}

// outcomeOfRun is what a run gave, without times and ports.
type outcomeOfRun struct {
	code           int
	stdout, stderr string
	results        []string
}

var variable = regexp.MustCompile(`127\.0\.0\.1:\d+|[0-9.]+ ?m?s\b|/[^ ]*/report`)

func runJobs(t *testing.T, jobs string, args []string) outcomeOfRun {
	t.Helper()
	dir := t.TempDir()
	code, stdout, stderr := inProcess(t, append([]string{"run", "--jobs", jobs, "--report-dir", dir}, args...))
	return outcomeOf(t, code, stdout, stderr, dir)
}

// inProcess runs a command line in a process of its own: what a process starts ends with each of its runs.
func inProcess(t *testing.T, args []string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	cmd := exec.CommandContext(t.Context(), "bridgecheck", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	must.Assert(t, cmd.ProcessState != nil, "%v", err)
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func outcomeOf(t *testing.T, code int, stdout, stderr, dir string) outcomeOfRun {
	t.Helper()
	report, err := reports.ReadFile(filepath.Join(dir, "report.json"))
	must.Assert(t, err == nil, "exit code %d, %s%s: %v", code, stdout, stderr, err)
	must.Expect(t, !strings.Contains(stderr, "one worker tested all"), "one worker is compared with itself: %s", stderr)
	o := outcomeOfRun{code: code, stderr: stderr, stdout: variable.ReplaceAllString(strings.ReplaceAll(stdout, dir, "DIR"), "…")}
	for _, r := range report.Results {
		r.DurationMS, r.WaitedMS, r.Requests = 0, 0, 0 // what a check costs, with others beside it
		for i := range r.Evidence {
			// What the bridge said while nothing was wrong depends on what its caches and the site hold; what is wrong is in the findings.
			e := &r.Evidence[i]
			e.At, e.Drupal, e.Request.DurationMS = time.Time{}, nil, 0
			delete(e.Request.Header, "Mcp-Session-Id")
			for _, varied := range []string{"X-Forwarded-For", "Accept-Language"} { // of filter/rate-limit: another for each call, and time fills the bucket
				delete(e.Request.Header, varied)
			}
			if e.Response != nil {
				e.Response = &reports.Message{Status: e.Response.Status}
			}
		}
		text := must.Get(json.Marshal(r))(t)
		o.results = append(o.results, variable.ReplaceAllString(string(text), "…"))
	}
	return o
}

// Three shards that are merged give the report and the exit code of one run.
func TestShardsMergedEqualOneRun(t *testing.T) {
	known := filepath.Join(t.TempDir(), "known.yaml")
	const few = "--only=list/[a-m]*"
	for name, args := range map[string][]string{
		"in process":    {few, "--only", "describe/*", "--only", "auth/token-*", "--only", "filter/*"},
		"no list":       {"--exec", "mutant list-byte-order-mark", few, "--only", "describe/*", "--only", "errors/*", "--only", "invoke/[a-m]*", "--cases", "50"},
		"with baseline": {"--exec", "mutant describe-any-case", few, "--only", "describe/*", "--baseline", known},
	} {
		t.Run(name, func(t *testing.T) {
			must.Need(t, name != "no list" || !testing.Short(), "SKIPPED: it takes half of the time")
			if name == "with baseline" {
				runJobs(t, "1", append([]string{"--write-baseline", known}, args[:len(args)-2]...))
			}
			t.Parallel()
			one := runJobs(t, "1", args)
			merge := []string{"report", "merge", "--report-dir", t.TempDir()}
			if name == "with baseline" {
				merge = append(merge, "--baseline", known)
			}
			tested := 0
			for i := range 3 {
				dir := t.TempDir()
				shard := append([]string{"run", "--run-id", "r", "--shard", fmt.Sprintf("%d/3", i+1), "--report-dir", dir}, args...)
				code, _, stderr := inProcess(t, shard)
				must.Assert(t, code != exitUsage && code != exitUnreachable, "shard %d ends with %d: %s", i+1, code, stderr)
				report := must.Get(reports.ReadFile(filepath.Join(dir, "report.json")))(t)
				tested += len(report.Results)
				must.Expect(t, len(report.Results) > 0 && len(report.Results) != len(one.results) && report.State() != reports.Conformant,
					"shard %d has %d results and is %s", i+1, len(report.Results), report.State())
				merge = append(merge, dir)
			}
			must.Expect(t, tested == len(one.results), "the shards have %d results, one run has %d", tested, len(one.results))
			code, stdout, stderr := inProcess(t, merge)
			same(t, one, outcomeOf(t, code, stdout, stderr, merge[3]))
		})
	}
}
