package format

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/russross/blackfriday/v2"

	"github.com/bridgecheck/bridgecheck/reports"
)

// ClauseDoc documents one clause of the contract; text between backquotes is shown as code.
type ClauseDoc struct {
	ID         string
	Level      reports.Level
	Area       string
	Text       string
	Source     string
	Sources    []Link // Source, one by one
	Capability string // what a bridge must claim for it to apply
	Wire       string // what a check has to see
	Why        string
	Remedy     string   // how to fix the usual cause, a line a language
	Right      string   // an exchange that keeps it
	Wrong      string   // an exchange that breaks it
	Mutants    []string // the broken bridges that prove its check
	Unchecked  bool     // this build has no check for it
}

// Link is a text and where it leads; without an address it is the text alone.
type Link struct{ Text, URL string }

// Clause explains one clause to a person at a terminal.
func (c *Console) Clause(d ClauseDoc) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n\n%s\n\n", c.paint("1", d.ID), d.Level, c.wrapped(d.Text, 0))
	check := cmp.Or(c.Again, "bridgecheck run") + " --only " + d.ID
	if d.Unchecked {
		check = "this build has none yet"
	}
	for _, part := range []struct{ name, text string }{
		{"why", d.Why}, {"right", d.Right}, {"wrong", d.Wrong}, {"fix", d.Remedy}, {"proven by", strings.Join(d.Mutants, ", ")},
		{"source", d.Source}, {"binds", "bridges that claim " + cmp.Or(d.Capability, "tools")}, {"seen from", d.Wire}, {"check", check},
	} {
		c.field(&b, part.name, part.text)
	}
	_, err := io.WriteString(c.Out, b.String())
	return err
}

// pageLinks are the links of the guide that lead elsewhere on the page than in the Markdown document.
var pageLinks = strings.NewReplacer("(#clauses)", "(#results)", "(#area-", "(#area=")

// WriteClauses writes the contract of a revision as one self-contained page: its guide, which is Markdown, and the clauses
// with the filters of report.html.
func WriteClauses(w io.Writer, revision, guide string, clauses []ClauseDoc) error {
	// The manual pages are made by blackfriday, too: one library of Markdown is in the binary.
	prose := blackfriday.Run([]byte(pageLinks.Replace(guide)),
		blackfriday.WithExtensions(blackfriday.CommonExtensions|blackfriday.AutoHeadingIDs),
		blackfriday.WithRenderer(blackfriday.NewHTMLRenderer(blackfriday.HTMLRendererParameters{Flags: blackfriday.SkipHTML})))
	filters := filterOptions{}
	for _, level := range []reports.Level{reports.MUST, reports.SHOULD, reports.MAY} {
		if slices.ContainsFunc(clauses, func(c ClauseDoc) bool { return c.Level == level }) {
			filters.Levels = append(filters.Levels, level)
		}
	}
	for _, c := range clauses {
		if !slices.Contains(filters.Areas, c.Area) {
			filters.Areas = append(filters.Areas, c.Area)
		}
		if c.Capability != "" && !slices.Contains(filters.Capabilities, c.Capability) {
			filters.Capabilities = append(filters.Capabilities, c.Capability)
		}
	}
	slices.Sort(filters.Capabilities)
	return pages.ExecuteTemplate(w, "clauses.gohtml", struct {
		document
		Revision string
		Guide    template.HTML
		Filters  filterOptions
		Clauses  []ClauseDoc
	}{newDocument("bridgecheck: the contract"), revision, template.HTML(prose), filters, clauses})
}
