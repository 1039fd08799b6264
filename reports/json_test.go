package reports_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/format"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

func reportJSON(t *testing.T, r *reports.Report) []byte {
	t.Helper()
	return sample.Written(t, func(b *bytes.Buffer) error { return reports.WriteJSON(b, r) })
}

func TestReportConformsToItsSchema(t *testing.T) {
	schema := sample.Compiled(t, reports.Schema())
	sample.MustConform(t, schema, reportJSON(t, sample.Every()))
	sample.MustConform(t, schema, reportJSON(t, sample.Kept()))

	later := sample.Every()
	later.Since = reports.Compare(sample.Kept(), later)
	sample.MustConform(t, schema, reportJSON(t, later))

	moved := sample.Kept() // while a clock was moved
	moved.DurationMS = -1
	moved.Results[0].DurationMS = math.NaN()
	moved.Results[0].Evidence = []reports.Exchange{{Account: &reports.Account{}, Request: reports.Message{DurationMS: -3}, Drupal: []reports.Upstream{{DurationMS: math.Inf(1)}}}}
	sample.MustConform(t, schema, reportJSON(t, moved))

	empty := &reports.Report{}
	sample.MustConform(t, schema, reportJSON(t, empty))
}

// TestSchemaNamesEveryMember holds the schema's members against the model's.
func TestSchemaNamesEveryMember(t *testing.T) {
	var root map[string]any
	must.Do(t, json.Unmarshal(reports.Schema(), &root))
	members := func(path ...string) map[string]any {
		at := root
		for _, key := range path {
			at = at[key].(map[string]any)
		}
		return at["properties"].(map[string]any)
	}
	for _, c := range []struct {
		model any
		in    map[string]any
	}{
		{reports.Report{}, members()},
		{reports.Comparison{}, members("properties", "since")},
		{reports.Side{}, members("$defs", "side")},
		{reports.Change{}, members("$defs", "change")},
		{reports.Tool{}, members("properties", "tool")},
		{reports.Ledger{}, members("properties", "ledger")},
		{reports.Target{}, members("$defs", "target")},
		{reports.Environment{}, members("properties", "environment")},
		{reports.Measurement{}, members("properties", "measured", "items")},
		{reports.Summary{}, members("properties", "summary")},
		{reports.BaselineProblem{}, members("properties", "baseline_problems", "items")},
		{reports.Result{}, members("$defs", "result")},
		{reports.Finding{}, members("$defs", "result", "properties", "findings", "items")},
		{reports.Exchange{}, members("$defs", "exchange")},
		{reports.Message{}, members("$defs", "message")},
		{reports.Upstream{}, members("$defs", "upstream")},
	} {
		model := reflect.TypeOf(c.model)
		for field := range model.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "-" || !field.IsExported() {
				continue
			}
			_, ok := c.in[name]
			must.Expect(t, ok, "%s: the schema lacks %s", model.Name(), name)
			delete(c.in, name)
		}
		for name := range c.in {
			t.Errorf("%s: the schema has %s, the model does not", model.Name(), name)
		}
	}
}

func TestWrittenReportReadsBackTheSame(t *testing.T) {
	first := reportJSON(t, sample.Every())
	r := must.Get(reports.Parse(first))(t)
	second := reportJSON(t, r)
	must.Expect(t, bytes.Equal(first, second), "a report that is read and written again is not the same")
	must.Expect(t, r.Seed == 9007199254740993 && bytes.Contains(first, []byte("9007199254740993")), "seed is %d: rounded", r.Seed)
}

func TestReadFileSaysWhatIsWrong(t *testing.T) {
	good := string(reportJSON(t, sample.Every()))
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "the file is empty"},
		{"no JSON", `{"schema": "1.0",` + "\n  oops}", "line 2, column 3: invalid character 'o'"},
		{"cut short", good[:len(good)/2], "the file was cut short"},
		{"another version", `{"schema": "2.0"}`, `schema is "2.0", this bridgecheck reads "1.0"`},
		{"no report", `{"hello": 1}`, `schema is "", this bridgecheck reads "1.0"`},
		{"an array", `[]`, "line 1, column 1"},
		{"unknown member", strings.Replace(good, `"seed":`, `"sead":`, 1), `unknown field "sead"`},
		{"wrong type", strings.Replace(good, `"duration_ms": 1234`, `"duration_ms": "long"`, 1), "duration_ms is of the kind string, which does not belong there"},
		{"unknown verdict", strings.Replace(good, `"verdict": "pass"`, `"verdict": "good"`, 1), `results[0] (list/answers-json) has the verdict "good": allowed are fail, error`},
		{"unknown level", strings.Replace(good, `"level": "MUST"`, `"level": "must"`, 1), `has the level "must": allowed are MUST, SHOULD, MAY`},
		{"a clause twice", strings.Replace(good, "list/has-tools-array", "list/answers-json", 1), "results[1] is list/answers-json again (first at 0)"},
		{"null", "null", `schema is "", this bridgecheck reads "1.0"`},
		{"a string", `"report"`, "the report is of the kind string, which does not belong there"},
		{"a second document", good + "{}", "invalid character '{' after top-level value"},
		{"a missing member", strings.Replace(good, `"seed": 9007199254740993,`, "", 1), "the report: missing property 'seed'; `bridgecheck report schema` prints"},
		{"a missing member of a result", strings.Replace(good, `"duration_ms": 3.5,`, "", 1), "results[0]: missing property 'duration_ms'"},
		{"results that are null", `{"schema": "1.0", "results": null}`, "the report: missing properties"},
		{"a time that is none", strings.Replace(good, "2026-11-21T07:30:00Z", "yesterday", 1), `parsing time "yesterday"`},
		{"a negative count", strings.Replace(good, `"total": 11`, `"total": -1`, 1), "summary.total: minimum: got -1, want 0"},
		{"nested too deep", `{"schema": "1.0", "settings": ` + strings.Repeat(`{"a":`, 20000), "exceeded max depth"},
		{"UTF-16", "\xff\xfe{\x00", "line 1, column 1"},
		{"a change that is none", strings.Replace(good, `"results": [`, `"since": {"fixed": [{"id": "<b>", "level": "MUST"}]}, "results": [`, 1), `since holds the change "<b>" "MUST"`},
		{"no clause", strings.Replace(good, "list/has-tools-array", "<b>", 1), `results[1] has the id "<b>": it should be a clause`},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "report.json")
			must.Do(t, os.WriteFile(path, []byte(c.text), 0o600))
			_, err := reports.ReadFile(path)
			must.Expect(t, err != nil && strings.Contains(err.Error(), c.want) && strings.HasPrefix(err.Error(), path),
				"error is %v, want %q with the file's name", err, c.want)
		})
	}
	must.Refuse(reports.ReadFile(filepath.Join(t.TempDir(), "none.json")))(t, "", "a missing file is read")
}

func TestReportIsBounded(t *testing.T) {
	body := strings.Repeat("é", 1<<20)
	r := sample.Kept()
	for i := range r.Results {
		for range 300 {
			r.Results[i].Evidence = append(r.Results[i].Evidence, reports.Exchange{Request: reports.Message{Body: body}, Response: &reports.Message{Body: body}})
		}
	}
	r.Results[1].Verdict = reports.Fail
	data := reportJSON(t, r)
	must.Expect(t, len(data) <= 32<<20, "the report has %d bytes", len(data))
	read := must.Get(reports.Parse(data))(t)
	for _, result := range read.Results {
		n := len(result.Evidence)
		must.Expect(t, n == 64 && result.EvidenceOmitted == 300-64, "%s keeps %d exchanges and omits %d", result.ID, n, result.EvidenceOmitted)
	}
	kept := read.Results[1].Evidence[0].Request
	must.Expect(t, kept.Truncated == len(body)-len(kept.Body) && len(kept.Body) == 64<<10,
		"a body keeps %d bytes and says that %d of %d went", len(kept.Body), kept.Truncated, len(body))
	must.Expect(t, len(r.Results[0].Evidence) == 300 && r.Results[0].EvidenceOmitted == 0, "writing changed the report")
}

// TestCutBodyCountsWhatWent draws bodies of any bytes.
func TestCutBodyCountsWhatWent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		m := reports.Message{Body: base64.StdEncoding.EncodeToString(raw), Encoding: "base64"}
		cut := reports.CutBody(m, rapid.IntRange(0, 40).Draw(t, "max"))
		kept, err := base64.StdEncoding.DecodeString(cut.Body)
		must.Assert(t, err == nil && bytes.HasPrefix(raw, kept) && len(kept)+cut.Truncated == len(raw),
			"kept %x and says that %d went of %x: %v", kept, cut.Truncated, raw, err)
	})
}

func FuzzParse(f *testing.F) {
	var b bytes.Buffer
	must.Do(f, reports.WriteJSON(&b, sample.Kept()))
	f.Add(b.Bytes())
	f.Add([]byte(`{"schema":"1.0"}`))
	whole := sample.Every()
	whole.Since = reports.Compare(sample.Kept(), whole)
	b.Reset()
	must.Do(f, reports.WriteJSON(&b, reports.BoundedSmall(whole)))
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()/3])
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := reports.Parse(data)
		if err != nil {
			return
		}
		err = format.WriteAll(r, t.TempDir())
		must.Assert(t, err == nil, "a report that is read cannot be written: %v", err)
		merged, err := reports.MergeShards([]*reports.Report{r, r})
		must.Assert(t, err == nil && len(merged) == 1, "a report cannot be merged with itself: %v", err)
		c := reports.Compare(r, r)
		must.Assert(t, c.ExitCode() == 0, "a report is worse than itself: %+v", c.NewlyFailing)
	})
}
