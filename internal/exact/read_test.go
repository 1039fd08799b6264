package exact_test

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

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
