package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestSwapped(t *testing.T) {
	for _, c := range []struct {
		line, kind string
		column     int
		want       string
	}{
		{"if a <= b {", "CONDITIONALS_BOUNDARY", 6, "if a < b {"},
		{"if a <= b {", "CONDITIONALS_NEGATION", 6, "if a > b {"},
		{"if a && b {", "INVERT_LOGICAL", 6, "if a || b {"},
		{"x &^= 2", "INVERT_BWASSIGN", 3, "x &= 2"},
		{"if a == b {", "INVERT_LOGICAL", 6, ""},
	} {
		changed, _, err := swapped(c.line, mutant{Kind: c.kind, Column: c.column})
		must.Expect(t, changed == c.want && (err == nil) != (c.want == ""), "%s in %q: %q, %v; want %q", c.kind, c.line, changed, err, c.want)
	}
}

// What is excepted says why, and names a line that the starter still has.
func TestReviewedSurvivorsStandInTheStarters(t *testing.T) {
	for name := range starters {
		reviewed := must.Get(readReviewed("reviewed.yaml", name))(t)
		lines := must.Get(readLines(filepath.Join("..", "..", "starter", name)))(t)
		var source strings.Builder
		for _, of := range lines {
			source.WriteString(strings.Join(of, "\n"))
		}
		for r := range reviewed {
			must.Expect(t, strings.Contains(source.String(), r.code), "reviewed.yaml: the %s starter has no line %q", name, r.code)
		}
	}
	wrong := filepath.Join(t.TempDir(), "reviewed.yaml")
	must.Do(t, os.WriteFile(wrong, []byte("- {starter: go, kind: X, by: y, code: z, is: equivalent}\n"), 0o600))
	must.Refuse(readReviewed(wrong, "go"))(t, "", "an entry without a reason is taken")
}

func TestAnUnknownStarterIsRefused(t *testing.T) {
	must.Refuse(run(context.Background(), "cobol", "bridgecheck", 1, 1, filepath.Join(t.TempDir(), "r")))(t, "", "cobol is taken for a starter")
}

// Each starter has a line, and a new one replaces it.
func TestFiguresStandInThePageOnTrust(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, os.Mkdir("docs", 0o700))
	must.Do(t, os.WriteFile(trustPage, []byte("text "+trustMark+"\nmore\n"), 0o600))
	for _, of := range [][2]string{
		{"go", "Of 1 mutants of the go starter, a."}, {"node", "Of 2 mutants of the node starter, b."}, {"go", "Of 3 mutants of the go starter, c."},
	} {
		must.Do(t, writeFigures(of[0], of[1]))
	}
	want := "text " + trustMark + "\nOf 3 mutants of the go starter, c.\n\nOf 2 mutants of the node starter, b.\n\nmore\n"
	must.Equal(t, string(must.Get(os.ReadFile(trustPage))(t)), want, "the page")
}
