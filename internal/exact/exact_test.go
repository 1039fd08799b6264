package exact_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

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
			_, err := exact.Parse([]byte(c.in))
			must.Expect(t, err != nil && strings.Contains(err.Error(), c.says), "Parse(%q) = %v, want an error with %q", c.in, err, c.says)
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
		d := exact.Diff(v, v)
		must.Expect(t, d == "", "a document differs from itself: %s", d)
	})
}

func parse(t *testing.T, s string) any {
	t.Helper()
	v := must.Get(exact.Parse([]byte(s)))(t)
	return v
}

// readsAlike reads a text as encoding/json does, which takes the last of several members of a name: Parse refuses those.
func readsAlike(t *testing.T, text string) {
	t.Helper()
	got, err := exact.Parse([]byte(text))
	if err != nil && strings.Contains(err.Error(), "twice in one object") {
		return
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var want any
	wrong := dec.Decode(&want)
	if _, more := dec.Token(); wrong == nil && more != io.EOF {
		wrong = errors.New("has more after the document")
	}
	switch {
	case (err == nil) != (wrong == nil):
		t.Errorf("%.100q: Parse says %v, encoding/json %v", text, err, wrong)
	case err == nil && !reflect.DeepEqual(got, want):
		t.Errorf("%.100q: read as %#v, by encoding/json as %#v", text, got, want)
	}
}

func TestReadsAsTheStandardLibraryDoes(t *testing.T) {
	for _, text := range []string{
		`{}`, ` [ ] `, `null`, `true`, `false`, `""`, `0`, `-0`, `10`, `-1.50e+07`, `1E9`, `1e-9`, "\t{\r\n\"a\" : [1 , {\"b\":null}] , \"c\":\"d\"}\n",
		`"\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\ud83d\ude00 é € 😀"`, `{"\u0061":1,"b":{"a":2}}`, "\"\x7f\u2028\"", strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		``, ` `, `{`, `[`, `"`, `"\`, `"\u`, `"\u12`, `"\u12g4"`, `"\x"`, `"\v"`, "\"\x00\"", "\"a\\n\n\"", `"\ud800"`, `"\ud800\u0041"`, `"\udc00"`, `"\ud83d\`, `"\ud83d\u`,
		`-`, `01`, `-01`, `1.`, `.5`, `1e`, `1e+`, `+1`, `0x1`, `NaN`, `tru`, `nul`, `True`, `truex`, `{} x`, `{}{}`, `1 2`,
		`{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{,}`, `{"a":1 "b":2}`, `[1,]`, `[,1]`, `[1 2]`, `[1}`, `{"a":1]`, `{"a":1,"\u0061":2}`, `{"x":[{"a":1,"a":1}]}`,
	} {
		readsAlike(t, text)
	}
}

func FuzzReading(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,null,true,"x\u00e9\ud83d\ude00"]}`, `[[[]]]`, `{"a":1,"a":2}`, `1e9999`, `"\ud800"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if utf8.ValidString(text) && !strings.HasPrefix(text, "\ufeff") && strings.Count(text, "[")+strings.Count(text, "{") < 5000 {
			readsAlike(t, text)
		}
	})
}

// asEncodingJSON is what the standard library writes.
func asEncodingJSON(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	must.Do(t, enc.Encode(v))
	return strings.TrimSuffix(b.String(), "\n")
}

func TestWritesAsTheStandardLibraryDoes(t *testing.T) {
	type other map[string]any
	all := []any{
		nil, true, false, 1, -2.5, 1e21, json.Number("1.0"), json.Number("-0"), json.Number(""), json.RawMessage(`{ "a" : 1 }`),
		"", "plain", `"\/`, "<a href='x'>&</a>", "\x00\x1f\x7f", "é € 😀", "\u2028\u2029", "\xff\xfe", "a\xe2\x80",
		map[string]any(nil), []any(nil), map[string]any{}, []any{}, []string{"a"}, other{"b": 1, "a": []any{}},
		map[string]any{"z": 1, "a": []any{"x", json.Number("12345678901234567890"), nil}, "é": other{}, "\"": map[string]any{"": ""}},
	}
	for _, v := range append(all, all) {
		got, err := exact.Write(v)
		if err != nil {
			t.Errorf("%#v: %v", v, err)
		} else if want := asEncodingJSON(t, v); string(got) != want {
			t.Errorf("%#v: wrote %s, not %s", v, got, want)
		}
	}
	for _, v := range []any{json.Number("1x"), json.Number("01"), math.NaN(), map[string]any{"a": []any{func() {}}}} {
		got, err := exact.Write(v)
		must.Expect(t, err != nil, "%#v: wrote %s, not an error", v, got)
	}
}
