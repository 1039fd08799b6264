package contract

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reasons has one file per area, with one entry per clause.
//
//go:embed reasons/*.yaml
var reasons embed.FS

// Reason explains a clause. Fix, the remedy that reports show, is empty where there is no usual cause; the other members are
// never empty in a release.
type Reason struct {
	Why   string `yaml:"why" json:"why"`     // what goes wrong, and who is affected
	Right string `yaml:"right" json:"right"` // an exchange that keeps the clause
	Wrong string `yaml:"wrong" json:"wrong"` // an exchange that breaks it
	Fix   Fix    `yaml:"fix" json:"fix"`
}

// Fix says how to fix the usual cause: in any language, and where one language has its own trap or remedy.
type Fix struct {
	Any  string `yaml:"any" json:"any,omitempty"`
	PHP  string `yaml:"php" json:"php,omitempty"`
	Node string `yaml:"node" json:"node,omitempty"`
	Go   string `yaml:"go" json:"go,omitempty"`
}

// String is the fix with one line per language.
func (f Fix) String() string {
	var lines []string
	for _, part := range []struct{ language, text string }{{"", f.Any}, {"PHP: ", f.PHP}, {"Node: ", f.Node}, {"Go: ", f.Go}} {
		if part.text != "" {
			lines = append(lines, part.language+part.text)
		}
	}
	return strings.Join(lines, "\n")
}

func (r Reason) complete() bool { return r.Why != "" && r.Right != "" && r.Wrong != "" }

// explain adds to every clause its reason from the file of its area. It returns what is missing, and reasons of no clause, each
// with what to do about it: only the contract's own test fails of them, so that one omission is one failure.
func (c *Contract) explain(files fs.FS) (problems []string, err error) {
	for _, area := range c.Areas() {
		found, err := c.explainArea(files, area)
		if err != nil {
			return nil, fmt.Errorf("read the reasons of the contract: %w", err)
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

func (c *Contract) explainArea(files fs.FS, area string) (problems []string, err error) {
	f, err := files.Open("reasons/" + area + ".yaml")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	decoder := yaml.NewDecoder(f)
	decoder.KnownFields(true)
	var all map[string]Reason
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("%s: %w", area, err)
	}
	for i, clause := range c.Clauses {
		if clause.Area != area {
			continue
		}
		reason := all[clause.ID]
		if !reason.complete() {
			problems = append(problems, fmt.Sprintf("the clause %s lacks why, right or wrong: add `%s: {why: \"…\", right: \"…\", wrong: \"…\", fix: {any: \"…\"}}` to suites/contract/reasons/%s.yaml",
				clause.ID, clause.ID, area))
		}
		c.Clauses[i].Reason = reason
		delete(all, clause.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		problems = append(problems, fmt.Sprintf("suites/contract/reasons/%s.yaml has %s, which is no clause of the area: remove it", area, id))
	}
	return problems, nil
}
