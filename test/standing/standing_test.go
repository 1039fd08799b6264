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
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/reports"
)

// The reference bridge is tested three times in a row by the commands of the page, without another setting. No run blames
// it, none locks a caller out, and each has the verdicts of the one before it.
func TestThreeRunsInARow(t *testing.T) {
	commands, dir := commandsOfPage(t), t.TempDir()
	bridge := start(t, dir, commands["bridge"])
	awaitUp(t, bridge)
	var before map[string]reports.Verdict
	for n := range 3 {
		report := run(t, dir, commands["run"])
		verdicts := map[string]reports.Verdict{}
		for _, r := range report.Results {
			verdicts[r.ID] = r.Verdict
			if r.Verdict == reports.Fail || r.Verdict == reports.Warn {
				t.Errorf("run %d: %s is blamed: %s", n+1, r.ID, r.Message)
			}
			if strings.Contains(r.Message, "429") || strings.Contains(r.Message, "wrong credentials of this run") {
				t.Errorf("run %d: %s is not testable by the run's own doing: %s", n+1, r.ID, r.Message)
			}
			if before != nil && before[r.ID] != r.Verdict {
				t.Errorf("run %d: %s is %s, and was %s", n+1, r.ID, r.Verdict, before[r.ID])
			}
		}
		if verdicts["access/bad-credentials"] != reports.Pass {
			t.Errorf("run %d: access/bad-credentials is %s", n+1, verdicts["access/bad-credentials"])
		}
		before = verdicts
	}
}

// commandsOfPage reads the page's commands by their verb, with free ports in place of its two.
func commandsOfPage(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/a-bridge-that-is-up.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, port := range []string{"127.0.0.1:8080", "127.0.0.1:8081"} {
		address, release, err := freeport.Address()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
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
func start(t *testing.T, dir string, args []string) string {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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

// run runs the command and reads its report. Exit code 4 is allowed: some clauses need a setting.
func run(t *testing.T, dir string, args []string) *reports.Report {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, dir
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 4) {
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
