// Package contract holds the requirements that a bridge is tested against: every clause once, with its id, level,
// source, text and reason, the capabilities that a bridge may claim, the error codes and the glossary. It tests
// nothing and imports nothing of the project. Its one invariant: a released id never changes.
//
// contract.yaml and reasons/*.yaml are embedded, parsed once by Load, and read from there by the suites, the command
// line, the reports and the documentation.
package contract

import (
	"fmt"
	"path"
	"slices"
)

// Level is how binding a clause is.
type Level string

// The levels of a clause.
const (
	MUST   Level = "MUST"   // a broken clause is a failure
	SHOULD Level = "SHOULD" // a broken clause is a warning; a failure in strict mode
	MAY    Level = "MAY"    // information only
)

// Wire says what a check of a clause has to observe.
type Wire string

// The values of Wire.
const (
	Front Wire = "front" // the front side: only the bridge's URL
	Both  Wire = "both"  // the site side as well: the mock Drupal or a recording proxy
)

// Clause is one requirement.
type Clause struct {
	ID      string `yaml:"id" json:"id"` // area/slug
	Area    string `yaml:"-" json:"area"`
	Level   Level  `yaml:"level" json:"level"`
	Wire    Wire   `yaml:"wire" json:"wire"`
	Needs   string `yaml:"needs" json:"needs,omitempty"`     // capability; empty: every bridge
	Clients string `yaml:"clients" json:"clients,omitempty"` // words: who refuses what breaks it; empty: the clause is for all
	Since   string `yaml:"since" json:"since,omitempty"`     // the version that it joined; "": 1.0
	From    string `yaml:"from" json:"from"`                 // keys of `sources`, each with a part of that source, joined by "; "
	Text    string `yaml:"text" json:"text"`

	// Source is From in words; Contract.Cites has the same one by one.
	Source string `yaml:"-" json:"source"`

	Reason `yaml:"-"`
}

// Citation is a public text that a clause comes from, or, without a URL, this contract's own reason.
type Citation struct {
	Text string `json:"text"`
	URL  string `json:"url,omitempty"`
}

// Capability is something that a bridge may claim.
type Capability struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Claim string `json:"claim"` // when a bridge claims it
}

// Term is a word that this project uses in a meaning of its own.
type Term struct {
	Name string `json:"name"`
	Text string `json:"text"` // its definition, one or two sentences
}

// Contract is every clause, in the order of contract.yaml, with what the clauses refer to.
type Contract struct {
	Version      string // of these clauses; see At
	Revision     string // date of the texts
	Clauses      []Clause
	Capabilities []Capability
	Clients      []Term // whose refusals the area profile collects
	Glossary     []Term
	Codes        map[int][]string  // error.code values of an HTTP status
	Meanings     map[string]string // when each error.code is sent
	sources      map[string]source
	released     map[string]map[string]Level // by version and clause
	byID         map[string]int
}

// Clause returns the clause with this id.
func (c *Contract) Clause(id string) (Clause, bool) {
	i, ok := c.byID[id]
	if !ok {
		return Clause{}, false
	}
	return c.Clauses[i], true
}

// Cites lists what the clause comes from.
func (c *Contract) Cites(clause Clause) []Citation {
	cites, _ := c.cite(clause.From) // Load has refused a clause with another `from`
	return cites
}

// IDs lists the ids of all clauses, in the order of the contract.
func (c *Contract) IDs() []string {
	ids := make([]string, len(c.Clauses))
	for i, clause := range c.Clauses {
		ids[i] = clause.ID
	}
	return ids
}

// Areas lists the areas, in the order of the contract.
func (c *Contract) Areas() []string {
	var areas []string
	for _, clause := range c.Clauses {
		if !slices.Contains(areas, clause.Area) {
			areas = append(areas, clause.Area)
		}
	}
	return areas
}

// ClientNames lists the clients by name.
func (c *Contract) ClientNames() []string {
	names := make([]string, len(c.Clients))
	for i, client := range c.Clients {
		names[i] = client.Name
	}
	return names
}

// Knows reports whether name is a capability.
func (c *Contract) Knows(name string) bool {
	return slices.ContainsFunc(c.Capabilities, func(known Capability) bool { return known.Name == name })
}

// DocumentedCode reports whether code is one of the documented error codes, of any status.
func (c *Contract) DocumentedCode(code string) bool {
	for _, codes := range c.Codes {
		if slices.Contains(codes, code) {
			return true
		}
	}
	return false
}

// Match returns the ids that a glob selects, none if it selects none. The syntax is path.Match's: `*` stays within an
// area. The bare name of an area selects the whole area. A malformed glob is an error.
func (c *Contract) Match(glob string) ([]string, error) {
	var ids []string
	for _, clause := range c.Clauses {
		ok, err := path.Match(glob, clause.ID)
		if err != nil {
			return nil, fmt.Errorf("the glob %q is malformed: %w", glob, err)
		}
		if ok || glob == "*" || glob == clause.Area {
			ids = append(ids, clause.ID)
		}
	}
	return ids, nil
}

// Globs lists what a misspelled glob is most likely intended to be: each area as a whole, then each clause.
func (c *Contract) Globs() []string {
	var globs []string
	for _, area := range c.Areas() {
		globs = append(globs, area+"/*")
	}
	return append(globs, c.IDs()...)
}
