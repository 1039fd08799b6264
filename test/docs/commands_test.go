package docs

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
)

// Most of the time a page waits for what it serves.
func TestMain(m *testing.M) {
	flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))) // -parallel has the last word
	os.Exit(m.Run())
}

// TestCommands runs the commands of README.md and docs from top to bottom, as a reader does: a page has one working
// directory, its variables last, and what it serves goes on serving. A command must end with the exit code that its comment
// promises, else with 0, and print the output that the page shows. table_test.go lists what is replaced by what, and which
// commands cannot run and why.
func TestCommands(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: the commands of README.md and docs are not run")
	for _, tool := range []string{"bash", "curl", "make", "awk"} {
		_, err := exec.LookPath(tool)
		must.Need(t, err == nil, "SKIPPED: the commands of README.md and docs are not run: %v", err)
	}
	binary := program.Build(t)
	exempt := map[string]bool{}
	for page, text := range pages(t) {
		all, err := steps(page, text)
		if err != nil {
			t.Error(err)
			continue
		}
		all = slices.DeleteFunc(all, func(s step) bool {
			why := whyNot(s)
			exempt[why] = true
			return why != "" && !s.output
		})
		if !slices.ContainsFunc(all, func(s step) bool { return !s.output }) {
			continue
		}
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, page, binary)
			for _, s := range all {
				if !r.follow(t, s) {
					return // what follows may need it
				}
			}
		})
	}
	for _, e := range notRun {
		must.Expect(t, exempt[e.why], "no page has a command %s: remove its entry from notRun", e.command)
	}
}

// whyNot returns why a bare machine cannot run the command, or "".
func whyNot(s step) string {
	for _, e := range notRun {
		if e.command.MatchString(s.text) {
			return e.why
		}
	}
	return ""
}

// What is not run is listed (-v), and looked at: a package or file of the tree that a command names must exist.
func TestPathsInCommands(t *testing.T) {
	argument := regexp.MustCompile(`\s\./([\w./-]+)`)
	for page, text := range pages(t) {
		all, err := steps(page, text)
		if err != nil {
			continue // TestCommands reports it
		}
		for _, s := range all {
			why := whyNot(s)
			if why != "" && !s.output {
				t.Logf("%v is not run: it %s", s, why)
			}
			if !strings.Contains(s.text, "go ") || why == "" {
				continue
			}
			for _, m := range argument.FindAllStringSubmatch(s.text, -1) {
				_, err := os.Stat(filepath.Join(repository, strings.TrimSuffix(m[1], "...")))
				must.Expect(t, err == nil, "%v: %v", s, err)
			}
		}
	}
}

// A command of go test names packages, tests of them, and flags that they have.
func TestGoTestCommands(t *testing.T) {
	commands, words := regexp.MustCompile("go test ([^\n`#<]+)"), regexp.MustCompile(`'[^']*'|\S+`)
	function, own := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`), regexp.MustCompile(`flag\.\w+\("([\w-]+)"`)
	goes := []string{"run", "bench", "benchtime", "timeout", "v", "race", "args", "short"}
	for page, text := range pages(t) {
		for _, m := range commands.FindAllStringSubmatch(text, -1) {
			all := words.FindAllString(strings.TrimSuffix(m[1], " -->"), -1)
			source := ""
			for _, word := range all {
				if strings.HasPrefix(word, "./") {
					names := must.Get(filepath.Glob(filepath.Join(repository, word, "*_test.go")))(t)
					must.Expect(t, len(names) > 0, "%s: go test %s: %s has no tests", page, m[1], word)
					for _, name := range names {
						source += string(must.Get(os.ReadFile(name))(t))
					}
				}
			}
			for i, word := range all {
				name, isFlag := strings.CutPrefix(word, "-")
				switch {
				case !isFlag || page == "docs/go.md":
				case name == "run" || name == "bench":
					pattern, _, _ := strings.Cut(strings.Trim(all[i+1], "'"), "/")
					for part := range strings.SplitSeq(pattern, "|") {
						if !slices.ContainsFunc(function.FindAllStringSubmatch(source, -1), func(f []string) bool { return regexp.MustCompile(part).MatchString(f[1]) }) && part != "^$" {
							t.Errorf("%s: go test %s: no test is named %s", page, m[1], part)
						}
					}
				case !slices.Contains(goes, name) && !slices.ContainsFunc(own.FindAllStringSubmatch(source, -1), func(f []string) bool { return f[1] == name }):
					t.Errorf("%s: go test %s: there is no flag %s", page, m[1], word)
				}
			}
		}
	}
}

// A reader follows one page.
type reader struct {
	page    string
	dir     string             // the working directory, and HOME
	ports   map[string]string  // a port of the page: the free address in its place
	site    string             // address of the mock in place of example sites
	up      map[string]*server // by address
	printed string             // by the commands since the last output that the page shows
	shown   bool               // the last step was output
}

// newReader gives the reader what the page takes for granted: bridgecheck, the examples, a bridge of their own, a site, and
// the page's files.
func newReader(t *testing.T, page, binary string) *reader {
	t.Helper()
	r := &reader{page: page, dir: t.TempDir(), ports: map[string]string{}, up: map[string]*server{}}
	t.Cleanup(func() {
		for _, address := range slices.Collect(maps.Keys(r.up)) {
			r.end(address)
		}
	})
	root := must.Get(filepath.Abs(repository))(t)
	realMake := must.Get(exec.LookPath("make"))(t)
	// A target of make must exist; what it would run is not run.
	r.write(t, "shims/make", "#!/bin/sh\nexec '"+realMake+"' -n -C '"+root+"' \"$@\"\n")
	bridge := "#!/bin/sh\ntest \"$1\" != bridge.js || shift\nexec '" + binary + "' bridge \"$@\"\n"
	for _, name := range []string{"my-bridge", "shims/my-bridge", "shims/node"} {
		r.write(t, name, bridge)
	}
	r.write(t, "shims/claude", claude)
	// The tools of Go work in the tree, with the caches of this user.
	environment := must.Get(exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY").Output())(t)
	values := strings.Split(string(environment), "\n")
	realGo := must.Get(exec.LookPath("go"))(t)
	for name, tool := range map[string]string{"go": realGo, "ginkgo": realGo + " run github.com/onsi/ginkgo/v2/ginkgo"} {
		r.write(t, "shims/"+name, fmt.Sprintf("#!/bin/sh\nexport BRIDGE_ONLY=describe/missing-name GOCACHE='%s' GOMODCACHE='%s' GOFLAGS='%s' GOPROXY='%s'\ncd '%s' && exec %s \"$@\"\n",
			values[0], values[1], values[2], values[3], root, tool))
	}
	r.write(t, ".curlrc", "silent\nshow-error\nfail-with-body\n")
	for link, target := range map[string]string{"bin/bridgecheck": binary, "shims/bridgecheck": binary, "examples": filepath.Join(root, "examples")} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(r.dir, link)), 0o755))
		must.Do(t, os.Symlink(target, filepath.Join(r.dir, link)))
	}
	r.site = r.free(t, "site")
	for name, text := range files[page] {
		r.write(t, name, r.replaced(t, text))
	}
	r.serve(t, step{page: page, text: "bridgecheck mock --listen " + r.site})
	return r
}

func (r *reader) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(r.dir, name)
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, []byte(text), 0o755))
}

// free returns the free address that stands for a port of the page.
func (r *reader) free(t *testing.T, port string) string {
	t.Helper()
	if r.ports[port] == "" {
		address := program.Address(t)
		r.ports[port] = address
	}
	return r.ports[port]
}

var localAddress = regexp.MustCompile(`127\.0\.0\.1:([0-9]{4})\b`)

// replaced puts free addresses, the mock and the built-in accounts in place of the page's ports, sites and secrets.
func (r *reader) replaced(t *testing.T, text string) string {
	t.Helper()
	for _, e := range replacements {
		text = e.old.ReplaceAllString(text, e.new)
	}
	text = localAddress.ReplaceAllStringFunc(text, func(address string) string {
		return r.free(t, strings.TrimPrefix(address, "127.0.0.1:"))
	})
	text = password.ReplaceAllStringFunc(text, func(variable string) string {
		name := strings.TrimSuffix(variable, "_PASSWORD=…")
		if account := accounts[name]; account != "" {
			return name + "_PASSWORD=" + account + "-pass"
		}
		return name + "_PASSWORD=" + strings.ToLower(name) + "-pass"
	})
	return strings.ReplaceAll(text, "SITE", r.site)
}

// follow does what the step says, and reports whether it went as the page says.
func (r *reader) follow(t *testing.T, s step) bool {
	t.Helper()
	if s.output {
		r.shown = true
		return r.compare(t, s)
	}
	if r.shown {
		r.printed, r.shown = "", false
	}
	for _, e := range needs {
		if e.page == r.page && strings.Contains(s.text, e.command) && !r.run(t, step{page: s.page, line: s.line, text: e.first}) {
			return false
		}
	}
	return r.run(t, s)
}

// compare looks for a line of shown output in what the commands before it printed; … stands for any text.
func (r *reader) compare(t *testing.T, s step) bool {
	t.Helper()
	pattern := strings.ReplaceAll(regexp.QuoteMeta(r.replaced(t, s.text)), "…", ".*")
	if regexp.MustCompile(`(?m)^\s*(\S+  +)?` + pattern + `$`).MatchString(r.printed) {
		return true
	}
	t.Errorf("%v\nis not what the commands before it print:\n%s", s, r.printed)
	return false
}

func (r *reader) run(t *testing.T, s step) bool {
	t.Helper()
	text := r.replaced(t, s.text)
	if defaultPort(text) != "" {
		return r.serve(t, s)
	}
	if anyRun.MatchString(text) && !wholeRun.MatchString(text) {
		text = anyRun.ReplaceAllString(text, "$0"+fewChecks)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	sh := r.shell(ctx, text)
	said, err := sh.CombinedOutput()
	r.printed += string(said)
	if got := sh.ProcessState.ExitCode(); got != promised(s.text) {
		t.Errorf("%v\nruns as %s\nexit code %d, expected %d: %v\n%s", s, text, got, promised(s.text), err, said)
		return false
	}
	return true
}

// shell returns the command in bash, with the variables that earlier commands of the page have set.
func (r *reader) shell(ctx context.Context, text string) *exec.Cmd {
	sh := exec.CommandContext(ctx, "bash", "-c", "set -a -o pipefail\ntest ! -e .state || . ./.state\n"+text+"\ncode=$?\nexport -p >.state\nexit $code")
	sh.Dir = r.dir
	sh.Env = []string{
		"PATH=" + filepath.Join(r.dir, "shims") + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"HOME=" + r.dir, "CURL_HOME=" + r.dir, "TMPDIR=" + r.dir, "LANG=C.UTF-8",
	}
	sh.WaitDelay = 5 * time.Second
	return sh
}

// defaultPort returns the port on which the command serves until it is ended, or "".
func defaultPort(text string) string {
	for _, e := range servers {
		if e.command.MatchString(text) && (e.not == nil || !e.not.MatchString(text)) {
			return e.port
		}
	}
	return ""
}

var listenFlag = regexp.MustCompile(`--(?:listen|control)[ =](\S+)`)

// serve starts a command that serves, in place of one at the same address, and waits until it accepts connections.
func (r *reader) serve(t *testing.T, s step) bool {
	t.Helper()
	text, _, _ := strings.Cut(r.replaced(t, s.text), " #")
	text = strings.TrimSuffix(strings.TrimSpace(text), "&")
	if !strings.Contains(text, "--listen") {
		text += " --listen " + r.free(t, defaultPort(text))
	}
	var all []string
	for _, m := range listenFlag.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
		r.end(m[1])
	}
	log := must.Get(os.CreateTemp(r.dir, "server-*.log"))(t)
	defer log.Close()
	sh := r.shell(context.WithoutCancel(t.Context()), "exec "+text)
	sh.Stdout, sh.Stderr = log, log
	must.Do(t, sh.Start())
	started := &server{process: sh.Process, ended: make(chan struct{})}
	go func() {
		sh.Wait()
		close(started.ended)
	}()
	for _, address := range all {
		r.up[address] = started
	}
	for _, address := range all {
		if !started.accepts(address) {
			said, _ := os.ReadFile(log.Name())
			t.Errorf("%v\nruns as %s\nand does not listen on %s: %s", s, text, address, said)
			return false
		}
	}
	return true
}

// A server is a command that serves.
type server struct {
	process *os.Process
	ended   chan struct{} // closed when it has
}

// accepts waits until the server accepts connections at the address, for 30 s or until it ends.
func (s *server) accepts(address string) bool {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if freeport.Listens(address) {
			return true
		}
		select {
		case <-s.ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}

// end ends the server at the address, which may serve others too.
func (r *reader) end(address string) {
	ended := r.up[address]
	if ended == nil {
		return
	}
	ended.process.Kill()
	<-ended.ended
	maps.DeleteFunc(r.up, func(_ string, other *server) bool { return other == ended })
}
