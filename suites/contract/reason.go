package contract

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reasons has a file an area, and in it an entry a clause.
//
//go:embed reasons/*.yaml
var reasons embed.FS

// Reason tells people about a clause. Fix says nothing where no cause is usual; the others are never empty.
type Reason struct {
	Why   string `yaml:"why" json:"why"`     // what goes wrong for whom
	Right string `yaml:"right" json:"right"` // an exchange that keeps the clause
	Wrong string `yaml:"wrong" json:"wrong"` // an exchange that breaks it
	Fix   Fix    `yaml:"fix" json:"fix"`
}

// Fix says how the usual cause is mended: everywhere, and where a language has a trap or a remedy of its own.
type Fix struct {
	Any  string `yaml:"any" json:"any,omitempty"`
	PHP  string `yaml:"php" json:"php,omitempty"`
	Node string `yaml:"node" json:"node,omitempty"`
	Go   string `yaml:"go" json:"go,omitempty"`
}

// String is the fix with a line for each language.
func (f Fix) String() string {
	var lines []string
	for _, part := range []struct{ language, text string }{{"", f.Any}, {"PHP: ", f.PHP}, {"Node: ", f.Node}, {"Go: ", f.Go}} {
		if part.text != "" {
			lines = append(lines, part.language+part.text)
		}
	}
	return strings.Join(lines, "\n")
}

// explain gives every clause its reason out of its area's file.
func (l *Contract) explain(files fs.FS) error {
	for _, area := range l.Areas() {
		if err := l.explainArea(files, area); err != nil {
			return fmt.Errorf("read the ledger's reasons: %w", err)
		}
	}
	return nil
}

func (l *Contract) explainArea(files fs.FS, area string) error {
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
	for i, c := range l.Clauses {
		if c.Area != area {
			continue
		}
		reason := all[c.ID]
		if reason.Why == "" || reason.Right == "" || reason.Wrong == "" {
			return fmt.Errorf("%s lacks why, right or wrong in %s.yaml", c.ID, area)
		}
		l.Clauses[i].Reason = reason
		delete(all, c.ID)
	}
	for id := range all {
		return fmt.Errorf("%s in %s.yaml is no clause of the area; the nearest is %s", id, area, l.Nearest(id))
	}
	return nil
}
