package bridges

import (
	"os"
	"os/exec"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
)

// The example of the npm package, which people copy, controls a mock.
func TestTheMockOfTheNpmPackage(t *testing.T) {
	node, err := exec.LookPath("node")
	must.Need(t, err == nil, "SKIPPED: node is not installed")
	cmd := exec.Command(node, "--test", "example/")
	cmd.Dir = "../../packaging/npm"
	cmd.Env = append(os.Environ(), "BRIDGECHECK="+program.Build(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
