package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
)

// State is what a run says of a bridge as a whole.
type State string

// The states. Partial means: nothing failed, and yet not every binding clause was tested and passes.
const (
	Conformant      State = "conformant"
	ConformantFront State = "conformant (front)" // of a run that counts what the front side shows
	Partial         State = "partial"
	NotConformant   State = "not conformant"
)

// Kind is the state without what it is limited to: one of Conformant, Partial and NotConformant.
func (s State) Kind() State {
	if s == ConformantFront {
		return Conformant
	}
	return s
}

// Verdicts lists every verdict, the ones that need a reader's attention first.
func Verdicts() []Verdict {
	return []Verdict{Fail, Error, Fixed, Warn, Known, NotTestable, Pass, NotApplicable}
}

// Count returns the number of results with verdict v, by the summary.
func (s Summary) Count(v Verdict) int {
	switch v {
	case Pass:
		return s.Pass
	case Fail:
		return s.Fail
	case Warn:
		return s.Warn
	case Known:
		return s.Known
	case Fixed:
		return s.Fixed
	case NotApplicable:
		return s.NotApplicable
	case NotTestable:
		return s.NotTestable
	case Error:
		return s.Error
	}
	return 0
}

// Summarize counts the verdicts of r's results into r.Summary and decides whether the bridge is conformant.
func (r *Report) Summarize() { r.Summary = r.Counted() }

// Counted counts the verdicts of r's results as they are now, whatever r.Summary says.
func (r *Report) Counted() Summary {
	s := r.count()
	s.Conformant = r.State() == Conformant
	return s
}

func (r *Report) count() Summary {
	var s Summary
	counters := map[Verdict]*int{
		Pass: &s.Pass, Fail: &s.Fail, Warn: &s.Warn, Known: &s.Known, Fixed: &s.Fixed,
		NotApplicable: &s.NotApplicable, NotTestable: &s.NotTestable, Error: &s.Error,
	}
	for _, result := range r.Results {
		if n, ok := counters[result.Verdict]; ok {
			*n++
		}
	}
	s.Total = len(r.Results)
	return s
}

// State is the outcome of the run by its results. A failure that a baseline excuses (known) on a clause that binds makes the run
// partial, never conformant: the bridge still breaks the contract.
func (r *Report) State() State {
	switch {
	case len(r.faults()) > 0:
		return NotConformant
	case len(r.untested()) > 0, len(r.gaps()) > 0:
		return Partial
	case r.Wire == Front:
		return ConformantFront
	}
	return Conformant
}

// ExitCode is the exit code of a command that made r: 0 conformant, or partial by filters and baseline only; 1 a
// binding clause failed or the baseline is stale; 4 the bridge could not be tested.
func (r *Report) ExitCode() int {
	switch {
	case len(r.faults()) > 0:
		return 1
	case len(r.untested()) > 0:
		return 4
	}
	return 0
}

// Headline is the run's outcome in one line: its state and the reasons for it.
func (r *Report) Headline() string {
	reasons := slices.Concat(r.faults(), r.untested(), r.gaps())
	s := r.count()
	if len(reasons) == 0 {
		reasons = []string{plural(s.Pass, "clause") + " kept"}
		if n := len(r.Unseen()); n > 0 {
			reasons = append(reasons, agree(n, "MUST needs", "MUSTs need")+" more than the front side")
		}
	}
	if s.Warn > 0 && !r.Strict { // else they count among the faults
		reasons = append(reasons, plural(s.Warn, "warning"))
	}
	return string(r.State()) + ": " + strings.Join(reasons, ", ")
}

// faults says what makes the bridge, or its baseline, wrong.
func (r *Report) faults() []string {
	s := r.count()
	var reasons []string
	if s.Fail > 0 && r.NoBridge != "" {
		reasons = append(reasons, "the target shows no sign of a bridge")
	}
	if s.Fail > 0 {
		reasons = append(reasons, agree(s.Fail, "clause fails", "clauses fail"))
	}
	if r.Strict && s.Warn > 0 {
		reasons = append(reasons, agree(s.Warn, "warning counts under --strict", "warnings count under --strict"))
	}
	if s.Fixed > 0 {
		reasons = append(reasons, agree(s.Fixed, "clause that the baseline excuses passes now", "clauses that the baseline excuses pass now"))
	}
	if n := len(r.BaselineProblems); n > 0 {
		reasons = append(reasons, agree(n, "baseline entry no longer applies", "baseline entries no longer apply"))
	}
	return reasons
}

// untested says what kept the bridge from being tested.
func (r *Report) untested() []string {
	s := r.count()
	var reasons []string
	if s.Pass+s.Fail+s.Warn+s.Known+s.Fixed == 0 {
		reasons = append(reasons, "no check ran")
	}
	if s.Error > 0 {
		reasons = append(reasons, agree(s.Error, "check ended in an error of its own", "checks ended in an error of their own"))
	}
	if n := len(r.Blocked()); n > 0 {
		reasons = append(reasons, agree(n, "MUST could not be tested", "MUSTs could not be tested"))
	}
	if r.CutShort != "" {
		reasons = append(reasons, "the run was cut short ("+terminal.Line(r.CutShort, 200)+")")
	}
	return reasons
}

// gaps says what keeps a tested bridge without a fault from being called conformant.
func (r *Report) gaps() []string {
	var reasons []string
	if r.Filtered && r.Sample == 0 {
		reasons = append(reasons, "filters left clauses out")
	}
	if r.Sample > 0 {
		reasons = append(reasons, fmt.Sprintf("a sample was tested: at most %d tools and cases in one check, and not the checks that send most", r.Sample))
	}
	excused := 0
	for _, result := range r.Results {
		if result.Verdict == Known && (result.Level == MUST || r.Strict) {
			excused++
		}
	}
	if excused > 0 {
		reasons = append(reasons, agree(excused, "failure is excused by the baseline", "failures are excused by the baseline"))
	}
	return reasons
}

// Blocked returns the MUSTs of claimed capabilities that could not be tested and keep a run from a verdict.
func (r *Report) Blocked() []Result { return slices.DeleteFunc(r.untestedMusts(), r.beyondFront) }

// Unseen returns the MUSTs that could not be tested and do not count, because the run counts what the front side shows.
func (r *Report) Unseen() []Result {
	return slices.DeleteFunc(r.untestedMusts(), func(result Result) bool { return !r.beyondFront(result) })
}

// beyondFront reports whether a clause needs more than the front side, in a run that counts no more.
func (r *Report) beyondFront(result Result) bool { return r.Wire == Front && result.Wire != Front }

// untestedMusts are those of claimed capabilities.
func (r *Report) untestedMusts() []Result {
	var untested []Result
	for _, result := range r.Results {
		claimed := result.Capability == "" || slices.Contains(r.Capabilities, result.Capability)
		if result.Verdict == NotTestable && result.Level == MUST && claimed {
			untested = append(untested, result)
		}
	}
	return untested
}

// With returns the results that have one of the verdicts, in report order.
func (r *Report) With(verdicts ...Verdict) []Result {
	var found []Result
	for _, result := range r.Results {
		if slices.Contains(verdicts, result.Verdict) {
			found = append(found, result)
		}
	}
	return found
}

// First is the fault to begin with: the clause of the gravest cause of a failure. Without a failure, errors of a check come
// before stale entries of the baseline, binding clauses before others, else the contract's order. False: there is none.
func (r *Report) First() (Result, bool) {
	if groups := r.Groups(); len(groups) > 0 && groups[0].Failing > 0 {
		return r.Result(groups[0].Clause)
	}
	verdicts := []Verdict{Fail, Error, Fixed}
	if r.Strict {
		verdicts = append(verdicts, Warn)
	}
	for _, v := range verdicts {
		for _, level := range r.Levels() {
			for _, result := range r.With(v) {
				if result.Level == level {
					return result, true
				}
			}
		}
	}
	return Result{}, false
}

// Result is the one of a clause.
func (r *Report) Result(id string) (Result, bool) {
	if i := slices.IndexFunc(r.Results, func(result Result) bool { return result.ID == id }); i >= 0 {
		return r.Results[i], true
	}
	return Result{}, false
}

// ByClause are the verdicts by the clause's id.
func (r *Report) ByClause() map[string]Verdict {
	verdicts := make(map[string]Verdict, len(r.Results))
	for _, result := range r.Results {
		verdicts[result.ID] = result.Verdict
	}
	return verdicts
}

// AtFault names whose fault it is that r is not conformant, each with what it is to blame for; none: nobody's.
func (r *Report) AtFault() []string {
	s := r.count()
	var all []string
	add := func(who string, n int, one, many string) {
		if n > 0 {
			all = append(all, fmt.Sprintf("%s (%s)", who, agree(n, one, many)))
		}
	}
	bridge := "the bridge"
	if r.NoBridge != "" {
		bridge = "the target, which shows no sign of a bridge"
	}
	atProxy := 0
	for _, result := range r.With(Fail) {
		if lead, ok := result.Lead(); ok && lead.Proxy != "" {
			atProxy++
		}
	}
	if failures := s.Fail - atProxy; failures > 0 && r.Strict && s.Warn > 0 {
		all = append(all, fmt.Sprintf("%s (%s, %s)", bridge, plural(failures, "failure"), plural(s.Warn, "warning")))
	} else if add(bridge, failures, "failure", "failures"); r.Strict {
		add(bridge, s.Warn, "warning", "warnings")
	}
	add("the proxy", atProxy, "failure", "failures")
	setUp := "the settings of the run"
	const above = "a failure above"
	if s.Fail+s.Error > 0 {
		setUp += ", or " + above
	}
	others := []string{"the machine", "the site", "the network", "the proxy"}
	const end = "the end of the run" // whose reason the headline has
	const lockOut = "the bridge's limit for refused callers"
	untested := map[string]int{}
	for _, result := range r.Blocked() {
		who := setUp
		for _, other := range others {
			if strings.HasPrefix(result.Message, other) {
				who = other
			}
		}
		if s.Fail+s.Error > 0 && result.BlockedBy != nil {
			who = above
		}
		if r.CutShort != "" && strings.HasPrefix(result.Message, "the run ended") {
			who = end
		}
		if strings.HasPrefix(result.Message, "the bridge refuses ") {
			who = lockOut
		}
		untested[who]++
	}
	for _, who := range append(others, end, lockOut, above, setUp) {
		add(who, untested[who], "MUST not tested", "MUSTs not tested")
	}
	add("bridgecheck itself", s.Error, "error of a check", "errors of checks")
	add("the baseline", s.Fixed+len(r.BaselineProblems), "entry that does not hold", "entries that do not hold")
	return all
}

// Areas returns the areas of the results, each once, in report order.
func (r *Report) Areas() []string {
	var areas []string
	for _, result := range r.Results {
		if !slices.Contains(areas, result.Area) {
			areas = append(areas, result.Area)
		}
	}
	return areas
}

// Levels returns the levels of the results, each once, the binding one first.
func (r *Report) Levels() []Level {
	return slices.DeleteFunc([]Level{MUST, SHOULD, MAY}, func(l Level) bool {
		return !slices.ContainsFunc(r.Results, func(result Result) bool { return result.Level == l })
	})
}

func plural(n int, noun string) string { return agree(n, noun, noun+"s") }

func agree(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
