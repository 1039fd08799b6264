//go:build unix

// Package standing tests bridges that are up, each a process with its default settings, as docs/a-bridge-that-is-up.md says.
package standing

import (
	"errors"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/shlex"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/starter"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
)

// The reference bridge is tested by the commands of the page, without another setting. No run blames it, none leaves a MUST
// untested, none locks a caller out, and each has the verdicts of the one before it.
func TestTheCommandsOfThePage(t *testing.T) {
	t.Parallel()
	runs := 3
	if testing.Short() {
		runs = 1 // each waits for what the bridge caches for a minute
	}
	commands, dir := commandsOfPage(t), t.TempDir()
	awaitUp(t, start(t, dir, commands["bridge"]))
	var before map[string]reports.Verdict
	for n := range runs {
		verdicts := blamesNone(t, run(t, dir, commands["run"]))
		for id, verdict := range verdicts {
			if before != nil && before[id] != verdict {
				t.Errorf("run %d: %s is %s, and was %s", n+1, id, verdict, before[id])
			}
		}
		if verdicts["access/bad-credentials"] != reports.Pass {
			t.Errorf("run %d: access/bad-credentials is %s", n+1, verdicts["access/bad-credentials"])
		}
		before = verdicts
	}
}

// What the run is told of the bridge may be wrong by a factor of ten: it measures that, warns, and blames nobody. A run that is
// interrupted leaves nothing that the next one meets.
func TestWrongGuesses(t *testing.T) {
	t.Parallel()
	commands, dir := commandsOfPage(t), t.TempDir()
	awaitUp(t, start(t, dir, commands["bridge"], "BRIDGE_DISCOVERY_TTL=1", "BRIDGE_PERMISSION_TTL=1", "BRIDGE_UPSTREAM_TIMEOUT=2", "BRIDGE_PAGE_SIZE=20"))
	interrupted := exec.Command(binary, commands["run"]...)
	interrupted.Dir = dir
	must.Do(t, interrupted.Start())
	time.Sleep(time.Second)
	must.Do(t, interrupted.Process.Signal(os.Interrupt))
	_ = interrupted.Wait() // whatever it has found until then
	for _, guess := range []struct {
		name     string
		flags    []string
		warnings int
	}{
		{"nothing", nil, 1}, // the page size has a default
		{"a tenth", []string{"--discovery-ttl", "100ms", "--upstream-timeout", "200ms", "--page-size", "2"}, 2},
		{"ten times", []string{"--discovery-ttl", "10s", "--upstream-timeout", "20s", "--page-size", "200"}, 3},
	} {
		report := run(t, dir, slices.Concat(commands["run"], guess.flags, []string{"--only", "list/*", "--only", "access/anonymous*", "--only", "upstream/timeout"}))
		blamesNone(t, report)
		warnings := 0
		for _, m := range report.Measured {
			if m.Warning != "" {
				warnings++
			}
		}
		if warnings < guess.warnings {
			t.Errorf("%s: %d warnings, want at least %d: %v", guess.name, warnings, guess.warnings, report.Measured)
		}
	}
}

// Ten runs in an hour lock no caller out, neither of the bridge nor of its site: they send nearly the same wrong credentials.
func TestTenRunsInAnHour(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: ten runs take minutes")
	}
	t.Parallel()
	commands, dir := commandsOfPage(t), t.TempDir()
	awaitUp(t, start(t, dir, commands["bridge"], "BRIDGE_DISCOVERY_TTL=1", "BRIDGE_PERMISSION_TTL=1", "BRIDGE_UPSTREAM_TIMEOUT=2"))
	for range 10 {
		verdicts := blamesNone(t, run(t, dir, slices.Concat(commands["run"], []string{"--skip", "load/*", "--cases", "20"})))
		if verdicts["access/bad-credentials"] != reports.Pass {
			t.Fatalf("access/bad-credentials is %s", verdicts["access/bad-credentials"])
		}
	}
}

// A run that begins while another serves its mock at the address waits for that one.
func TestTwoRunsAtOnce(t *testing.T) {
	t.Parallel()
	commands, one, other := commandsOfPage(t), t.TempDir(), t.TempDir()
	awaitUp(t, start(t, one, commands["bridge"], "BRIDGE_DISCOVERY_TTL=1", "BRIDGE_PERMISSION_TTL=1", "BRIDGE_UPSTREAM_TIMEOUT=2"))
	command := append(commands["run"], "--only", "list/*", "--only", "access/*", "--only", "upstream/down-and-up")
	var both sync.WaitGroup
	for _, dir := range []string{one, other} {
		both.Go(func() { blamesNone(t, run(t, dir, command)) })
	}
	both.Wait()
}

// Each starter as it is written by init, and the bridges of test/bridges: two runs at once, by the command of the page alone, and one
// before a site with Drupal's flood control blame nobody.
func TestBridgesOfOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: no bridge but the reference is run")
	}
	dirs := map[string]string{"test/bridges/python": "../bridges/python", "test/bridges/ruby": "../bridges/ruby"}
	for _, s := range starter.All() {
		dirs["the starter in "+s.Language] = filepath.Join(t.TempDir(), s.Language)
		if out, err := exec.Command(binary, "init", s.Language, dirs["the starter in "+s.Language]).CombinedOutput(); err != nil {
			t.Fatalf("init: %v: %s", err, out)
		}
	}
	for name, dir := range dirs {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for what the bridge caches
			config := must.Get(settings.Load(filepath.Join(dir, "bridgecheck.yaml")))(t)
			words := must.Get(shlex.Split(config.Exec))(t)
			if _, err := exec.LookPath(words[0]); err != nil {
				t.Skipf("SKIPPED: it is not run: %v", err)
			}
			commands := commandsOfPage(t)
			site, address := strings.TrimPrefix(commands["bridge"][2], "http://"), commands["bridge"][len(commands["bridge"])-1]
			cmd := exec.Command(words[0], words[1:]...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "DRUPAL_URL=http://"+site, "BRIDGE_LISTEN="+address)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			must.Do(t, cmd.Start())
			t.Cleanup(func() {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // and what it has started
				_ = cmd.Wait()
			})
			awaitUp(t, "http://"+address)
			var both sync.WaitGroup
			for range 2 {
				in := t.TempDir()
				both.Go(func() {
					noFailure(t, run(t, in, append(slices.Clone(commands["run"]), "--skip", "load/*", "--cases", "40")))
				})
			}
			both.Wait()

			drupal := must.Get(mockdrupal.New(must.Get(fixtures.Builtin("default"))(t), mockdrupal.Options{Flood: true}))(t)
			listening := must.Get(drupal.Listen(site))(t)
			t.Cleanup(func() { listening.Close() })
			noFailure(t, must.Get(suites.Run(t.Context(), suites.Target{URL: "http://" + address}, suites.Options{Site: suites.Site{Drupal: drupal}, Skip: []string{"load/*"}, Cases: 40}))(t))
		})
	}
}

// noFailure tests that a report blames nobody.
func noFailure(t *testing.T, report *reports.Report) {
	t.Helper()
	for _, r := range report.Results {
		if r.Verdict == reports.Fail || r.Verdict == reports.Error {
			t.Errorf("%s is blamed: %s", r.ID, r.Message)
		} else if r.Verdict == reports.NotTestable {
			t.Logf("%s %s is not testable: %s", r.Level, r.ID, r.Message)
		}
	}
	if report.CutShort != "" || report.Summary.Pass < 60 {
		t.Errorf("%d clauses pass; the run ended early: %q", report.Summary.Pass, report.CutShort)
	}
	t.Logf("%d pass, %d warn, %d not testable in %d s", report.Summary.Pass, report.Summary.Warn, report.Summary.NotTestable, report.DurationMS/1000)
}

// blamesNone tests that a report blames nobody and leaves no MUST untested, and returns its verdicts.
func blamesNone(t *testing.T, report *reports.Report) map[string]reports.Verdict {
	t.Helper()
	verdicts := map[string]reports.Verdict{}
	for _, r := range report.Results {
		verdicts[r.ID] = r.Verdict
		switch {
		case r.Verdict == reports.Fail || r.Verdict == reports.Warn:
			t.Errorf("%s is blamed: %s", r.ID, r.Message)
		case r.Verdict == reports.NotTestable && r.Level == reports.MUST:
			t.Errorf("%s is not testable: %s", r.ID, r.Message)
		}
	}
	return verdicts
}

// commandsOfPage reads the page's commands by their verb, with free ports in place of its two.
func commandsOfPage(t *testing.T) map[string][]string {
	t.Helper()
	page := must.Get(os.ReadFile("../../docs/a-bridge-that-is-up.md"))(t)
	text := string(page)
	for _, port := range []string{"127.0.0.1:8080", "127.0.0.1:8081"} {
		address := program.Address(t)
		text = strings.ReplaceAll(text, port, address)
	}
	commands := map[string][]string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 1 && words[0] == "bin/bridgecheck" {
			commands[words[1]] = words[1:]
		}
	}
	if len(commands) != 2 || commands["bridge"] == nil || commands["run"] == nil {
		t.Fatalf("the page has the commands %v", commands)
	}
	return commands
}

// start starts the program, which ends with the test, and returns its URL.
func start(t *testing.T, dir string, args []string, env ...string) string {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Dir = append(env, "PATH="+os.Getenv("PATH"), "HOME="+dir), dir
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return "http://" + args[len(args)-1]
}

func awaitUp(t *testing.T, url string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if r, err := http.Get(url + "/mcp/tools/list"); err == nil {
			r.Body.Close()
			return
		}
	}
	t.Fatalf("nothing responds at %s", url)
}

// run runs the command and reads its report, whatever its verdict.
func run(t *testing.T, dir string, args []string) *reports.Report {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, dir
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v\n%s", args, err, said)
	}
	report, err := reports.ReadFile(filepath.Join(dir, "bridgecheck-report", "report.json"))
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return report
}

// binary is the program: that of BRIDGECHECK, or built here.
var binary = os.Getenv("BRIDGECHECK")

func TestMain(m *testing.M) { os.Exit(withBinary(m)) }

func withBinary(m *testing.M) int {
	if binary == "" {
		dir, err := os.MkdirTemp("", "standing")
		if err != nil {
			log.Fatal(err)
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "bridgecheck")
		if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/bridgecheck").CombinedOutput(); err != nil {
			log.Fatalf("%v\n%s", err, out)
		}
	}
	return m.Run()
}
