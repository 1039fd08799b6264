package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/wholefile"
	"github.com/bridgecheck/bridgecheck/reports"
)

// ShardFile is the name of the file that holds a Shard, beside its report.
const ShardFile = "shard.json"

// shardSchema is the version of the layout of that file.
const shardSchema = "1"

// MaxShards is the most shards that a run may have.
const MaxShards = 100

// maxShard bounds what ReadShard reads, in bytes.
const maxShard = 64 << 20

// Shard is one of several runs, each of which tests some of the clauses of one bridge. JoinShards makes the report that one
// run would have made.
type Shard struct {
	Schema  string    `json:"schema"`
	Run     string    `json:"run"`   // the same for all shards of a run
	Index   int       `json:"index"` // from 1
	Of      int       `json:"of"`
	Filters []string  `json:"filters,omitempty"` // that leave clauses out of the whole run
	Passes  [][]*Part `json:"passes"`
}

// Share chooses the clauses of one shard of several: so that all take about as long, and each clause is in one of them.
// It depends on the clauses and their weights alone.
func Share(weights map[string]int, index, of int) map[string]bool {
	ids := slices.SortedFunc(maps.Keys(weights), func(x, y string) int {
		return cmp.Or(cmp.Compare(weights[y], weights[x]), cmp.Compare(x, y))
	})
	load, mine := make([]int, of), map[string]bool{}
	for n, id := range ids {
		lightest := n % of // clauses without a weight go around
		for i := range load {
			if load[i] < load[lightest] {
				lightest = i
			}
		}
		load[lightest] += weights[id]
		if lightest == index-1 {
			mine[id] = true
		}
	}
	return mine
}

// Report is what the shard alone shows: the clauses that it tested. One that is blocked by a clause of another shard is
// not testable here.
func (s *Shard) Report(mine map[string]bool) (*reports.Report, error) {
	var passes []*reports.Report
	for _, parts := range s.Passes {
		if len(parts) == 0 {
			continue
		}
		o, report, err := gather(nil, parts)
		if err != nil {
			return nil, err
		}
		o.cut = true
		o.settle()
		report.Results = slices.DeleteFunc(o.inOrder(), func(r reports.Result) bool { return !mine[r.ID] })
		report.Filtered = true
		passes = append(passes, report)
	}
	whole, err := reports.Merge(passes...)
	if err != nil {
		return nil, err
	}
	whole.Settings = maps.Clone(whole.Settings)
	whole.Settings["shard"] = fmt.Sprintf("%d/%d of %s", s.Index, s.Of, s.Run)
	whole.Filtered = true
	whole.Summarize()
	return whole, nil
}

// Write writes the shard into a report directory.
func (s *Shard) Write(dir string) error {
	s.Schema = shardSchema
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(dir, ShardFile), append(data, '\n'), 0o644)
}

// ReadShard reads the shard in a report directory. The error says what is wrong with the file.
func ReadShard(dir string) (*Shard, error) {
	path := filepath.Join(dir, ShardFile)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxShard {
		return nil, fmt.Errorf("%s is larger than %d MiB: no shard that bridgecheck wrote", path, maxShard>>20)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := reports.Affordable(data); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := &Shard{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// check refuses what Write would not write.
func (s *Shard) check() error {
	switch {
	case s.Schema != shardSchema:
		return fmt.Errorf("the schema is %q, this bridgecheck reads %q", s.Schema, shardSchema)
	case s.Index < 1 || s.Index > s.Of || s.Of > MaxShards || len(s.Passes) == 0:
		return fmt.Errorf("shard %d of %d with %d passes is no shard that bridgecheck wrote", s.Index, s.Of, len(s.Passes))
	}
	for _, parts := range s.Passes {
		if slices.Contains(parts, nil) {
			return errors.New("a pass has no part")
		}
	}
	return nil
}

// JoinShards makes the report of a run of all its shards. The error, a *UsageError, says which are missing or do not belong
// together.
func JoinShards(shards []*Shard) (*reports.Report, error) {
	if len(shards) == 0 {
		return nil, errors.New("there is no shard to merge")
	}
	first := shards[0]
	given := map[int]bool{}
	for _, s := range shards {
		if err := s.check(); err != nil {
			return nil, &UsageError{err.Error()}
		}
		switch {
		case s.Run != first.Run:
			return nil, usage("the shards are of the runs %q and %q: merge those of one run", first.Run, s.Run)
		case s.Of != first.Of:
			return nil, usage("one shard is one of %d, another one of %d: give every run the same --shard I/N", first.Of, s.Of)
		case given[s.Index]:
			return nil, usage("shard %d/%d is given twice: give each once", s.Index, s.Of)
		}
		given[s.Index] = true
		if err := sameRun(first, s); err != nil {
			return nil, err
		}
	}
	var missing []string
	for i := range first.Of {
		if !given[i+1] {
			missing = append(missing, fmt.Sprintf("%d/%d", i+1, first.Of))
		}
	}
	if len(missing) > 0 {
		return nil, usage("of the run %q these shards are missing: %s", first.Run, strings.Join(missing, ", "))
	}
	var passes []*reports.Report
	for i := range first.Passes {
		var parts []*Part
		for _, s := range shards {
			parts = append(parts, s.Passes[i]...)
		}
		if len(parts) == 0 {
			continue
		}
		report, err := Join(nil, parts...)
		if err != nil {
			return nil, &UsageError{err.Error()}
		}
		passes = append(passes, report)
	}
	return Whole(passes, len(first.Filters) > 0)
}

// sameRun refuses a shard that differs from another in more than its clauses.
func sameRun(one, other *Shard) error {
	if len(one.Passes) != len(other.Passes) || !slices.Equal(one.Filters, other.Filters) {
		return usage("shard %d and shard %d do not test the same bridge with the same filters: run them with the same options", one.Index, other.Index)
	}
	for i := range one.Passes {
		for _, part := range slices.Concat(one.Passes[i], other.Passes[i]) {
			a, b := one.anyOf(i, part).Report, part.Report
			for _, x := range []struct {
				what string
				same bool
			}{
				{"bridgecheck", a.Tool == b.Tool},
				{"version of the contract", a.Ledger.Version == b.Ledger.Version && a.Ledger.Revision == b.Ledger.Revision},
				{"capabilities", slices.Equal(a.Capabilities, b.Capabilities)},
				{"seed", a.Seed == b.Seed},
				{"--strict and --wire", a.Strict == b.Strict && a.Wire == b.Wire},
				{"settings", sameJSON(a.Settings, b.Settings)},
				{"bridge", a.Target.Name == b.Target.Name && a.Target.Version == b.Target.Version},
			} {
				if !x.same {
					return usage("shard %d and shard %d differ in: %s; run them with the same options", one.Index, other.Index, x.what)
				}
			}
		}
	}
	return nil
}

// anyOf is a part of a pass; other where the shard has none.
func (s *Shard) anyOf(pass int, other *Part) *Part {
	if len(s.Passes[pass]) > 0 {
		return s.Passes[pass][0]
	}
	return other
}

func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// Whole makes one report of the passes of a run. Filtered says that filters leave clauses out.
func Whole(passes []*reports.Report, filtered bool) (*reports.Report, error) {
	whole, err := reports.Merge(passes...)
	if err != nil {
		return nil, err
	}
	if whole.CutShort != "" && !filtered { // the clauses of a pass that never began are not left out by a filter
		whole.Filtered = false
		whole.Summarize()
	}
	return whole, nil
}
