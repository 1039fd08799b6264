package contract

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reasons has one file per area, with one entry per clause.
//
//go:embed reasons/*.yaml
var reasons embed.FS

// Reason explains a clause. Fix is empty where there is no usual cause; the other members are never empty.
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

// explain adds to every clause its reason from the file of its area.
func (c *Contract) explain(files fs.FS) error {
	for _, area := range c.Areas() {
		if err := c.explainArea(files, area); err != nil {
			return fmt.Errorf("read the reasons of the contract: %w", err)
		}
	}
	return nil
}

func (c *Contract) explainArea(files fs.FS, area string) error {
	f, err := files.Open("reasons/" + area + ".yaml")
	if err != nil {
		return err
	}
	defer f.Close()
	decoder := yaml.NewDecoder(f)
	decoder.KnownFields(true)
	var all map[string]Reason
	if err := decoder.Decode(&all); err != nil {
		return fmt.Errorf("%s: %w", area, err)
	}
	for i, clause := range c.Clauses {
		if clause.Area != area {
			continue
		}
		reason := all[clause.ID]
		if reason.Why == "" || reason.Right == "" || reason.Wrong == "" {
			return fmt.Errorf("%s lacks why, right or wrong in %s.yaml", clause.ID, area)
		}
		c.Clauses[i].Reason = reason
		delete(all, clause.ID)
	}
	for id := range all {
		return fmt.Errorf("%s in %s.yaml is not a clause of this area", id, area)
	}
	return nil
}
