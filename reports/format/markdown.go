package format

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
)

// Bounds of summary.md, in bytes where nothing else is said: GitHub shows no job summary above 1 MiB, and one step may share that with others.
const (
	markdownDetails = 512 << 10 // all details together; the table of verdicts stands beside them
	markdownValue   = 4 << 10   // one message or value
	sinceShown      = 50        // clauses of one kind of change
)

// words name the verdicts for people.
var words = map[reports.Verdict]string{
	reports.Pass: "passed", reports.Fail: "failed", reports.Warn: "warned", reports.Known: "known", reports.Fixed: "fixed",
	reports.NotApplicable: "not applicable", reports.NotTestable: "not testable", reports.Error: "error",
}

// icons mark the verdicts where there is room for one character.
var icons = map[reports.Verdict]string{
	reports.Pass: "✅", reports.Fail: "❌", reports.Warn: "⚠️", reports.Known: "📌", reports.Fixed: "🔓", reports.NotApplicable: "➖",
	reports.NotTestable: "❔", reports.Error: "💥",
}

// writeMarkdown writes r as a CI job's summary: outcome, counts, what to act on with its details, and the verdict on
// every clause. It stays below GitHub's limit of 1 MiB by leaving details out, never verdicts.
func writeMarkdown(w io.Writer, r *reports.Report) error {
	var b strings.Builder
	state := map[reports.State]string{reports.Conformant: icons[reports.Pass], reports.Partial: icons[reports.Warn],
		reports.NotConformant: icons[reports.Fail]}[r.State().Kind()]
	fmt.Fprintf(&b, "## %s bridgecheck: %s\n\n", state, Inline(r.Headline()))
	about := []string{Inline(terminal.VisibleLine(r.Target.Title(), 200))}
	for _, maker := range []string{r.Target.Organisation, r.Target.Contact} {
		if maker != "" {
			about = append(about, Inline(terminal.VisibleLine(maker, 200)))
		}
	}
	if r.Target.Proxy != "" {
		about = append(about, "behind "+Inline(terminal.VisibleLine(r.Target.Proxy, 200)))
	}
	fmt.Fprintf(&b, "%s · contract %s · %s · %.1f s\n\n", strings.Join(about, ", "), Inline(r.Ledger.Name()), r.Started.UTC().Format("2006-01-02 15:04 MST"), float64(r.DurationMS)/1000)
	markdownCounts(&b, r)
	markdownSince(&b, r.Since)
	markdownCauses(&b, r)

	budget := markdownDetails
	for _, section := range []struct {
		title   string
		results []reports.Result
	}{
		{"Failed", r.With(reports.Fail)},
		{"Errors of the checks themselves", r.With(reports.Error)},
		{"Passes although the baseline excuses it", r.With(reports.Fixed)},
		{"Warnings", r.With(reports.Warn)},
		{"MUSTs that could not be tested", r.Blocked()},
		{"MUSTs that need more than the front side", r.Unseen()},
		{"Known failures", r.With(reports.Known)},
	} {
		budget -= markdownSection(&b, section.title, section.results, budget)
	}
	if len(r.BaselineProblems) > 0 {
		fmt.Fprint(&b, "### Baseline entries that no longer apply\n\n")
		for _, p := range r.BaselineProblems[:min(len(r.BaselineProblems), 50)] {
			fmt.Fprintf(&b, "- %s:%d %s: %s\n", Inline(p.File), p.Line, Inline(p.Clause), Inline(terminal.VisibleLine(p.Text, 500)))
		}
		b.WriteString("\n")
	}
	if len(r.Measured) > 0 {
		b.WriteString("### How the bridge behaves\n\n| | measured | given | used |\n| --- | --- | --- | --- |\n")
		for _, m := range r.Measured {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", Inline(m.What), Inline(m.Measured), Inline(m.Given), Inline(m.Used))
		}
		b.WriteString("\n")
	}
	markdownTable(&b, r)
	_, err := io.WriteString(w, b.String())
	return err
}

func markdownCounts(b *strings.Builder, r *reports.Report) {
	b.WriteString("|")
	for _, v := range reports.Verdicts() {
		fmt.Fprintf(b, " %s %s |", icons[v], words[v])
	}
	b.WriteString(" total |\n|" + strings.Repeat(" ---: |", len(reports.Verdicts())+1) + "\n|")
	s := r.Counted()
	for _, v := range reports.Verdicts() {
		fmt.Fprintf(b, " %d |", s.Count(v))
	}
	fmt.Fprintf(b, " %d |\n\n", s.Total)
}

// markdownCauses says which cause explains most failures, and lists the causes of several clauses.
func markdownCauses(b *strings.Builder, r *reports.Report) {
	if first, ok := r.FirstCause(); ok {
		fmt.Fprintf(b, "**Fix this first.** %s.\n\n", Inline(terminal.VisibleLine(first.Explains(r), 500)))
	}
	shown := false
	for _, g := range r.Groups() {
		if len(g.Clauses) < 2 {
			continue
		}
		if !shown {
			b.WriteString("### Causes\n\n")
			shown = true
		}
		fmt.Fprintf(b, "- %s (%d): `%s`\n", Inline(terminal.VisibleLine(g.Cause, 500)), len(g.Clauses), strings.Join(g.Clauses, "`, `"))
	}
	if shown {
		b.WriteString("\n")
	}
}

// markdownSince lists what changed, kind by kind.
func markdownSince(b *strings.Builder, c *reports.Comparison) {
	if c == nil {
		return
	}
	fmt.Fprintf(b, "Since %s (contract %s, %s):", Inline(terminal.VisibleLine(c.Old.Started, 100)), Inline(terminal.VisibleLine(c.Old.Ledger, 100)),
		Inline(terminal.VisibleLine(c.Old.Headline, 500)))
	groups := c.Groups()
	if len(groups) == 0 {
		b.WriteString(" no difference.\n\n")
		return
	}
	b.WriteString("\n\n")
	for _, g := range groups {
		ids := make([]string, 0, sinceShown)
		for _, change := range g.Changes[:min(len(g.Changes), sinceShown)] {
			ids = append(ids, "`"+change.ID+"`")
		}
		if over := len(g.Changes) - sinceShown; over > 0 {
			ids = append(ids, fmt.Sprintf("%d more", over))
		}
		fmt.Fprintf(b, "- %s (%d): %s\n", g.Title, len(g.Changes), strings.Join(ids, ", "))
	}
	b.WriteString("\n")
}

// markdownSection writes results' details while budget lasts and gives the bytes that they took.
func markdownSection(b *strings.Builder, title string, results []reports.Result, budget int) int {
	if len(results) == 0 {
		return 0
	}
	start := b.Len()
	fmt.Fprintf(b, "### %s (%d)\n\n", title, len(results))
	for i, result := range results {
		entry := markdownResult(result)
		if b.Len()-start+len(entry) > budget {
			fmt.Fprintf(b, "… %d more, with their details in `report.html`.\n\n", len(results)-i)
			break
		}
		b.WriteString(entry)
	}
	return b.Len() - start
}

func markdownResult(r reports.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<details><summary>%s <b>%s</b> %s — %s</summary>\n\n", icons[r.Verdict], r.ID, r.Level, Inline(terminal.VisibleLine(r.Message, 500)))
	if r.Text != "" {
		fmt.Fprintf(&b, "%s\n\n", Inline(terminal.VisibleLine(r.Text, 1000)))
	}
	for _, part := range []struct{ name, text string }{
		{"Expected", r.Expected}, {"Got", r.Actual}, {"Known because", r.KnownReason}, {"To do", r.Remedy}, {"Repeat it", r.Curl},
	} {
		if part.text != "" {
			fmt.Fprintf(&b, "%s:\n%s\n", part.name, fenced(part.text))
		}
	}
	markdownFindings(&b, r.Findings)
	fmt.Fprintf(&b, "Evidence: `%s`\n\n</details>\n\n", evidenceAt(r))
	return b.String()
}

// markdownFindings lists faults, where there are several.
func markdownFindings(b *strings.Builder, found []reports.Finding) {
	const shown = 20
	if len(found) < 2 {
		return
	}
	b.WriteString("Each fault:\n\n")
	for _, f := range found[:min(len(found), shown)] {
		who := cmp.Or(f.Tool, "all tools")
		if f.Identity != "" {
			who += " as " + f.Identity
		}
		fmt.Fprintf(b, "- %s: %s", Inline(terminal.VisibleLine(who, 200)), Inline(terminal.VisibleLine(f.Message, 500)))
		if f.KnownReason != "" {
			fmt.Fprintf(b, " (known: %s)", Inline(terminal.VisibleLine(f.KnownReason, 200)))
		}
		b.WriteString("\n")
	}
	if over := len(found) - shown; over > 0 {
		fmt.Fprintf(b, "- %d more\n", over)
	}
	b.WriteString("\n")
}

func markdownTable(b *strings.Builder, r *reports.Report) {
	fmt.Fprintf(b, "<details><summary>All %d clauses</summary>\n\n| clause | level | verdict |\n| --- | --- | --- |\n", len(r.Results))
	for _, result := range r.Results {
		fmt.Fprintf(b, "| %s | %s | %s %s |\n", result.ID, result.Level, icons[result.Verdict], result.Verdict)
	}
	b.WriteString("\n</details>\n")
}

// mdLinks are what GitHub makes a link of without further syntax.
var mdLinks = strings.NewReplacer("://", "&#58;//", "www.", "&#119;ww.", "WWW.", "&#87;WW.")

// Inline makes one line of text, safe between Markdown and the HTML in it: shown as it is, never a link, tag, table cell, list or
// heading, wherever it stands in a line.
func Inline(s string) string {
	var b strings.Builder
	s = mdLinks.Replace(html.EscapeString(strings.Join(strings.Fields(s), " ")))
	for i, c := range s {
		switch {
		case strings.ContainsRune("\\`*_{}[]()+!|~@", c), c == '#' && !strings.HasSuffix(b.String(), "&"),
			i == 0 && strings.ContainsRune("-=", c), c == '.' && strings.Trim(s[:i], "0123456789") == "" && strings.HasPrefix(s[i+1:]+" ", " "):
			fmt.Fprintf(&b, "&#%d;", c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// fenced is text as a code block whose fence is longer than any run of backquotes in it.
func fenced(s string) string {
	s = terminal.Clip(s, markdownValue)
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "\n" + s + "\n" + fence + "\n"
}

// markdownVerdicts reads the verdicts back from the table of all clauses.
var markdownVerdicts = patternVerdicts(regexp.MustCompile(`(?m)^\| (\S+) \| (?:MUST|SHOULD|MAY) \| \S+ ([a-z-]+) \|$`))
