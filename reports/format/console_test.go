package format

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

func TestSummaryShowsWhatToActOn(t *testing.T) {
	var b bytes.Buffer
	if err := (&Console{Out: &b, Width: 80}).Summary(sample.Every(), "out"); err != nil {
		t.Fatal(err)
	}
	text := b.String()
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
		"2 passed, 2 failed, 1 error, 1 fixed, 1 warned, 1 known, 2 not testable, 1 not applicable in 1.23 s · Example bridge 2.3 · seed 9007199254740993\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the summary lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "invoke/null-result") {
		t.Error("an untested SHOULD is shown as something to act on")
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "not conformant: 2 clauses fail") {
		t.Errorf("the last line is %q", last)
	}
	if strings.Contains(text, "\x1b") {
		t.Error("there is an escape sequence without colour")
	}
}

func TestProgressIsQuietWithoutATerminal(t *testing.T) {
	var b bytes.Buffer
	c := &Console{Out: &b}
	c.Progress(1, 2, sample.Every().Results[3])
	c.ClearProgress()
	if b.Len() > 0 {
		t.Errorf("progress writes %q", &b)
	}
}

func TestProgressKeepsFailuresAndRewritesTheRest(t *testing.T) {
	var b bytes.Buffer
	c := &Console{Out: &b, Live: true, Width: 60}
	r := sample.Every()
	c.Progress(1, 11, r.Results[0])
	c.Progress(2, 11, r.Results[4])
	c.ClearProgress()
	const want = "\r\x1b[K[1/11] list/answers-json\r\x1b[KFAIL describe/reflects-safely describe: <script>window.pw\n[2/11] describe/reflects-safely\r\x1b[K"
	if got := b.String(); got != want {
		t.Errorf("progress writes\n%q, want\n%q", got, want)
	}
}

func TestConsoleFitsWhatItWritesTo(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if c := NewConsole(file, func(string) string { return "" }); c.Color || c.Live {
		t.Errorf("a file gets %+v", c)
	}
}

func TestSummaryOfManyFailuresStaysReadable(t *testing.T) {
	r := sample.Kept()
	for i := range 60 {
		result := reports.Result{ID: fmt.Sprintf("list/case-%d", i), Level: reports.MUST, Area: "list", Verdict: reports.Fail, Text: "A rule.",
			Findings: []reports.Finding{{Subject: fmt.Sprintf("case %d", i), Expected: "200", Actual: "500", Request: new(0)}}, Remedy: "PHP: fix\nGo: fix",
			Evidence: []reports.Exchange{{Request: reports.Message{Method: "GET", URL: "http://b/x"}}}}
		result.Conclude()
		r.Results = append(r.Results, result)
	}
	var b bytes.Buffer
	if err := (&Console{Out: &b}).Summary(r, "out"); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if n := strings.Count(text, "\n"); n > 12*10+60 {
		t.Errorf("60 failures take %d lines", n)
	}
	for i := range 60 {
		if !strings.Contains(text, fmt.Sprintf("FAILED  list/case-%d  ", i)) {
			t.Errorf("case %d is not shown", i)
		}
	}
	for _, want := range []string{"\n  case 0\n  expected  200\n  got       500\n", "\nFAILED  list/case-59  case 59: expected 200, got 500\n\n", "\nbegin with: list/case-0 · bridgecheck checks explain list/case-0\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the summary lacks %q:\n%s", want, text)
		}
	}
}
