package format

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

func TestVerifyNamesTheChange(t *testing.T) {
	edit := func(old, new string) func([]byte) []byte {
		return func(data []byte) []byte { return bytes.Replace(data, []byte(old), []byte(new), 1) }
	}
	half := func(data []byte) []byte { return data[:len(data)/2] }
	for _, c := range []struct {
		name, file string
		change     func([]byte) []byte // nil: the file is removed
		want       string
	}{
		{"a JUnit verdict changed", "junit.xml", edit(`name="verdict" value="fail"`, `name="verdict" value="pass"`), "mapping/no-params-object is pass here and fail in report.json"},
		{"a SARIF verdict changed", "report.sarif", edit(`"mapping/no-params-object": "fail"`, `"mapping/no-params-object": "pass"`), "mapping/no-params-object is pass here and fail in report.json"},
		{"a Markdown verdict changed", "summary.md", edit(`| mapping/no-params-object | MUST | ❌ fail |`, `| mapping/no-params-object | MUST | ✅ pass |`), "mapping/no-params-object is pass here and fail in report.json"},
		{"a verdict on the page changed", "report.html", edit(`data-verdict="fail"`, `data-verdict="pass"`), "mapping/no-params-object is pass here and fail in report.json"},
		{"a message on the page changed", "report.html", edit(`want {}`, `all is well`), "it was changed"},
		{"a clause was removed", "summary.md", edit("| list/answers-json | MUST | ✅ pass |\n", ""), "list/answers-json is missing"},
		{"a clause was added", "summary.md", edit("| list/answers-json |", "| list/other | MUST | ✅ pass |\n| list/answers-json |"), "list/other is not in report.json"},
		{"JUnit cut short", "junit.xml", half, "it was cut short"},
		{"SARIF cut short", "report.sarif", half, "it was cut short"},
		{"the page cut short", "report.html", half, "it was cut short"},
		{"JUnit is no XML", "junit.xml", func([]byte) []byte { return []byte("<a>") }, "the file cannot be read"},
		{"the badge says conformant", "badge.svg", edit("not conformant", "conformant"), "it was changed"},
		{"the badge is missing", "badge.json", nil, "the file is missing"},
		{"the summary was changed", "report.json", edit(`"conformant": false`, `"conformant": true`), "the summary does not count the results"},
		{"a message in report.json changed", "report.json", edit(`want {}`, `all is well`), "report.html: the file is not what report.json gives"},
		{"a member stands twice in report.json", "report.json", edit(`"verdict": "fail"`, `"verdict": "pass", "verdict": "fail"`), "report.json: the file is not written as bridgecheck writes it"},
		{"a verdict in report.json changed", "report.json", edit(`"verdict": "fail"`, `"verdict": "pass"`), "mapping/no-params-object is fail here and pass in report.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			must.Do(t, WriteAll(sample.Every(), dir))
			path := filepath.Join(dir, c.file)
			before := must.Get(os.ReadFile(path))(t)
			if c.change == nil {
				must.Do(t, os.Remove(path))
			} else {
				after := c.change(bytes.Clone(before))
				must.Assert(t, !bytes.Equal(before, after), "the change changes nothing")
				must.Do(t, os.WriteFile(path, after, 0o600))
			}
			mismatches := must.Get(Verify(dir))(t)
			var lines []string
			for _, m := range mismatches {
				lines = append(lines, m.String())
			}
			if got := strings.Join(lines, "\n"); !strings.Contains(got, c.want) || c.file != "report.json" && len(lines) != 1 {
				t.Errorf("verify says\n%s\nwant %s: %s", got, c.file, c.want)
			}
		})
	}
}

func TestVerifyRefusesWhatIsNoReport(t *testing.T) {
	must.Refuse(Verify(t.TempDir()))(t, "", "an empty directory is verified")
}

func TestFormatsShowWhatChangedSinceAnEarlierReport(t *testing.T) {
	r := sample.Every()
	r.Since = reports.Compare(r, r)
	page := form(t, "html", r)
	must.Expect(t, strings.Contains(page, "Since the earlier report") && strings.Contains(page, "Still failing"), "the page does not show the differences")
	must.Has(t, form(t, "markdown", r), "- Still failing (3): `mapping/no-params-object`, ", "the summary, which shows the differences")
}

func TestNamedListsTheFormats(t *testing.T) {
	must.Refuse(Named("pdf"))(t, `there is no report format "pdf": there are json, html, junit, `)
}

// A file of a report directory may hold anything. What a reader makes of it are verdicts, or an error.
func FuzzVerdicts(f *testing.F) {
	r := sample.Every()
	for i, format := range All() {
		var text bytes.Buffer
		must.Do(f, format.Write(&text, r))
		f.Add(i, text.Bytes())
	}
	f.Fuzz(func(t *testing.T, i int, data []byte) {
		all := All()
		format := all[((i%len(all))+len(all))%len(all)]
		if format.Verdicts == nil {
			return
		}
		if got, err := format.Verdicts(data); err == nil && len(got) > len(data) {
			t.Errorf("%s finds %d verdicts in %d bytes", format.Name, len(got), len(data))
		}
	})
}
