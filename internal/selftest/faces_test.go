package selftest

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/specs"
)

// A Front check that uses the mock where there is one says so: under Ginkgo another process may run the others.
func TestFrontChecksThatUseTheMockSaySo(t *testing.T) {
	for _, profile := range testbed.Profiles() {
		t.Run(profile.Name, func(t *testing.T) {
			bed, target, o, err := start(mutants.Mutant{Profile: profile.Name}, engine.Options{Contract: contract.Draft, Cases: fewCases, Skip: append(profile.Skip, "load")}, &authserver.Keys{})
			must.Do(t, err)
			defer bed.Close()
			o.Pass.Observe = func(c check.Check, found check.Outcome) {
				must.Expect(t, c.Sees != check.Front || !found.AtSite || c.ByMock,
					"%s looks at the mock or changes it: add ByMock: true to its declaration", c.ID)
			}
			must.Get(engine.Run(t.Context(), target, o))(t)
		})
	}
}

// facesDir names the directory in which a process of TestFacesAgree writes what a face found, facesNames the mutants that
// it tests; "": all of the sample.
const (
	facesDir   = "BRIDGECHECK_TEST_FACES"
	facesNames = "BRIDGECHECK_TEST_FACES_NAMES"
)

// verdicts are those of the clauses of a mutant, by the clause's id.
type verdicts map[string]reports.Verdict

// sample are mutants of all areas, and correct variants, each with the clauses that it is tested by.
func sample(t *testing.T) (all []mutants.Mutant, only map[string][]string) {
	golden := must.Get(Golden())(t)
	only = map[string][]string{}
	variants := 0
	for _, area := range mutants.Areas() {
		step := max(1, len(area.Mutants)/6)
		for i := 0; i < len(area.Mutants); i += step {
			m := area.Mutants[i]
			if golden[m.Name] != nil {
				all = append(all, m)
				only[m.Name] = slices.Sorted(slices.Values(append(slices.Clone(m.Breaks), golden[m.Name][:min(2, len(golden[m.Name]))]...)))
			}
		}
		for _, v := range area.Variants[:min(2, len(area.Variants))] {
			variants++
			all = append(all, v)
			only[v.Name] = []string{"list/answers-json", "describe/answers-tool", "describe/missing-name", "invoke/answers-result", "invoke/unknown-404", "http/nosniff"}
		}
	}
	n := len(all) - variants
	must.Assert(t, n >= 80 && variants >= 20, "the sample has %d mutants and %d variants, want 80 and 20", n, variants)
	if names := strings.Fields(os.Getenv(facesNames)); len(names) > 0 {
		all = slices.DeleteFunc(all, func(m mutants.Mutant) bool { return !slices.Contains(names, m.Name) })
	}
	return all, only
}

// rounds is how often a mutant is tested by all faces until two agree: some faults show by chance, and on a busy machine a
// clause may be not testable.
const rounds = 3

// The engine, RunT and Ginkgo reach the same verdicts on the same bridges.
func TestFacesAgree(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: the three faces are not compared")
	all, only := sample(t)
	faces := []string{"TestByRunT", "TestByGinkgo"}
	byEngine := map[string][]verdicts{}
	by := map[string]map[string][]verdicts{}
	differ := func(face, mutant string) bool {
		return !slices.ContainsFunc(by[face][mutant], func(v verdicts) bool {
			return slices.ContainsFunc(byEngine[mutant], func(w verdicts) bool { return maps.Equal(v, w) })
		})
	}
	left := all
	for round := range rounds {
		var names []string
		for _, m := range left {
			report := must.Get(Run(t.Context(), m, engine.Options{Contract: contract.Draft, Only: only[m.Name], Cases: fewCases}, &authserver.Keys{}))(t)
			byEngine[m.Name] = append(byEngine[m.Name], report.ByClause())
			names = append(names, m.Name)
		}
		for _, face := range faces {
			if by[face] == nil {
				by[face] = map[string][]verdicts{}
			}
			for name, found := range byFace(t, face, strings.Join(names, " ")) {
				by[face][name] = append(by[face][name], found)
			}
		}
		left = slices.DeleteFunc(slices.Clone(left), func(m mutants.Mutant) bool {
			return !slices.ContainsFunc(faces, func(face string) bool { return differ(face, m.Name) })
		})
		t.Logf("round %d: %d mutants and variants, of which the faces agree on all but %d", round+1, len(names), len(left))
		if len(left) == 0 {
			return
		}
	}
	for _, m := range left {
		for _, face := range faces {
			must.Expect(t, !differ(face, m.Name), "%s, mutant %s: %v, the engine says %v", face, m.Name, by[face][m.Name], byEngine[m.Name])
		}
	}
}

// byFace runs a face in a process of its own, against the mutants named.
func byFace(t *testing.T, face, names string) (found map[string]verdicts) {
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+face+"$", "-test.v")
	child.Env = append(os.Environ(), facesDir+"="+dir, facesNames+"="+names)
	output, _ := child.CombinedOutput() // it fails, as mutants do
	data, err := os.ReadFile(filepath.Join(dir, "found.json"))
	must.Assert(t, err == nil, "%s: %v\n%s", face, err, output)
	must.Do(t, json.Unmarshal(data, &found))
	return found
}

func write(t *testing.T, found map[string]verdicts) {
	data := must.Get(json.Marshal(found))(t)
	must.Do(t, os.WriteFile(filepath.Join(os.Getenv(facesDir), "found.json"), data, 0o600))
}

func TestByRunT(t *testing.T) {
	must.Need(t, os.Getenv(facesDir) != "", "it is for TestFacesAgree to run")
	all, only := sample(t)
	found := map[string]verdicts{}
	defer func() { write(t, found) }()
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			bed, target, o, err := start(m, engine.Options{Contract: contract.Draft, Only: only[m.Name], Cases: fewCases}, &authserver.Keys{})
			must.Do(t, err)
			defer bed.Close()
			found[m.Name] = suites.RunT(t, target, o).ByClause()
		})
	}
}

func TestByGinkgo(t *testing.T) {
	must.Need(t, os.Getenv(facesDir) != "", "it is for TestFacesAgree to run")
	gomega.RegisterFailHandler(ginkgo.Fail)
	all, only := sample(t)
	found := map[string]verdicts{}
	var ends []func()
	for _, m := range all {
		options := engine.Options{Contract: contract.Draft, Only: only[m.Name], Cases: fewCases}
		tree := must.Get(specs.New(specs.Suite{Options: options,
			Before: func(_ context.Context, s *specs.Suite) error {
				bed, target, o, err := start(m, options, &authserver.Keys{})
				if err == nil {
					s.Target, s.Options = target, o
					ends = append(ends, bed.Close)
				}
				return err
			},
			After: func(r *reports.Report) { found[m.Name] = r.ByClause() },
		}))(t)
		ginkgo.Describe(m.Name, func() {
			for area, listed := range tree.Areas() {
				ginkgo.Describe(area, func() {
					for _, l := range listed {
						ginkgo.It(l.Clause.ID, tree.Spec(l.Clause.ID))
					}
				})
			}
		})
		ginkgo.ReportAfterSuite(m.Name, func(r ginkgo.Report) {
			r.SpecReports = slices.DeleteFunc(slices.Clone(r.SpecReports), func(s ginkgo.SpecReport) bool {
				return !strings.HasPrefix(s.FullText(), m.Name+" ")
			})
			tree.AfterSuite(r)
		})
	}
	ginkgo.RunSpecs(t, "faces")
	for _, end := range ends {
		end()
	}
	write(t, found)
}
