package faces

import (
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/bridgetest"
)

// childMode says what a process of this test is: "ginkgo", "runt", or "few" with a bridge of changes and perhaps "strict".
const childMode = "BRIDGECHECK_TEST_FACE"

func reference(t testing.TB, site string) http.Handler {
	b := must.Get(bridge.New(bridge.Options{
		Drupal:           site,
		DiscoveryOptions: bridge.DiscoveryOptions{DiscoveryTTL: bridgetest.DiscoveryTTL},
		CallOptions:      bridge.CallOptions{UpstreamTimeout: bridgetest.UpstreamTimeout},
		Logger:           slog.New(slog.DiscardHandler),
	}))(t)
	t.Cleanup(b.Close)
	return b
}

// TestChild is what the processes of the tests below run.
func TestChild(t *testing.T) {
	switch os.Getenv(childMode) {
	case "ginkgo": // somebody's own suite, with a run inside
		gomega.RegisterFailHandler(ginkgo.Fail)
		ginkgo.Describe("own", func() {
			ginkgo.It("runs the checks", func() {
				stand := bridgetest.Start(t, bridgetest.Handler(reference))
				o := stand.Options()
				o.Only = []string{"describe/missing-name", "http/nosniff"}
				suites.RunT(t, stand.Target(), o)
			})
			ginkgo.It("fails by itself", func() { gomega.Expect(1).To(gomega.Equal(2)) })
			ginkgo.It("goes on", func() { gomega.Expect(1).To(gomega.Equal(1)) })
		})
		ginkgo.RunSpecs(t, "own suite")
	case "runt":
		stand := bridgetest.Start(t, bridgetest.Handler(reference))
		suites.RunT(t, stand.Target(), stand.Options())
	default:
		few, ok := strings.CutPrefix(os.Getenv(childMode), "few ")
		if !ok {
			t.Skip("it is for the tests below to run")
		}
		name, strict := strings.CutSuffix(few, " strict")
		stand := bridgetest.Start(t, bridgetest.Handler(func(t testing.TB, site string) http.Handler { return changes[name](reference(t, site)) }))
		o := stand.Options()
		o.Only, o.Strict = []string{"describe/missing-name", "describe/unknown-404", "http/nosniff", "per-tool/answers"}, strict
		suites.RunT(t, stand.Target(), o)
	}
}

func child(t *testing.T, mode, interruptAt string, args ...string) (output string, code int) {
	t.Helper()
	t.Setenv(childMode, mode)
	return start(t, os.Args[0], interruptAt, append([]string{"-test.run=^TestChild$", "-test.v"}, args...))
}

// RunT fails the subtests of the clauses that fail, and says what is wrong.
func TestRunT(t *testing.T) {
	for bridge, c := range map[string]struct {
		code  int
		texts []string
	}{
		"correct": {0, []string{"--- PASS: TestChild/describe/missing-name", "--- PASS: TestChild/http/nosniff", "partial: filters left clauses out",
			"!per-tool", "!FAIL", "!warning"}},
		"broken": {1, []string{"--- PASS: TestChild/describe/missing-name", "--- FAIL: TestChild/describe/unknown-404", "--- PASS: TestChild/http/nosniff",
			"warning: ", "curl -i", "bridgecheck checks explain describe/unknown-404", "not conformant: 1 clause fails"}},
		"broken strict": {1, []string{"--- FAIL: TestChild/http/nosniff", "!warning: "}},
	} {
		t.Run(bridge, func(t *testing.T) {
			output, code := child(t, "few "+bridge, "")
			expect(t, output, code, c.code, c.texts...)
		})
	}
}

// RunT inside somebody's Ginkgo suite leaves that intact.
func TestRunTInsideAGinkgoSuite(t *testing.T) {
	output, code := child(t, "ginkgo", "", "-ginkgo.no-color")
	expect(t, output, code, 1, `2 Passed \| 1 Failed`, `\[FAIL\] own \[It\] fails by itself`, `--- PASS: TestChild/describe/missing-name`, "!panic")
	output, code = child(t, "ginkgo", "", "-ginkgo.no-color", "-ginkgo.focus=runs the checks")
	expect(t, output, code, 0, `1 Passed \| 0 Failed`, `--- PASS: TestChild/http/nosniff`)
}

// An interrupt cuts RunT short: nothing that it left untested fails.
func TestAnInterruptEndsRunT(t *testing.T) {
	output, code := child(t, "runt", "TestChild/list/names-unique")
	expect(t, output, code, 1, `the run was cut short \(interrupt`, "!--- FAIL: TestChild/", `--- SKIP: TestChild/`)
}

// A module of its own adds clauses, and runs are independent of each other, also under the race detector.
func TestAModuleOfItsOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: the example module is not built")
	}
	module := must.Get(filepath.Abs(filepath.Join(root, "examples", "own-checks")))(t)
	run := func(environment []string, args ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = module, append(os.Environ(), environment...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	race := []string{"test", "-count=2", "-parallel", "4", "-race", "./..."}
	environment := []string{"CGO_ENABLED=1"}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Log("SKIPPED: gcc is missing, so the module is tested without the race detector")
		race, environment = []string{"test", "-count=2", "-parallel", "4", "./..."}, nil
	}
	output, code := run(environment, race...)
	expect(t, output, code, 0, "ok")

	reports := filepath.Join(t.TempDir(), "bridgecheck-report")
	output, code = run([]string{"BASELINE=none", "REPORT_DIR=" + reports}, "test", "-count=1", "-run", "TestBridge/acme", "-v", ".")
	expect(t, output, code, 1, "--- FAIL: TestBridge/acme/described", "--- PASS: TestBridge/acme/one-call", "ten characters or more", "Take the description from the method's usage", "!TestBridge/list")
	for _, name := range []string{"junit.xml", "report.sarif", "report.html", "summary.md"} {
		if data, err := os.ReadFile(filepath.Join(reports, name)); err != nil || !strings.Contains(string(data), "acme/described") {
			t.Errorf("%s lacks the clause: %v", name, err)
		}
	}
	explain := exec.CommandContext(t.Context(), "go", "run", "./cmd/bridgecheck", "checks", "explain", "acme/described", "--report-dir", reports)
	explain.Dir = root
	out, err := explain.CombinedOutput()
	if err != nil {
		t.Error(err)
	}
	expect(t, string(out), 0, 0, "acme/described +MUST", "Our agents choose tools by their descriptions")
}
