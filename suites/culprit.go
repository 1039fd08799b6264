package suites

import (
	"path"
	"slices"

	"github.com/bridgecheck/bridgecheck/reports"
)

// settle applies the culprit rule: a clause that the bridge kept from being tested stays not testable only where a clause
// that explains it fails in this run. Else it fails itself, with the request that did not get its response as evidence.
// So a bridge that misbehaves never ends with MUSTs untested and nothing failed. A clause that the end of the run left
// untested may be the one that explains it.
func (c *collector) settle() {
	if c.run.Unauthenticated {
		return
	}
	anyFailed := slices.ContainsFunc(c.inOrder(), func(r reports.Result) bool { return r.Verdict == reports.Fail })
	excused := map[string]bool{} // blocked clauses that a failure explains; they explain those that they block
	for len(c.blocked) > 0 {
		var decided []string
		for _, r := range c.inOrder() {
			culprits, blocked := c.blocked[r.ID]
			switch {
			case !blocked:
			case len(culprits) == 0 && anyFailed, c.explained(r, culprits), c.untested(culprits),
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
func (c *collector) explained(r reports.Result, culprits []string) bool {
	return c.anyOf(culprits, func(culprit reports.Result) bool {
		_, blocked := c.blocked[culprit.ID]
		return !blocked && culprit.ID != r.ID &&
			(culprit.Verdict == reports.Fail || culprit.Verdict == reports.Warn && r.Level != reports.MUST)
	})
}

// pending reports whether one of the culprits is not decided itself.
func (c *collector) pending(id string, culprits []string) bool {
	return c.anyOf(culprits, func(culprit reports.Result) bool {
		_, blocked := c.blocked[culprit.ID]
		return blocked && culprit.ID != id
	})
}

// untested reports whether the run ended before one of the culprits, or where they are not known before any clause, was
// tested.
func (c *collector) untested(culprits []string) bool {
	if c.run.Context.Err() == nil {
		return false
	}
	return slices.ContainsFunc(c.run.Contract.IDs(), func(id string) bool {
		_, ran := c.results[id]
		return !ran && hasCheck(id) && c.run.Selected(id) && (len(culprits) == 0 || matchesAny(culprits, id))
	})
}

func (c *collector) anyOf(globs []string, is func(reports.Result) bool) bool {
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
func (c *collector) fail(id string) {
	r := c.results[id]
	clause, _ := c.run.Contract.Clause(id)
	r.Verdict, r.Remedy = broken(clause), clause.Fix.String()
	c.results[id] = r
	if c.progress != nil {
		c.progress(r)
	}
}
