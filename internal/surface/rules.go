package surface

import (
	_ "embed"
	"slices"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/reports"
)

// Class says whom a difference breaks.
type Class string

// The classes of differences.
const (
	Callers  Class = "callers"
	Models   Class = "models"
	Additive Class = "additive"
)

// Rule says how a kind of difference is classified, and why.
type Rule struct {
	ID    string        `yaml:"id" json:"id"`
	Class Class         `yaml:"class" json:"class"`
	Level reports.Level `yaml:"level" json:"level"`
	Says  string        `yaml:"says" json:"says"`
	Why   string        `yaml:"why" json:"why"`
}

//go:embed rules.yaml
var rulesYAML []byte

// Rules are all rules, in the order in which differences are shown.
var Rules = sync.OnceValue(func() []Rule {
	var all []Rule
	if err := yaml.Unmarshal(rulesYAML, &all); err != nil {
		panic("internal/surface/rules.yaml: " + err.Error())
	}
	return all
})

// ruleOf is the rule of an id, and its place among all.
func ruleOf(id string) (Rule, int) {
	i := slices.IndexFunc(Rules(), func(r Rule) bool { return r.ID == id })
	if i < 0 {
		panic("internal/surface: no rule " + id)
	}
	return Rules()[i], i
}
