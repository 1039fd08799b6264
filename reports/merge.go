package reports

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Merge makes one report of several runs of one bridge: shards, or passes in several setups. It has every clause once, in
// the order in which they first come; a clause that several runs have keeps its gravest verdict. The capabilities are
// those of any run, the target is that of the first. The merged report counts as filtered if a run was filtered, until it
// has every clause that has a check. The runs must be of one revision of the contract, and all strict or none.
func Merge(runs ...*Report) (*Report, error) {
	if len(runs) == 0 {
		return nil, errors.New("there is no report to merge")
	}
	merged := *runs[0]
	merged.Since = nil
	merged.Results, merged.Capabilities = slices.Clone(merged.Results), slices.Clone(merged.Capabilities)
	merged.BaselineProblems = slices.Clone(merged.BaselineProblems)
	for _, run := range runs[1:] {
		if err := merged.join(run); err != nil {
			return nil, fmt.Errorf("merge %s: %w", merged.Target.Title(), err)
		}
	}
	merged.Started, merged.DurationMS = Wall(runs)
	if merged.Filtered && merged.Ledger.Checked > 0 && len(merged.Results) >= merged.Ledger.Checked {
		merged.Filtered = false
		merged.Settings = maps.Clone(merged.Settings)
		delete(merged.Settings, "only")
		delete(merged.Settings, "skip")
	}
	merged.Summarize()
	return &merged, nil
}

// join adds a run to r, which shares no list with another report.
func (r *Report) join(run *Report) error {
	switch {
	case r.Ledger.Version != run.Ledger.Version:
		return fmt.Errorf("the reports are of the versions %s and %s of the contract: give the runs the same --contract", cmp.Or(r.Ledger.Version, "(none)"), cmp.Or(run.Ledger.Version, "(none)"))
	case r.Ledger.Revision != run.Ledger.Revision:
		return fmt.Errorf("the reports are of the revisions %s and %s of the contract: run them with one bridgecheck", r.Ledger.Revision, run.Ledger.Revision)
	case r.Wire != run.Wire:
		return errors.New("one report counts what the front side shows, another counts both sides: give the runs the same --wire")
	case r.Strict != run.Strict:
		return errors.New("one report is strict, another is not")
	}
	at := map[string]int{}
	for i, result := range r.Results {
		at[result.ID] = i
	}
	for _, result := range run.Results {
		i, twice := at[result.ID]
		if !twice {
			r.Results = append(r.Results, result)
			continue
		}
		both := r.Results[i]
		took, sent, waited := both.DurationMS+result.DurationMS, both.Requests+result.Requests, both.WaitedMS+result.WaitedMS
		if gravity(result.Verdict) < gravity(r.Results[i].Verdict) {
			r.Results[i] = result
		}
		r.Results[i].DurationMS, r.Results[i].Requests, r.Results[i].WaitedMS = took, sent, waited
	}
	r.Cost = r.Cost.plus(run.Cost)
	r.Capabilities = union(r.Capabilities, run.Capabilities)
	r.BaselineProblems = union(r.BaselineProblems, run.BaselineProblems)
	r.CutShort, r.NoBridge = cmp.Or(r.CutShort, run.CutShort), cmp.Or(r.NoBridge, run.NoBridge)
	r.Filtered = r.Filtered || run.Filtered
	r.Sample = cmp.Or(r.Sample, run.Sample)
	return nil
}

// plus is the cost of both; where one is not known, neither is the sum.
func (c *Cost) plus(other *Cost) *Cost {
	if c == nil || other == nil {
		return nil
	}
	return &Cost{c.Requests + other.Requests, c.CPUMS + other.CPUMS, c.BridgeCPUMS + other.BridgeCPUMS}
}

// Wall is when the first of runs began, and how long any of them ran: what ran side by side counts once, and the time between
// two runs not at all. A run without a beginning, which is of an earlier build, ran beside none.
func Wall(runs []*Report) (began time.Time, ms int64) {
	inOrder := slices.SortedStableFunc(slices.Values(runs), func(a, b *Report) int { return a.Started.Compare(b.Started) })
	began = inOrder[0].Started
	var end time.Time
	for _, run := range inOrder {
		took := time.Duration(run.DurationMS) * time.Millisecond
		if beside := end.Sub(run.Started); !run.Started.IsZero() && beside > 0 {
			ms -= min(beside, took).Milliseconds()
		}
		ms += run.DurationMS
		if ends := run.Started.Add(took); ends.After(end) {
			end = ends
		}
	}
	return began, ms
}

func union[T comparable](all, more []T) []T {
	for _, v := range more {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// gravity ranks verdicts, the gravest first. One run that tested a clause outweighs others that could not.
func gravity(v Verdict) int {
	return slices.Index([]Verdict{Fail, Error, Fixed, Warn, Known, Pass, NotTestable, NotApplicable}, v)
}

// MergeShards merges the reports of each bridge, in the order in which the bridges first come. The shards of one bridge
// must claim the same capabilities.
func MergeShards(reports []*Report) ([]*Report, error) {
	if len(reports) == 0 {
		return nil, errors.New("there is no report to merge")
	}
	type bridge struct{ name, version, url string }
	var order []bridge
	shards := map[bridge][]*Report{}
	for _, r := range reports {
		key := bridge{r.Target.Name, r.Target.Version, r.Target.URL}
		if shards[key] == nil {
			order = append(order, key)
		} else if first := shards[key][0]; !sameCapabilities(first, r) {
			return nil, fmt.Errorf("merge %s: the shards claim %v and %v: run them with the same capabilities", r.Target.Title(), first.Capabilities, r.Capabilities)
		}
		shards[key] = append(shards[key], r)
	}
	var merged []*Report
	for _, key := range order {
		r, err := Merge(shards[key]...)
		if err != nil {
			return nil, err
		}
		merged = append(merged, r)
	}
	return merged, nil
}

func sameCapabilities(a, b *Report) bool {
	return slices.Equal(slices.Sorted(slices.Values(a.Capabilities)), slices.Sorted(slices.Values(b.Capabilities)))
}
