package suites_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites"
)

// runT runs three clauses against the reference bridge, which may be changed.
func runT(t *testing.T, change func(http.Handler) http.Handler, strict bool) {
	site, err := fixtures.Builtin("default")
	if err != nil {
		t.Fatal(err)
	}
	drupal, err := mockdrupal.New(site, mockdrupal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	siteServer := httptest.NewServer(drupal)
	t.Cleanup(siteServer.Close)
	mine, err := bridge.New(bridge.Options{Drupal: siteServer.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mine.Close)
	server := httptest.NewServer(change(mine))
	t.Cleanup(server.Close)
	suites.RunT(t, suites.Target{URL: server.URL}, suites.Options{Site: suites.Site{Drupal: drupal}, Only: []string{"describe/missing-name", "describe/unknown-404", "http/nosniff", "per-tool/answers"}, Strict: strict})
}

// changes are bridges by the value of RUN_T.
var changes = map[string]func(http.Handler) http.Handler{
	"correct": func(h http.Handler) http.Handler { return h },
	"wrong": func(h http.Handler) http.Handler { // another status, and a header is missing
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
}

// TestRunTChild is the test that TestRunT runs in a process of its own.
func TestRunTChild(t *testing.T) {
	name, strict := strings.CutSuffix(os.Getenv("RUN_T"), " strict")
	change := changes[name]
	if change == nil {
		t.Skip("SKIPPED: it is for TestRunT to run")
	}
	runT(t, change, strict)
}

func TestRunT(t *testing.T) {
	for _, row := range []struct {
		bridge    string
		fails     bool
		has, lack []string
	}{
		{"correct", false, []string{"--- PASS: TestRunTChild/describe/missing-name", "--- PASS: TestRunTChild/http/nosniff", "partial: filters left clauses out"},
			[]string{"per-tool", "FAIL", "warning"}},
		{"wrong", true, []string{"--- PASS: TestRunTChild/describe/missing-name", "--- FAIL: TestRunTChild/describe/unknown-404",
			"--- PASS: TestRunTChild/http/nosniff", "warning: ", "curl -i", "bridgecheck checks explain describe/unknown-404", "not conformant: 1 clause fails"}, nil},
		{"wrong strict", true, []string{"--- FAIL: TestRunTChild/http/nosniff"}, []string{"warning: "}},
	} {
		t.Run(row.bridge, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestRunTChild$", "-test.v")
			child.Env = append(os.Environ(), "RUN_T="+row.bridge)
			out, err := child.CombinedOutput()
			if (err != nil) != row.fails {
				t.Errorf("it ended with %v", err)
			}
			for _, text := range row.has {
				if !strings.Contains(string(out), text) {
					t.Errorf("the output lacks %q", text)
				}
			}
			for _, text := range row.lack {
				if strings.Contains(string(out), text) {
					t.Errorf("the output has %q", text)
				}
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}
