package exact_test

import (
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ in, says string }{
		"nothing":               {"  ", "empty"},
		"a byte order mark":     {"\xef\xbb\xbf{}", "byte order mark"},
		"invalid UTF-8":         {"{\"a\":\"\xff\"}", "UTF-8 (byte 6)"},
		"a duplicate":           {`{"a":1,"a":2}`, `"a" twice`},
		"a nested duplicate":    {`{"x":[{"a":1,"a":2}]}`, "/x/0/a"},
		"trailing garbage":      {`{} x`, "more after"},
		"a second document":     {`{}{}`, "more after"},
		"a cut document":        {`{"a":`, "not JSON"},
		"an unclosed list":      {`[1,2`, "not JSON"},
		"a bottomless document": {strings.Repeat("[", 20_000), "deeper than"},
		"a wrong closing mark":  {`[1}`, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			must.Refuse(exact.Parse([]byte(c.in)))(t, c.says, c.in)
		})
	}
}

func TestDiff(t *testing.T) {
	for name, c := range map[string]struct{ want, got, diff string }{
		"equal with another order":   {`{"a":1,"b":[]}`, `{"b":[],"a":1}`, ""},
		"equal numbers":              {`[1,100,0.5,-0,1e2]`, `[1.0,1e2,5e-1,0,100]`, ""},
		"rounded integer":            {`9007199254740993`, `9007199254740992`, "9007199254740993"},
		"sign":                       {`1`, `-1`, "expected 1, got -1"},
		"object for list":            {`{"a":[]}`, `{"a":{}}`, "at /a: expected [], got {}"},
		"list for object":            {`{}`, `[]`, "expected {}, got []"},
		"number for string":          {`"1"`, `1`, `expected "1", got 1`},
		"null for false":             {`false`, `null`, "expected false, got null"},
		"a member less":              {`{"a":null}`, `{}`, "at /a: expected null, got nothing"},
		"a member more":              {`{}`, `{"a":null}`, "expected no such member"},
		"an item less":               {`[1,2]`, `[1]`, "expected 2 items, got 1"},
		"an item more":               {`[1]`, `[1,2]`, "expected 1 items, got 2"},
		"scalar for object":          {`1`, `{}`, "expected 1, got {}"},
		"another normal form":        {`"caf\u00e9"`, `"cafe\u0301"`, "from character 4 on U+0065 U+0301 for U+00E9"},
		"a long text cut short":      {`"` + strings.Repeat("x", 60) + `"`, `"` + strings.Repeat("x", 50) + `"`, "from character 51 on its end for U+0078 U+0078"},
		"huge exponents are no bomb": {`1e999999999`, `1e999999998`, "expected"},
	} {
		t.Run(name, func(t *testing.T) {
			want, got := parse(t, c.want), parse(t, c.got)
			d := exact.Diff(want, got)
			must.Expect(t, (c.diff != "" || d == "") && (c.diff == "" || strings.Contains(d, c.diff)),
				"Diff = %q, want %q in it", d, c.diff)
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,null,true,"x"]}`, `[[[]]]`, `{"a":1,"a":2}`, "\xff", `1e9999`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := exact.Parse(data)
		if err != nil {
			return
		}
		must.Equal(t, exact.Diff(v, v), "", "a document differs from itself")
	})
}

func parse(t *testing.T, s string) any {
	t.Helper()
	return must.Get(exact.Parse([]byte(s)))(t)
}
