package format

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
)

// The part of JUnit that Jenkins, GitLab and GitHub viewers share. Attributes and elements stand in the
// order of Jenkins' schema.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     string       `xml:"time,attr,omitempty"`
		Suites   []JUnitSuite `xml:"testsuite"`
	}
	JUnitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr,omitempty"`
		Timestamp  string          `xml:"timestamp,attr,omitempty"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []JUnitCase     `xml:"testcase"`
	}
	JUnitCase struct {
		Name       string          `xml:"name,attr"`
		Class      string          `xml:"classname,attr"`
		Time       string          `xml:"time,attr,omitempty"`
		Properties []junitProperty `xml:"properties>property"`
		Skipped    *JUnitOutcome   `xml:"skipped"`
		Error      *JUnitOutcome   `xml:"error"`
		Failure    *JUnitOutcome   `xml:"failure"`
		Output     string          `xml:"system-out,omitempty"`
	}
	JUnitOutcome struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
)

// writeJUnit writes r as JUnit XML: one suite an area, one case a clause, and where there is one a case of no clause for
// what fails the run as a whole. Failures (and, under strict, warnings) are
// <failure>, clauses that were not tested and known failures <skipped> with the reason, errors of a check <error>.
// A warning is a passing case with its text in <system-out>; each case has its verdict as a property.
func writeJUnit(w io.Writer, r *reports.Report) error {
	var suites []JUnitSuite
	for _, area := range r.Areas() {
		suites = append(suites, junitArea(r, area))
	}
	if whole := junitWhole(r); whole.Tests > 0 {
		suites = append(suites, whole)
	}
	return EncodeJUnit(w, "bridgecheck", seconds(float64(r.DurationMS)), suites...)
}

// EncodeJUnit writes suites as an XML document, indented. took is in seconds; empty: nobody measured it.
func EncodeJUnit(w io.Writer, name, took string, suites ...JUnitSuite) error {
	all := junitSuites{Name: name, Time: took, Suites: suites}
	for _, suite := range suites {
		all.Tests += suite.Tests
		all.Failures += suite.Failures
		all.Errors += suite.Errors
		all.Skipped += suite.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return fmt.Errorf("encode JUnit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func junitArea(r *reports.Report, area string) JUnitSuite {
	suite := JUnitSuite{
		Name:      "bridgecheck." + area,
		Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05"),
		Properties: []junitProperty{
			{"target", r.Target.URL},
			{"ledger", r.Ledger.Name()},
			{"state", string(r.State())},
		},
	}
	var ms float64
	for _, result := range r.Results {
		if result.Area != area {
			continue
		}
		c := junitCaseOf(result, r.Strict)
		suite.Tests++
		switch {
		case c.Failure != nil:
			suite.Failures++
		case c.Error != nil:
			suite.Errors++
		case c.Skipped != nil:
			suite.Skipped++
		}
		ms += result.DurationMS
		suite.Cases = append(suite.Cases, c)
	}
	suite.Time = seconds(ms)
	return suite
}

// junitWhole has what fails a run beside its clauses: entries of the baseline that do not hold, and its early end.
func junitWhole(r *reports.Report) JUnitSuite {
	const name = "bridgecheck.run"
	suite := JUnitSuite{Name: name, Time: seconds(0), Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05")}
	for _, p := range r.BaselineProblems {
		text := terminal.VisibleLine(p.Text, 1000)
		suite.Cases = append(suite.Cases, JUnitCase{Name: fmt.Sprintf("baseline %s:%d %s", p.File, p.Line, p.Clause), Class: name, Time: seconds(0),
			Failure: &JUnitOutcome{Message: text, Type: "baseline", Text: text}})
		suite.Failures++
	}
	if r.CutShort != "" {
		text := "the run was cut short: " + terminal.VisibleLine(r.CutShort, 1000)
		suite.Cases = append(suite.Cases, JUnitCase{Name: "complete", Class: name, Time: seconds(0), Error: &JUnitOutcome{Message: text, Type: "cut-short", Text: text}})
		suite.Errors++
	}
	suite.Tests = len(suite.Cases)
	return suite
}

func junitCaseOf(r reports.Result, strict bool) JUnitCase {
	c := JUnitCase{
		Name: r.ID, Class: "bridgecheck." + r.Area, Time: seconds(r.DurationMS),
		Properties: []junitProperty{{"verdict", string(r.Verdict)}, {"level", string(r.Level)}},
	}
	outcome := &JUnitOutcome{Message: terminal.VisibleLine(r.Message, 1000), Type: string(r.Verdict)}
	switch r.Verdict {
	case reports.Fail, reports.Fixed:
		c.Failure, outcome.Text = outcome, details(r)
	case reports.Error:
		c.Error, outcome.Text = outcome, details(r)
	case reports.Warn:
		if strict {
			c.Failure, outcome.Text = outcome, details(r)
		} else {
			c.Output = "warning: " + details(r)
		}
	case reports.Known:
		outcome.Message = terminal.VisibleLine("known failure: "+r.KnownReason, 1000)
		c.Skipped, c.Output = outcome, details(r)
	case reports.NotApplicable, reports.NotTestable:
		outcome.Message = terminal.VisibleLine(string(r.Verdict)+": "+r.Message, 1000)
		c.Skipped = outcome
	}
	return c
}

// details is all that a person needs to act on a result, as plain text.
func details(r reports.Result) string {
	var b strings.Builder
	for _, part := range []struct{ name, text string }{
		{"", r.Message},
		{"clause", fmt.Sprintf("%s %s: %s", r.ID, r.Level, r.Text)},
		{"expected", r.Expected},
		{"actual", r.Actual},
		{"known", r.KnownReason},
		{"to do", r.Remedy},
		{"repeat", r.Curl},
		{"evidence", evidenceAt(r)},
	} {
		switch {
		case part.text == "":
		case part.name == "":
			fmt.Fprintln(&b, terminal.Clip(part.text, 4<<10))
		default:
			fmt.Fprintf(&b, "%s: %s\n", part.name, terminal.Clip(part.text, 4<<10))
		}
	}
	return b.String()
}

// evidenceAt is the place in a report directory where r's evidence can be read.
func evidenceAt(r reports.Result) string { return "report.html#" + r.ID }

func seconds(ms float64) string { return fmt.Sprintf("%.3f", ms/1000) }

// junitVerdicts reads the verdicts back from the properties of the cases.
func junitVerdicts(data []byte) (map[string]reports.Verdict, error) {
	var suites junitSuites
	if err := xml.Unmarshal(data, &suites); err != nil {
		return nil, err
	}
	verdicts := map[string]reports.Verdict{}
	for _, suite := range suites.Suites {
		for _, c := range suite.Cases {
			for _, p := range c.Properties {
				if p.Name == "verdict" {
					verdicts[c.Name] = reports.Verdict(p.Value)
				}
			}
		}
	}
	return verdicts, nil
}
