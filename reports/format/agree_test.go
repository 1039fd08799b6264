package format

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/chrome"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

// TestFormatsAgree writes one report with every verdict in it in every format, and reads the verdicts back: those of
// each clause where the format has them, the outcome and the counts where it does not.
func TestFormatsAgree(t *testing.T) {
	r := must.Get(sample.Every().Canonical())(t)
	for _, v := range reports.Verdicts() {
		must.Expect(t, r.Summary.Count(v) != 0, "the report has no %s: it proves nothing about it", v)
	}
	s := r.Summary
	counts := func(got reports.Summary) error {
		if got != s {
			return fmt.Errorf("it counts %+v", got)
		}
		return nil
	}
	// What a format shows beside the verdict on each clause.
	more := map[string]func(text string) error{
		"json": func(text string) error {
			var got reports.Report
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				return err
			}
			return counts(got.Summary)
		},
		"junit": func(text string) error {
			var got junitSuites
			if err := xml.Unmarshal([]byte(text), &got); err != nil {
				return err
			}
			if got.Tests != s.Total || got.Failures != s.Fail+s.Fixed || got.Errors != s.Error || got.Skipped != s.Known+s.NotApplicable+s.NotTestable {
				return fmt.Errorf("it counts %d tests, %d failures, %d errors, %d skipped", got.Tests, got.Failures, got.Errors, got.Skipped)
			}
			return nil
		},
		"sarif": func(text string) error {
			var got sarifLog
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				return err
			}
			return counts(got.Runs[0].Properties.Summary)
		},
		"markdown": holds(r.State(), fmt.Sprintf("| %d | %d | %d | %d | %d | %d | %d | %d | %d |", s.Fail, s.Error, s.Fixed, s.Warn, s.Known, s.NotTestable, s.Pass, s.NotApplicable, s.Total)),
		"html":     holds(r.State(), fmt.Sprintf(`<b data-count="total">%d</b>`, s.Total), fmt.Sprintf(`<b data-count="fail">%d</b>`, s.Fail)),

		"badge-svg":   holds(r.State(), fmt.Sprintf("(%d of %d)", s.Pass, s.Pass+s.Fail+s.Warn+s.Known+s.Fixed)),
		"badge-json":  holds(r.State(), fmt.Sprintf("(%d of %d)", s.Pass, s.Pass+s.Fail+s.Warn+s.Known+s.Fixed)),
		"console":     holds(r.State(), fmt.Sprintf("%d passed, %d failed, %d error, %d fixed, %d warned, %d known, %d not testable, %d not\napplicable", s.Pass, s.Fail, s.Error, s.Fixed, s.Warn, s.Known, s.NotTestable, s.NotApplicable)),
		"annotations": holds(r.State(), "::error title=mapping/no-params-object (MUST)::", "::warning title=list/description-not-empty (SHOULD)::"),
	}
	for _, f := range All() {
		t.Run(f.Name, func(t *testing.T) {
			text := form(t, f.Name, r)
			if f.Verdicts != nil {
				got, err := f.Verdicts([]byte(text))
				must.Expect(t, err == nil && maps.Equal(got, r.ByClause()), "it has the verdicts %v (%v), report.json %v", got, err, r.ByClause())
			}
			must.Assert(t, more[f.Name] != nil,
				"nothing is checked beside the verdicts: add `%q: holds(r.State(), …),` to the map above, with what it counts", f.Name)
			err := more[f.Name](text)
			must.Expect(t, err == nil, "%v", err)
		})
	}
	t.Run("html in a browser", func(t *testing.T) { pageAgrees(t, r) })
}

// holds checks that a text says the state of a run and has each of some parts.
func holds(state reports.State, parts ...string) func(string) error {
	return func(text string) error {
		for _, part := range append(parts, string(state)) {
			if !strings.Contains(text, part) {
				return fmt.Errorf("it lacks %q:\n%s", part, text)
			}
		}
		return nil
	}
}

// pageAgrees compares what a reader of the page sees with r.
func pageAgrees(t *testing.T, r *reports.Report) {
	window := chrome.Start(t)
	path := filepath.Join(t.TempDir(), "report.html")
	must.Do(t, os.WriteFile(path, []byte(form(t, "html", r)), 0o600))
	b := chrome.Open(t, window, "file://"+path, 1280, 900)
	counts := chrome.Eval[map[string]int](b, `Object.fromEntries([...document.querySelectorAll('[data-count]')].map(e => [e.dataset.count, Number(e.textContent)]))`)
	for _, v := range reports.Verdicts() {
		must.Expect(t, counts[string(v)] == r.Summary.Count(v),
			"the page counts %d %s, report.json %d", counts[string(v)], v, r.Summary.Count(v))
	}
	// The words of each row, not its attributes.
	shown := chrome.Eval[map[string]string](b, `Object.fromEntries([...document.querySelectorAll('details.result > summary')].map(e => [e.querySelector('.id').innerText, e.querySelector('.tag').innerText]))`)
	verdicts := map[string]reports.Verdict{}
	for id, word := range shown {
		for _, v := range reports.Verdicts() {
			if word == words[v] {
				verdicts[id] = v
			}
		}
	}
	must.Expect(t, maps.Equal(verdicts, r.ByClause()), "the page shows %v, report.json has %v", verdicts, r.ByClause())
	must.Equal(t, chrome.Eval[string](b, `document.querySelector('h1').textContent`), string(r.State()), "the page's heading")
}

// TestEveryFormatIsComplete names what the entry of a format lacks, and the line to add.
func TestEveryFormatIsComplete(t *testing.T) {
	const doc = "../../docs/report-formats.md"
	text := must.Get(os.ReadFile(doc))(t)
	names, files := map[string]bool{}, map[string]bool{}
	for _, f := range All() {
		must.Expect(t, f.Name != "" && f.Write != nil && f.MediaType != "",
			"format %q: its entry in All, format.go, needs Name, Write and MediaType, for example `MediaType: \"text/plain; charset=utf-8\"`", f.Name)
		must.Expect(t, !names[f.Name] && (f.File == "" || !files[f.File]),
			"format %q: its name or its file %q is another format's, too", f.Name, f.File)
		names[f.Name], files[f.File] = true, true
		if (f.Verdicts == nil) != f.Brief {
			t.Errorf("format %q: add `Verdicts: %sVerdicts` to its entry in All, a function that reads the verdict on each clause back; or `Brief: true` if it does not show every clause", f.Name, strings.ReplaceAll(f.Name, "-", ""))
		}
		file := "–"
		if f.File != "" {
			file = "`" + f.File + "`"
		}
		if row := fmt.Sprintf("| `%s` | %s | `%s` |", f.Name, file, f.MediaType); !strings.Contains(string(text), row) {
			t.Errorf("format %q: add this row to %s: %s what it is for |", f.Name, strings.TrimPrefix(doc, "../../"), row)
		}
	}
	must.Equal(t, strings.Count(string(text), "\n| `"), len(All()), "formats of %s", doc)
}
