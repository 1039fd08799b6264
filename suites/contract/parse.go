package contract

import (
	_ "embed"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed contract.yaml
var clauses []byte

// Load returns the embedded contract. It is parsed once and must not be modified. An error is a defect of this build.
func Load() (*Contract, error) { return load() }

var load = sync.OnceValues(func() (*Contract, error) {
	c, err := parse(clauses)
	if err != nil {
		return nil, err
	}
	if _, err := c.explain(reasons); err != nil { // TestEveryClauseIsExplained has the problems
		return nil, err
	}
	return c, c.release(versions)
})

func parse(data []byte) (*Contract, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("read the contract: %w", err)
	}
	c := &Contract{byID: map[string]int{}}
	top := doc.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		if err := c.section(top[i].Value, top[i+1]); err != nil {
			return nil, fmt.Errorf("read the contract, line %d: %w", top[i].Line, err)
		}
	}
	for i, clause := range c.Clauses {
		if clause.Needs != "" && !c.Knows(clause.Needs) {
			return nil, fmt.Errorf("read the contract: %s needs %q, which is not a capability", clause.ID, clause.Needs)
		}
		for client := range strings.FieldsSeq(clause.Clients) {
			if !slices.Contains(c.ClientNames(), client) {
				return nil, fmt.Errorf("read the contract: %s is for %q, which is not a client", clause.ID, client)
			}
		}
		cites, err := c.cite(clause.From)
		if err != nil {
			return nil, fmt.Errorf("read the contract: %s: %w", clause.ID, err)
		}
		c.Clauses[i].Source = inWords(cites)
	}
	return c, nil
}

// source is an entry of `sources`: a public text, or, without a URL, this contract itself.
type source struct {
	Name string `yaml:"name"`
	URL  string `yaml:"url"`
}

// cite expands a clause's `from`: `readme Pagination; rfc4648 3.2` cites the sources readme and rfc4648.
func (c *Contract) cite(from string) ([]Citation, error) {
	var cites []Citation
	for one := range strings.SplitSeq(from, "; ") {
		key, part, _ := strings.Cut(one, " ")
		known, ok := c.sources[key]
		switch {
		case !ok:
			return nil, fmt.Errorf("%q is not a key of sources", key)
		case known.URL == "" && part == "":
			return nil, fmt.Errorf("the source %q has no URL and must give a reason", key)
		case known.URL == "":
			cites = append(cites, Citation{Text: known.Name + ": " + part})
		case part == "":
			cites = append(cites, Citation{Text: known.Name, URL: known.URL})
		case strings.HasPrefix(key, "rfc"):
			cites = append(cites, Citation{Text: known.Name + ", section " + part, URL: known.URL + "#section-" + part})
		default:
			cites = append(cites, Citation{Text: known.Name + ", " + part, URL: known.URL})
		}
	}
	return cites, nil
}

func inWords(cites []Citation) string {
	texts := make([]string, len(cites))
	for i, cite := range cites {
		texts[i] = cite.Text
	}
	return strings.Join(texts, "; ")
}

// section reads one top-level key of contract.yaml: a named section, or the clauses of an area.
func (c *Contract) section(name string, node *yaml.Node) error {
	switch name {
	case "revision":
		return node.Decode(&c.Revision)
	case "codes":
		return node.Decode(&c.Codes)
	case "meanings":
		return node.Decode(&c.Meanings)
	case "sources":
		return node.Decode(&c.sources)
	case "capabilities":
		for name, text := range entries(node) {
			c.Capabilities = append(c.Capabilities, Capability{Name: name, Text: text})
		}
		return nil
	case "claim":
		for name, text := range entries(node) {
			i := slices.IndexFunc(c.Capabilities, func(known Capability) bool { return known.Name == name })
			if i < 0 {
				return fmt.Errorf("claim: %q is not a capability", name)
			}
			c.Capabilities[i].Claim = text
		}
		return nil
	case "clients", "glossary":
		terms := map[string]*[]Term{"clients": &c.Clients, "glossary": &c.Glossary}[name]
		for term, text := range entries(node) {
			*terms = append(*terms, Term{term, text})
		}
		return nil
	}
	var clauses []Clause
	if err := node.Decode(&clauses); err != nil {
		return err
	}
	for _, clause := range clauses {
		clause.Area = name
		if err := c.add(clause); err != nil {
			return err
		}
	}
	return nil
}

// entries are the keys and texts of a YAML mapping, in the order of the file.
func entries(mapping *yaml.Node) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if !yield(mapping.Content[i].Value, mapping.Content[i+1].Value) {
				return
			}
		}
	}
}

func (c *Contract) add(clause Clause) error {
	switch {
	case !strings.HasPrefix(clause.ID, clause.Area+"/"):
		return fmt.Errorf("the id %q does not start with its area %q", clause.ID, clause.Area)
	case !slices.Contains([]Level{MUST, SHOULD, MAY}, clause.Level):
		return fmt.Errorf("%s has the unknown level %q", clause.ID, clause.Level)
	case clause.Wire != Front && clause.Wire != Both:
		return fmt.Errorf("%s has the unknown wire %q", clause.ID, clause.Wire)
	case clause.Text == "" || clause.From == "":
		return fmt.Errorf("%s has no text or no source", clause.ID)
	}
	if _, twice := c.byID[clause.ID]; twice {
		return fmt.Errorf("the id %s is defined twice", clause.ID)
	}
	c.byID[clause.ID] = len(c.Clauses)
	c.Clauses = append(c.Clauses, clause)
	return nil
}
