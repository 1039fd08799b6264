//go:build unix

package replicas

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/internal/redistest"
	"github.com/bridgecheck/bridgecheck/reports"
)

// Three replicas of the reference bridge keep the contract, with a store that they share and without, and so with workers
// that have three replicas each.
func TestReplicasConform(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: no replicas are tested")
	binary := program.Build(t)
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
			cmd := exec.CommandContext(t.Context(), binary, append([]string{"run", "--contract", "draft", "--exec", "'" + binary + "' bridge", "--replicas", "3",
				"--capabilities", "replicas,mcp", "--report-dir", "report"}, c.flags...)...)
			cmd.Env, cmd.Dir = env, dir
			said, err := cmd.CombinedOutput()
			must.Assert(t, err == nil && strings.Contains(string(said), "\nconformant: "), "three replicas: %v\n%s", err, said)
			report := must.Get(reports.ReadFile(filepath.Join(dir, "report", "report.json")))(t)
			must.Expect(t, slices.ContainsFunc(report.Results, func(r reports.Result) bool { return r.ID == c.kept && r.Verdict == reports.Pass }),
				"%s was not tested, or not kept:\n%s", c.kept, said)
		})
	}
}
