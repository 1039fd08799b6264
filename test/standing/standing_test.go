//go:build unix

// Package standing tests bridges that are up, each a process with its default settings, as docs/a-bridge-that-is-up.md says.
package standing

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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
	"github.com/bridgecheck/bridgecheck/suites/check"
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
			must.Expect(t, before == nil || before[id] == verdict, "run %d: %s is %s, and was %s", n+1, id, verdict, before[id])
		}
		must.Expect(t, verdicts["access/bad-credentials"] == reports.Pass,
			"run %d: access/bad-credentials is %s", n+1, verdicts["access/bad-credentials"])
		before = verdicts
	}
}

// What the run is told of the bridge may be wrong by a factor of ten: it measures that, warns, and blames nobody. A run that is
// interrupted leaves nothing that the next one meets.
func TestWrongGuesses(t *testing.T) {
	t.Parallel()
	commands, dir := commandsOfPage(t), t.TempDir()
	awaitUp(t, start(t, dir, commands["bridge"], "BRIDGE_DISCOVERY_TTL=1", "BRIDGE_PERMISSION_TTL=1", "BRIDGE_UPSTREAM_TIMEOUT=2", "BRIDGE_PAGE_SIZE=20"))
	interrupted := exec.Command(program.Build(t), commands["run"]...)
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
		must.Expect(t, warnings >= guess.warnings,
			"%s: %d warnings, want at least %d: %v", guess.name, warnings, guess.warnings, report.Measured)
	}
}

// A bridge that is up may have settings that few have: none is blamed for them, and no MUST stays untested. One that refuses callers
// for long, or caches for longer than a run waits, is told by name which setting would help; the page says so.
func TestUnusualSettings(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: they take minutes")
	const more = "--capabilities mcp,discovery-cache,permission-ttl"
	for name, flags := range map[string]struct{ bridge, run string }{
		"five calls a second":                  {"--rate-limit 5 --rate-burst 5", more + ",rate-limit"},
		"one call a second":                    {"--rate-limit 1 --rate-burst 2", ""},
		"pages of three tools":                 {"--page-size 3", more},
		"an account has three wrong passwords": {"--auth-account-failures 3", more},
		"an address has five wrong passwords":  {"--auth-address-failures 5", ""},
		"an address has three":                 {"--auth-address-failures 3", ""},
		"old lists for ten days":               {"--max-stale 240h --stale-after 100ms", more},
		"a minute for the site":                {"--upstream-timeout 60s", ""},
		"nothing is cached":                    {"--discovery-ttl 1ms --permission-ttl 1ms --refused-ttl 1ms", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			commands, dir := commandsOfPage(t), t.TempDir()
			bridge := slices.Insert(commands["bridge"], 1, strings.Fields("--permission-ttl 1s --upstream-timeout 2s "+flags.bridge)...)
			awaitUp(t, start(t, dir, bridge))
			report := run(t, dir, append(commands["run"], strings.Fields(flags.run)...))
			report.Results = slices.DeleteFunc(report.Results, func(r reports.Result) bool {
				return name == "an address has three" && r.ID == "access/bad-credentials" && strings.HasPrefix(r.Message, "the bridge refuses ") // it needs four
			})
			noFailure(t, report)
		})
	}
}

// A bridge before another mock, or before another site than that of --drupal, is not to blame: the run says so, and tests nothing.
func TestAnotherSite(t *testing.T) {
	t.Parallel()
	commands, dir, other := commandsOfPage(t), t.TempDir(), program.Address(t)
	start(t, dir, []string{"mock", "--listen", other})
	bridge := slices.Clone(commands["bridge"])
	bridge[2] = "http://" + other
	awaitUp(t, start(t, dir, bridge))
	bulk := program.Address(t)
	awaitUp(t, start(t, dir, []string{"mock", "--site", "bulk-60", "--listen", bulk}))
	for said, args := range map[string][]string{
		"another one is behind it":                 commands["run"],
		"none is a method of the site of --drupal": {"run", "--url", "http://agent:agent-pass@" + bridge[len(bridge)-1], "--drupal", "http://" + bulk},
	} {
		cmd := exec.CommandContext(t.Context(), program.Build(t), args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		must.Expect(t, err != nil && strings.Contains(string(out), said), "%v: %v, want %q in\n%s", args, err, said, out)
	}
}

// Ten runs in an hour lock no caller out, neither of the bridge nor of its site: they send nearly the same wrong credentials.
func TestTenRunsInAnHour(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: ten runs take minutes")
	t.Parallel()
	commands, dir := commandsOfPage(t), t.TempDir()
	awaitUp(t, start(t, dir, commands["bridge"], "BRIDGE_DISCOVERY_TTL=1", "BRIDGE_PERMISSION_TTL=1", "BRIDGE_UPSTREAM_TIMEOUT=2"))
	for range 10 {
		verdicts := blamesNone(t, run(t, dir, slices.Concat(commands["run"], []string{"--skip", "load/*", "--cases", "20"})))
		must.Assert(t, verdicts["access/bad-credentials"] == reports.Pass,
			"access/bad-credentials is %s", verdicts["access/bad-credentials"])
	}
}

var full = flag.Bool("full", false, "TestMatrix: every situation for every bridge, which takes an hour; else two at once and flood control")

// TestMatrix tests the reference, each starter as init writes it and the bridges of test/bridges, each a process with its default
// settings, by the command of the page alone: three times in a row, twice at once, before a site with Drupal's flood control, and
// with a wrong guess for each setting that describes the bridge, a tenth of what it is and ten times that. None is blamed. It prints
// the matrix: exit code, clauses that pass, SHOULDs that warn, clauses that are not testable, seconds.
func TestMatrix(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: the bridges are not run")
	var mu sync.Mutex
	matrix := map[string][]string{}
	t.Run("programs", func(t *testing.T) {
		for name, program := range programs(t) {
			t.Run(name, func(t *testing.T) {
				t.Parallel() // each waits for what the bridge caches
				_, err := exec.LookPath(program.words[0])
				if err == nil && name == "test-python" {
					err = exec.Command(program.words[0], "-c", "import starlette, uvicorn, httptools, aiohttp, jsonschema").Run()
				}
				must.Need(t, err == nil, "SKIPPED: it is not run: %v", err)
				situation := func(name string, test func(t *testing.T, site, address string) []*reports.Report) (last *reports.Report) {
					t.Run(name, func(t *testing.T) {
						site, address := program.start(t)
						cells := []string{}
						for _, last = range test(t, site, address) {
							noFailure(t, last)
							cells = append(cells, fmt.Sprintf("exit %d: %d/%d/%d %d s", last.ExitCode(), last.Summary.Pass, last.Summary.Warn, last.Summary.NotTestable, last.DurationMS/1000))
						}
						mu.Lock()
						defer mu.Unlock()
						matrix[program.name] = append(matrix[program.name], fmt.Sprintf("%-28s %s", name, strings.Join(cells, ", ")))
					})
					return last
				}
				page := func(site, address string, more ...string) []string {
					return append([]string{"run", "--url", "http://" + address, "--mock-listen", site}, more...)
				}
				situation("two at once", func(t *testing.T, site, address string) []*reports.Report {
					both := make([]*reports.Report, 2)
					check.AtOnce(2, func(i int) { both[i] = run(t, t.TempDir(), page(site, address)) })
					return both
				})
				situation("flood control", func(t *testing.T, site, address string) []*reports.Report {
					drupal := must.Get(mockdrupal.New(must.Get(fixtures.Builtin("default"))(t), mockdrupal.Options{Flood: true}))(t)
					listening := must.Get(drupal.Listen(site))(t)
					t.Cleanup(func() { listening.Close() })
					return []*reports.Report{must.Get(suites.Run(t.Context(), suites.Target{URL: "http://" + address}, suites.Options{Site: suites.Site{Drupal: drupal}}))(t)}
				})
				if !*full {
					return
				}
				right := situation("three in a row", func(t *testing.T, site, address string) (three []*reports.Report) {
					for range 3 {
						three = append(three, run(t, t.TempDir(), page(site, address)))
					}
					return three
				})
				for guess, config := range wrongGuesses(t, right) {
					situation(guess, func(t *testing.T, site, address string) []*reports.Report {
						dir := t.TempDir()
						must.Do(t, os.WriteFile(filepath.Join(dir, "guess.yaml"), []byte(config), 0o600))
						return []*reports.Report{run(t, dir, page(site, address, "--config", "guess.yaml"))}
					})
				}
			})
		}
	})
	for _, name := range slices.Sorted(maps.Keys(matrix)) {
		t.Logf("%s\n    %s", name, strings.Join(matrix[name], "\n    "))
	}
}

// A program is a bridge that is up.
type standing struct {
	name, dir string
	words     []string // of its command
}

// programs are the bridges of the matrix.
func programs(t *testing.T) map[string]standing {
	t.Helper()
	all := map[string]standing{"reference": {"reference", t.TempDir(), []string{program.Build(t), "bridge"}}}
	dirs := map[string]string{"test-python": "../bridges/python", "test-ruby": "../bridges/ruby"} // that in PHP is the starter
	for _, s := range starter.All() {
		dir := filepath.Join(t.TempDir(), s.Language)
		out, err := exec.Command(program.Build(t), "init", s.Language, dir).CombinedOutput()
		must.Assert(t, err == nil, "init: %v: %s", err, out)
		dirs["starter-"+s.Language] = dir
	}
	for name, dir := range dirs {
		config := must.Get(settings.Load(filepath.Join(dir, "bridgecheck.yaml")))(t)
		all[name] = standing{name, dir, must.Get(shlex.Split(config.Exec))(t)}
	}
	return all
}

// start starts the program, which ends with the test, and returns where its site is to be and where it listens.
func (s standing) start(t *testing.T) (site, address string) {
	t.Helper()
	site, address = program.Address(t), program.Address(t)
	cmd := exec.Command(s.words[0], s.words[1:]...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "DRUPAL_URL=http://"+site, "BRIDGE_LISTEN="+address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // and what it has started
		_ = cmd.Wait()
	})
	awaitUp(t, "http://"+address)
	return site, address
}

// wrongGuesses are configurations with one wrong setting of the bridge each: a tenth and ten times what a report measured, or else
// of what bridges usually have.
func wrongGuesses(t *testing.T, right *reports.Report) map[string]string {
	t.Helper()
	usual := map[string]string{"page_size": "50", "discovery_ttl": "10s", "upstream_timeout": "10s", "rate_limit": "20"}
	guesses := map[string]string{}
	for _, s := range settings.Table() {
		key, describes := strings.CutPrefix(s.Key, "settings.")
		if !describes || key == "include" || key == "exclude" || strings.Contains(key, ".") {
			continue
		}
		value := usual[key]
		if value == "" {
			t.Errorf("add %s to what is guessed", s.Key)
			continue
		}
		for _, m := range right.Measured {
			if m.Setting == key && m.Used != "" {
				value = m.Used
			}
		}
		for name, factor := range map[string]float64{"a tenth": 0.1, "ten times": 10} {
			guess := ""
			if d, err := time.ParseDuration(value); err == nil {
				guess = time.Duration(float64(d) * factor).Round(time.Millisecond).String()
			} else {
				guess = fmt.Sprint(int(must.Get(strconv.ParseFloat(value, 64))(t) * factor))
			}
			guesses[fmt.Sprintf("%s %s, %s", key, guess, name)] = "settings: {" + key + ": " + guess + "}\n"
		}
	}
	return guesses
}

// noFailure tests that a report blames nobody, and that nothing but a busy machine has left a MUST untested.
func noFailure(t *testing.T, report *reports.Report) {
	t.Helper()
	for _, r := range report.Results {
		switch {
		case r.Verdict == reports.Fail || r.Verdict == reports.Error, r.Verdict == reports.NotTestable && r.Level == reports.MUST && !strings.HasPrefix(r.Message, "the machine"):
			t.Errorf("%s is %s: %s", r.ID, r.Verdict, r.Message)
		case r.Verdict == reports.NotTestable || r.Verdict == reports.Warn:
			t.Logf("%s %s is %s: %s", r.Level, r.ID, r.Verdict, r.Message)
		}
	}
	must.Expect(t, report.CutShort == "" && report.Summary.Pass >= 100,
		"%d clauses pass; the run ended early: %q", report.Summary.Pass, report.CutShort)
}

// blamesNone tests that a report blames nobody and leaves no MUST untested, and returns its verdicts.
func blamesNone(t *testing.T, report *reports.Report) map[string]reports.Verdict {
	t.Helper()
	for _, r := range report.Results {
		switch {
		case r.Verdict == reports.Fail || r.Verdict == reports.Warn:
			t.Errorf("%s is blamed: %s", r.ID, r.Message)
		case r.Verdict == reports.NotTestable && r.Level == reports.MUST:
			t.Errorf("%s is not testable: %s", r.ID, r.Message)
		}
	}
	return report.ByClause()
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
	must.Assert(t, len(commands) == 2 && commands["bridge"] != nil && commands["run"] != nil, "the page has the commands %v", commands)
	return commands
}

// start starts the program, which ends with the test, and returns its URL.
func start(t *testing.T, dir string, args []string, env ...string) string {
	t.Helper()
	cmd := exec.Command(program.Build(t), args...)
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
	cmd := exec.CommandContext(t.Context(), program.Build(t), args...)
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, dir
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	must.Assert(t, err == nil || errors.As(err, &exit), "%v: %v\n%s", args, err, said)
	report, err := reports.ReadFile(filepath.Join(dir, "bridgecheck-report", "report.json"))
	must.Assert(t, err == nil, "%v\n%s", err, said)
	return report
}
