// Package faces tests the suites as people meet them who write Go: under ginkgo and go test, with the flags that they use
// every day, inside a suite of their own, and in a module of their own. The tests are the scripts of testdata.
package faces

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/bridgetest"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"interrupted": interrupted}) }

// TestScripts runs the scripts of testdata. Beside testscript's own commands they have:
//
//	bridge KIND                 a bridge of kinds serves, and the environment names it to the suite
//	interrupted TEXT COMMAND…   the command and what it started get SIGINT, as by Ctrl-C, once its output holds the text
//
// the ginkgo command, conformance.test (the suite, compiled), faces.test (TestChild below), and the repository as $ROOT.
func TestScripts(t *testing.T) {
	root := must.Get(filepath.Abs("../.."))(t)
	programs := t.TempDir()
	for _, args := range [][]string{
		{"build", "-o", programs, "github.com/onsi/ginkgo/v2/ginkgo", "./cmd/bridgecheck"},
		{"test", "-c", "-o", filepath.Join(programs, "conformance.test"), "./suites/conformance"},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		must.Assert(t, err == nil, "go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	must.Do(t, os.Symlink(must.Get(os.Executable())(t), filepath.Join(programs, "faces.test")))
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("ROOT", root)
			env.Setenv("SUITE", filepath.Join(programs, "conformance.test"))
			env.Setenv("PATH", programs+string(os.PathListSeparator)+env.Getenv("PATH"))
			for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN"} { // modules are built as everywhere here
				value, err := exec.Command("go", "env", name).Output()
				if err != nil {
					return fmt.Errorf("go env %s: %w", name, err)
				}
				env.Setenv(name, strings.TrimSpace(string(value)))
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"bridge": serve},
	})
}

// kinds are bridges by what is wrong with them: each is put before the reference bridge.
var kinds = map[string]func(http.Handler) http.Handler{
	"correct": func(h http.Handler) http.Handler { return h },
	"broken": func(h http.Handler) http.Handler { // a MUST by another status, a SHOULD by a header that is missing
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen := httptest.NewRecorder()
			h.ServeHTTP(seen, r)
			maps.Copy(w.Header(), seen.Header())
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

// reference is the reference bridge before a site; close it.
func reference(site string) (*bridge.Bridge, error) {
	return bridge.New(bridge.Options{
		Drupal:           site,
		DiscoveryOptions: bridge.DiscoveryOptions{DiscoveryTTL: bridgetest.DiscoveryTTL},
		CallOptions:      bridge.CallOptions{UpstreamTimeout: bridgetest.UpstreamTimeout},
		Logger:           slog.New(slog.DiscardHandler),
	})
}

// serve serves a bridge before a mock that the suite starts.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || kinds[args[0]] == nil {
		ts.Fatalf("usage: bridge KIND")
	}
	site, release, err := freeport.Address()
	ts.Check(err)
	ts.Defer(release)
	b, err := reference("http://" + site)
	ts.Check(err)
	ts.Defer(b.Close)
	server := httptest.NewServer(kinds[args[0]](b))
	ts.Defer(server.Close)
	ts.Setenv("BRIDGE_URL", server.URL)
	ts.Setenv("BRIDGE_MOCK_LISTEN", site)
	ts.Setenv("BRIDGE_DISCOVERY_TTL", bridgetest.DiscoveryTTL.String())
	ts.Setenv("BRIDGE_UPSTREAM_TIMEOUT", bridgetest.UpstreamTimeout.String())
}

// interrupted is the command of that name.
func interrupted() {
	cmd := exec.Command("setsid", os.Args[2:]...) // a group of its own, as a terminal gives it
	seen := &watched{text: os.Args[1], met: func() { _ = exec.Command("kill", "-INT", "--", fmt.Sprint(-cmd.Process.Pid)).Run() }}
	cmd.Stdout, cmd.Stderr = seen, seen
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
	_ = cmd.Wait() // the code says it
	os.Exit(cmd.ProcessState.ExitCode())
}

// watched passes output on, and looks for a text in it.
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
	return os.Stdout.Write(p)
}

// TestChild is what faces.test runs, by what CHILD says: "ginkgo", "whole", or a bridge of kinds, perhaps with STRICT.
func TestChild(t *testing.T) {
	start := func(kind string) *bridgetest.Stand {
		return bridgetest.Start(t, bridgetest.Handler(func(t testing.TB, site string) http.Handler {
			b := must.Get(reference(site))(t)
			t.Cleanup(b.Close)
			return kinds[kind](b)
		}))
	}
	switch child := os.Getenv("CHILD"); child {
	case "":
		t.Skip("it is for the scripts to run")
	case "ginkgo": // somebody's own suite, with a run inside
		gomega.RegisterFailHandler(ginkgo.Fail)
		ginkgo.Describe("own", func() {
			ginkgo.It("runs the checks", func() {
				stand := start("correct")
				o := stand.Options()
				o.Only = []string{"describe/missing-name", "http/nosniff"}
				suites.RunT(t, stand.Target(), o)
			})
			ginkgo.It("fails by itself", func() { gomega.Expect(1).To(gomega.Equal(2)) })
			ginkgo.It("goes on", func() { gomega.Expect(1).To(gomega.Equal(1)) })
		})
		ginkgo.RunSpecs(t, "own suite")
	case "whole":
		stand := start("correct")
		suites.RunT(t, stand.Target(), stand.Options())
	default:
		stand := start(child)
		o := stand.Options()
		o.Only, o.Strict = []string{"describe/missing-name", "describe/unknown-404", "http/nosniff", "per-tool/answers"}, os.Getenv("STRICT") != ""
		suites.RunT(t, stand.Target(), o)
	}
}
