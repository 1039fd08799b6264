// Package baseline reads a file of known failures and applies it to a report: a clause that fails as the file says is
// known, one that passes although the file says it fails is fixed. It never hides a failure that the file does not
// name, and an entry that no longer applies fails the run.
package baseline

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/internal/wholefile"
	"github.com/bridgecheck/bridgecheck/internal/yamlfile"
	"github.com/bridgecheck/bridgecheck/reports"
)

// Entry is one known failure: of a clause, or only of the clause for one tool, one identity or both.
type Entry struct {
	Clause   string
	Tool     string    // empty: every tool
	Identity string    // empty: every caller
	Reason   string    // why it is known; never empty
	Until    time.Time // the last day (UTC) on which the entry applies; zero: no end
	Line     int       // where it stands in its file, from 1
}

// File is a baseline.
type File struct {
	Path     string
	Contract string // version of the contract that the entries were written for; "": unknown
	Entries  []Entry
}

// maxFile bounds a baseline, in bytes.
const maxFile = 4 << 20

// day is how a date is written.
const day = time.DateOnly

// Read reads a baseline file. Its errors name file and line, what is wrong and what would be right.
func Read(path string) (*File, error) {
	data, err := wholefile.Read(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("read baseline: %w", err)
	}
	return Parse(path, data)
}

// Parse reads the text of a baseline; name stands for it in errors. The format:
//
//	contract: "1.0"             # optional: the version that it was written for
//	known:
//	  - clause: describe/unknown-404
//	    tool: content.get       # optional
//	    identity: outsider      # optional
//	    reason: returns 200, issue 42
//	    until: 2027-01-31       # optional
func Parse(name string, data []byte) (*File, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d MiB: no baseline", name, maxFile>>20)
	}
	var doc document
	lines, err := yamlfile.Decode(name, data, &doc)
	if err != nil {
		return nil, err
	}
	f := &File{Path: name, Contract: doc.Contract}
	if doc.Known == nil {
		return nil, fmt.Errorf("%s: the key known is missing: it should be a list of entries", name)
	}
	var wrong []error
	first := map[Entry]int{}
	for i, l := range doc.Known {
		at := fmt.Sprintf("known[%d]", i)
		e, err := l.entry()
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s:%d: %s%w", name, cmp.Or(lines[at+".until"], lines[at]), at, err))
			continue
		}
		e.Line = lines[at]
		about := Entry{Clause: e.Clause, Tool: e.Tool, Identity: e.Identity}
		if line, twice := first[about]; twice {
			wrong = append(wrong, fmt.Errorf("%s:%d: %s is here already, on line %d: merge the two", name, e.Line, e.about(), line))
		}
		first[about] = e.Line
		f.Entries = append(f.Entries, e)
	}
	return f, errors.Join(wrong...)
}

// document is a baseline as YAML has it.
type document struct {
	Contract string `yaml:"contract,omitempty"`
	Known    []line `yaml:"known"`
}

type line struct {
	Clause   string `yaml:"clause"`
	Tool     string `yaml:"tool,omitempty"`
	Identity string `yaml:"identity,omitempty"`
	Reason   string `yaml:"reason"`
	Until    string `yaml:"until,omitempty"`
}

// entry reads a line; its error continues the name of the item.
func (l line) entry() (Entry, error) {
	e := Entry{Clause: l.Clause, Tool: l.Tool, Identity: l.Identity, Reason: l.Reason}
	switch {
	case l.Clause == "":
		return e, errors.New(" has no clause")
	case l.Reason == "":
		return e, errors.New(" has no reason")
	case l.Until == "":
		return e, nil
	}
	until, err := time.Parse(day, l.Until)
	if err != nil {
		return e, fmt.Errorf(".until is %q: it should be a date such as 2027-01-31", l.Until)
	}
	e.Until = until
	return e, nil
}

// Check compares the entries' clauses with the ids of the contract. Its error names each unknown one by file and line, with
// the nearest id.
func (f *File) Check(clauses []string) error {
	var wrong []error
	for _, e := range f.Entries {
		if !slices.Contains(clauses, e.Clause) {
			wrong = append(wrong, fmt.Errorf("%s:%d: there is no clause %q%s", f.Path, e.Line, e.Clause, didYouMean(suggest.Near(e.Clause, clauses))))
		}
	}
	return errors.Join(wrong...)
}

func didYouMean(nearest string) string {
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", nearest)
}

// matches reports whether an entry is about a tool as a caller sees it.
func (e Entry) matches(tool, identity string) bool {
	return (e.Tool == "" || e.Tool == tool) && (e.Identity == "" || e.Identity == identity)
}

// about names what an entry excuses.
func (e Entry) about() string {
	if e.narrowed() == "" {
		return e.Clause
	}
	return e.Clause + " for " + e.narrowed()
}

// narrowed names the tool and the caller that an entry is about; "" where it is about all.
func (e Entry) narrowed() string {
	switch {
	case e.Tool == "" && e.Identity == "":
		return ""
	case e.Identity == "":
		return "the tool " + e.Tool
	case e.Tool == "":
		return "the caller " + e.Identity
	}
	return "the tool " + e.Tool + " as " + e.Identity
}

// From returns the baseline that excuses what fails in r, each tool and caller by an entry of its own where the check tested
// them one by one, with the messages as reasons; what was known keeps its reason. Warnings are in it where they count, under
// strict.
func From(r *reports.Report) *File {
	f := &File{Contract: r.Ledger.Version}
	for _, result := range r.Results {
		if result.Verdict != reports.Known && result.Verdict != reports.Fail && (result.Verdict != reports.Warn || !r.Strict) {
			continue
		}
		if strings.HasPrefix(result.KnownReason, notTestable) { // what keeps it from being tested has the entry
			continue
		}
		faults := findings(result, false)
		if i := slices.IndexFunc(faults, func(f reports.Finding) bool { return f.Tool == "" && f.Identity == "" }); i >= 0 {
			faults = faults[i : i+1] // which takes an entry for the whole clause: any other would say less
		}
		for _, finding := range faults {
			e := Entry{Clause: result.ID, Tool: finding.Tool, Identity: finding.Identity, Reason: reason(finding.Message)}
			switch {
			case finding.KnownReason != "":
				e.Reason = reason(finding.KnownReason)
			case result.Verdict == reports.Known && result.KnownReason != "":
				e.Reason = reason(result.KnownReason)
			}
			if !slices.ContainsFunc(f.Entries, func(o Entry) bool { return o.about() == e.about() }) {
				f.Entries = append(f.Entries, e)
			}
		}
	}
	return f
}

// reason is s as one line that a person can edit.
func reason(s string) string {
	const most = 200
	words := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " "))
	if len(words) > most {
		words = append(words[:most], '…')
	}
	if len(words) == 0 {
		return "fails, reason not written down yet"
	}
	return string(words)
}

// Write writes f as Parse reads it.
func (f *File) Write(w io.Writer) error {
	doc := document{f.Contract, []line{}}
	for _, e := range f.Entries {
		l := line{Clause: e.Clause, Tool: e.Tool, Identity: e.Identity, Reason: e.Reason}
		if !e.Until.IsZero() {
			l.Until = e.Until.Format(day)
		}
		doc.Known = append(doc.Known, l)
	}
	if _, err := io.WriteString(w, "# Known failures: each is run and must fail as it says. Give every reason, and an until date where you can.\n"); err != nil {
		return err
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(doc); err != nil {
		return fmt.Errorf("encode baseline: %w", err)
	}
	return encoder.Close()
}
