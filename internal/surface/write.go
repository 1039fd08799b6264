package surface

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/format"
)

// Formats are the names of the formats of differences, that for people at a terminal first.
var Formats = []string{"console", "markdown", "json", "sarif", "junit"}

// Lines finds the line of a tool in a lock file, from 1; 1 for a tool that is not there.
func Lines(lock []byte) func(tool string) int {
	at := map[string]int{}
	for i, line := range bytes.Split(lock, []byte("\n")) {
		var name string
		if text, is := bytes.CutPrefix(line, []byte(`        "name": `)); is && json.Unmarshal(bytes.TrimSuffix(text, []byte(",")), &name) == nil && at[name] == 0 {
			at[name] = i + 1
		}
	}
	return func(tool string) int { return max(1, at[tool]) }
}

// Write writes differences in a format. SARIF points into the file named by d.Old, at the line of each tool.
func (d *Differences) Write(w io.Writer, name, version string, line func(tool string) int) error {
	switch name {
	case "console":
		return d.writeConsole(w)
	case "markdown":
		return d.writeMarkdown(w)
	case "json":
		return writeJSON(w, struct {
			*Differences
			Headline string `json:"headline"`
			ExitCode int    `json:"exit_code"`
		}{d, d.Headline(), d.ExitCode()})
	case "sarif":
		return d.writeSARIF(w, version, line)
	case "junit":
		return d.writeJUnit(w)
	}
	return fmt.Errorf("there is no format %q: there are %s", name, strings.Join(Formats, ", "))
}

func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// subject is what a change is about: the tool, the place in it, and who sees it.
func (c Change) subject() string {
	text := c.Tool
	if c.At != "" {
		text += " " + c.At
	}
	return strings.TrimSpace(fmt.Sprintf("%s (%s)", text, strings.Join(c.Callers, ", ")))
}

// values says what stood there and what stands there.
func (c Change) values() string {
	switch {
	case c.Old == "" && c.New == "":
		return ""
	case c.Old == "":
		return "now " + c.New
	case c.New == "":
		return "was " + c.Old
	}
	return c.Old + " → " + c.New
}

// details are all that a person needs, a line each.
func (c Change) details() []string {
	lines := []string{c.Says + ": " + c.Why}
	if values := c.values(); values != "" {
		lines = append(lines, values)
	}
	if c.Example != "" {
		lines = append(lines, "example: "+c.Example)
	}
	if c.Allowed != "" {
		lines = append(lines, "allowed: "+c.Allowed)
	}
	for i := range lines {
		lines[i] = terminal.VisibleLine(lines[i], 500)
	}
	return lines
}

// mark is a word for what a change does to the gate.
func (d *Differences) mark(c Change) string {
	switch {
	case c.Allowed != "":
		return "allowed"
	case d.Fails(c):
		return "breaks"
	case c.Level == reports.SHOULD:
		return "warns"
	}
	if strings.HasSuffix(c.ID, "/spelling") {
		return "same"
	}
	return "adds"
}

func (d *Differences) writeConsole(w io.Writer) error {
	var b strings.Builder
	for _, c := range d.Changes {
		fmt.Fprintf(&b, "%-7s  %s  %s\n", d.mark(c), c.ID, terminal.VisibleLine(c.subject(), 200))
		for _, line := range c.details() {
			fmt.Fprintf(&b, "         %s\n", line)
		}
	}
	for _, p := range d.Problems {
		fmt.Fprintf(&b, "%-7s  %s:%d %s: %s\n", "stale", p.File, p.Line, p.Clause, terminal.VisibleLine(p.Text, 500))
	}
	fmt.Fprintf(&b, "%s\n", d.Headline())
	_, err := io.WriteString(w, terminal.Escape(b.String()))
	return err
}

func (d *Differences) writeMarkdown(w io.Writer) error {
	var b strings.Builder
	icon := map[int]string{0: "✅", 1: "❌"}[d.ExitCode()]
	fmt.Fprintf(&b, "## %s Tools: %s\n\n%s → %s\n\n", icon, format.Inline(d.Headline()), format.Inline(d.Old), format.Inline(d.New))
	for _, part := range []struct {
		class Class
		title string
	}{{Callers, "Breaking for callers"}, {Models, "Breaking for models"}, {Additive, "Additive"}} {
		changes := slices.DeleteFunc(slices.Clone(d.Changes), func(c Change) bool { return c.Class != part.class })
		if len(changes) == 0 {
			continue
		}
		fmt.Fprintf(&b, "### %s\n\n| | rule | tool | callers | what |\n| --- | --- | --- | --- | --- |\n", part.title)
		for _, c := range changes {
			what := c.Says
			for _, line := range c.details()[1:] {
				what += "; " + line
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", d.mark(c), c.ID, format.Inline(strings.TrimSpace(c.Tool+" "+c.At)), format.Inline(strings.Join(c.Callers, ", ")), format.Inline(terminal.VisibleLine(what, 1000)))
		}
		b.WriteString("\n")
	}
	if len(d.Problems) > 0 {
		b.WriteString("### Entries of the allow-list that do not hold\n\n")
		for _, p := range d.Problems {
			fmt.Fprintf(&b, "- %s:%d %s: %s\n", format.Inline(p.File), p.Line, format.Inline(p.Clause), format.Inline(terminal.VisibleLine(p.Text, 500)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeSARIF writes SARIF 2.1.0: a rule for each of ours, and a result for each change that is not additive. What is allowed is
// suppressed.
func (d *Differences) writeSARIF(w io.Writer, version string, line func(string) int) error {
	type object = map[string]any
	levels := format.SARIFLevels
	rules, results := []object{}, []object{}
	for _, r := range Rules() {
		rules = append(rules, object{"id": r.ID, "shortDescription": object{"text": r.Says}, "fullDescription": object{"text": r.Says + ": " + r.Why},
			"help": object{"text": r.Why}, "defaultConfiguration": object{"level": levels[r.Level]}, "properties": object{"class": r.Class, "tags": []string{string(r.Class)}}})
	}
	for _, c := range d.Changes {
		if c.Level == reports.MAY {
			continue
		}
		_, index := ruleOf(c.ID)
		result := object{"ruleId": c.ID, "ruleIndex": index, "level": levels[c.Level], "message": object{"text": terminal.VisibleLine(c.subject(), 200) + "\n" + strings.Join(c.details(), "\n")},
			"locations": []object{format.SARIFLocation(d.Old, line(c.Tool))}, "partialFingerprints": object{"change/v1": strings.Join([]string{c.ID, c.Tool, c.At}, " ")}}
		if c.Allowed != "" {
			result["suppressions"] = []object{{"kind": "external", "justification": c.Allowed}}
		}
		results = append(results, result)
	}
	return format.EncodeSARIF(w, "bridgecheck tools", version, rules, object{
		"automationDetails": object{"id": "bridgecheck/tools/"},
		"invocations":       []object{{"executionSuccessful": true, "toolExecutionNotifications": format.SARIFProblems(d.Problems)}},
		"results":           results,
	})
}

// writeJUnit writes a case for each rule that a change breaks or may break.
func (d *Differences) writeJUnit(w io.Writer) error {
	suite := format.JUnitSuite{Name: "bridgecheck.tools"}
	for _, r := range Rules() {
		if r.Level == reports.MAY {
			continue
		}
		c := format.JUnitCase{Name: r.ID, Class: "bridgecheck.tools." + string(r.Class)}
		var failing, allowed, warned []string
		for _, change := range d.Changes {
			if change.ID != r.ID {
				continue
			}
			text := terminal.Escape(change.subject() + "\n  " + strings.Join(change.details(), "\n  "))
			switch {
			case d.Fails(change):
				failing = append(failing, text)
			case change.Allowed != "":
				allowed = append(allowed, text)
			default:
				warned = append(warned, text)
			}
		}
		switch {
		case failing != nil:
			c.Failure = &format.JUnitOutcome{Message: fmt.Sprintf("%s: %d", r.Says, len(failing)), Text: strings.Join(failing, "\n")}
			suite.Failures++
		case allowed != nil:
			c.Skipped = &format.JUnitOutcome{Message: fmt.Sprintf("allowed: %d", len(allowed)), Text: strings.Join(allowed, "\n")}
			suite.Skipped++
		}
		c.Output = strings.Join(warned, "\n")
		suite.Cases = append(suite.Cases, c)
	}
	for _, p := range d.Problems {
		text := terminal.Line(p.Text, 500)
		suite.Cases = append(suite.Cases, format.JUnitCase{Name: fmt.Sprintf("allow-list %s:%d %s", p.File, p.Line, p.Clause), Class: "bridgecheck.tools",
			Failure: &format.JUnitOutcome{Message: text, Text: text}})
		suite.Failures++
	}
	suite.Tests = len(suite.Cases)
	return format.EncodeJUnit(w, "bridgecheck tools", "", suite)
}
