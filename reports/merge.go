package reports

import (
	"errors"
	"fmt"
	"slices"
)

// Merge joins the reports of shards: those of one bridge become one report, in the order in which the bridges come
// first. Shards must agree on ledger and capabilities. A clause that two shards judged keeps the verdict that needs
// more attention. A merged report counts as filtered until it has every clause that has a check.
func Merge(reports []*Report) ([]*Report, error) {
	if len(reports) == 0 {
		return nil, errors.New("there is no report to merge")
	}
	var merged []*Report
	index := map[string]int{}
	for _, r := range reports {
		key := r.Target.Name + "\x00" + r.Target.Version + "\x00" + r.Target.URL
		i, ok := index[key]
		if !ok {
			index[key] = len(merged)
			c := *r
			c.Results, c.Since = slices.Clone(r.Results), nil
			merged = append(merged, &c)
			continue
		}
		if err := merged[i].join(r); err != nil {
			return nil, fmt.Errorf("merge %s: %w", targetName(r.Target), err)
		}
	}
	for _, r := range merged {
		if r.Filtered && r.Ledger.Checked > 0 && len(r.Results) >= r.Ledger.Checked {
			r.Filtered = false
		}
		r.Summarize()
	}
	return merged, nil
}

// join adds a shard to r.
func (r *Report) join(shard *Report) error {
	mine, theirs := slices.Sorted(slices.Values(r.Capabilities)), slices.Sorted(slices.Values(shard.Capabilities))
	switch {
	case r.Ledger.Revision != shard.Ledger.Revision:
		return fmt.Errorf("the shards have the ledgers %s and %s: run them with one bridgecheck", r.Ledger.Revision, shard.Ledger.Revision)
	case !slices.Equal(mine, theirs):
		return fmt.Errorf("the shards claim %v and %v: run them with the same capabilities", mine, theirs)
	case r.Strict != shard.Strict:
		return errors.New("one shard is strict, another is not")
	}
	at := map[string]int{}
	for i, result := range r.Results {
		at[result.ID] = i
	}
	for _, result := range shard.Results {
		i, twice := at[result.ID]
		switch {
		case !twice:
			r.Results = append(r.Results, result)
		case urgency(result) < urgency(r.Results[i]):
			r.Results[i] = result
		}
	}
	for _, p := range shard.BaselineProblems {
		if !slices.Contains(r.BaselineProblems, p) {
			r.BaselineProblems = append(r.BaselineProblems[:len(r.BaselineProblems):len(r.BaselineProblems)], p)
		}
	}
	if shard.Started.Before(r.Started) {
		r.Started = shard.Started
	}
	r.DurationMS += shard.DurationMS
	r.CutShort, r.NoBridge = or(r.CutShort, shard.CutShort), or(r.NoBridge, shard.NoBridge)
	r.Filtered = r.Filtered || shard.Filtered
	return nil
}

// urgency ranks a result's verdict: the smaller, the more attention it needs.
func urgency(r Result) int { return slices.Index(Verdicts(), r.Verdict) }
