package contract

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// extraID is the form of an id: an area and a name, in lower case.
var extraID = regexp.MustCompile(`^[a-z][a-z0-9-]*/[a-z0-9][a-z0-9-]*$`)

// With returns the contract followed by clauses that somebody else adds. Each has an id `area/name` whose area the contract
// does not have, a level, a text, a reason (Why) and a fix (Fix.Any). Needs names a capability of the contract, or a new one
// that begins with the area and a dash. Wire "" is Front. The error names the clause and what would be right.
func (c *Contract) With(extra ...Clause) (*Contract, error) {
	if len(extra) == 0 {
		return c, nil
	}
	whole := *c
	whole.Clauses, whole.Capabilities, whole.byID = slices.Clone(c.Clauses), slices.Clone(c.Capabilities), maps.Clone(c.byID)
	own := c.Areas()
	for _, clause := range extra {
		area, _, _ := strings.Cut(clause.ID, "/")
		_, twice := whole.byID[clause.ID]
		switch {
		case !extraID.MatchString(clause.ID):
			return nil, fmt.Errorf("the id %q of an own clause must be AREA/NAME in lower case, for example acme/order-is-kept", clause.ID)
		case slices.Contains(own, area):
			return nil, fmt.Errorf("%s: the area %s is the contract's: give own clauses an area of their own", clause.ID, area)
		case twice:
			return nil, fmt.Errorf("%s is given twice", clause.ID)
		case !slices.Contains([]Level{MUST, SHOULD, MAY}, clause.Level):
			return nil, fmt.Errorf("%s: the level must be MUST, SHOULD or MAY; got %q", clause.ID, clause.Level)
		case clause.Text == "" || clause.Why == "" || clause.Fix.Any == "":
			return nil, fmt.Errorf("%s lacks a text, a reason (Why) or a fix (Fix.Any): reports show all three", clause.ID)
		case clause.Wire != "" && clause.Wire != Front && clause.Wire != Both:
			return nil, fmt.Errorf("%s: the wire must be front or both; got %q", clause.ID, clause.Wire)
		}
		if needs := clause.Needs; needs != "" && !whole.Knows(needs) {
			if !strings.HasPrefix(needs, area+"-") {
				return nil, fmt.Errorf("%s needs %q, which is no capability of the contract; one of your own begins with %q", clause.ID, needs, area+"-")
			}
			whole.Capabilities = append(whole.Capabilities, Capability{Name: needs, Text: needs, Claim: "a capability of the area " + area})
		}
		clause.Area = area
		clause.Wire = cmp.Or(clause.Wire, Front)
		if clause.Source == "" {
			clause.Source = "a clause of the run's own"
		}
		whole.byID[clause.ID] = len(whole.Clauses)
		whole.Clauses = append(whole.Clauses, clause)
	}
	return &whole, nil
}
