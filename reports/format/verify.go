package format

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
)

// Mismatch is a file of a report directory that does not agree with its report.json, and why.
type Mismatch struct {
	File string
	Text string // one sentence
}

func (m Mismatch) String() string { return m.File + ": " + m.Text }

// Verify compares every file of a report directory with its report.json, and reports each that is missing, cut short or
// changed by hand, with its first wrong verdict where it has one. An error means that report.json itself is no report.
func Verify(dir string) ([]Mismatch, error) {
	r, err := reports.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		return nil, err
	}
	var wrong []Mismatch
	if r.Summary != r.Counted() {
		wrong = append(wrong, Mismatch{"report.json", "the summary does not count the results: the file was changed after the run"})
	}
	for _, f := range withFile() {
		if f.Name == "json" && len(wrong) > 0 {
			continue
		}
		text, err := verifyFile(r, f, filepath.Join(dir, f.File))
		if err != nil {
			return nil, err
		}
		if text != "" {
			wrong = append(wrong, Mismatch{f.File, text})
		}
	}
	return wrong, nil
}

// verifyFile says what is wrong with one file; empty: nothing.
func verifyFile(r *reports.Report, f Format, path string) (string, error) {
	got, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "the file is missing", nil
	}
	if err != nil {
		return "", fmt.Errorf("verify report: %w", err)
	}
	var want bytes.Buffer
	if err := f.Write(&want, r); err != nil {
		return "", fmt.Errorf("verify %s: %w", f.File, err)
	}
	switch {
	case bytes.Equal(got, want.Bytes()):
		return "", nil
	case len(got) < want.Len() && bytes.HasPrefix(want.Bytes(), got):
		return fmt.Sprintf("the file ends after %d of %d bytes: it was cut short", len(got), want.Len()), nil
	}
	if text := wrongVerdict(r, f, got); text != "" {
		return text, nil
	}
	if f.Name == "json" {
		return "the file is not written as bridgecheck writes it: it was changed after the run", nil
	}
	return "the file is not what report.json gives: it was changed, or written by another version of bridgecheck", nil
}

// wrongVerdict finds the first verdict in a file that is not the report's; a brief format has none.
func wrongVerdict(r *reports.Report, f Format, data []byte) string {
	if f.Verdicts == nil {
		return ""
	}
	verdicts, err := f.Verdicts(data)
	if err != nil {
		return "the file cannot be read: " + err.Error()
	}
	for _, result := range r.Results {
		switch got, ok := verdicts[result.ID]; {
		case !ok:
			return result.ID + " is missing"
		case got != result.Verdict:
			return fmt.Sprintf("%s is %s here and %s in report.json", result.ID, got, result.Verdict)
		}
		delete(verdicts, result.ID)
	}
	for id := range verdicts {
		return terminal.Line(id, 200) + " is not in report.json"
	}
	return ""
}

// patternVerdicts reads verdicts by an expression whose groups are the clause and its verdict.
func patternVerdicts(pattern *regexp.Regexp) func([]byte) (map[string]reports.Verdict, error) {
	return func(data []byte) (map[string]reports.Verdict, error) {
		verdicts := map[string]reports.Verdict{}
		for _, m := range pattern.FindAllSubmatch(data, -1) {
			verdicts[string(m[1])] = reports.Verdict(m[2])
		}
		return verdicts, nil
	}
}

// jsonVerdicts reads the verdicts of report.json.
func jsonVerdicts(data []byte) (map[string]reports.Verdict, error) {
	r, err := reports.Parse(data)
	if err != nil {
		return nil, err
	}
	return r.ByClause(), nil
}
