//go:build unix

package replicas

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/redistest"
)

// Three replicas of the reference bridge keep the contract, with a store that they share and without, and so with workers
// that have three replicas each.
func TestReplicasConform(t *testing.T) {
	for _, c := range []struct {
		name  string
		store bool
		flags []string
		kept  string // a clause that applies
	}{
		{name: "alone", kept: "replicas/mcp-session"},
		{name: "with a store", store: true, kept: "replicas/shared-session-end", flags: []string{"--jobs", "2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
			if c.store {
				env = append(env, "BRIDGE_SHARED="+redistest.Start(t).Address)
			}
			dir := t.TempDir()
			bridgecheck := func(args ...string) string {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), binary, args...)
				cmd.Env, cmd.Dir = env, dir
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("bridgecheck %s: %v\n%s", strings.Join(args, " "), err, out)
				}
				return string(out)
			}
			said := bridgecheck(append([]string{"run", "--contract", "draft", "--exec", "'" + binary + "' bridge", "--replicas", "3",
				"--capabilities", "replicas,mcp", "--report-dir", "report"}, c.flags...)...)
			if !strings.Contains(said, "\nconformant: ") {
				t.Errorf("three replicas:\n%s", said)
			}
			report := bridgecheck("report", "convert", "report", "--to", "json")
			if i := strings.Index(report, `"`+c.kept+`"`); i < 0 || !strings.Contains(report[i:min(len(report), i+2000)], `"verdict": "pass"`) {
				t.Errorf("%s was not tested, or not kept:\n%s", c.kept, said)
			}
		})
	}
}
