package contract

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

var releaseFlag = flag.String("release", "", "write the set of clauses of this version, which then never changes")

// A version is released once: its file is written, and Load holds the clauses to it from then on.
func TestRelease(t *testing.T) {
	if *releaseFlag == "" {
		return // Load has held the clauses to the released versions in every other test
	}
	c := must.Get(Load())(t)
	must.Assert(t, byVersion(*releaseFlag, c.Latest()) > 0, "%s is not newer than %s, the latest released version", *releaseFlag, c.Latest())
	var b strings.Builder
	fmt.Fprintf(&b, "# The clauses of version %s and their levels. The version is released: this file never changes.\n", *releaseFlag)
	for _, clause := range c.Clauses {
		if byVersion(cmp.Or(clause.Since, firstVersion), *releaseFlag) <= 0 {
			fmt.Fprintf(&b, "%s: %s\n", clause.ID, clause.Level)
		}
	}
	must.Do(t, os.WriteFile("versions/"+*releaseFlag+".yaml", []byte(b.String()), 0o644))
}

// small is a contract with a released version and a clause beyond it.
func small(t *testing.T, clauses string, released map[string]string) (*Contract, error) {
	t.Helper()
	c := must.Get(parse([]byte("sources: {x: {name: s, url: u}}\na:\n" + clauses)))(t)
	files := fstest.MapFS{}
	for version, levels := range released {
		files["versions/"+version+".yaml"] = &fstest.MapFile{Data: []byte(levels)}
	}
	return c, c.release(files)
}

const (
	oldClause = "- {id: a/old, level: MUST, wire: front, from: x, text: x}\n"
	newClause = "- {id: a/new, level: SHOULD, wire: front, since: '1.1', from: x, text: x}\n"
)

func TestVersions(t *testing.T) {
	c := must.Get(small(t, oldClause+newClause, map[string]string{"1.0": "a/old: MUST"}))(t)
	got, want := c.Versions(), []string{"1.0", "1.1-draft"}
	must.Expect(t, slices.Equal(got, want), "Versions() = %v, want %v", got, want)
	for version, want := range map[string]string{"": "1.0 a/old", "1.0": "1.0 a/old", "1.1-draft": "1.1-draft a/old a/new", Draft: "1.1-draft a/old a/new"} {
		at := must.Get(c.At(version))(t)
		must.Equal(t, at.Version+" "+strings.Join(at.IDs(), " "), want, "At(%q)", version)
	}
	if at, _ := c.At("1.0"); at.DocumentedCode("a") {
		t.Error("a version knows codes that the contract does not")
	} else if _, ok := at.Clause("a/new"); ok {
		t.Error("1.0 has the clause a/new")
	}
	must.Refuse(c.At("1.1"))(t, "1.0, 1.1-draft", "At of a version that is not released")
	changes, err := c.Diff("1.0", Draft)
	must.Expect(t, err == nil && slices.Equal(changes, []Change{{"a/new", "", SHOULD}}), "Diff = %v, %v", changes, err)
	changes, err = c.Diff("1.0", "1.0")
	must.Expect(t, err == nil && len(changes) <= 0, "Diff of a version with itself = %v, %v", changes, err)

	// Once 1.1 is released it is the default, and 1.0 stays what it was.
	c = must.Get(small(t, oldClause+newClause, map[string]string{"1.0": "a/old: MUST", "1.1": "a/old: MUST\na/new: SHOULD"}))(t)
	at, err := c.At("")
	must.Expect(t, err == nil && at.Version == "1.1" && len(at.Clauses) == 2, "the latest version is %v, %v", at, err)
	at, err = c.At("1.0")
	must.Expect(t, err == nil && len(at.Clauses) == 1, "1.0 is %v, %v", at, err)
}

func TestReleasedVersionsAreKept(t *testing.T) {
	released := map[string]string{"1.0": "a/old: MUST"}
	for name, c := range map[string]struct{ clauses, says string }{
		"a clause that is gone":      {newClause, "a/old of the released version 1.0 is gone"},
		"another level":              {strings.Replace(oldClause, "MUST", "MAY", 1), "a/old is a MAY, but a MUST in the released version 1.0"},
		"a new clause without since": {oldClause + strings.Replace(newClause, "since: '1.1', ", "", 1), "a/new is not in the released version 1.0: give it the next version as `since`"},
	} {
		t.Run(name, func(t *testing.T) {
			must.Refuse(small(t, c.clauses, released))(t, c.says)
		})
	}
}

// 1.10 is newer than 1.9.
func TestVersionsAreComparedByNumber(t *testing.T) {
	must.Expect(t, byVersion("1.10", "1.9") > 0 && byVersion("1.0", "") > 0 && byVersion("1.0", "1.0") == 0,
		"versions are not compared by their numbers")
}
