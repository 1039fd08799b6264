package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/module"
	"github.com/bridgecheck/bridgecheck/mockdrupal/quirk"
	"github.com/bridgecheck/bridgecheck/reports"
)

const moduleExample = "../../examples/drupal-module"

// testModule runs the ready-made configuration of the Drupal module against the module as it was recorded, with the
// baseline's text changed as wanted.
func testModule(t *testing.T, quirks []string, change func(string) string) (code int, report *reports.Report) {
	t.Helper()
	code, dir, stderr := runModule(t, quirks, change)
	report, err := reports.ReadFile(dir)
	must.Assert(t, err == nil, "the run ended with %d: %s%v", code, stderr, err)
	return code, report
}

// runModule is testModule that returns the report's directory in place of the report.
func runModule(t *testing.T, quirks []string, change func(string) string) (code int, report, said string) {
	t.Helper()
	for _, name := range []string{"AGENT", "AGENT2", "DISCOVERER", "NORPC"} {
		t.Setenv(name+"_PASSWORD", strings.ToLower(name)+"-pass")
	}
	t.Setenv("OUTSIDER_PASSWORD", "rpconly-pass")
	site := must.Get(fixtures.Builtin("transcripts"))(t)
	extension := must.Get(module.New(module.V13))(t)
	drupal := must.Get(mockdrupal.New(site, mockdrupal.Options{Extensions: []mockdrupal.Extension{extension}, Quirks: quirks}))(t)
	server := must.Get(drupal.Listen("127.0.0.1:0"))(t)
	defer server.Close()
	data := must.Get(os.ReadFile(filepath.Join(moduleExample, "baseline.yaml")))(t)
	dir := t.TempDir()
	known := filepath.Join(dir, "baseline.yaml")
	must.Do(t, os.WriteFile(known, []byte(change(string(data))), 0o600))
	report = filepath.Join(dir, "report")
	o := command(t, "run", "--config", filepath.Join(moduleExample, "config.yaml"), "--url", server.URL, "--baseline", known, "--report-dir", report)
	return o.code, report, o.stderr
}

func TestTheModulesFaultsAreExactlyThoseOfItsBaseline(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: the Drupal module is not tested")
	code, report := testModule(t, nil, func(text string) string { return text })
	for _, r := range report.Results {
		must.Expect(t, r.Verdict != reports.Fail && r.Verdict != reports.Warn && r.Verdict != reports.Error && r.Verdict != reports.Fixed,
			"%s is %s, which no entry says: %s", r.ID, r.Verdict, r.Message)
	}
	for _, p := range report.BaselineProblems {
		t.Errorf("%s: %s", p.Clause, p.Text)
	}
	must.Expect(t, report.Summary.Known >= 12 && code == exitNoVerdict,
		"%d clauses are known to fail, and the run ended with %d", report.Summary.Known, code)
}

func TestThePageCacheThatKeepsErrorsIsNamed(t *testing.T) {
	_, report := testModule(t, []string{quirk.StickyGet}, func(text string) string { return text })
	verdicts := report.ByClause()
	must.Expect(t, verdicts["describe/after-error"] == reports.Fail || verdicts["describe/answers-tool"] == reports.Fail,
		"neither describe/after-error nor describe/answers-tool fails")
}

func TestTheModulesFaultsAreNamed(t *testing.T) {
	_, report := testModule(t, nil, func(string) string { return "known: []\n" })
	for id, says := range map[string]string{
		"mapping/input-object":      "properties []",
		"list/cursor-malformed":     "minus one",
		"list/cursor-malformed-400": "not base64",
		"describe/name-not-scalar":  "500",
		"invoke/missing-name":       "500",
		"invoke/missing-arguments":  `200 {"result"`,
		"invoke/post-only":          "GET /mcp/tools/invoke",
		"access/csrf":               `200 {"result"`,
		"http/method-not-allowed":   "expected 405, got 200",
	} {
		r, _ := report.Result(id)
		must.Expect(t, strings.Contains(r.Message, says), "%s says %q, want %q in it", id, r.Message, says)
	}
}

// recordingName is how a reason refers to a recording: AREA/NAME.
var recordingName = regexp.MustCompile(`\bmcp_[a-z_]+/\w+`)

func TestEveryReasonOfTheModulesBaselineNamesARecording(t *testing.T) {
	data := must.Get(os.ReadFile(filepath.Join(moduleExample, "baseline.yaml")))(t)
	recordings := "../../../shared/drupal-transcripts"
	if _, err := os.Stat(recordings); err != nil {
		t.Skipf("THE REASONS WERE NOT CHECKED: the recordings are not beside the checkout, at %s", recordings)
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if !strings.Contains(line, "reason: ") {
			continue
		}
		names := recordingName.FindAllString(line, -1)
		must.Expect(t, len(names) > 0, "no recording is named: %s", line)
		for _, name := range names {
			area, _, _ := strings.Cut(name, "/")
			records, err := os.ReadFile(filepath.Join(recordings, area+".jsonl"))
			must.Expect(t, err == nil && bytes.Contains(records, []byte(`"id": "`+name+`"`)), "there is no recording %s", name)
		}
	}
}
