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

// object is an object of SARIF 2.1.0.
type object = map[string]any

// SARIFLevels gives the SARIF level of a rule.
var SARIFLevels = map[reports.Level]string{reports.MUST: "error", reports.SHOULD: "warning", reports.MAY: "note"}

// SARIFLocation is the place of a result, a line of a file.
func SARIFLocation(file string, line int) map[string]any {
	return object{"physicalLocation": object{"artifactLocation": object{"uri": file}, "region": object{"startLine": line}}}
}

// SARIFProblems are notifications of the entries of a baseline or an allow-list that do not hold.
func SARIFProblems(problems []reports.BaselineProblem) []map[string]any {
	notes := []object{}
	for _, p := range problems {
		notes = append(notes, sarifError(fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Clause, terminal.VisibleLine(p.Text, 1000))))
	}
	return notes
}

func sarifError(text string) object { return object{"level": "error", "message": object{"text": text}} }

// EncodeSARIF writes a log of one run of a tool, whose rules are those of the results.
func EncodeSARIF(w io.Writer, tool, version string, rules []map[string]any, run map[string]any) error {
	run["tool"] = object{"driver": object{"name": tool, "version": version, "rules": rules}}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(object{"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": []object{run}})
}

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
	notes := SARIFProblems(r.BaselineProblems)
	if r.CutShort != "" {
		notes = append([]object{sarifError("the run was cut short: " + terminal.VisibleLine(r.CutShort, 500))}, notes...)
	}
	rules, results, verdicts := []object{}, []object{}, r.ByClause()
	for i, result := range r.Results {
		rules = append(rules, sarifRule(result))
		if level, ok := sarifLevels[result.Verdict]; ok {
			results = append(results, sarifResult(result, i, level, lines[i]))
		}
	}
	return EncodeSARIF(w, "bridgecheck", r.Tool.Version, rules, object{
		"automationDetails": object{"id": "bridgecheck/"},
		"invocations": []object{{"executionSuccessful": r.CutShort == "" && summary.Error == 0,
			"startTimeUtc": r.Started.UTC().Format("2006-01-02T15:04:05.000Z"), "toolExecutionNotifications": notes}},
		"results": results,
		// What SARIF has no place for: the verdict on every clause.
		"properties": object{"state": r.State(), "summary": summary, "verdicts": verdicts},
	})
}

func sarifRule(r reports.Result) object {
	help := []string{r.Text}
	for _, part := range []struct{ title, text string }{{"Source", r.Source}, {"Why", r.Why}, {"To do", r.Remedy}} {
		if part.text != "" {
			help = append(help, part.title+": "+part.text)
		}
	}
	plain := strings.Join(help, "\n\n")
	return object{
		"id":               r.ID,
		"shortDescription": object{"text": fmt.Sprintf("%s %s", r.ID, r.Level)},
		"fullDescription":  object{"text": cmp.Or(r.Text, r.ID)},
		"help": object{"text": cmp.Or(plain, r.ID),
			"markdown": fmt.Sprintf("**%s** %s\n\n%s\n\n`bridgecheck checks explain %s`", r.ID, r.Level, Inline(plain), r.ID)},
		"defaultConfiguration": object{"level": SARIFLevels[r.Level]},
		"properties":           object{"level": r.Level, "tags": []string{r.Area, string(r.Level)}},
	}
}

func sarifResult(r reports.Result, rule int, level string, at int) object {
	location := SARIFLocation("report.json", at)
	location["logicalLocations"] = []object{{"fullyQualifiedName": r.ID, "kind": "member"}}
	s := object{"ruleId": r.ID, "ruleIndex": rule, "kind": "fail", "level": level, "message": object{"text": details(r)},
		"locations": []object{location}, "partialFingerprints": object{"clause/v1": r.ID}}
	if r.Verdict == reports.Known {
		s["suppressions"] = []object{{"kind": "external", "justification": cmp.Or(r.KnownReason, "known by the baseline")}}
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
	var log struct {
		Runs []struct {
			Properties struct{ Verdicts map[string]reports.Verdict }
		}
	}
	if err := json.Unmarshal(data, &log); err != nil {
		return nil, err
	}
	if len(log.Runs) != 1 {
		return nil, fmt.Errorf("it has %d runs, not one", len(log.Runs))
	}
	return log.Runs[0].Properties.Verdicts, nil
}
