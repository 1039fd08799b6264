package engine

import (
	"cmp"
	"strings"

	"github.com/bridgecheck/bridgecheck/reports"
)

// Account is what a developer needs to fix a failure, in lines: the clause, what was expected and what came, the curl line
// that repeats the request, the remedy, and where to read on.
func Account(r reports.Result) string {
	return labelled(r.Text, [][2]string{{"", r.Message}, {"expected ", r.Expected}, {"got      ", r.Actual}, {"repeat   ", r.Curl},
		{"fix      ", r.Remedy}, {"explain  ", "bridgecheck checks explain " + r.ID}})
}

// labelled is a text with a line below it for each part that is not empty.
func labelled(text string, parts [][2]string) string {
	for _, part := range parts {
		if part[1] != "" {
			text += "\n  " + part[0] + strings.ReplaceAll(part[1], "\n", "\n           ")
		}
	}
	return text
}

// maxNamed bounds the clauses that Verdict names.
const maxNamed = 10

// notReached is the message of a clause that the end of the run left untested.
const notReached = "the run ended before this was tested"

// Verdict is the headline of a report, and below it the MUSTs that could not be tested where they are why there is no verdict.
func Verdict(report *reports.Report) string {
	var b strings.Builder
	b.WriteString(report.Headline())
	if report.ExitCode() == 0 {
		return b.String()
	}
	named := 0
	for _, r := range report.Results {
		if r.Verdict != reports.NotTestable || r.Level != reports.MUST || r.Message == notReached {
			continue
		}
		if named++; named > maxNamed {
			b.WriteString("\n  and others")
			break
		}
		b.WriteString("\n  " + r.ID + ": " + r.Message)
	}
	return b.String()
}

// Finding is a part of what is wrong, as a Ginkgo report entry shows it.
type Finding struct {
	Clause, Subject, Expected, Actual, Curl, Remedy string
}

// String is the finding in a few lines.
func (f Finding) String() string {
	return labelled(f.Clause+": "+f.Subject, [][2]string{{"expected ", f.Expected}, {"got      ", f.Actual}, {"repeat   ", f.Curl}, {"fix      ", f.Remedy}})
}

// Found lists what is wrong, the finding to read first with the curl line and the remedy.
func Found(r reports.Result) []Finding {
	var all []Finding
	for i, f := range r.Findings {
		found := Finding{Clause: r.ID, Subject: f.Subject, Expected: f.Expected, Actual: f.Actual, Remedy: r.Remedy}
		found.Subject = cmp.Or(found.Subject, f.Message)
		if f.Request != nil && *f.Request < len(r.Evidence) {
			found.Curl = r.Evidence[*f.Request].Curl()
		}
		if i > 0 {
			found.Remedy = ""
		}
		all = append(all, found)
	}
	return all
}
