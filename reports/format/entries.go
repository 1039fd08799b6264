package format

import (
	"fmt"
	"slices"

	"github.com/bridgecheck/bridgecheck/reports"
)

// entry is one cause as a list shows it: the first result that has it, and the clauses that have the same.
type entry struct {
	reports.Result
	cause string
	same  []string // clauses; none: the result has the cause alone
}

// more says behind the first clause how many have the same cause.
func (e entry) more() string {
	if len(e.same) == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", len(e.same))
}

// entriesOf makes one entry of the results that have one verdict and one cause. A result of several causes stands with the
// one that explains most failures. The entries are in the order of the results.
func entriesOf(r *reports.Report, results []reports.Result) []entry {
	type key struct {
		group   int
		verdict reports.Verdict
	}
	groups := r.Groups()
	at := map[key]int{}
	var entries []entry
	for _, result := range results {
		k := key{slices.IndexFunc(groups, func(g reports.Group) bool { return slices.Contains(g.Clauses, result.ID) }), result.Verdict}
		if i, known := at[k]; known && k.group >= 0 {
			entries[i].same = append(entries[i].same, result.ID)
			continue
		}
		at[k] = len(entries)
		e := entry{Result: result}
		if k.group >= 0 {
			e.cause = groups[k.group].Cause
		}
		entries = append(entries, e)
	}
	return entries
}
