package bridges

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
)

// The example of the npm package, which people copy, controls a mock, whichever of its two lines comes first.
func TestTheMockOfTheNpmPackage(t *testing.T) {
	node, err := exec.LookPath("node")
	must.Need(t, err == nil, "SKIPPED: node is not installed")
	late := filepath.Join(t.TempDir(), "late")
	script := "#!/bin/bash\nexec '" + program.Build(t) + `' "$@" 2> >(sleep 0.3; cat >&2)` + "\n"
	must.Do(t, os.WriteFile(late, []byte(script), 0o700))
	for name, binary := range map[string]string{"as it is": program.Build(t), "with a late stderr": late} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(node, "--test", "--test-timeout=20000", "example/")
			cmd.Dir = "../../packaging/npm"
			cmd.Env = append(os.Environ(), "BRIDGECHECK="+binary)
			out, err := cmd.CombinedOutput()
			must.Expect(t, err == nil, "%v\n%s", err, out)
		})
	}
}
