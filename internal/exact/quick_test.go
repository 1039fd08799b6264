package exact

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// agrees reads a text in both ways: the quick one either gives up or finds the same.
func agrees(t *testing.T, text string) (quickly bool) {
	t.Helper()
	got, ok := parseQuickly([]byte(text))
	want, err := parseByTokens([]byte(text))
	if ok && err != nil {
		t.Errorf("%.100q: read quickly as %v, by tokens %v", text, got, err)
	} else if ok && !reflect.DeepEqual(got, want) {
		t.Errorf("%.100q: read quickly as %#v, by tokens as %#v", text, got, want)
	}
	return ok
}

func TestReadQuicklyWhatIsRight(t *testing.T) {
	for _, text := range []string{
		`{}`, ` [ ] `, `null`, `true`, `false`, `""`, `0`, `-0`, `10`, `-1.50e+07`, `1E9`, `1e-9`, "\t{\r\n\"a\" : [1 , {\"b\":null}] , \"c\":\"d\"}\n",
		`"\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\ud83d\ude00 é € 😀"`, `{"\u0061":1,"b":{"a":2}}`, "\"\x7f\u2028\"", strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
	} {
		if !agrees(t, text) {
			t.Errorf("%.100q: was not read quickly", text)
		}
	}
}

func TestQuickReadingGivesUp(t *testing.T) {
	for _, text := range []string{
		``, ` `, `{`, `[`, `"`, `"\`, `"\u`, `"\u12`, `"\u12g4"`, `"\x"`, `"\v"`, "\"\x00\"", "\"a\\n\n\"", `"\ud800"`, `"\ud800\u0041"`, `"\udc00"`, `"\ud83d\`, `"\ud83d\u`,
		`-`, `01`, `-01`, `1.`, `.5`, `1e`, `1e+`, `+1`, `0x1`, `NaN`, `tru`, `nul`, `True`, `truex`, `{} x`, `{}{}`, `1 2`,
		`{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{,}`, `{"a":1 "b":2}`, `[1,]`, `[,1]`, `[1 2]`, `[1}`, `{"a":1]`, `{"a":1,"\u0061":2}`, `{"x":[{"a":1,"a":1}]}`,
		strings.Repeat("[", 10_002) + strings.Repeat("]", 10_002),
	} {
		if agrees(t, text) {
			t.Errorf("%.100q: was read quickly", text)
		}
	}
}

func FuzzQuickReading(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,null,true,"x\u00e9\ud83d\ude00"]}`, `[[[]]]`, `{"a":1,"a":2}`, `1e9999`, `"\ud800"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if utf8.ValidString(text) {
			agrees(t, text)
		}
	})
}
