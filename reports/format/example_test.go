package format_test

import (
	"os"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/format"
)

// WriteAll writes a report directory; a single format is written by its name.
func Example() {
	report := &reports.Report{Results: []reports.Result{{ID: "list/names-unique", Level: reports.MUST, Area: "list", Verdict: reports.Pass}}}
	badge, err := format.Named("badge-json")
	if err != nil {
		panic(err)
	}
	if err := badge.Write(os.Stdout, report); err != nil {
		panic(err)
	}
	// Output: {"schemaVersion":1,"label":"MCP tools contract","message":"conformant","color":"#1a7f37"}
}
