package contract

import (
	"flag"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

var update = flag.Bool("update", false, "write the golden files")

// An id, once released, never changes: baselines and reports of users name it.
func TestReleasedIDsStay(t *testing.T) {
	c := must.Get(Load())(t)
	const golden = "testdata/ids.txt"
	if *update {
		var b strings.Builder
		for _, c := range c.Clauses {
			b.WriteString(c.ID + "\n")
		}
		must.Do(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	frozen := must.Get(os.ReadFile(golden))(t)
	for id := range strings.Lines(string(frozen)) {
		_, ok := c.Clause(strings.TrimSpace(id))
		must.Expect(t, ok, "the released id %s is gone from the contract", strings.TrimSpace(id))
	}
	for _, c := range c.Clauses {
		must.Expect(t, strings.Contains(string(frozen), c.ID+"\n"), "%s is not in %s: go test ./suites/contract -update", c.ID, golden)
	}
}

func TestParseRefuses(t *testing.T) {
	const good = `{id: a/b, level: MUST, wire: front, from: x, text: x}`
	for name, c := range map[string]struct{ in, says string }{
		"a foreign area":        {"sources: {x: {name: s, url: u}}\na:\n- {id: b/c, level: MUST, wire: front, from: x, text: x}", "does not start with its area"},
		"a level":               {"sources: {x: {name: s, url: u}}\na:\n- {id: a/b, level: must, wire: front, from: x, text: x}", `level "must"`},
		"a wire":                {"sources: {x: {name: s, url: u}}\na:\n- {id: a/b, level: MUST, wire: back, from: x, text: x}", `wire "back"`},
		"no text":               {"sources: {x: {name: s, url: u}}\na:\n- {id: a/b, level: MUST, wire: front, from: x}", "no text"},
		"an id twice":           {"sources: {x: {name: s, url: u}}\na:\n- " + good + "\n- " + good, "defined twice"},
		"an unknown source":     {"a:\n- " + good, `"x" is not a key of sources`},
		"a source without URL":  {"sources: {x: {name: s}}\na:\n- " + good, "must give a reason"},
		"an unknown capability": {"sources: {x: {name: s, url: u}}\na:\n- {id: a/b, level: MUST, wire: front, needs: wings, from: x, text: x}", `"wings"`},
	} {
		t.Run(name, func(t *testing.T) {
			must.Refuse(parse([]byte(c.in)))(t, c.says)
		})
	}
}

// An implementer can read what a clause comes from.
func TestSourcesArePublic(t *testing.T) {
	c := must.Get(Load())(t)
	used := map[string]bool{}
	for _, clause := range c.Clauses {
		for one := range strings.SplitSeq(clause.From, "; ") {
			key, _, _ := strings.Cut(one, " ")
			used[key] = true
		}
	}
	for key, source := range c.sources {
		u, err := url.Parse(source.URL)
		switch {
		case !used[key]:
			t.Errorf("no clause comes from the source %s", key)
		case key == "contract":
			must.Expect(t, source.URL == "", "the source contract is this contract itself, but has the URL %s", source.URL)
		case err != nil || u.Scheme != "https" || !strings.Contains(u.Host, "."):
			t.Errorf("the source %s has no public URL: %q", key, source.URL)
		}
	}
}

func TestMatch(t *testing.T) {
	c := must.Get(Load())(t)
	for glob, want := range map[string]string{
		"describe/unknown-404": "describe/unknown-404",
		"describe/unknown-*":   "describe/unknown-404",
		"per-tool":             "per-tool/answers per-tool/name-binds per-tool/scopes per-tool/unknown-404",
	} {
		ids, err := c.Match(glob)
		must.Expect(t, err == nil && strings.Join(ids, " ") == want, "Match(%q) = %v, %v; want %s", glob, ids, err, want)
	}
	ids, err := c.Match("descrbe/unknown-404")
	must.Expect(t, len(ids) == 0 && err == nil, "a glob that matches nothing = %v, %v", ids, err)
	must.Refuse(c.Match("list/["))(t, "", "a malformed glob gives no error")
}

func TestGlossaryDefinesOurTerms(t *testing.T) {
	c := must.Get(Load())(t)
	defined := map[string]bool{}
	for _, term := range c.Glossary {
		must.Expect(t, !defined[term.Name], "%s is defined twice", term.Name)
		defined[term.Name] = true
		if sentences := strings.Count(term.Text+" ", ". "); !strings.HasSuffix(term.Text, ".") || sentences > 2 {
			t.Errorf("%s has a definition of %d sentences, want one or two: %q", term.Name, sentences, term.Text)
		}
	}
	for _, name := range []string{"capability", "variant", "positive control", "front side", "site side", "mutant", "golden set",
		"quirk", "journal", "baseline", "evidence", "profile"} {
		must.Expect(t, defined[name], "the glossary has no %s", name)
	}
}
