package reports

import (
	"io"
	"slices"
)

// ClauseDoc is all that there is to tell of one clause of the ledger; text between backquotes is shown as code.
type ClauseDoc struct {
	ID         string   `json:"id"`
	Level      Level    `json:"level"`
	Area       string   `json:"area"`
	Text       string   `json:"text"`
	Source     string   `json:"source"`
	Capability string   `json:"capability,omitempty"` // what a bridge must claim for it to apply
	Wire       string   `json:"wire,omitempty"`       // what a check has to see
	Why        string   `json:"why,omitempty"`
	Remedy     string   `json:"remedy,omitempty"`
	Right      string   `json:"right,omitempty"`   // an exchange that keeps it
	Wrong      string   `json:"wrong,omitempty"`   // an exchange that breaks it
	Mutants    []string `json:"mutants,omitempty"` // the broken bridges that prove its check
	Unchecked  bool     `json:"unchecked,omitempty"`
}

// WriteClauses writes the ledger of a revision as one self-contained page with the filters of report.html.
func WriteClauses(w io.Writer, revision string, clauses []ClauseDoc) error {
	filters := filterOptions{}
	for _, level := range []Level{MUST, SHOULD, MAY} {
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
	return reportPage.ExecuteTemplate(w, "clauses.gohtml", struct {
		document
		Revision string
		Filters  filterOptions
		Clauses  []ClauseDoc
	}{newDocument("bridgecheck: the contract, clause by clause"), revision, filters, clauses})
}
