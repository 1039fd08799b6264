// Package faces tests the suites as people meet them who write Go: under ginkgo and go test, with the flags that they use
// every day, and in a module of their own.
package faces

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

const root = "../.."

// built are the ginkgo command and the suite, compiled once for all tests.
var built = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "faces"); err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{"build", "-o", filepath.Join(dir, "ginkgo"), "github.com/onsi/ginkgo/v2/ginkgo"},
		{"test", "-c", "-o", filepath.Join(dir, "conformance.test"), "./suites/conformance"},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			return dir, &exec.Error{Name: strings.Join(args, " ") + ": " + string(out), Err: err}
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := built(); dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// changes are bridges by what is wrong with them: each is put before the reference bridge.
var changes = map[string]func(http.Handler) http.Handler{
	"correct": func(h http.Handler) http.Handler { return h },
	"broken": func(h http.Handler) http.Handler { // a MUST by another status, a SHOULD by a header that is missing
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen := httptest.NewRecorder()
			h.ServeHTTP(seen, r)
			for name, values := range seen.Header() {
				w.Header()[name] = values
			}
			w.Header().Del("X-Content-Type-Options")
			if seen.Code == http.StatusNotFound {
				seen.Code = http.StatusGone
			}
			w.WriteHeader(seen.Code)
			_, _ = w.Write(seen.Body.Bytes())
		})
	},
	"refusing": func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"code":"unauthenticated","message":"no"}}`)
		})
	},
}

// stand serves a bridge before a mock that the suite starts, and returns the flags that say so.
func stand(t *testing.T, change string) []string {
	t.Helper()
	site, release, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	b := must.Get(bridge.New(bridge.Options{
		Drupal:           "http://" + site,
		DiscoveryOptions: bridge.DiscoveryOptions{DiscoveryTTL: time.Second, PermissionTTL: time.Second},
		CallOptions:      bridge.CallOptions{UpstreamTimeout: time.Second},
		Logger:           slog.New(slog.DiscardHandler),
	}))(t)
	t.Cleanup(b.Close)
	server := httptest.NewServer(changes[change](b))
	t.Cleanup(server.Close)
	return []string{"--bridge-url", server.URL, "--mock-listen", site, "--discovery-ttl", "1s", "--upstream-timeout", "1s"}
}

// byGinkgo runs the suite by the ginkgo command.
func byGinkgo(t *testing.T, flags []string, bridge ...string) (output string, code int) {
	t.Helper()
	return start(t, "ginkgo", "", append(append([]string{"--no-color"}, flags...), append([]string{"conformance.test", "--"}, bridge...)...))
}

// start runs a program of built, and sends it an interrupt once its output holds a text; "": it does not.
func start(t *testing.T, program, text string, args []string) (output string, code int) {
	t.Helper()
	dir := must.Get(built())(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	if !filepath.IsAbs(program) {
		program = filepath.Join(dir, program)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	seen := &watched{text: text, met: func() { _ = cmd.Process.Signal(os.Interrupt) }}
	cmd.Stdout, cmd.Stderr = seen, seen
	must.Do(t, cmd.Start())
	_ = cmd.Wait() // the code says it
	return seen.String(), cmd.ProcessState.ExitCode()
}

// watched is output in which a text is waited for.
type watched struct {
	mu   sync.Mutex
	all  strings.Builder
	text string
	met  func()
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(p)
	if w.text != "" && strings.Contains(w.all.String(), w.text) {
		w.text = ""
		w.met()
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

func expect(t *testing.T, output string, code, want int, texts ...string) {
	t.Helper()
	if code != want {
		t.Errorf("exit code %d, want %d", code, want)
	}
	for _, text := range texts {
		pattern, absent := strings.CutPrefix(text, "!")
		if there := regexp.MustCompile(pattern).MatchString(output); there == absent {
			t.Errorf("the output has %q: %v", pattern, there)
		}
	}
	if t.Failed() {
		t.Log(output)
	}
}

// What selects specs does what Ginkgo says, and blames nothing.
func TestSelection(t *testing.T) {
	target := stand(t, "correct")
	const partial = "partial: filters left clauses out"
	for name, c := range map[string]struct {
		flags []string
		texts []string
	}{
		"focus":        {[]string{"--focus", "describe/"}, []string{`Will run \d\d of`, `\d+ Passed \| 0 Failed`, partial}},
		"skip":         {[]string{"--focus", "describe/", "--skip", "unknown"}, []string{`0 Failed`, partial}},
		"label filter": {[]string{"--label-filter", "area:describe && MUST && sees:front"}, []string{`0 Failed`, partial}},
		"focus file":   {[]string{"--focus-file", "areas/describe/describe.go"}, []string{`Will run \d of|Will run \d\d of`, `[1-9]\d* Passed \| 0 Failed`, partial}},
		"dry run":      {[]string{"--dry-run"}, []string{`0 Failed`, "!partial", "!not conformant"}},
		"random order": {[]string{"--randomize-all", "--seed", "7", "--focus", "describe/"}, []string{"Random Seed: 7", `0 Failed`, partial}},
		"repeat":       {[]string{"--repeat", "1", "--focus", "describe/missing"}, []string{`0 Failed`, partial, "attempt #1|All tests passed"}},
		"processes":    {[]string{"--procs", "2", "--focus", "describe/|invoke/unknown"}, []string{`0 Failed`, partial, "Running in parallel across 2 processes"}},
	} {
		t.Run(name, func(t *testing.T) {
			output, code := byGinkgo(t, c.flags, target...)
			expect(t, output, code, 0, c.texts...)
		})
	}
}

// A failure says what a developer needs, wherever Ginkgo writes it.
func TestAFailureSaysWhatIsWrong(t *testing.T) {
	target := stand(t, "broken")
	dir := t.TempDir()
	output, code := byGinkgo(t, []string{"--focus", "describe/unknown|describe/missing|http/nosniff", "--json-report", "r.json", "--junit-report", "r.xml",
		"--output-dir", dir, "--github-output"}, target...)
	said := []string{`describe/unknown-404`, `expected 404`, `got      410`, `repeat   curl -i`, `fix      `, `explain  bridgecheck checks explain describe/unknown-404`}
	expect(t, output, code, 1, append(said, `1 Failed`, `2 Passed`, "::error", "not conformant: 1 clause fails", "X-Content-Type-Options", "!In \\[It\\] at: .*harness")...)
	junit := must.Get(os.ReadFile(filepath.Join(dir, "r.xml")))(t)
	expect(t, string(junit), 0, 0, `curl -i`, `expected 404`)
	data := must.Get(os.ReadFile(filepath.Join(dir, "r.json")))(t)
	var all []types.Report
	must.Do(t, json.Unmarshal(data, &all))
	states, entries := map[string]types.SpecState{}, map[string]string{}
	for _, spec := range all[0].SpecReports {
		states[spec.LeafNodeText] = spec.State
		for _, e := range spec.ReportEntries {
			entries[spec.LeafNodeText] += e.Name + " " + e.Value.AsJSON
		}
		if spec.LeafNodeText == "describe/unknown-404" && !strings.HasSuffix(spec.LeafNodeLocation.FileName, "suites/areas/describe/describe.go") {
			t.Errorf("the spec stands at %s, want the file of its check", spec.LeafNodeLocation)
		}
	}
	if states["describe/unknown-404"] != types.SpecStateFailed || states["http/nosniff"] != types.SpecStatePassed {
		t.Errorf("states: %v, %v", states["describe/unknown-404"], states["http/nosniff"])
	}
	for id, members := range map[string][]string{
		"describe/unknown-404": {`"Clause":"describe/unknown-404"`, `"Expected":"404`, `"Actual":"410`, `"Curl":"curl -i`, `"Remedy":"`},
		"http/nosniff":         {"warn "},
	} {
		for _, member := range members {
			if !strings.Contains(entries[id], member) {
				t.Errorf("the entries of %s lack %s: %s", id, member, entries[id])
			}
		}
	}
	output, code = byGinkgo(t, []string{"--focus", "http/nosniff"}, append(target, "--strict")...)
	expect(t, output, code, 1, `1 Failed`)
}

// What a run cannot test is skipped, and the suite does not succeed by it.
func TestABridgeThatRefusesEverything(t *testing.T) {
	output, code := byGinkgo(t, []string{"--label-filter", "area:describe"}, stand(t, "refusing")...)
	expect(t, output, code, 1, "FAIL!", "!SUCCESS!")
}

func TestFailFast(t *testing.T) {
	target := stand(t, "broken")
	for _, flags := range [][]string{nil, {"--procs", "2"}} {
		output, code := byGinkgo(t, append(flags, "--fail-fast", "--focus", "describe/"), target...)
		expect(t, output, code, 1, `[12] Failed`, `not conformant: .*the run was cut short \(.*fail fast`)
	}
}

// Of the attempts of a spec the last counts, in one process and in several.
func TestFlakeAttempts(t *testing.T) {
	target := stand(t, "broken")
	for _, flags := range [][]string{nil, {"--procs", "2"}} {
		output, code := byGinkgo(t, append(flags, "--flake-attempts", "2", "--focus", "describe/unknown|describe/missing"), target...)
		expect(t, output, code, 1, `1 Failed`, "bridgecheck: not conformant: 1 clause fails", `!\[FAIL\] \[ReportAfterSuite\]`)
	}
}

// An interrupt and a time-out cut the suite short, and blame no clause.
func TestWhatEndsASuiteBlamesNoClause(t *testing.T) {
	target := stand(t, "correct")
	output, code := start(t, "conformance.test", "list/names-unique", append([]string{"--ginkgo.no-color", "--ginkgo.v", "--ginkgo.focus", "list/|describe/|invoke/"}, target...))
	expect(t, output, code, 1, "INTERRUPTED", `the run was cut short \(Interrupted by User\)`, "!not conformant", "!  list/")
	output, code = byGinkgo(t, []string{"--timeout", "1500ms", "--focus", "list/|describe/|invoke/|load/"}, target...)
	expect(t, output, code, 1, "TIMEDOUT", `the run was cut short \(Suite Timeout Elapsed\)`, "!not conformant", "!  list/")
}

// The conformance suite stands in the source, so that ginkgo's outline and labels show it.
func TestOutlineAndLabels(t *testing.T) {
	dir := must.Get(built())(t)
	for verb, texts := range map[string][]string{
		"outline suites/conformance/specs_test.go": {`It,list/names-unique,.*area:list`, `Describe,upstream`},
		"labels suites/conformance":                {`"MUST"`, `"area:list"`, `"sees:site"`, `"needs:mcp"`},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "ginkgo"), strings.Fields(verb)...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", verb, err)
		}
		expect(t, string(out), 0, 0, texts...)
	}
}
