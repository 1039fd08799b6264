package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
)

// The part of SARIF 2.1.0 that a report needs.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Automation  sarifID           `json:"automationDetails"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
		Properties  sarifProperties   `json:"properties"`
	}
	sarifID struct {
		ID string `json:"id"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri,omitempty"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string         `json:"id"`
		Short   sarifText      `json:"shortDescription"`
		Full    sarifText      `json:"fullDescription"`
		Help    sarifText      `json:"help"`
		Default sarifDefault   `json:"defaultConfiguration"`
		Extra   map[string]any `json:"properties"`
	}
	sarifDefault struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Start         string              `json:"startTimeUtc"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Kind         string             `json:"kind"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
	// sarifProperties carry what SARIF has no place for: the verdict on every clause.
	sarifProperties struct {
		State    reports.State              `json:"state"`
		Summary  reports.Summary            `json:"summary"`
		Verdicts map[string]reports.Verdict `json:"verdicts"`
	}
)

// sarifLevels gives the SARIF level of the verdicts that become results. The others (pass, not applicable, not
// testable) stand in the run's properties only: code scanning would show each of them as an alert.
var sarifLevels = map[reports.Verdict]string{reports.Fail: "error", reports.Fixed: "error", reports.Known: "error", reports.Error: "error",
	reports.Warn: "warning"}

// writeSARIF writes r as SARIF 2.1.0: a rule per clause with help, a result per clause that needs attention, located
// at its line of report.json. Known failures are suppressed with the baseline's reason.
func writeSARIF(w io.Writer, r *reports.Report) error {
	lines, err := resultLines(r)
	if err != nil {
		return err
	}
	summary := r.Counted()
	run := sarifRun{
		Tool:        sarifTool{sarifDriver{Name: "bridgecheck", Version: r.Tool.Version, Rules: []sarifRule{}}},
		Automation:  sarifID{"bridgecheck/"},
		Invocations: []sarifInvocation{{Successful: r.CutShort == "" && summary.Error == 0, Start: r.Started.UTC().Format("2006-01-02T15:04:05.000Z")}},
		Results:     []sarifResult{},
		Properties:  sarifProperties{State: r.State(), Summary: summary, Verdicts: map[string]reports.Verdict{}},
	}
	if r.CutShort != "" {
		run.Invocations[0].Notifications = []sarifNotification{{"error", sarifText{Text: "the run was cut short: " + terminal.VisibleLine(r.CutShort, 500)}}}
	}
	for _, p := range r.BaselineProblems {
		run.Invocations[0].Notifications = append(run.Invocations[0].Notifications,
			sarifNotification{"error", sarifText{Text: fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Clause, terminal.VisibleLine(p.Text, 1000))}})
	}
	for i, result := range r.Results {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRuleOf(result))
		run.Properties.Verdicts[result.ID] = result.Verdict
		if level, ok := sarifLevels[result.Verdict]; ok {
			run.Results = append(run.Results, sarifResultOf(result, i, level, lines[i]))
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

func sarifRuleOf(r reports.Result) sarifRule {
	level := map[reports.Level]string{reports.MUST: "error", reports.SHOULD: "warning", reports.MAY: "note"}[r.Level]
	help := []string{r.Text}
	for _, part := range []struct{ title, text string }{{"Source", r.Source}, {"Why", r.Why}, {"To do", r.Remedy}} {
		if part.text != "" {
			help = append(help, part.title+": "+part.text)
		}
	}
	plain := strings.Join(help, "\n\n")
	return sarifRule{
		ID:      r.ID,
		Short:   sarifText{Text: fmt.Sprintf("%s %s", r.ID, r.Level)},
		Full:    sarifText{Text: cmp.Or(r.Text, r.ID)},
		Help:    sarifText{Text: cmp.Or(plain, r.ID), Markdown: fmt.Sprintf("**%s** %s\n\n%s\n\n`bridgecheck checks explain %s`", r.ID, r.Level, md(plain), r.ID)},
		Default: sarifDefault{level},
		Extra:   map[string]any{"level": r.Level, "tags": []string{r.Area, string(r.Level)}},
	}
}

func sarifResultOf(r reports.Result, rule int, level string, at int) sarifResult {
	s := sarifResult{
		RuleID: r.ID, RuleIndex: rule, Kind: "fail", Level: level,
		Message: sarifText{Text: details(r)},
		Locations: []sarifLocation{{
			Physical: sarifPhysical{sarifArtifact{"report.json"}, sarifRegion{at}},
			Logical:  []sarifLogical{{r.ID, "member"}},
		}},
		Fingerprints: map[string]string{"clause/v1": r.ID},
	}
	if r.Verdict == reports.Known {
		s.Suppressions = []sarifSuppression{{"external", cmp.Or(r.KnownReason, "known by the baseline")}}
	}
	return s
}

// resultLines returns the line of report.json on which each result begins.
func resultLines(r *reports.Report) ([]int, error) {
	var b bytes.Buffer
	if err := reports.WriteJSON(&b, r); err != nil {
		return nil, err
	}
	var lines []int
	for i, l := range bytes.Split(b.Bytes(), []byte("\n")) {
		// Results alone have an id at this depth; a string never spans lines.
		if bytes.HasPrefix(l, []byte(`      "id": `)) {
			lines = append(lines, i+1)
		}
	}
	if len(lines) != len(r.Results) {
		return nil, fmt.Errorf("locate results in report.json: found %d of %d", len(lines), len(r.Results))
	}
	return lines, nil
}

// sarifVerdicts reads the verdicts back from the run's properties.
func sarifVerdicts(data []byte) (map[string]reports.Verdict, error) {
	var log sarifLog
	if err := json.Unmarshal(data, &log); err != nil {
		return nil, err
	}
	if len(log.Runs) != 1 {
		return nil, fmt.Errorf("it has %d runs, not one", len(log.Runs))
	}
	return log.Runs[0].Properties.Verdicts, nil
}
