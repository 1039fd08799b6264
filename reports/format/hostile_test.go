package format

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"golang.org/x/net/html"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

// attacks are what the reader of some format acts on, in place of showing it.
var attacks = []string{
	sample.Hostile, "::error::x", "\n::error::x", " ::set-output name=a::b", "\u00a0::stop-commands::x", "##[error]x", "##vso[task.x]", "##teamcity[x]",
	"\x1b[31m\x1b]0;x\x07", "\u202egnp.exe\u2066\u200b", "\u009b31m\u0085\u2028\u2029", "\x00\xff\uFFFE", "\r\n\r\nSet-Cookie: x", "%0A::error::x",
	`"><script>x</script>`, `' onmouseover='x`, "]]><x>", "--><x>", "&#27;&lt;", "</title><x>", "</text><a href='x'>", "</script><x>", "{{.Title}}",
	"| a |\n| b |", "`` ```\n# x\n", "<img src=x>", "[x](javascript:x)", "![x](x)", "https://e.example/", "</details>", "- x\n1. y", "    code", "$(x) `x` \\",
}

// reportIn fills a report with every member that a report can have: text gives its texts, by the path of the member.
func reportIn(text func(path string) string) *reports.Report {
	r := &reports.Report{}
	fill(reflect.ValueOf(r).Elem(), "", text)
	// What ReadFile refuses when it is something else.
	r.Schema = reports.SchemaVersion
	for i := range r.Results {
		r.Results[i].ID, r.Results[i].Level = fmt.Sprintf("area/clause-%d", i), reports.MUST
		r.Results[i].Verdict = reports.Verdicts()[i%len(reports.Verdicts())]
		for j := range r.Results[i].Findings {
			r.Results[i].Findings[j].Request = new(j)
		}
		for j := range r.Results[i].Evidence {
			m := &r.Results[i].Evidence[j]
			m.Request.Encoding, m.Request.Truncated, m.Response.Encoding, m.Response.Truncated = "", 0, "", 0
		}
	}
	for _, changes := range []*[]reports.Change{&r.Since.NewlyFailing, &r.Since.Fixed, &r.Since.StillFailing, &r.Since.Changed, &r.Since.Unjudged, &r.Since.Ledger} {
		for i := range *changes {
			c := &(*changes)[i]
			c.ID, c.Level, c.Old, c.New = "area/clause-0", reports.MUST, reports.Pass, reports.Fail
		}
	}
	r.Causes = nil
	return r
}

func fill(v reflect.Value, path string, text func(string) string) {
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		raw, _ := json.Marshal(map[string]string{"x": text(path)})
		v.SetBytes(raw)
		return
	case v.Type() == reflect.TypeFor[map[string]any]():
		v.Set(reflect.ValueOf(map[string]any{text(path + ".key"): text(path), "list": []any{text(path)}}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text(path))
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path, text)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(v.Field(i), path+"."+f.Name, text)
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(text(path+".key")), reflect.ValueOf(text(path)))
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		n := 2
		if strings.HasSuffix(path, ".Results") {
			n = len(reports.Verdicts())
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(v.Index(i), path, text)
		}
	}
}

// writers are all that writes texts of a report.
func writers() map[string]func(*reports.Report) (string, error) {
	all := map[string]func(*reports.Report) (string, error){}
	add := func(name string, write func(io.Writer, *reports.Report) error) {
		all[name] = func(r *reports.Report) (string, error) {
			var b bytes.Buffer
			err := write(&b, r)
			return b.String(), err
		}
	}
	for _, f := range All() {
		add(f.Name, f.Write)
	}
	add("details", func(w io.Writer, r *reports.Report) error { return (&Console{Out: w}).Details(r, "dir") })
	add("github", func(w io.Writer, r *reports.Report) error {
		return GitHub(w, r, func(name string) string { return map[string]string{"GITHUB_ACTIONS": "true"}[name] })
	})
	add("diff", func(w io.Writer, r *reports.Report) error { return r.Since.WriteText(w) })
	add("table-markdown", func(w io.Writer, r *reports.Report) error { return Tabulate([]*reports.Report{r, r}).WriteMarkdown(w) })
	add("table-html", func(w io.Writer, r *reports.Report) error { return Tabulate([]*reports.Report{r, r}).WriteHTML(w) })
	add("index-html", func(w io.Writer, r *reports.Report) error {
		return WriteIndex(w, []Run{{ID: "1", Path: r.Target.Name, Report: r}}, []Run{{Path: r.Target.Name, Err: fmt.Errorf("%s", r.Target.Name)}})
	})
	return all
}

// TestNoTextIsSyntax fills every member of a report with what the readers of the formats act on. Whatever stands where, each
// format has the structure that it has of a report with harmless texts, and holds no character that acts in place of being seen.
func TestNoTextIsSyntax(t *testing.T) {
	pieces := append([]string{"\n", " ", ":", "::", "#", "<", "`", "x"}, attacks...)
	harmless := reportIn(func(string) string { return "x" })
	for name, write := range writers() {
		plain := must.Get(write(harmless))(t)
		t.Run(name, func(t *testing.T) {
			check := func(r *reports.Report) {
				t.Helper()
				text := must.Get(write(r))(t)
				why := unsafeText(name, text)
				must.Assert(t, why == "", "%s:\n%s", why, text)
				want, err := structure(name, plain)
				must.Assert(t, err == nil, "of harmless texts: %v", err)
				got, err := structure(name, text)
				must.Assert(t, err == nil, "%v:\n%s", err, text)
				for _, part := range got {
					must.Assert(t, slices.Contains(want, part),
						"%q is part of the structure, and of none with harmless texts:\n%s", part, text)
				}
			}
			for _, attack := range attacks {
				check(reportIn(func(string) string { return attack }))
			}
			random := rand.New(rand.NewPCG(1, 2))
			for range 10 { // reports with another text in each member
				check(reportIn(func(string) string {
					text := "x"
					for range 1 + random.IntN(4) {
						text += pieces[random.IntN(len(pieces))]
					}
					return text
				}))
			}
		})
	}
}

// unsafeText says what of a text a terminal, a browser or a CI system acts on.
func unsafeText(name, text string) string {
	if !utf8.ValidString(text) {
		return "it is not UTF-8"
	}
	for _, c := range text {
		control := c != '\n' && c != '\t' && unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || c == '\uFFFE'
		if control && (name != "json" || c < ' ') { // report.json keeps texts as they came, as JSON has them
			return fmt.Sprintf("it holds %U", c)
		}
	}
	command := regexp.MustCompile(`(?m)^[\s\p{Z}]*::[^\n]*`)
	for _, line := range command.FindAllString(text, -1) {
		if own := regexp.MustCompile(`^\n*::(error|warning|notice) [^\n]*::`); (name != "annotations" && name != "github") || !own.MatchString(line) {
			return fmt.Sprintf("the line %q is a command", line)
		}
	}
	if name != "json" && regexp.MustCompile(`##[A-Za-z]*\[`).MatchString(text) {
		return "it holds a command of Azure or TeamCity"
	}
	return ""
}

// structure lists what a format's own reader acts on.
func structure(name, text string) ([]string, error) {
	switch name {
	case "json", "sarif", "badge-json":
		var v any
		err := json.Unmarshal([]byte(text), &v)
		return nil, err
	case "junit", "badge-svg":
		return elements(text)
	case "html", "table-html", "index-html":
		return tags(text)
	case "markdown", "table-markdown":
		var page bytes.Buffer
		if err := goldmark.New(goldmark.WithExtensions(extension.GFM)).Convert([]byte(text), &page); err != nil {
			return nil, err
		}
		raw := regexp.MustCompile(`(?m)^</?(details|summary)[^\n]*`).ReplaceAllString(text, "") // ours; goldmark leaves them out
		raw = regexp.MustCompile("(?ms)^(```+)$.*?^```+$").ReplaceAllString(raw, "")
		if tag := regexp.MustCompile(`<[A-Za-z/!][^>\n]*`).FindString(raw); tag != "" {
			return nil, fmt.Errorf("it holds the tag %q", tag)
		}
		return tags(page.String())
	case "console":
		if n := strings.Count(text, "\n"); n > summaryLines {
			return nil, fmt.Errorf("it has %d lines", n)
		}
	}
	return nil, nil
}

func elements(text string) (parts []string, err error) {
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return parts, nil
		}
		if err != nil {
			return nil, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			for _, a := range token.Attr {
				parts = append(parts, token.Name.Local+" "+a.Name.Local)
			}
			parts = append(parts, token.Name.Local)
		case xml.Comment, xml.Directive:
			parts = append(parts, fmt.Sprintf("%T", token))
		}
	}
}

// tags lists the elements of a page with their attributes, and where its links lead.
func tags(text string) (parts []string, err error) {
	tokenizer := html.NewTokenizer(strings.NewReader(text))
	for {
		switch tokenizer.Next() {
		case html.ErrorToken:
			if err := tokenizer.Err(); err != io.EOF {
				return nil, err
			}
			return append(parts, "code", "mark", "li", "ul"), nil // of values that differ, and of lines of a remedy
		case html.CommentToken:
			parts = append(parts, "comment")
		case html.StartTagToken, html.SelfClosingTagToken:
			token := tokenizer.Token()
			parts = append(parts, token.Data)
			for _, a := range token.Attr {
				part := token.Data + " " + a.Key
				if scheme, _, ok := strings.Cut(a.Val, ":"); ok && (a.Key == "href" || a.Key == "src") {
					part += " " + scheme
				}
				parts = append(parts, part)
			}
		}
	}
}

// crashes is a report in which a closed connection fails three clauses, and a fourth fails by itself.
func crashes() *reports.Report {
	r := &reports.Report{Started: sample.Started}
	for i := range 4 {
		e := reports.Exchange{At: sample.Started, Request: reports.Message{Method: "GET", URL: "http://b/x"}, Error: "the connection was closed"}
		if i == 0 {
			e.Error, e.Response = "", &reports.Message{Status: 200, Header: map[string]string{"Content-Type": "application/json"}, Body: "{}"}
		}
		result := reports.Result{ID: fmt.Sprintf("list/case-%d", i), Level: reports.MUST, Area: "list", Verdict: reports.Fail,
			Findings: []reports.Finding{{Subject: fmt.Sprintf("case %d", i), Expected: "404", Actual: fmt.Sprint("other ", i), Request: new(0)}}, Evidence: []reports.Exchange{e}}
		result.Conclude()
		r.Results = append(r.Results, result)
	}
	return r
}

func TestEveryFormatShowsACauseOnce(t *testing.T) {
	const first = "no response: the connection was closed: explains 3 of 4 failures"
	for name, want := range map[string][]string{
		"console":     {"\nfix this first: " + first + "\n", "\nbegin with: list/case-1 ·", "FAILED  list/case-1  MUST  and 2 more\n"},
		"annotations": {"::notice title=fix this first::" + first + ": list/case-1, list/case-2, list/case-3\n", "::error title=list/case-1 and 2 more (MUST)::"},
		"markdown":    {"**Fix this first.** " + first + ".\n", "- no response: the connection was closed (3): `list/case-1`, `list/case-2`, `list/case-3`\n"},
		"html":        {`<p class="cause"><bdi>` + first, `<li><a href="#list%2fcase-2">list/case-2</a></li><li><a href="#list%2fcase-3">list/case-3</a></li></ul>`},
		"json":        {`"cause": "no response: the connection was closed",`, `"failing": 3,`},
	} {
		f := must.Get(Named(name))(t)
		text := string(sample.Written(t, func(b *bytes.Buffer) error { return f.Write(b, crashes()) }))
		for _, part := range want {
			must.Expect(t, strings.Count(text, part) == 1, "%s has %d times %q:\n%s", name, strings.Count(text, part), part, text)
		}
		if own := "list/case-2 (MUST)"; strings.Contains(text, own) || strings.Contains(text, "FAILED  list/case-2") {
			t.Errorf("%s shows list/case-2 as an entry of its own:\n%s", name, text)
		}
	}
}
