package terminal

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain, ünïcode 漢字 😀\n\tx": "plain, ünïcode 漢字 😀\n\tx",
		"\x1b[31m\x00\r\x7f":       `\x1b[31m\x00\x0d\x7f`,
		"a\u202eb\u200bc\u2028":    `a\u202eb\u200bc\u2028`,
		"\u2066x\u2069\u061c":      `\u2066x\u2069\u061c`,
		"\u009b31m\u0085\u2029":    `\u009b31m\u0085\u2029`,
		"\xff\xfe":                 `\xff\xfe`,
		"\uFFFD":                   "\uFFFD",
		"\uFEFF\U000E0041\uFFFF":   `\ufeff\U000e0041\uffff`,
		"::error::x ##[y]":         "::error::x ##[y]",
	} {
		must.Equal(t, Visible(in), want, "Visible(%q)", in)
	}
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"::error::no":                  `:\x3aerror::no`,
		"  ::set-output":               `  :\x3aset-output`,
		"\u00a0::stop-commands::x":     "\u00a0:" + `\x3astop-commands::x`,
		"a\n::error::no\n::error::yes": "a\n" + `:\x3aerror::no` + "\n" + `:\x3aerror::yes`,
		"wrapped ::error::no":          `wrapped :\x3aerror::no`,
		"\u200b::error::no":            `\u200b::error::no`,
		"##[error]no":                  `#\x23[error]no`,
		"x ##vso[task.setvariable]":    `x #\x23vso[task.setvariable]`,
		"##teamcity[x]":                `#\x23teamcity[x]`,
		"###[x":                        `##\x23[x`,
		"http://[::1]:80/a::b":         "http://[::1]:80/a::b",
		"## heading":                   "## heading",
		"\x1b]0;title\x07":             `\x1b]0;title\x07`,
	} {
		must.Equal(t, Escape(in), want, "Escape(%q)", in)
	}
}

func TestLine(t *testing.T) {
	if got, want := Line("a\n\t b\r\n::error::"+strings.Repeat("é", 100), 60), `a b :\x3aerror::ééé`; !strings.HasPrefix(got, want) || len(got) > 60 || !utf8.ValidString(got) {
		t.Errorf("Line gives %q of %d bytes, want %q…", got, len(got), want)
	}
	got, want := VisibleLine(" ::a \x1b ", 60), `::a \x1b`
	must.Expect(t, got == want, "VisibleLine gives %q, want %q", got, want)
}

func TestTailShowsTheErrorAndNotTheStack(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		want []string
	}{
		"nothing":        {" \n", nil},
		"the last lines": {"a\nb\nc\nd\n", []string{"b", "c", "d"}},
		"a Go panic": {"listening\npanic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\t/x/main.go:3 +0x1d\nnet/http.(*Server).Serve(0xc0001, {0x1, 0x2})\n\t/y/server.go:10 +0x4\n\ngoroutine 7 [select]:\nmain.f(...)\n\t/x/main.go:9\ncreated by main.main in goroutine 1\n\t/x/main.go:2\nexit status 2\n",
			[]string{"", "  … 11 lines of a stack trace", "exit status 2"}},
		"Node": {"Error: listen EADDRINUSE\n" + strings.Repeat("    at Server.listen (node:net:1:2)\n", 40) + "\nNode.js v20\n",
			[]string{"Error: listen EADDRINUSE", "  … 40 lines of a stack trace", "Node.js v20"}},
		"PHP": {"PHP Fatal error:  Uncaught Exception: no in a.php:1\nStack trace:\n#0 a.php(3): f()\n#1 {main}\n  thrown in a.php on line 1",
			[]string{"Stack trace:", "  … 2 lines of a stack trace", "  thrown in a.php on line 1"}},
		"Java": {"Exception in thread \"main\" java.lang.Error: no\n\tat a.B.c(B.java:1)\nCaused by: java.io.IOException: full\n\tat a.B.d(B.java:2)\n\t... 12 more",
			[]string{"  … 1 line of a stack trace", "Caused by: java.io.IOException: full", "  … 2 lines of a stack trace"}},
		"commands of a CI system": {"::error::no\n\x1b[2J", []string{`:\x3aerror::no`, `\x1b[2J`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Tail(c.log, 3)
			must.Expect(t, slices.Equal(got, c.want), "the tail is %q, want %q", got, c.want)
		})
	}
	goPanic := "panic: boom\n\ngoroutine 1 [running]:\n" + strings.Repeat("main.f(0x1)\n\t/x/main.go:3 +0x1d\n", 50)
	got := Tail(goPanic, 10)
	must.Expect(t, slices.Contains(got, "panic: boom"), "the tail lacks the error: %q", got)
}

var command = regexp.MustCompile(`(?m)^[\s\p{Z}]*::|##[A-Za-z]*\[`)

func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"", "::error::x", "a ##[b]", "\x1b[31m\u202e\u2066\u009b\xff", "\n \u2028::x", ":::", "####vso[", "\u3000::x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Escape(s)
		must.Assert(t, utf8.ValidString(got), "Escape(%q) = %q: no UTF-8", s, got)
		for _, c := range got {
			must.Assert(t, c == '\n' || c == '\t' || !unicode.IsControl(c) && !unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp),
				"Escape(%q) = %q holds %U", s, got, c)
		}
		at := command.FindString(got)
		must.Assert(t, at == "", "Escape(%q) = %q holds the command %q", s, got, at)
		again := Escape(got)
		must.Assert(t, again == got, "Escape(%q) = %q, and escaped again %q", s, got, again)
		for _, line := range Tail(s, 5) {
			must.Assert(t, !strings.Contains(line, "\n") && Escape(line) == line, "Tail(%q) holds the line %q", s, line)
		}
	})
}

// The tail of a log has so many lines, and nothing in them that a terminal would obey.
func FuzzTail(f *testing.F) {
	f.Add("panic: x\n\ngoroutine 1 [running]:\nmain.main()\n\t/x/main.go:3 +0x1\r\nend", 3)
	f.Add("::error::x\n##[x]\n\x1b[2J", 1)
	f.Fuzz(func(t *testing.T, log string, most int) {
		most = min(max(most, 0), 100)
		lines := Tail(log, most)
		must.Expect(t, len(lines) <= most, "%d lines of %d", len(lines), most)
		for _, line := range lines {
			must.Expect(t, Escape(line) == line, "%q is not escaped", line)
		}
	})
}
