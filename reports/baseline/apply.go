package baseline

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/reports"
)

// Apply turns the failures and warnings of r that f excuses into known, and passes that it does not expect into fixed.
// Entries that are expired by now, or that match nothing which fails, become r's baseline problems. Clauses that the
// run left out or could not test prove nothing about their entries, and a target that is no bridge proves nothing about
// any. r is counted again.
func (f *File) Apply(r *reports.Report, now time.Time) {
	if r.NoBridge != "" {
		return
	}
	entries := map[string][]Entry{}
	for _, e := range f.Entries {
		if !e.Until.IsZero() && now.UTC().Format(day) > e.Until.Format(day) {
			f.problem(r, e, fmt.Sprintf("the entry expired on %s (%s): fix the bridge, or give it a new date", e.Until.Format(day), e.Reason))
			continue
		}
		entries[e.Clause] = append(entries[e.Clause], e)
	}
	for i := range r.Results {
		result := &r.Results[i]
		excuses := entries[result.ID]
		if len(excuses) == 0 {
			continue
		}
		switch result.Verdict {
		case reports.Fail, reports.Warn:
			f.excuse(r, result, excuses)
		case reports.Pass:
			f.repaired(result, excuses)
		case reports.NotApplicable:
			for _, e := range excuses {
				f.problem(r, e, "the clause does not apply to what the bridge claims: remove the entry")
			}
		}
	}
	untestable(r)
	r.Summarize()
}

// notTestable begins the reason of a clause that is known because another keeps it from being tested.
const notTestable = "not testable: "

// untestable makes known what could not be tested because of a clause that the baseline excuses: else a gate with the baseline would
// have no verdict.
func untestable(r *reports.Report) {
	for again := true; again; { // what is known may keep others from being tested
		again = false
		for i := range r.Results {
			result := &r.Results[i]
			if result.Verdict != reports.NotTestable {
				continue
			}
			if culprit := knownCulprit(r, *result); culprit != "" {
				result.Verdict, result.KnownReason, again = reports.Known, notTestable+"the baseline excuses "+culprit, true
			}
		}
	}
}

func knownCulprit(r *reports.Report, of reports.Result) string {
	for _, glob := range of.BlockedBy {
		for _, other := range r.Results {
			if ok, _ := path.Match(glob, other.ID); ok && other.Verdict == reports.Known && other.ID != of.ID {
				return other.ID
			}
		}
	}
	return ""
}

// excuse makes a failing result known if every one of its faults is excused; an entry about a tool or a caller that was tested and
// passes is a problem of the baseline. Where there are other faults it leaves the result as it is, with those as its message.
func (f *File) excuse(r *reports.Report, result *reports.Result, excuses []Entry) {
	used := make([]bool, len(excuses))
	var reasons []string
	var fresh []reports.Finding
	faults := findings(*result, true)
	for n, fault := range faults {
		excused := false
		for i, e := range excuses {
			if !e.matches(fault.Tool, fault.Identity) {
				continue
			}
			if !used[i] {
				reasons = append(reasons, e.Reason)
			}
			used[i], excused = true, true
			if n < len(result.Findings) {
				result.Findings[n].KnownReason = e.Reason
			}
		}
		if !excused {
			fresh = append(fresh, fault)
		}
	}
	for i, e := range excuses {
		tested := slices.ContainsFunc(result.Tested, func(p reports.Part) bool { return e.matches(p.Tool, p.Identity) })
		switch {
		case used[i]:
		case tested:
			f.problem(r, e, e.about()+" no longer fails: remove the entry")
		case len(result.Tested) > 0:
			f.problem(r, e, e.about()+" was not tested, because there is none: correct or remove the entry")
		default:
			f.problem(r, e, e.about()+" does not fail in this way: correct or remove the entry")
		}
	}
	switch {
	case len(fresh) > 0:
		if known := len(faults) - len(fresh); known > 0 {
			result.Qualify(fmt.Sprintf("not in the baseline%s; other faults that are: %d", alsoFresh(fresh[1:]), known))
		}
	default:
		result.Verdict = reports.Known
	}
	if len(fresh) == 0 {
		result.KnownReason = strings.Join(reasons, "; ")
	}
}

// alsoFresh counts the faults beside the first that no entry excuses, with the tools of some.
func alsoFresh(fresh []reports.Finding) string {
	const named = 5
	var tools []string
	for _, fault := range fresh[:min(len(fresh), named)] {
		if fault.Tool != "" {
			tools = append(tools, fmt.Sprintf("%q", fault.Tool))
		}
	}
	switch {
	case len(fresh) == 0:
		return ""
	case len(tools) == 0:
		return fmt.Sprintf(", like %d more", len(fresh))
	case len(fresh) > len(tools):
		tools = append(tools, "…")
	}
	return fmt.Sprintf(", like %d more: %s", len(fresh), strings.Join(tools, ", "))
}

// repaired makes a result fixed: what the entries say does not fail.
func (f *File) repaired(result *reports.Result, entries []Entry) {
	const named = 5
	var lines, about []string
	for _, e := range entries[:min(len(entries), named)] {
		lines = append(lines, fmt.Sprintf("%s:%d", f.Path, e.Line))
		about = append(about, e.narrowed())
	}
	if over := len(entries) - named; over > 0 {
		lines = append(lines, fmt.Sprintf("%d more", over))
	}
	what := strings.Join(slices.DeleteFunc(about, func(s string) bool { return s == "" }), ", ")
	if what != "" {
		what = " for " + what
	}
	says, entry := "says", "entry"
	if len(entries) > 1 {
		says, entry = "say", "entries"
	}
	if result.Verdict == reports.Pass {
		result.Remedy = "" // of what is no fault any more
	}
	result.Verdict = reports.Fixed
	result.Message = fmt.Sprintf("%s %s that this fails%s (%s), and it passes: remove the %s",
		strings.Join(lines, " and "), says, what, entries[0].Reason, entry)
}

func (f *File) problem(r *reports.Report, e Entry, text string) {
	r.BaselineProblems = append(r.BaselineProblems, reports.BaselineProblem{File: f.Path, Line: e.Line, Clause: e.Clause, Text: text})
}

// findings returns a result's faults. A check that tests all tools and callers together has one fault without either: if
// derive is set, they are those of the exchange that it blames, or else of the last one.
func findings(r reports.Result, derive bool) []reports.Finding {
	faults := slices.Clone(r.Findings)
	if len(faults) == 0 {
		faults = []reports.Finding{{Message: r.Message}}
	}
	only := &faults[0]
	if len(faults) > 1 || only.Tool+only.Identity+only.Row != "" || len(r.Tested) > 0 || !derive {
		return faults
	}
	shown, ok := r.Blamed()
	if n := len(r.Evidence); !ok && n > 0 {
		shown = r.Evidence[n-1]
	}
	only.Identity, only.Tool = shown.Identity, toolOf(shown.Request)
	return faults
}

// toolOf returns the tool that a request names: in the query (describe) or in its JSON body (invoke).
func toolOf(m reports.Message) string {
	if u, err := url.Parse(m.URL); err == nil && u.Query().Has("name") {
		return u.Query().Get("name")
	}
	var body struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal([]byte(m.Body), &body) // a body that names no tool leaves it empty
	return body.Name
}
