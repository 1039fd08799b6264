package repo

import (
	"fmt"
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// words are the words that the texts of this repository do not use, in names, comments, messages and documents, and what
// they say instead. Each entry lists forms, separated by commas. Letter case does not matter; the words of a form may be
// apart by spaces, line ends or hyphens, or be the parts of an identifier.
var words = []struct{ forms, instead string }{
	{"mend, mends, mended, mending", "fix, repair"},
	{"judge, judges, judged, judging, judgement, judgements, judgment, judgments", "test, check"},
	{"hold it to, hold them to, hold a bridge to, hold bridges to, holds it to, holds them to, held to", "test, check against"},
	{"tell, tells, told, telling", "report, say, show; receive for `is told`"},
	{"sign in, signs in, signed in, signing in, signin, signins, sign ins", "authenticate, credentials"},
	{"somebody else's answer, somebody else's response, someone else's answer, someone else's response", "mismatched response"},
	{"made up, make up, makes up, making up, make it up, makes it up, makes them up, make them up, makes values up, make values up", "generate, generated"},
	{"dies of, died of, die of", "a mutant that a clause kills"},
	{"twin, twins", "positive control"},
	{"face, faces, faced", "interface, front side, site side"},
	{"wire, wires, wired", "front side, site side, interface"},
	{"answer, answers, answered, answering", "response, respond"},
	{"whom, whomever, whoever, hurts", "who is affected; a main clause"},
	{"anew", "again; refetched"},
	{"none but, use to none, of use to", "only"},
	{"zoo", "mutants"},
	{"fell", "failed"},
	{"meant", "expected, intended"},
	{"stray, strays", "unexpected"},
	{"spared", "skipped"},
	{"speak of, speaks of", "name, describe"},
}

// exceptions are texts that hold one of the words in another sense. They are removed before a file is searched.
var exceptions = []struct {
	in     string // how the paths of the files begin
	text   *regexp.Regexp
	reason string
}{
	{"", regexp.MustCompile(`--wire\b|\bwire:|"wire(,omitempty)?"|\binputs\.wire\b|\bWire\b`), "a flag, a key of contract.yaml and a member of report.json, with its Go name: names are a promise"},
	{"suites/contract/", regexp.MustCompile(`\bwire\b`), "the key itself"},
	{"", regexp.MustCompile(`\b(max_answer|max-answer|MaxAnswer)\b`), "a setting of the reference bridge, with its Go name: likewise a promise"},
}

// notOurs are files whose texts others wrote, or which are recordings.
var notOurs = []string{
	"LICENSE", "THIRD_PARTY_NOTICES", "go.sum", "test/clients/package-lock.json", "test/release/go.sum", "testcontainers/go.sum",
	"suites/input/mcpschema/*.json",                    // schemas of the Model Context Protocol
	"internal/tools/release/testdata/*.schema.json",    // the schema of SPDX
	"fixtures/sites/transcripts/*",                     // what a real site sent
	"mockdrupal/compare/variants/*", "docs/pictures/*", // likewise; pictures
	"test/repo/words_test.go",
}

func TestPlainWords(t *testing.T) {
	forms, ids := wordForms(), lastingIDs(t)
	for _, name := range files(t) {
		if slices.ContainsFunc(notOurs, func(glob string) bool { ok, _ := path.Match(glob, name); return ok }) {
			continue
		}
		for _, line := range uses(forms, ids, name, read(t, name)) {
			t.Error(line)
		}
	}
}

// lastingIDs removes the ids of clauses and the names of mutants and variants, which never change.
func lastingIDs(t *testing.T) *strings.Replacer {
	t.Helper()
	c, err := contract.Load()
	if err != nil {
		t.Fatal(err)
	}
	ids := c.IDs()
	for _, m := range mutants.All() {
		ids = append(ids, m.Name)
	}
	slices.SortFunc(ids, func(a, b string) int { return len(b) - len(a) }) // the longest of those that begin alike
	var removed []string
	for _, id := range ids {
		removed = append(removed, id, "")
	}
	return strings.NewReplacer(removed...)
}

// passage is a piece of a file that is read as one text.
type passage struct {
	line int // of its first character, from 1
	text string
}

// form is a form of a word, by its words in lower case.
type form struct {
	words   []string
	instead string
}

// wordForms returns the forms of all words by their first word.
func wordForms() map[string][]form {
	forms := map[string][]form{}
	for _, w := range words {
		for _, text := range strings.Split(w.forms, ", ") {
			f := form{strings.Fields(text), w.instead}
			forms[f.words[0]] = append(forms[f.words[0]], f)
		}
	}
	return forms
}

// uses returns a line for each use of a word in a file or in its name, with what to write instead.
func uses(forms map[string][]form, ids *strings.Replacer, name, text string) []string {
	var lines []string
	for _, p := range append(passages(name, text), passage{1, path.Base(name)}) {
		if len(find(forms, p.text)) == 0 {
			continue
		}
		clean := ids.Replace(p.text)
		for _, e := range exceptions {
			if strings.HasPrefix(name, e.in) {
				clean = e.text.ReplaceAllString(clean, "")
			}
		}
		for _, u := range find(forms, clean) {
			lines = append(lines, fmt.Sprintf("%s:%d: not %q but: %s", name, p.line+strings.Count(clean[:u.at], "\n"), strings.Join(u.words, " "), u.instead))
		}
	}
	return lines
}

// use is where a form stands in a text.
type use struct {
	form
	at int
}

// aWord is a word of a text, or of an identifier of several words.
var aWord = regexp.MustCompile(`[A-Z]?[a-z]+('s)?|[A-Z]+`)

func find(forms map[string][]form, text string) []use {
	var found []use
	at := aWord.FindAllStringIndex(text, -1)
	for i := range at {
		for _, f := range forms[strings.ToLower(text[at[i][0]:at[i][1]])] {
			end := i + len(f.words)
			if end <= len(at) && continues(f, text, at[i:end]) {
				found = append(found, use{f, at[i][0]})
			}
		}
	}
	return found
}

// continues reports whether the words of a text at the places given are those of the form, with nothing but space, hyphens
// and underscores between them.
func continues(f form, text string, at [][]int) bool {
	for j, place := range at {
		if strings.ToLower(text[place[0]:place[1]]) != f.words[j] || j > 0 && strings.Trim(text[at[j-1][1]:place[0]], " \t\n-_") != "" {
			return false
		}
	}
	return true
}

// passages cuts a Go file into its comments, strings and identifiers; any other text is one passage.
func passages(name, text string) []passage {
	if path.Ext(name) != ".go" {
		if !utf8.ValidString(text) {
			return nil
		}
		return []passage{{1, text}}
	}
	var all []passage
	var s scanner.Scanner
	file := token.NewFileSet().AddFile(name, -1, len(text))
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	for comment := false; ; {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return all
		}
		if kind == token.SEMICOLON && literal == "\n" {
			continue
		}
		line := file.Line(pos)
		switch last := len(all) - 1; {
		case kind == token.COMMENT && comment && all[last].line+strings.Count(all[last].text, "\n")+1 == line: // a phrase may go on in the next line
			all[last].text += "\n" + strings.TrimPrefix(literal, "//")
		case kind == token.COMMENT:
			all = append(all, passage{line, strings.TrimPrefix(literal, "//")})
		case kind == token.IDENT || kind == token.STRING || kind == token.CHAR:
			all = append(all, passage{line, literal})
		}
		comment = kind == token.COMMENT
	}
}

func TestUsesOfWordsAreFound(t *testing.T) {
	forms, ids := wordForms(), strings.NewReplacer("list/answers-json", "")
	for _, c := range []struct {
		name, text string
		line       int // of the use; 0: none
	}{
		{"a.go", "package a\n\n// It is\n// signed\n// in.\n", 4},
		{"a.go", "package a\n\nvar signIn int\n", 3},
		{"a.go", "package a\n\nconst s = `one\ntwo is told of it`\n", 4},
		{"a.go", "package a\n\nvar design, index, interfaces = `list/answers-json`, `--wire`, 'x'\n", 0},
		{"a.go", "package a\n\n// It is a sign.\n\n// In this case it is another comment.\n", 0},
		{"a.md", "One.\nAn Answer.", 2},
		{"a.yaml", "- {wire: front, text: a design}", 0},
		{"signin.go", "package a\n", 1},
		{"picture.png", "\xff\xfe answer", 0},
	} {
		lines := uses(forms, ids, c.name, c.text)
		if c.line == 0 && len(lines) > 0 || c.line > 0 && (len(lines) != 1 || !strings.HasPrefix(lines[0], fmt.Sprintf("%s:%d: ", c.name, c.line))) {
			t.Errorf("%s with %q: %q, want a use in line %d", c.name, c.text, lines, c.line)
		}
	}
}
