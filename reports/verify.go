package reports

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
)

// Mismatch is a file of a report directory that does not agree with its report.json.
type Mismatch struct {
	File string
	Text string // one sentence
}

func (m Mismatch) String() string { return m.File + ": " + m.Text }

// Verify holds every form in a report directory against its report.json: a file that is missing, cut short or changed
// by hand is told, by its first wrong verdict where it has one. An error means that report.json itself is no report.
func Verify(dir string) ([]Mismatch, error) {
	r, err := ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		return nil, err
	}
	var wrong []Mismatch
	if r.Summary != r.summarized() {
		wrong = append(wrong, Mismatch{"report.json", "the summary does not count the results: the file was changed after the run"})
	}
	for _, form := range Forms() {
		if form.Name == "json" && len(wrong) > 0 {
			continue
		}
		text, err := verifyForm(r, form, filepath.Join(dir, form.File))
		if err != nil {
			return nil, err
		}
		if text != "" {
			wrong = append(wrong, Mismatch{form.File, text})
		}
	}
	return wrong, nil
}

// verifyForm says what is wrong with one form; empty: nothing.
func verifyForm(r *Report, form Form, path string) (string, error) {
	got, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "the file is missing", nil
	}
	if err != nil {
		return "", fmt.Errorf("verify report: %w", err)
	}
	var want bytes.Buffer
	if err := form.Write(&want, r); err != nil {
		return "", fmt.Errorf("verify %s: %w", form.File, err)
	}
	switch {
	case bytes.Equal(got, want.Bytes()):
		return "", nil
	case len(got) < want.Len() && bytes.HasPrefix(want.Bytes(), got):
		return fmt.Sprintf("the file ends after %d of %d bytes: it was cut short", len(got), want.Len()), nil
	}
	if text := wrongVerdict(r, form.Name, got); text != "" {
		return text, nil
	}
	if form.Name == "json" {
		return "the file is not written as bridgecheck writes it: it was changed after the run", nil
	}
	return "the file is not what report.json gives: it was changed, or written by another version of bridgecheck", nil
}

// wrongVerdict finds the first verdict in a form's text that is not the report's. Badges have none.
func wrongVerdict(r *Report, form string, data []byte) string {
	read, ok := verdictReaders[form]
	if !ok {
		return ""
	}
	verdicts, err := read(data)
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

// verdictReaders read the verdict on each clause back from a form.
var verdictReaders = map[string]func([]byte) (map[string]Verdict, error){
	"junit":    junitVerdicts,
	"sarif":    sarifVerdicts,
	"markdown": patternVerdicts(regexp.MustCompile(`(?m)^\| (\S+) \| (?:MUST|SHOULD|MAY) \| \S+ ([a-z-]+) \|$`)),
	"html":     patternVerdicts(regexp.MustCompile(`<details class="result [a-z-]+" id="([^"]+)" data-verdict="([a-z-]+)"`)),
}

func junitVerdicts(data []byte) (map[string]Verdict, error) {
	var suites junitSuites
	if err := xml.Unmarshal(data, &suites); err != nil {
		return nil, err
	}
	verdicts := map[string]Verdict{}
	for _, suite := range suites.Suites {
		for _, c := range suite.Cases {
			for _, p := range c.Properties {
				if p.Name == "verdict" {
					verdicts[c.Name] = Verdict(p.Value)
				}
			}
		}
	}
	return verdicts, nil
}

func sarifVerdicts(data []byte) (map[string]Verdict, error) {
	var log sarifLog
	if err := json.Unmarshal(data, &log); err != nil {
		return nil, located(data, err)
	}
	if len(log.Runs) != 1 {
		return nil, fmt.Errorf("it has %d runs, not one", len(log.Runs))
	}
	return log.Runs[0].Properties.Verdicts, nil
}

func patternVerdicts(pattern *regexp.Regexp) func([]byte) (map[string]Verdict, error) {
	return func(data []byte) (map[string]Verdict, error) {
		verdicts := map[string]Verdict{}
		for _, m := range pattern.FindAllSubmatch(data, -1) {
			verdicts[string(m[1])] = Verdict(m[2])
		}
		return verdicts, nil
	}
}
