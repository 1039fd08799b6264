// Package power proves what the checks can distinguish. Its catalog holds what languages, frameworks and programmers who mean
// well do to texts, numbers and other values; its positions are the places of values that have to arrive as they were sent.
// For each transformation and each position the run has to send or serve a value that the transformation changes, and the
// clause of the position has to fail where it does. It tests no bridge but the reference bridge with one such fault.
//
// Invariant: a cell of the matrix is proven, open by a sentence that stands in the contract, or impossible by a rule of the position:
// what can stand there is known, and the transformation changes none of it. testdata/only.txt lists the values that show a
// transformation alone somewhere: who takes one away meets the names of the cells that it leaves empty.
package power

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/input/traps"
)

// catalog returns all transformations.
func catalog() []transformation { return slices.Concat(texts(), numbers(), others(), named()) }

func TestTheCatalogIsLarge(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range slices.Concat(texts(), numbers(), others()) {
		key := string(c.kind) + ": " + c.name
		must.Expect(t, !seen[key], "two transformations are %q", key)
		seen[key] = true
	}
	for _, c := range slices.Concat(texts(), numbers(), others()) { // else it would be impossible everywhere
		changes := slices.ContainsFunc(universe(), func(v any) bool { return !exact.Equal(v, c.do(v)) })
		must.Expect(t, changes, "%s: %s changes no value of the universe", c.kind, c.name)
	}
	must.Expect(t, len(seen) >= 200, "the catalog has %d transformations, want 200 at least", len(seen))
	t.Logf("%d transformations, and those of texts for names", len(seen))
}

// seen are different values of one position.
type seen struct {
	mu  sync.Mutex
	all map[string]any // by how they are written
}

func (s *seen) see(v any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[written(v)] = v
	return v
}

// changed are the values that were seen and that a transformation changes, as they are written.
func (s *seen) changed(by transformation, can domain) []string {
	var all []string
	for name, v := range s.all {
		if can.changes(by, v) {
			all = append(all, name)
		}
	}
	return all
}

// changes reports whether a transformation makes something else of a value.
func (d domain) changes(by transformation, v any) bool {
	now := by.do(v)
	if d.alike != nil {
		was, before := v.(string)
		is, after := now.(string)
		return !before || !after || !d.alike(was, is)
	}
	return !exact.Equal(v, now)
}

// run tests a mutant by the clauses of a position.
func run(t *testing.T, m mutants.Mutant, clauses []string) *reports.Report {
	t.Helper()
	return must.Get(selftest.Run(t.Context(), m, engine.Options{Contract: contract.Draft, Only: clauses}, nil))(t)
}

func failed(r *reports.Report, clauses []string) bool {
	return slices.ContainsFunc(r.Results, func(c reports.Result) bool {
		return slices.Contains(clauses, c.ID) && (c.Verdict == reports.Fail || c.Verdict == reports.Warn)
	})
}

// cell is what the matrix says of a transformation at a position.
type cell struct {
	transformation
	why string // it is no cell to prove: the sentence of the contract that leaves it open, or what makes it impossible
}

// matrix has a cell for each transformation.
func (p position) matrix() []cell {
	var all []cell
	for _, c := range catalog() {
		all = append(all, cell{c, p.excludes(c)})
	}
	return all
}

// excludes is why a transformation need not be noticed at a position; "" where it must.
func (p position) excludes(c transformation) string {
	if !slices.Contains(p.can.kinds, c.kind) || c.coerces && len(p.can.kinds) == 1 {
		return fmt.Sprintf("impossible: of %s only %v stands there", p.name, p.can.kinds)
	}
	if p.can.opaque && c.ofData && !c.coerces {
		return "impossible: no program reads numbers, times, addresses or secrets in a name or a credential"
	}
	for _, o := range p.open {
		if o.holds(c) {
			return "open: " + o.sentence
		}
	}
	if p.can.holds != nil && !slices.ContainsFunc(universe(), func(v any) bool { return kindOf(v) == c.kind && p.can.holds(v) && p.can.changes(c, v) }) {
		return "impossible: " + p.can.why
	}
	return ""
}

// cells are the transformations that must be noticed at a position.
func (p position) cells() []transformation {
	var all []transformation
	for _, c := range p.matrix() {
		if c.why == "" {
			all = append(all, c.transformation)
		}
	}
	return all
}

// universe are values of which each transformation of texts and numbers changes one: what stands in the corpora, its parts, and
// texts of the letters and digits that every position takes.
var universe = sync.OnceValue(func() []any {
	var all []any
	for _, v := range ofTraps() {
		everywhere(v, func(v any) any { all = append(all, v); return v })
	}
	for _, s := range slices.Concat(traps.Texts, traps.Names, traps.Words, traps.Patterns, strings.Fields(traps.Short+" "+traps.Sensitive)) {
		all = append(all, s, "a"+s+"b")
	}
	for s := range strings.SplitSeq(traps.Short, "") {
		all = append(all, "a"+s+s+"b", "a "+s+" b")
	}
	for n := 0; n < 1000; n += 7 {
		all = append(all, base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(n))))
	}
	all = append(all, "pt", "pt-br", "hi", `Basic realm="Default"`, `"0123456789abcdef0123456789abcdef"`, "ABCDEFGHIJKLMNOPQRSTUVWX23")
	for n := 1; n < 10_000; n *= 2 {
		all = append(all, strings.Repeat("aB1", n), strings.Repeat("aB 1", n))
	}
	return all
})

// kindOf is the kind of a text or a number; "" for others.
func kindOf(v any) kind {
	switch v.(type) {
	case string:
		return text
	case json.Number:
		return number
	}
	return ""
}

func (o opening) holds(c transformation) bool {
	return (o.kind == "" || o.kind == c.kind) && (len(o.transformations) == 0 || slices.ContainsFunc(o.transformations, func(w string) bool { return strings.Contains(c.name, w) }))
}

// TestOpeningsAreOfTheContract looks for the sentence of each opening in the contract.
func TestOpeningsAreOfTheContract(t *testing.T) {
	document := must.Get(os.ReadFile("../../docs/contract.md"))(t)
	said := string(document)
	all := must.Get(contract.Load())(t)
	for _, c := range all.Clauses {
		said += "\n" + c.Text
	}
	for _, p := range positions() {
		for _, o := range p.open {
			must.Expect(t, strings.Contains(said, o.sentence), "%s: the contract does not say %q", p.name, o.sentence)
			must.Expect(t, slices.ContainsFunc(catalog(), o.holds), "%s: no transformation is left open by %q", p.name, o.sentence)
		}
	}
}

// TestEveryTransformationMeetsAValue runs the clauses of each position against the reference bridge, and looks for a value
// that each transformation changes among those that it sent and served there.
func TestEveryTransformationMeetsAValue(t *testing.T) {
	only, before, ran := onlyValues{}, onlyValues{}, 0
	before.read(t)
	for _, p := range positions() {
		t.Run(p.name, func(t *testing.T) {
			ran++
			all := seen{all: map[string]any{}}
			report := run(t, p.mutant(all.see), p.clauses)
			for _, r := range report.Results {
				must.Assert(t, !slices.Contains(p.clauses, r.ID) || r.Verdict == reports.Pass,
					"%s: %s with the reference bridge: %s", r.ID, r.Verdict, exact.Cut(r.Message, 300))
			}
			var holes []string
			cells, excluded := p.cells(), map[string]int{}
			for _, c := range p.matrix() {
				excluded[c.why]++
			}
			for why, n := range excluded {
				t.Logf("%d of %d transformations: %s", n, len(catalog()), cmp.Or(why, "must be noticed"))
			}
			for _, c := range cells {
				switch name, shown := string(c.kind)+": "+c.name, all.changed(c, p.can); {
				case len(shown) == 0:
					holes = append(holes, name+before.of(name))
				case len(shown) == 1 && corpora()[shown[0]]:
					only.add(shown[0], name)
				}
			}
			if len(holes) > 0 {
				t.Errorf("%d of %d transformations change none of the %d values there: add one to suites/input/traps, or name the sentence of the contract that leaves it open:\n  %s",
					len(holes), len(cells), len(all.all), strings.Join(holes, "\n  "))
			}
		})
	}
	if !t.Failed() && ran == len(positions()) { // not with -run
		only.compare(t)
	}
}

// onlyValues are the values of the corpora that are the only ones to show a transformation somewhere, with these transformations.
type onlyValues map[string][]string

// golden holds them, so that a cell which loses its value is reported with what the value was.
const golden = "testdata/only.txt"

var update = flag.Bool("update", false, "write "+golden)

func (o onlyValues) add(value, transformation string) {
	if value = exact.Cut(value, 80); !slices.Contains(o[value], transformation) {
		o[value] = append(o[value], transformation)
		slices.Sort(o[value])
	}
}

func (o onlyValues) String() string {
	var b strings.Builder
	for _, value := range slices.Sorted(maps.Keys(o)) {
		fmt.Fprintf(&b, "%s\t%s\n", value, strings.Join(o[value], "; "))
	}
	return b.String()
}

func (o onlyValues) read(t *testing.T) {
	data, err := os.ReadFile(golden)
	must.Assert(t, err == nil || *update, "%v", err)
	for line := range strings.Lines(string(data)) {
		value, all, _ := strings.Cut(strings.TrimSpace(line), "\t")
		o[value] = strings.Split(all, "; ")
	}
}

// of says which values showed a transformation alone.
func (o onlyValues) of(transformation string) string {
	var all []string
	for _, value := range slices.Sorted(maps.Keys(o)) {
		if slices.Contains(o[value], transformation) {
			all = append(all, value)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ", which was shown by " + strings.Join(all, " or ") + " alone"
}

func (o onlyValues) compare(t *testing.T) {
	if *update {
		must.Assert(t, os.WriteFile(golden, []byte(o.String()), 0o644) == nil, "%s cannot be written", golden)
		return
	}
	before := onlyValues{}
	before.read(t)
	must.Expect(t, o.String() == before.String(), "%s is not up to date: go test ./test/power -run TestEveryTransformationMeetsAValue -update", golden)
}

// corpora are the values of package traps, as they are written.
var corpora = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, v := range ofTraps() {
		everywhere(v, func(v any) any {
			all[written(v)] = true
			return v
		})
	}
	return all
})

// ofTraps are the documents of package traps.
func ofTraps() []any {
	all := []any{traps.Said, traps.Listed(), traps.IDs}
	for _, document := range append(traps.Whole(), traps.Document, traps.ErrorData, traps.InSchema) {
		v, err := exact.Parse([]byte(document))
		if err != nil {
			panic(err)
		}
		all = append(all, v)
	}
	for _, s := range slices.Concat(traps.Texts, traps.Names, traps.Words, traps.Patterns, traps.Passwords) {
		all = append(all, s)
	}
	return all
}

// TestEveryChangeIsFound puts transformations into the reference bridge, each at one position, and wants a clause of the
// position to fail. POWER=all tests every cell, POWER=n that many of each position, by default always the same few.
func TestEveryChangeIsFound(t *testing.T) {
	few := 3
	switch wanted := os.Getenv("POWER"); wanted {
	case "":
		if testing.Short() {
			few = 1
		}
	case "all":
		few = 1 << 20
	default:
		_, err := fmt.Sscan(wanted, &few)
		must.Assert(t, err == nil, "POWER=%s: want a number, or all", wanted)
	}
	for _, p := range positions() {
		t.Run(p.name, func(t *testing.T) {
			if os.Getenv("POWER") != "" { // they wait as much as they compute
				t.Parallel()
			}
			cells := p.cells()
			h := fnv.New64a()
			h.Write([]byte(p.name))
			dice := rand.New(rand.NewPCG(1, h.Sum64()))
			dice.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
			for _, c := range cells[:min(few, len(cells))] {
				t.Run(string(c.kind)+": "+c.name, func(t *testing.T) { mustBeNoticed(t, p, c) })
			}
		})
	}
}

// mustBeNoticed runs the clauses of a position against a bridge that changes values there.
func mustBeNoticed(t *testing.T, p position, c transformation) {
	var report *reports.Report
	passes := 0
	for i := range 6 { // on a busy machine a clause may not be testable, or lack the one response that tells
		time.Sleep(time.Duration(i) * time.Second)
		if report = run(t, p.mutant(c.do), p.clauses); failed(report, p.clauses) {
			return
		}
		if !slices.ContainsFunc(report.Results, func(r reports.Result) bool { return slices.Contains(p.clauses, r.ID) && r.Verdict != reports.Pass }) {
			if passes++; passes == 1 {
				continue
			}
			t.Errorf("goes unnoticed: %s passes", strings.Join(p.clauses, ", "))
			return
		}
	}
	t.Errorf("none of %s fails, and not all pass", strings.Join(p.clauses, ", "))
	for _, r := range report.Results {
		if slices.Contains(p.clauses, r.ID) {
			t.Logf("%s: %s: %s", r.ID, r.Verdict, exact.Cut(r.Message, 300))
		}
	}
}
