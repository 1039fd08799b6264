package baseline

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"bridgecheck/reports"
)

// Apply turns the failures and warnings of r that f excuses into known, and passes that it does not expect into fixed.
// Entries that are expired by now, or that match nothing which fails, become r's baseline problems. Clauses that the
// run left out or could not judge prove nothing about their entries. r is counted anew.
func (f *File) Apply(r *reports.Report, now time.Time) {
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
			result.Verdict = reports.Fixed
			result.Message = fmt.Sprintf("%s:%d says that this fails (%s), and it passes: take the entry out", f.Path, excuses[0].Line, excuses[0].Reason)
		case reports.NotApplicable:
			for _, e := range excuses {
				f.problem(r, e, "the clause does not apply to what the bridge claims: take the entry out")
			}
		}
	}
	r.Summarize()
}

// excuse makes a failing result known if every one of its faults is excused, and else leaves it as it is, with what is
// new as its message.
func (f *File) excuse(r *reports.Report, result *reports.Result, excuses []Entry) {
	used := make([]bool, len(excuses))
	var reasons []string
	var fresh []reports.Finding
	faults := findings(*result, true)
	for _, fault := range faults {
		excused := false
		for i, e := range excuses {
			if (e.Tool == "" || e.Tool == fault.Tool) && (e.Identity == "" || e.Identity == fault.Identity) {
				if !used[i] {
					reasons = append(reasons, e.Reason)
				}
				used[i], excused = true, true
			}
		}
		if !excused {
			fresh = append(fresh, fault)
		}
	}
	for i, e := range excuses {
		if !used[i] {
			f.problem(r, e, fmt.Sprintf("%s does not fail in this way: correct the entry or take it out", e.about()))
		}
	}
	if len(fresh) > 0 {
		if known := len(faults) - len(fresh); known > 0 {
			result.Message = fmt.Sprintf("%s (not in the baseline; other faults that are: %d)", fresh[0].Message, known)
		}
		return
	}
	result.Verdict = reports.Known
	result.KnownReason = strings.Join(reasons, "; ")
}

func (f *File) problem(r *reports.Report, e Entry, text string) {
	r.BaselineProblems = append(r.BaselineProblems, reports.BaselineProblem{File: f.Path, Line: e.Line, Clause: e.Clause, Text: text})
}

// findings gives a result's faults. A check that tells of none ended at its first fault: that is one, and if derive is
// set its tool and identity are those of the last exchange.
func findings(r reports.Result, derive bool) []reports.Finding {
	if len(r.Findings) > 0 {
		return r.Findings
	}
	fault := reports.Finding{Message: r.Message}
	if n := len(r.Evidence); derive && n > 0 {
		last := r.Evidence[n-1]
		fault.Identity, fault.Tool = last.Identity, toolOf(last.Request)
	}
	return []reports.Finding{fault}
}

// toolOf gives the tool that a request names: in the query (describe) or in its JSON body (invoke).
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
