package format

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

func TestDetailsShowWhatToActOn(t *testing.T) {
	text := printed(t, &Console{Width: 100}, (*Console).Details, sample.Every())
	for _, want := range []string{
		"FAILED  mapping/no-params-object  MUST\n",
		"  tool cache.rebuild: inputSchema.properties is [], want {}\n",
		"  expected  {\"type\":\"object\",\"properties\":{}}\n",
		"  got       {\"type\":\"object\",\"properties\":[]}\n",
		"  repeat    curl -u \"$AGENT_USER:$AGENT_PASSWORD\"",
		"  evidence  out/report.html#describe/reflects-safely\n",
		"WARNED  list/description-not-empty  SHOULD\n",
		"NOT TESTABLE  invoke/denied  MUST\n",
		"  to do     Name one under invocations.\n",
		"2 passed, 2 failed, 1 error, 1 fixed, 1 warned, 1 known, 2 not testable, 1 not applicable in 1.23 s\n· Example bridge 2.3 · seed 9007199254740993\n",
	} {
		must.Expect(t, strings.Contains(text, want), "the details lack %q:\n%s", want, text)
	}
	must.Expect(t, !strings.Contains(text, "invoke/null-result"), "an untested SHOULD is shown as something to act on")
	must.Expect(t, strings.Index(text, "NOT TESTABLE  ") <= strings.Index(text, "FAILED  "),
		"what could not be tested pushes the failures off the screen")
	last := lastLine(text)
	must.Expect(t, strings.HasPrefix(last, "not conformant: 2 clauses fail"), "the last line is %q", last)
	must.Expect(t, !strings.Contains(text, "\x1b"), "there is an escape sequence without colour")
}

// printed is what a console shows of a report whose directory is out.
func printed(t *testing.T, c *Console, show func(*Console, *reports.Report, string) error, r *reports.Report) string {
	t.Helper()
	var b bytes.Buffer
	c.Out = &b
	must.Do(t, show(c, r, "out"))
	return b.String()
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// manyFailures is a report in which so many clauses fail, each by itself, with long values and remedies.
func manyFailures(n int) *reports.Report {
	r := sample.Kept()
	for i := range n {
		result := reports.Result{ID: fmt.Sprintf("list/case-%d", i), Level: reports.MUST, Area: "list", Verdict: reports.Fail, Text: strings.Repeat("A rule. ", 60),
			Findings: []reports.Finding{{Subject: fmt.Sprintf("case %d", i), Expected: strings.Repeat("a page ", 90), Actual: "500\n" + strings.Repeat("line\n", 90), Request: new(0)}},
			Remedy:   strings.Repeat("PHP: fix\nGo: fix it in many words that do not fit one line of a terminal, whatever its width may be\n", 9),
			Evidence: []reports.Exchange{{Request: reports.Message{Method: "GET", URL: "http://b/x"}}}}
		result.Conclude()
		r.Results = append(r.Results, result)
	}
	return r
}

// warnings is a run in which SHOULD clauses alone are not kept.
func warnings(n int) *reports.Report {
	r := manyFailures(n)
	for i := range r.Results {
		if r.Results[i].Verdict == reports.Fail {
			r.Results[i].Verdict, r.Results[i].Level = reports.Warn, reports.SHOULD
		}
	}
	return r
}

// The summary of any run fits a screen of 25 lines, and no line of it is broken by the terminal but for long names.
func TestSummaryFitsAScreen(t *testing.T) {
	blocked, unseen, stale := sample.Kept(), sample.Kept(), manyFailures(30)
	for i := range 70 {
		result := reports.Result{ID: fmt.Sprintf("fresh/case-%d", i), Level: reports.MUST, Area: "fresh", Verdict: reports.NotTestable, Message: strings.Repeat("the site was slow ", 30), Remedy: "Wait."}
		blocked.Results, unseen.Results = append(blocked.Results, result), append(unseen.Results, result)
		stale.Results = append(stale.Results, result)
		stale.BaselineProblems = append(stale.BaselineProblems, reports.BaselineProblem{File: "b.yaml", Line: i, Clause: result.ID, Text: strings.Repeat("expired ", 50)})
	}
	unseen.Wire = reports.Front
	stale.Target.Name, stale.CutShort, stale.Wire = strings.Repeat("a bridge ", 40), "interrupted", reports.Front
	hostile := reportIn(func(string) string { return strings.Repeat(sample.Hostile, 3) })
	for name, c := range map[string]struct {
		report *reports.Report
		want   []string
	}{
		"conformant":       {sample.Kept(), []string{"2 passed in 1.23 s · Example bridge 2.3", "report: out/report.html"}},
		"every verdict":    {sample.Every(), []string{"FAILED  describe/reflects-safely  MUST", "at fault: the bridge (2 failures)", "begin with: describe/reflects-safely ·"}},
		"one failure":      {manyFailures(1), []string{"FAILED  list/case-0  MUST", "  expected  a page", "  got       500\n", "  to do     PHP: fix\n"}},
		"many failures":    {manyFailures(60), []string{"FAILED  list/case-0  MUST", "FAILED  list/case-2  MUST", "… and 57 more causes in the report", "at fault: the bridge (60 failures)"}},
		"warnings":         {warnings(9), []string{"WARNED  list/case-0  SHOULD", "also warned: list/case-3, list/case-4, list/case-5,", "list/case-8\n"}},
		"many warnings":    {warnings(90), []string{"also warned: list/case-", " …\n"}},
		"causes":           {crashes(), []string{"FAILED  list/case-1  MUST  and 2 more", "\nfix this first: no response: the connection was closed: explains 3 of 4"}},
		"nothing testable": {blocked, []string{"NOT TESTABLE  fresh/case-0  MUST  and 69 more", "at fault: the site (70 MUSTs not tested)", "  to do     Wait."}},
		"the front side":   {unseen, []string{"NOT SEEN  70 MUSTs need to see more than the front side"}},
		"all at once":      {stale, []string{"BASELINE  b.yaml:0: fresh/case-0: expired", "the baseline (70 entries that do not hold)"}},
		"hostile texts":    {hostile, nil},
	} {
		for _, width := range []int{0, 80, 120} {
			text := printed(t, &Console{Width: width}, (*Console).Summary, c.report)
			for _, want := range c.want {
				must.Expect(t, strings.Contains(text, want), "%s, width %d: it lacks %q:\n%s", name, width, want, text)
			}
			n := strings.Count(text, "\n")
			must.Expect(t, n <= 25, "%s, width %d: it has %d lines:\n%s", name, width, n, text)
			must.Expect(t, strings.HasPrefix(lastLine(text), string(c.report.State())+": "),
				"%s, width %d: the last line is %q", name, width, lastLine(text))
			for line := range strings.Lines(strings.TrimSuffix(text, lastLine(text)+"\n")) { // scripts read the outcome as one line
				if words := strings.Fields(line); utf8.RuneCountInString(line) > max(width, 80)+1 && len(words) > 3 && (width > 0 || words[0] != "begin") {
					t.Errorf("%s, width %d: the terminal breaks the line %q", name, width, line)
				}
			}
			if painted := printed(t, &Console{Width: width, Color: true}, (*Console).Summary, c.report); regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(painted, "") != text {
				t.Errorf("%s, width %d: with colour it is another text", name, width)
			}
		}
	}
}

func TestProgressIsQuietWithoutATerminal(t *testing.T) {
	var b bytes.Buffer
	c := &Console{Out: &b}
	c.Progress(1, 2, sample.Every().Results[3])
	c.ClearProgress()
	must.Expect(t, b.Len() == 0, "progress writes %q", &b)
}

func TestProgressKeepsFailuresAndRewritesTheRest(t *testing.T) {
	var b bytes.Buffer
	c := &Console{Out: &b, Live: true, Width: 60, Verbose: true}
	r := sample.Every()
	c.Progress(1, 11, r.Results[0])
	c.Progress(2, 11, r.Results[4])
	c.ClearProgress()
	c.Verbose = false
	c.Progress(2, 11, r.Results[4])
	const want = "\r\x1b[K[1/11] list/answers-json\r\x1b[KFAIL describe/reflects-safely describe: <script>window.pw\n[2/11] describe/reflects-safely\r\x1b[K\r\x1b[K[2/11] describe/reflects-safely"
	must.Equal(t, b.String(), want, "progress")
}

func TestConsoleFitsWhatItWritesTo(t *testing.T) {
	file := must.Get(os.CreateTemp(t.TempDir(), "out"))(t)
	defer file.Close()
	c := NewConsole(file, func(string) string { return "" })
	must.Expect(t, !c.Color && !c.Live, "a file gets %+v", c)
}

func TestDetailsOfManyFailuresStayReadable(t *testing.T) {
	text := printed(t, &Console{}, (*Console).Details, manyFailures(60))
	n := strings.Count(text, "\n")
	must.Expect(t, n <= 12*50+60, "60 failures take %d lines", n)
	for i := range 60 {
		must.Expect(t, strings.Contains(text, fmt.Sprintf("FAILED  list/case-%d  ", i)), "case %d is not shown", i)
	}
}
