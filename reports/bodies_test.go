package reports_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/format"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

// withLongBody is a report whose blamed request has a body that report.json does not hold whole.
func withLongBody(body []byte) *reports.Report {
	r := sample.Every()
	result := r.With(reports.Fail)[0]
	for i := range r.Results {
		if r.Results[i].ID == result.ID {
			r.Results[i].Evidence = []reports.Exchange{{Identity: "anonymous", Request: reports.Message{
				Method: "POST", URL: "http://127.0.0.1:1/mcp/tools/invoke", Body: string(body[:16]), Truncated: len(body) - 16, Whole: body}, Drupal: []reports.Upstream{}}}
			r.Results[i].Findings = []reports.Finding{{Request: new(0), Subject: "invoke", Expected: "200", Actual: "500"}}
			r.Results[i].Conclude()
		}
	}
	return r
}

func TestALongBodyIsRepeatedFromItsFile(t *testing.T) {
	dir := t.TempDir()
	body := bytes.Repeat([]byte{'x', 0, 0xff, '\n', '\''}, 40<<10)
	must.Do(t, format.WriteAll(withLongBody(body), dir))
	r := must.Get(reports.ReadFile(dir))(t)
	blamed, ok := r.With(reports.Fail)[0].Blamed()
	must.Assert(t, ok, "no exchange is blamed")
	request := must.Get(blamed.NewRequest(t.Context(), func(string) string { return "" }))(t)
	sent, err := io.ReadAll(request.Body)
	must.Expect(t, err == nil && bytes.Equal(sent, body), "%d bytes are sent again, want the %d of the request: %v", len(sent), len(body), err)
	line := r.With(reports.Fail)[0].Curl
	must.Expect(t, strings.Contains(line, " --data-binary @bodies/") && line == blamed.Curl(),
		"the curl line is %s, want %s", line, blamed.Curl())
	if cat, err := exec.LookPath("cat"); err == nil { // as curl finds the file
		name := line[strings.Index(line, "@bodies/")+1:]
		show := exec.CommandContext(t.Context(), cat, name[:strings.Index(name, " ")])
		show.Dir = dir
		out, err := show.Output()
		must.Expect(t, err == nil && bytes.Equal(out, body), "the file of the line holds %d bytes: %v", len(out), err)
	}

	must.Do(t, format.WriteAll(sample.Every(), dir))
	left, _ := filepath.Glob(filepath.Join(dir, "bodies", "*"))
	must.Expect(t, len(left) == 0, "a later report leaves %v", left)
}

func TestABodyThatIsNotThereIsNamed(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, format.WriteAll(withLongBody(bytes.Repeat([]byte("x"), 20<<10)), dir))
	must.Do(t, os.RemoveAll(filepath.Join(dir, "bodies")))
	r := must.Get(reports.ReadFile(dir))(t)
	blamed, _ := r.With(reports.Fail)[0].Blamed()
	must.Refuse(blamed.NewRequest(t.Context(), os.Getenv))(t, "is not beside the report")
}

// A small report can name one large file as the body of each of its requests.
func TestAReportsBodiesAreBoundedTogether(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, format.WriteAll(withLongBody(bytes.Repeat([]byte("x"), 20<<10)), dir))
	file := filepath.Join(dir, "report.json")
	var report map[string]any
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(file))(t), &report))
	for _, result := range report["results"].([]any) {
		evidence := result.(map[string]any)["evidence"].([]any)
		for _, e := range evidence {
			if body := e.(map[string]any)["request"].(map[string]any)["file"]; body != nil {
				must.Do(t, os.Truncate(filepath.Join(dir, body.(string)), reports.MaxWhole))
				result.(map[string]any)["evidence"] = slices.Repeat(evidence, 17)
			}
		}
	}
	must.Do(t, os.WriteFile(file, must.Get(json.Marshal(report))(t), 0o644))
	must.Refuse(reports.ReadFile(dir))(t, "64 MiB together", "17 bodies of 4 MiB are read")
}

// Anybody may have written a report: it names no file outside of its directory.
func TestAReportReadsNoFileElsewhere(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"a path up": func(t *testing.T, dir string) {
			file := filepath.Join(dir, "report.json")
			text := must.Get(os.ReadFile(file))(t)
			spoiled := bytes.ReplaceAll(text, []byte(`"file": "bodies/`), []byte(`"file": "../bodies/`))
			must.Assert(t, !bytes.Equal(spoiled, text), "the report names no file")
			must.Do(t, os.WriteFile(file, spoiled, 0o644))
		},
		"a link out": func(t *testing.T, dir string) {
			bodies, err := filepath.Glob(filepath.Join(dir, "bodies", "*"))
			must.Assert(t, err == nil && len(bodies) == 1, "the bodies are %v: %v", bodies, err)
			must.Do(t, os.Remove(bodies[0]))
			if err := os.Symlink("/etc/hostname", bodies[0]); err != nil {
				t.Skipf("SKIPPED: no symbolic link can be made: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must.Do(t, format.WriteAll(withLongBody(bytes.Repeat([]byte("x"), 20<<10)), dir))
			spoil(t, dir)
			must.Refuse(reports.ReadFile(dir))(t, "", "it is read")
		})
	}
}
