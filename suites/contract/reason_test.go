package contract

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// The report of a broken clause says why it matters, what is right, and where to look.
func TestEveryClauseIsExplained(t *testing.T) {
	contract := must.Get(Load())(t)
	again := must.Get(parse(clauses))(t)
	problems := must.Get(again.explain(reasons))(t)
	for _, problem := range problems {
		t.Error(problem)
	}
	languages := map[string]int{}
	for _, c := range contract.Clauses {
		if !c.complete() {
			continue // one of the problems
		}
		must.Expect(t, len(c.Source) >= 8, "%s: its source %q is too short to be understood", c.ID, c.Source)
		must.Expect(t, c.Right != c.Wrong, "%s: right and wrong are the same", c.ID)
		must.Expect(t, c.Fix.String() != "" || c.Level != MUST, "%s is a MUST and does not say how to fix it", c.ID)
		must.Expect(t, c.Fix.Any != "", "%s says how to fix it in some languages alone: add `any`, for the others", c.ID)
		for language, text := range map[string]string{"php": c.Fix.PHP, "node": c.Fix.Node, "go": c.Fix.Go} {
			if text != "" {
				languages[language]++
			}
		}
		for _, text := range []string{c.Why, c.Fix.Any, c.Fix.PHP, c.Fix.Node, c.Fix.Go} {
			must.Expect(t, strings.Count(text, "`")%2 != 1, "%s: an unbalanced backquote in %q", c.ID, text)
		}
	}
	for language, n := range languages {
		must.Expect(t, n >= 50, "%s has %d fixes: fewer than its known traps", language, n)
	}
}

// A right example shows only codes that the table has for its status.
func TestRightExamplesKeepTheTableOfCodes(t *testing.T) {
	contract := must.Get(Load())(t)
	example := regexp.MustCompile(`\b([45]\d\d)(?:, [^{}→\n]*)? \{"error": \{"code": "(\w+)"`)
	seen := 0
	for _, c := range contract.Clauses {
		for _, m := range example.FindAllStringSubmatch(c.Right, -1) {
			seen++
			status, _ := strconv.Atoi(m[1]) // three digits, by the pattern
			must.Expect(t, slices.Contains(contract.Codes[status], m[2]),
				"%s: its right example has %s with the code %s; the table has %v", c.ID, m[1], m[2], contract.Codes[status])
		}
	}
	must.Expect(t, seen >= 30, "only %d right examples with a code were found", seen)
}

func TestProblemsOfReasonsAreNamed(t *testing.T) {
	const entry = "a/b: {why: w, right: r, wrong: x}\n"
	for name, c := range map[string]struct{ in, says string }{
		"complete":          {entry, ""},
		"no reason":         {"{}", "the clause a/b lacks why, right or wrong: add `a/b: {"},
		"no right":          {"a/b: {why: w, wrong: x}", "the clause a/b lacks why, right or wrong"},
		"a foreign clause":  {entry + "a/c: {why: w, right: r, wrong: x}", "a.yaml has a/c, which is no clause of the area"},
		"an unknown member": {"a/b: {why: w, right: r, wrong: x, fx: y}", "field fx not found"},
	} {
		t.Run(name, func(t *testing.T) {
			contract := must.Get(parse([]byte("sources: {x: {name: s, url: u}}\na:\n- {id: a/b, level: MUST, wire: front, from: x, text: x}")))(t)
			problems, err := contract.explain(fstest.MapFS{"reasons/a.yaml": {Data: []byte(c.in)}})
			if err != nil {
				problems = append(problems, err.Error())
			}
			if c.says == "" && len(problems) > 0 || c.says != "" && (len(problems) != 1 || !strings.Contains(problems[0], c.says)) {
				t.Errorf("the problems are %q, expected one with %q", problems, c.says)
			}
		})
	}
}
