package engine

import (
	"strings"

	"github.com/bridgecheck/bridgecheck/reports"
)

// Account is what a developer needs to fix a failure, in lines: the clause, what was expected and what came, the curl line
// that repeats the request, the remedy, and where to read on.
func Account(r reports.Result) string {
	var b strings.Builder
	b.WriteString(r.Text)
	for _, part := range []struct{ label, text string }{
		{"", r.Message}, {"expected ", r.Expected}, {"got      ", r.Actual}, {"repeat   ", r.Curl},
		{"fix      ", strings.ReplaceAll(r.Remedy, "\n", "\n           ")}, {"explain  ", "bridgecheck checks explain " + r.ID},
	} {
		if part.text != "" {
			b.WriteString("\n  " + part.label + part.text)
		}
	}
	return b.String()
}
