package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"bridgecheck/fixtures"
)

// excuse is why a scenario, or some checks of it, cannot pass.
type excuse struct {
	Reason string
	Checks []string // nil: all
}

// scenarioDir is the folder in which the suite leaves a scenario's checks.
var scenarioDir = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT`)

func TestOfficialConformance(t *testing.T) {
	installed(t)
	data, err := os.ReadFile("baseline.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var baseline map[string]map[string]excuse
	if err := yaml.Unmarshal(data, &baseline); err != nil {
		t.Fatal(err)
	}
	for _, revision := range slices.Sorted(maps.Keys(baseline)) {
		t.Run(revision, func(t *testing.T) {
			site, err := fixtures.Load("testdata/site.yaml")
			if err != nil {
				t.Fatal(err)
			}
			_, url, _ := serve(t, site)
			dir := t.TempDir()
			cmd := exec.CommandContext(within(t, 3*time.Minute), node22, modules+"/@modelcontextprotocol/conformance/dist/index.js",
				"server", "--url", url+"/mcp", "--spec-version", revision, "--suite", "all", "-o", dir)
			out, _ := cmd.CombinedOutput() // fails for the scenarios of the baseline too: the checks tell
			judge(t, dir, baseline[revision], out)
		})
	}
}

// judge compares the checks of all scenarios with the baseline.
func judge(t *testing.T, dir string, baseline map[string]excuse, out []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil || len(files) < len(baseline) {
		t.Fatalf("the suite ran %d scenarios, fewer than the baseline names: %s", len(files), out)
	}
	for _, file := range files {
		name := scenarioDir.FindStringSubmatch(filepath.Base(filepath.Dir(file)))
		if name == nil {
			t.Fatalf("the suite left its checks in %s, whose name tells no scenario", file)
		}
		excused, known := baseline[name[1]]
		failed, err := failures(file)
		if err != nil {
			t.Fatal(err)
		}
		if known && len(failed) == 0 {
			t.Errorf("%s passes; take it out of the baseline", name[1])
		}
		for id, message := range failed {
			if !known || excused.Checks != nil && !slices.Contains(excused.Checks, id) {
				t.Errorf("%s: %s: %s", name[1], id, message)
			}
		}
	}
}

func failures(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var checks []struct{ ID, Status, ErrorMessage string }
	if err := json.Unmarshal(data, &checks); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	failed := map[string]string{}
	for _, c := range checks {
		if c.Status == "FAILURE" {
			failed[c.ID] = c.ErrorMessage
		}
	}
	return failed, nil
}
