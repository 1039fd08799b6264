package format

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

func form(t *testing.T, name string, r *reports.Report) string {
	t.Helper()
	f := must.Get(Named(name))(t)
	return string(sample.Written(t, func(b *bytes.Buffer) error { return f.Write(b, r) }))
}

func TestJUnitCountsAndHasEveryVerdict(t *testing.T) {
	for _, strict := range []bool{false, true} {
		r := sample.Every()
		r.Strict = strict
		var suites junitSuites
		text := form(t, "junit", r)
		must.Do(t, xml.Unmarshal([]byte(text), &suites))
		wantFailures := 3 // two fail, one fixed
		if strict {
			wantFailures++
		}
		must.Expect(t, suites.Tests == 11 && suites.Failures == wantFailures && suites.Errors == 1 && suites.Skipped == 4,
			"strict %v: %d tests, %d failures, %d errors, %d skipped", strict, suites.Tests, suites.Failures, suites.Errors, suites.Skipped)
		must.Equal(t, strings.Count(text, "<failure "), wantFailures, "<failure> with strict %v", strict)
		for _, suite := range suites.Suites {
			for _, c := range suite.Cases {
				skipped := ""
				if c.Skipped != nil {
					skipped = c.Skipped.Message
				}
				switch c.Name {
				case "mcp/origin":
					must.Expect(t, skipped == "not-applicable: the bridge does not claim mcp", "%s is skipped with %q", c.Name, skipped)
				case "invoke/denied":
					must.Expect(t, skipped == "not-testable: no tool that the agent lacks is known",
						"%s is skipped with %q", c.Name, skipped)
				case "mapping/no-params-object":
					if c.Failure == nil || c.Failure.Message != "tool cache.rebuild: inputSchema.properties is [], want {}" || !strings.Contains(c.Failure.Text, "curl -u") {
						t.Errorf("%s: failure is %+v", c.Name, c.Failure)
					}
				case "list/description-not-empty":
					if (c.Failure != nil) != strict || !strict && !strings.Contains(c.Output, "warning: tool content.get has an empty description") {
						t.Errorf("strict %v: a warning is %+v", strict, c)
					}
				}
			}
		}
	}
}

func TestMarkdownStaysBelowGitHubsLimit(t *testing.T) {
	r := sample.Every()
	for i := range 1500 {
		result := r.Results[4]
		result.Actual = result.Actual[:1<<10] // the sample's has a megabyte
		result.ID = "invoke/case-" + strings.Repeat("x", i%50) + "-" + string(rune('a'+i%26)) + strings.Repeat("y", i/26)
		r.Results = append(r.Results, result)
	}
	text := form(t, "markdown", r)
	must.Expect(t, len(text) < 1<<20, "summary.md has %d bytes", len(text))
	must.Expect(t, strings.Contains(text, "more, with their details in `report.html`"), "summary.md does not say that details are missing")
	verdicts, err := markdownVerdicts([]byte(text))
	must.Expect(t, err == nil && len(verdicts) == len(r.Results),
		"summary.md has %d verdicts of %d: %v", len(verdicts), len(r.Results), err)
}

func TestMarkdownFenceOutlastsBackquotes(t *testing.T) {
	got := fenced("a\n`````\nb")
	must.Expect(t, strings.HasPrefix(got, "``````\n") && strings.HasSuffix(got, "\n``````\n"), "fenced gives %q", got)
}

// sarifLog is what tests read of a log.
type sarifLog struct {
	Runs []struct {
		Tool struct {
			Driver struct{ Rules []struct{ ID string } }
		}
		Results []struct {
			RuleID, Level string
			RuleIndex     int
			Locations     []struct {
				PhysicalLocation struct{ Region struct{ StartLine int } }
			}
			Suppressions []any
		}
		Properties struct{ Summary reports.Summary }
	}
}

func TestSARIFConformsAndHasEveryVerdict(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/sarif-schema-2.1.0.json"))(t)
	schema := sample.Compiled(t, text)
	sample.MustConform(t, schema, []byte(form(t, "sarif", sample.Kept())))
	sarif := form(t, "sarif", sample.Every())
	sample.MustConform(t, schema, []byte(sarif))

	var log sarifLog
	must.Do(t, json.Unmarshal([]byte(sarif), &log))
	run := log.Runs[0]
	must.Expect(t, len(run.Tool.Driver.Rules) == 11, "%d rules, want one a clause", len(run.Tool.Driver.Rules))
	lines := strings.Split(string(sample.Written(t, func(b *bytes.Buffer) error { return reports.WriteJSON(b, sample.Every()) })), "\n")
	levels := map[string]string{}
	for _, r := range run.Results {
		levels[r.RuleID] = r.Level
		must.Expect(t, run.Tool.Driver.Rules[r.RuleIndex].ID == r.RuleID,
			"%s points to the rule %s", r.RuleID, run.Tool.Driver.Rules[r.RuleIndex].ID)
		must.Has(t, lines[r.Locations[0].PhysicalLocation.Region.StartLine-1], `"`+r.RuleID+`"`, "the line of report.json to which %s points", r.RuleID)
		must.Equal(t, len(r.Suppressions) > 0, (r.RuleID == "describe/answers-tool"), "whether %s is suppressed", r.RuleID)
	}
	want := map[string]string{
		"list/description-not-empty": "warning", "mapping/no-params-object": "error", "describe/reflects-safely": "error",
		"describe/answers-tool": "error", "describe/unknown-404": "error", "invoke/answers-result": "error",
	}
	must.Expect(t, len(levels) == len(want), "results are %v, want %v", levels, want)
	for id, level := range want {
		must.Expect(t, levels[id] == level, "%s has the level %q, want %q", id, levels[id], level)
	}
}

func TestBadgeSaysConformantOfConformantRunsOnly(t *testing.T) {
	for _, c := range []struct {
		name   string
		report *reports.Report
		want   badge
	}{
		{"conformant", sample.Kept(), badge{1, "MCP tools contract", "conformant", "#1a7f37", false}},
		{"of a version", ofVersion(sample.Kept(), "1.0"), badge{1, "MCP tools contract 1.0", "conformant", "#1a7f37", false}},
		{"filtered", sample.Filtered(sample.Kept()), badge{1, "MCP tools contract", "partial (2 of 2)", "#9a6700", false}},
		{"failing", sample.Every(), badge{1, "MCP tools contract", "not conformant (2 of 7)", "#cf222e", true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got badge
			err := json.Unmarshal([]byte(form(t, "badge-json", c.report)), &got)
			must.Expect(t, err == nil && got == c.want, "badge.json is %+v (%v), want %+v", got, err, c.want)
			must.Has(t, form(t, "badge-svg", c.report), ">"+c.want.Message+"</text>", "badge.svg")
		})
	}
}

func TestAnnotationsAreLimited(t *testing.T) {
	r := sample.Every()
	for i := range 30 {
		r.Results = append(r.Results, reports.Result{ID: "x/y-" + strings.Repeat("i", i), Level: reports.MUST, Verdict: reports.Fail, Message: fmt.Sprintf("50%% off,\n::error::no %d", i)})
	}
	text := form(t, "annotations", r)
	n := strings.Count(text, "\n::error ") + 1
	must.Expect(t, n == annotationLimit, "%d errors, want %d", n, annotationLimit)
	must.Expect(t, strings.Contains(text, "::error title=bridgecheck::25 more, see the log and the job summary\n"),
		"it does not say how many more there are:\n%s", text)
	must.Expect(t, strings.Contains(text, "\nerror: x/y-"+strings.Repeat("i", 29)+": 50% off, :\\x3aerror::no 29\n"),
		"the log does not show every cause:\n%s", text)
	must.Expect(t, strings.Contains(text, `50%25 off,%0A:\x3aerror::no`), "a message is not escaped:\n%s", text)
}

func TestWriteAllWritesEveryFileWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	must.Do(t, WriteAll(sample.Every(), dir))
	entries := must.Get(os.ReadDir(dir))(t)
	must.Expect(t, len(entries) == len(withFile()), "%d files, want %d: %v", len(entries), len(withFile()), entries)
	mismatches, err := Verify(dir)
	must.Expect(t, err == nil && len(mismatches) == 0, "what was just written does not agree: %v %v", mismatches, err)
}

func TestWriteAllSaysWhereItCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	must.Say(t, WriteAll(sample.Kept(), file), file)
}

func TestDiffMarksWhatDiffers(t *testing.T) {
	if want, got := diffValues("200 with the result 1", `500 {"error":{"code":"the site is down","message":"try again with the next one"}}`); len(want) != 1 || len(got) != 1 {
		t.Errorf("values with little in common are marked: %v %v", want, got)
	}
	want, got := diffValues(`{"type":"object","properties":{}}`, `{"type":"object","properties":[]}`)
	join := func(segments []segment) string {
		var b strings.Builder
		for _, s := range segments {
			if s.Differ {
				b.WriteString("«" + s.Text + "»")
			} else {
				b.WriteString(s.Text)
			}
		}
		return b.String()
	}
	must.Equal(t, join(want), "{\n  \"type\": \"object\",\n  \"properties\": «{}»\n}", "how the expected is marked")
	s := join(got)
	must.Expect(t, s == "{\n  \"type\": \"object\",\n  \"properties\": «[]»\n}", "actual is marked %s", s)
}

func TestGitHubReportsToTheJob(t *testing.T) {
	summary := filepath.Join(t.TempDir(), "summary")
	must.Do(t, os.WriteFile(summary, []byte("before\n"), 0o600))
	env := map[string]string{"GITHUB_STEP_SUMMARY": summary}
	var out bytes.Buffer
	if err := GitHub(&out, sample.Every(), func(name string) string { return env[name] }); err != nil || out.Len() > 0 {
		t.Errorf("outside of GitHub it writes %q: %v", &out, err)
	}
	env["GITHUB_ACTIONS"] = "true"
	must.Do(t, GitHub(&out, sample.Every(), func(name string) string { return env[name] }))
	must.Expect(t, strings.HasPrefix(out.String(), "::error title=mapping/no-params-object (MUST)::"), "the log gets %q", &out)
	data, err := os.ReadFile(summary)
	want := "before\n" + form(t, "markdown", sample.Every())
	must.Expect(t, err == nil && string(data) == want, "the job summary is not added to: %v\n%s", err, data)
}

func TestEnvironmentNamesTheCI(t *testing.T) {
	for variable, want := range map[string]string{"GITHUB_ACTIONS": "GitHub Actions", "GITLAB_CI": "GitLab CI", "CI": "CI", "HOME": ""} {
		got := reports.CurrentEnvironment(func(name string) string {
			if name == variable {
				return "true"
			}
			return ""
		})
		must.Expect(t, got.CI == want && got.OS != "" && got.Go != "",
			"with %s the environment is %+v, want the CI %q", variable, got, want)
	}
}

// What fails a run and is no clause stands in every form that a pipeline reads.
func TestFormatsShowWhatFailsTheRunAsAWhole(t *testing.T) {
	r := sample.CutShort(sample.WithProblem(sample.Kept()))
	if text := form(t, "junit", r); !strings.Contains(text, `tests="4" failures="1" errors="1"`) ||
		!strings.Contains(text, `name="baseline baseline.yaml:3 list/x" classname="bridgecheck.run"`) {
		t.Errorf("junit.xml does not show it:\n%s", text)
	}
	text := form(t, "sarif", r)
	for _, want := range []string{"baseline.yaml:3: list/x: expired on 2026-01-01", "the run was cut short: interrupted"} {
		must.Expect(t, strings.Contains(text, want), "report.sarif does not say %q", want)
	}
	schema := must.Get(os.ReadFile("testdata/sarif-schema-2.1.0.json"))(t)
	sample.MustConform(t, sample.Compiled(t, schema), []byte(text))
	annotations := form(t, "annotations", r)
	must.Expect(t, strings.Contains(annotations, "::error file=baseline.yaml,line=3,title=list/x::expired on 2026-01-01\n"),
		"the annotations do not show it:\n%s", annotations)
	dir := t.TempDir()
	must.Do(t, WriteAll(r, dir))
	wrong, err := Verify(dir)
	must.Expect(t, err == nil && len(wrong) == 0, "the forms do not agree: %v %v", wrong, err)
}

func ofVersion(r *reports.Report, version string) *reports.Report {
	r.Ledger.Version = version
	return r
}
