// Package format writes a report for people and tools: report.json, a page, JUnit, SARIF, Markdown, badges, annotations
// of a CI job and the console. All lists the formats; WriteAll writes those of a report directory, and Verify reads their
// verdicts back. Each format is a view of a reports.Report: none decides a verdict. Every text of a report may come
// from a bridge: all formats but report.json write an escaped copy (reports.Report.Escaped), and each adds the escapes of its
// own syntax. Beside the formats there are pages on several reports (Tabulate, WriteIndex) and on
// the contract itself (WriteClauses).
package format

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/wholefile"
	"github.com/bridgecheck/bridgecheck/reports"
)

// Format is one way to write a report.
type Format struct {
	Name      string // as `report convert --to` has it
	File      string // its name in a report directory; empty: it is not kept there
	MediaType string
	Write     func(io.Writer, *reports.Report) error
	Verdicts  func([]byte) (map[string]reports.Verdict, error) // reads the verdict on each clause back, for Verify
	Brief     bool                                             // it shows a part of the clauses, so that Verdicts is nil
}

// All lists every format, report.json first. A new format is one entry here and one row of docs/report-formats.md.
func All() []Format {
	return []Format{
		{Name: "json", File: "report.json", MediaType: "application/json", Write: reports.WriteJSON, Verdicts: jsonVerdicts},
		{Name: "html", File: "report.html", MediaType: "text/html; charset=utf-8", Write: escaped(writeHTML), Verdicts: htmlVerdicts},
		{Name: "junit", File: "junit.xml", MediaType: "application/xml", Write: escaped(writeJUnit), Verdicts: junitVerdicts},
		{Name: "sarif", File: "report.sarif", MediaType: "application/sarif+json", Write: escaped(writeSARIF), Verdicts: sarifVerdicts},
		{Name: "markdown", File: "summary.md", MediaType: "text/markdown; charset=utf-8", Write: escaped(writeMarkdown), Verdicts: markdownVerdicts},
		{Name: "badge-svg", File: "badge.svg", MediaType: "image/svg+xml", Write: escaped(writeBadgeSVG), Brief: true},
		{Name: "badge-json", File: "badge.json", MediaType: "application/json", Write: escaped(writeBadgeJSON), Brief: true},
		{Name: "annotations", MediaType: "text/plain; charset=utf-8", Write: escaped(writeAnnotations), Brief: true},
		{Name: "console", MediaType: "text/plain; charset=utf-8", Write: escaped(writeConsole), Brief: true},
	}
}

// escaped lets a writer see no text that is not escaped.
func escaped(write func(io.Writer, *reports.Report) error) func(io.Writer, *reports.Report) error {
	return func(w io.Writer, r *reports.Report) error { return write(w, r.Escaped()) }
}

// Names lists the names of all formats.
func Names() []string {
	var names []string
	for _, f := range All() {
		names = append(names, f.Name)
	}
	return names
}

// Named finds a format by its name. The error lists the names.
func Named(name string) (Format, error) {
	for _, f := range All() {
		if f.Name == name {
			return f, nil
		}
	}
	return Format{}, fmt.Errorf("there is no report format %q: there are %s", name, strings.Join(Names(), ", "))
}

// withFile lists the formats that a report directory has.
func withFile() []Format {
	return slices.DeleteFunc(All(), func(f Format) bool { return f.File == "" })
}

// WriteAll writes r into dir, which it makes where it is missing, in every format that has a file. All files come from
// report.json as it was written, so that they agree to the byte; each appears whole or not at all.
func WriteAll(r *reports.Report, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make report directory: %w", err)
	}
	written, err := r.Canonical()
	if err != nil {
		return err
	}
	// Two runs that end at the same time leave the files of one of them.
	defer wholefile.Lock(dir)()
	if err := r.WriteBodies(dir); err != nil { // which report.json names
		return err
	}
	for _, f := range withFile() {
		var b bytes.Buffer
		if err := f.Write(&b, written); err != nil {
			return fmt.Errorf("write %s: %w", f.File, err)
		}
		if err := wholefile.Write(filepath.Join(dir, f.File), b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", f.File, err)
		}
	}
	return nil
}
