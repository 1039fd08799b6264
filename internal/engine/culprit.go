package engine

import (
	"path"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// outcome is what all checks of a pass found together.
type outcome struct {
	contract        *contract.Contract
	selected        []string // the clauses that the pass tests, in the order of the contract
	claims          []string // the bridge's capabilities
	cut             bool     // the run ended before all were tested
	unauthenticated bool     // the bridge refuses the agent that the run was given
	results         map[string]reports.Result
	blocked         map[string][]string  // while the rule is applied: what of results is not decided, with its BlockedBy
	exempt          []string             // clauses that are not testable for the machine or the site: whether the bridge breaks one is not known
	progress        func(reports.Result) // receives a verdict that the culprit rule changes; nil: nobody
}

// settle applies the culprit rule: a clause that the bridge kept from being tested stays not testable only where a clause
// that explains it fails in this run. Else it fails itself, with the request that did not get its response as evidence.
// So a bridge that misbehaves never ends with MUSTs untested and nothing failed. A clause that the end of the run left
// untested may be the one that explains it, and so may one that is not testable for the machine or the site.
func (c *outcome) settle() {
	if c.unauthenticated {
		return
	}
	c.blocked = map[string][]string{}
	for id, r := range c.results {
		if r.BlockedBy != nil {
			c.blocked[id] = r.BlockedBy
		}
	}
	anyFailed := slices.ContainsFunc(c.inOrder(), func(r reports.Result) bool { return r.Verdict == reports.Fail })
	excused := map[string]bool{} // blocked clauses that a failure explains; they explain those that they block
	for len(c.blocked) > 0 {
		var decided []string
		for _, r := range c.inOrder() {
			culprits, blocked := c.blocked[r.ID]
			switch {
			case !blocked:
			case len(culprits) == 0 && anyFailed, c.explained(r, culprits), c.untested(culprits), c.exempted(culprits),
				c.anyOf(culprits, func(culprit reports.Result) bool { return excused[culprit.ID] && culprit.ID != r.ID }):
				decided = append(decided, r.ID)
				excused[r.ID] = true
			case !c.pending(r.ID, culprits):
				decided = append(decided, r.ID)
				c.fail(r.ID)
			}
		}
		if len(decided) == 0 { // clauses that wait for each other: the first of them is the culprit
			for _, r := range c.inOrder() {
				if _, blocked := c.blocked[r.ID]; blocked {
					decided = append(decided, r.ID)
					c.fail(r.ID)
					break
				}
			}
		}
		for _, id := range decided {
			delete(c.blocked, id)
		}
	}
}

// explained reports whether one of the culprits fails in this run, gravely enough for the level of the clause.
func (c *outcome) explained(r reports.Result, culprits []string) bool {
	return c.anyOf(culprits, func(culprit reports.Result) bool {
		_, blocked := c.blocked[culprit.ID]
		return !blocked && culprit.ID != r.ID &&
			(culprit.Verdict == reports.Fail || culprit.Verdict == reports.Warn && r.Level != reports.MUST)
	})
}

// pending reports whether one of the culprits is not decided itself.
func (c *outcome) pending(id string, culprits []string) bool {
	return c.anyOf(culprits, func(culprit reports.Result) bool {
		_, blocked := c.blocked[culprit.ID]
		return blocked && culprit.ID != id
	})
}

// untested reports whether the run ended before one of the culprits, or where they are not known before any clause, was
// tested.
func (c *outcome) untested(culprits []string) bool {
	return c.cut && slices.ContainsFunc(c.selected, func(id string) bool {
		_, ran := c.results[id]
		return !ran && (len(culprits) == 0 || matchesAny(culprits, id))
	})
}

// exempted reports whether one of the culprits, or where they are not known any clause, could not be tested for the machine or
// the site.
func (c *outcome) exempted(culprits []string) bool {
	return slices.ContainsFunc(c.exempt, func(id string) bool { return len(culprits) == 0 || matchesAny(culprits, id) })
}

func (c *outcome) anyOf(globs []string, is func(reports.Result) bool) bool {
	for id, r := range c.results {
		if matchesAny(globs, id) && is(r) {
			return true
		}
	}
	return false
}

func matchesAny(globs []string, id string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { ok, _ := path.Match(glob, id); return ok })
}

// fail makes a clause that could not be tested one that is broken.
func (c *outcome) fail(id string) {
	r := c.results[id]
	clause, _ := c.contract.Clause(id)
	r.Verdict, r.Remedy = check.Broken(clause), clause.Fix.String()
	if c.anyOf(r.BlockedBy, func(culprit reports.Result) bool { return culprit.ID != id && culprit.Verdict == reports.Pass }) {
		for i, f := range r.Findings {
			r.Findings[i].Subject, r.Findings[i].Message = andPasses.Replace(f.Subject), andPasses.Replace(f.Message)
		}
		r.Conclude()
	}
	c.results[id] = r
	if c.progress != nil {
		c.progress(r)
	}
}

// andPasses completes what a finding says of the clauses that explain it.
var andPasses = strings.NewReplacer(" tests that", " tests that, and passes", " test that", " test that, and pass")

// inOrder lists the results in the order of the contract. A selected check that never ran has one too.
func (c *outcome) inOrder() []reports.Result {
	results := []reports.Result{}
	for _, id := range c.selected {
		r, ran := c.results[id]
		if !ran {
			clause, _ := c.contract.Clause(id)
			r = check.NewResult(clause)
			r.Verdict, r.Message, r.Evidence = reports.NotTestable, notReached, []reports.Exchange{}
			r.Remedy = ""
			if needs := check.Requires(clause); slices.Contains(c.claims, "tools") && !slices.Contains(c.claims, needs) {
				r.Verdict, r.Message = reports.NotApplicable, check.NotClaimed(needs)
			}
		}
		results = append(results, r)
	}
	return results
}
