// Package ledger holds the contract that a bridge is held to: every clause once, with its id, level and source. It
// judges nothing. An id, once released, never changes.
package contract

import (
	_ "embed"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/reports"
)

//go:embed contract.yaml
var contract []byte

// Wire says what a check of a clause has to see.
type Wire string

// The wires of a clause.
const (
	Front Wire = "front" // the bridge's URL alone
	Both  Wire = "both"  // the site behind the bridge as well: the mock Drupal or a recording proxy
)

// Clause is one requirement.
type Clause struct {
	ID    string        `yaml:"id" json:"id"` // area/slug
	Area  string        `yaml:"-" json:"area"`
	Level reports.Level `yaml:"level" json:"level"`
	Wire  Wire          `yaml:"wire" json:"wire"`
	Needs string        `yaml:"needs" json:"needs,omitempty"` // capability; empty: every bridge
	From  string        `yaml:"from" json:"from"`
	Text  string        `yaml:"text" json:"text"`

	// Source is From in words.
	Source string `yaml:"-" json:"source"`

	Reason `yaml:"-"`
}

// Capability is something that a bridge may claim.
type Capability struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Ledger is the whole contract, in the order of its file.
type Contract struct {
	Revision     string
	Clauses      []Clause
	Capabilities []Capability
	Codes        map[int][]string // error.code values of an HTTP status
	sources      map[string]string
	byID         map[string]int
}

// Load gives the embedded contract, which is read once and never changed. An error means a defect of this build.
func Load() (*Contract, error) { return load() }

var load = sync.OnceValues(func() (*Contract, error) {
	l, err := parse(contract)
	if err != nil {
		return nil, err
	}
	return l, l.explain(reasons)
})

func parse(data []byte) (*Contract, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	l := &Contract{byID: map[string]int{}}
	top := doc.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		if err := l.section(top[i].Value, top[i+1]); err != nil {
			return nil, fmt.Errorf("read the ledger, line %d: %w", top[i].Line, err)
		}
	}
	for i, c := range l.Clauses {
		if c.Needs != "" && !l.Knows(c.Needs) {
			return nil, fmt.Errorf("read the ledger: %s needs %q, which is no capability", c.ID, c.Needs)
		}
		l.Clauses[i].Source = l.source(c.From)
	}
	return l, nil
}

// source tells in words where a clause is from: `mcp tools` is the tools part of what the word mcp stands for.
func (l *Contract) source(from string) string {
	word, part, _ := strings.Cut(from, " ")
	switch text, known := l.sources[word]; {
	case !known:
		return from
	case part == "":
		return text
	default:
		return text + ", " + part
	}
}

func (l *Contract) section(name string, node *yaml.Node) error {
	switch name {
	case "revision":
		return node.Decode(&l.Revision)
	case "codes":
		return node.Decode(&l.Codes)
	case "sources":
		return node.Decode(&l.sources)
	case "capabilities":
		for i := 0; i+1 < len(node.Content); i += 2 {
			l.Capabilities = append(l.Capabilities, Capability{node.Content[i].Value, node.Content[i+1].Value})
		}
		return nil
	}
	var clauses []Clause
	if err := node.Decode(&clauses); err != nil {
		return err
	}
	for _, c := range clauses {
		c.Area = name
		if err := l.add(c); err != nil {
			return err
		}
	}
	return nil
}

func (l *Contract) add(c Clause) error {
	switch {
	case !strings.HasPrefix(c.ID, c.Area+"/"):
		return fmt.Errorf("the id %q does not start with its area %q", c.ID, c.Area)
	case !slices.Contains([]reports.Level{reports.MUST, reports.SHOULD, reports.MAY}, c.Level):
		return fmt.Errorf("%s has the level %q", c.ID, c.Level)
	case c.Wire != Front && c.Wire != Both:
		return fmt.Errorf("%s has the wire %q", c.ID, c.Wire)
	case c.Text == "" || c.From == "":
		return fmt.Errorf("%s has no text or no source", c.ID)
	}
	if _, twice := l.byID[c.ID]; twice {
		return fmt.Errorf("%s stands twice", c.ID)
	}
	l.byID[c.ID] = len(l.Clauses)
	l.Clauses = append(l.Clauses, c)
	return nil
}

// Clause looks a clause up.
func (l *Contract) Clause(id string) (Clause, bool) {
	i, ok := l.byID[id]
	if !ok {
		return Clause{}, false
	}
	return l.Clauses[i], true
}

// Areas lists the areas in the order of the ledger.
func (l *Contract) Areas() []string {
	var areas []string
	for _, c := range l.Clauses {
		if !slices.Contains(areas, c.Area) {
			areas = append(areas, c.Area)
		}
	}
	return areas
}

// Knows tells whether name is a capability.
func (l *Contract) Knows(name string) bool {
	return slices.ContainsFunc(l.Capabilities, func(c Capability) bool { return c.Name == name })
}

// DocumentedCode tells whether code is one of the documented error codes, of any status.
func (l *Contract) DocumentedCode(code string) bool {
	for _, codes := range l.Codes {
		if slices.Contains(codes, code) {
			return true
		}
	}
	return false
}

// Match returns the ids that a glob (path.Match; `*` stays within an area, an area's bare name means all of it)
// selects. A glob that is malformed or selects nothing is an error with the nearest id.
func (l *Contract) Match(glob string) ([]string, error) {
	var ids []string
	for _, c := range l.Clauses {
		ok, err := path.Match(glob, c.ID)
		if err != nil {
			return nil, fmt.Errorf("the glob %q is malformed: %w", glob, err)
		}
		if ok || glob == "*" || glob == c.Area {
			ids = append(ids, c.ID)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("the glob %q matches no clause; the nearest is %s", glob, Nearest(glob, l.patterns()))
	}
	return ids, nil
}

// patterns lists what a glob is likely meant to be: an area as a whole, or one clause.
func (l *Contract) patterns() []string {
	var patterns []string
	for _, area := range l.Areas() {
		patterns = append(patterns, area+"/*")
	}
	for _, c := range l.Clauses {
		patterns = append(patterns, c.ID)
	}
	return patterns
}

// Nearest returns the id that is the fewest edits away from name.
func (l *Contract) Nearest(name string) string {
	ids := make([]string, len(l.Clauses))
	for i, c := range l.Clauses {
		ids[i] = c.ID
	}
	return Nearest(name, ids)
}

// Nearest returns the candidate that is the fewest edits away from name; "" without candidates.
func Nearest(name string, candidates []string) string {
	sorted := slices.Clone(candidates)
	sort.SliceStable(sorted, func(i, j int) bool { return suggest.Distance(name, sorted[i]) < suggest.Distance(name, sorted[j]) })
	if len(sorted) == 0 {
		return ""
	}
	return sorted[0]
}
