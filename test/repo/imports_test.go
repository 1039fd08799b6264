package repo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// topFolders are the folders of the module that hold packages.
var topFolders = []string{"bridge", "cmd", "examples", "fixtures", "internal", "mockdrupal", "packaging", "reports", "suites", "test"}

// areaFolders are the packages of the areas, as suites/areas/areas.go imports them.
func areaFolders(all []source) []string {
	var areas []string
	for _, s := range all {
		if s.Name == "suites/areas/areas.go" {
			for _, imported := range s.Imports {
				if strings.HasPrefix(imported, "suites/areas/") {
					areas = append(areas, imported)
				}
			}
		}
	}
	return areas
}

// ours reports whether an imported path is a package of the repository.
func ours(imported string) bool {
	folder, _, _ := strings.Cut(imported, "/")
	return slices.Contains(topFolders, folder)
}

// rule says which packages of the repository the packages of some folders may import. A path ends in /... where it
// stands for everything below it, too.
type rule struct {
	of     []string
	may    []string
	reason string
}

func importRules(areas []string) []rule {
	return []rule{
		{areas, []string{"suites/check", "suites/client", "suites/site", "suites/match", "suites/input/generate", "suites/input/traps", "suites/scenario", "suites/contract", "internal/exact",
			"suites/input/jsonschema", "suites/input/mcpschema", "internal/authserver", "fixtures", "mockdrupal", "mockdrupal/credentials", "mockdrupal/exchange",
			"mockdrupal/fault", "mockdrupal/journal", "mockdrupal/patch", "mockdrupal/proxy", "mockdrupal/route"},
			"an area sees a bridge through the harness alone, and shares checks' helpers in match, generate and scenario"},
		{[]string{"suites/client"}, []string{"internal/exact", "internal/authkind"}, "a client sends once and reads: it knows no patience, no site and no check"},
		{[]string{"suites/site"}, []string{"suites/client", "fixtures", "mockdrupal/...", "internal/..."}, "the site is what a run sees behind the bridge, whoever sends"},
		{[]string{"suites/patience"}, []string{"suites/client", "suites/site", "mockdrupal/journal", "internal/..."}, "a request goes from check through patience to client, and never back"},
		{[]string{"suites/contract"}, nil, "everything may import the contract, because it imports nothing"},
		{[]string{"internal/exact", "internal/redact", "suites/input/mcpschema"}, nil, "it knows JSON and texts, not bridges"},
		{[]string{"internal/authserver"}, []string{"internal/exact", "internal/loopback"}, "the authorization server for tests is useful without the suites"},
		{[]string{"suites/input/jsonschema"}, []string{"internal/applicator", "internal/exact"}, "it knows schemas, not bridges"},
		{[]string{"suites/input/generate", "suites/input/traps"}, []string{"internal/exact", "suites/input/jsonschema"}, "generated values depend on a schema alone"},
		{[]string{"bridge/..."}, []string{"bridge/...", "internal/applicator", "internal/authkind", "internal/loopback", "internal/suggest", "internal/yamlfile"},
			"the reference bridge is one bridge among others: it knows no check, no mock and no report"},
		{[]string{"fixtures/..."}, []string{"fixtures/...", "internal/..."}, "a site is data"},
		{[]string{"mockdrupal/..."}, []string{"mockdrupal/...", "fixtures", "internal/...", "internal/exact", "suites/input/generate"},
			"the mock is useful without the suites; generated values depend on a schema alone"},
		{[]string{"reports/..."}, []string{"reports/...", "internal/..."}, "a report is read without running anything"},
		{lower(), []string{"internal/..."}, "everything may import it"},
	}
}

// upper are the packages of internal that stand above the suites: they run them.
var upper = []string{"internal/callpage", "internal/engine", "internal/login", "internal/selftest/...", "internal/settings", "internal/surface", "internal/testbed", "internal/workers/..."}

// lower are those that everything may import.
func lower() []string {
	return []string{"internal/applicator", "internal/authkind", "internal/authserver", "internal/chrome", "internal/curl", "internal/exact", "internal/freeport", "internal/inmemory", "internal/loopback", "internal/machine",
		"internal/must", "internal/processor", "internal/processtree", "internal/program", "internal/redact", "internal/redistest", "internal/starter/...", "internal/suggest",
		"internal/terminal", "internal/tools/...", "internal/wholefile", "internal/yamlfile"}
}

// Every package of internal is above the suites or below them.
func TestInternalHasTwoFloors(t *testing.T) {
	for _, s := range sources(t) {
		must.Expect(t, !strings.HasPrefix(s.Package, "internal/") || within(s.Package, upper) || within(s.Package, lower()),
			"%s stands on no floor: add its package to upper or lower", s.Name)
	}
}

func within(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		folder, below := strings.CutSuffix(pattern, "/...")
		return name == folder || below && strings.HasPrefix(name, folder+"/")
	})
}

func TestImportRules(t *testing.T) {
	all := sources(t)
	areas := areaFolders(all)
	must.Assert(t, len(areas) >= 15, "suites/areas/areas.go imports only the areas %v", areas)
	for _, problem := range wrongImports(all, areas) {
		t.Error(problem)
	}
}

// wrongImports returns a line for each import that the rules exclude. Tests may use what they test against, so the rules
// are for the other files.
func wrongImports(all []source, areas []string) []string {
	var lines []string
	for _, s := range all {
		if s.Test {
			continue
		}
		for _, r := range importRules(areas) {
			if !within(s.Package, r.of) {
				continue
			}
			for _, imported := range s.Imports {
				if ours(imported) && !within(imported, r.may) {
					lines = append(lines, fmt.Sprintf("%s imports %s: %s", s.Name, imported, r.reason))
				}
			}
		}
		for _, imported := range s.Imports {
			switch {
			case within(imported, areas) && s.Name != "suites/areas/areas.go":
				lines = append(lines, fmt.Sprintf("%s imports the area %s: only suites/areas/areas.go does", s.Name, imported))
			case within(imported, []string{"internal/selftest/..."}) && !within(s.Package, []string{"internal/selftest/..."}) && !mayUseSelftest(s.Name, imported):
				lines = append(lines, fmt.Sprintf("%s imports %s: a run does not depend on the selftest", s.Name, imported))
			}
		}
	}
	return lines
}

// mayUseSelftest reports whether a file of the command line may import a package of the selftest: the command of this
// name everything, shell completion and `checks explain` the names of the mutants.
func mayUseSelftest(file, imported string) bool {
	names := []string{"cmd/bridgecheck/complete.go", "cmd/bridgecheck/checks.go"}
	return file == "cmd/bridgecheck/selftest.go" || imported == "internal/selftest/mutants" && slices.Contains(names, file)
}

// A program that embeds a run must not carry the reference bridge or the mutants with it.
func TestSuitesDependOnNoBridgeAndNoMutant(t *testing.T) {
	direct := map[string][]string{}
	for _, s := range sources(t) {
		if !s.Test {
			direct[s.Package] = append(direct[s.Package], s.Imports...)
		}
	}
	reached, queue := map[string]string{}, []string{"suites"}
	for len(queue) > 0 {
		from := queue[0]
		queue = queue[1:]
		for _, imported := range direct[from] {
			if _, known := reached[imported]; !known && ours(imported) {
				reached[imported] = from
				queue = append(queue, imported)
			}
		}
	}
	must.Assert(t, len(reached) >= 20, "suites depends on %v only", reached)
	for imported, from := range reached {
		must.Expect(t, !within(imported, []string{"bridge/...", "internal/selftest/...", "internal/testbed", "cmd/..."}),
			"suites depends on %s through %s", imported, from)
	}
}
