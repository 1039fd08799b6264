package php_test

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

func TestDecodeAndEncodeAsPHPDoes(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"float that is whole", `1.0`, `1`},
		{"minus zero as integer", `-0`, `0`},
		{"minus zero as float", `-0.0`, `-0`},
		{"largest integer", `9223372036854775807`, `9223372036854775807`},
		{"one more becomes a float", `9223372036854775808`, `9.223372036854776e+18`},
		{"2^53+1", `9007199254740993`, `9007199254740993`},
		{"10^20", `100000000000000000000`, `1.0e+20`},
		{"small float", `1e-20`, `1.0e-20`},
		{"last without exponent", `0.0001`, `0.0001`},
		{"first with exponent", `0.00001`, `1.0e-5`},
		{"largest without exponent", `1e16`, `10000000000000000`},
		{"smallest with exponent", `1e17`, `1.0e+17`},
		{"many digits", `0.1234567890123`, `0.1234567890123`},
		{"negative with exponent", `-1e30`, `-1.0e+30`},
		{"empty object is the empty array", `{}`, `[]`},
		{"nested empty object", `{"a":{}}`, `{"a":[]}`},
		{"keys 0, 1, 2 make a list", `{"0":"a","1":"b"}`, `["a","b"]`},
		{"keys from 1 make none", `{"1":"a","2":"b"}`, `{"1":"a","2":"b"}`},
		{"a repeated member takes its last value in its first place", `{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`},
		{"a number with a leading zero is text", `{"00":1}`, `{"00":1}`},
		{"escapes", `"<>&'\"/\\ é 日 🚀 \u0000\b\f\n\r\t"`, `"\u003C\u003E\u0026\u0027\u0022\/\\ \u00e9 \u65e5 \ud83d\ude80 \u0000\b\f\n\r\t"`},
		{"words", `[true,false,null]`, `[true,false,null]`},
		{"blanks", " \t\r\n[ 1 , 2 ] ", `[1,2]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := php.Decode([]byte(c.in))
			must.Assert(t, err == nil, "decoding %s: %v", c.in, err)
			out, err := php.Encode(v)
			must.Expect(t, err == nil && string(out) == c.out, "%s became %s (%v), want %s", c.in, out, err, c.out)
		})
	}
}

func TestFloatsInStringsHaveFourteenDigits(t *testing.T) {
	for f, want := range map[float64]string{1: "1", 0.1: "0.1", 1.0 / 3: "0.33333333333333", 2.0 / 3 * 1e20: "6.6666666666667E+19", 1e14: "1.0E+14",
		99999999999999: "99999999999999", 999999999999999: "1.0E+15", 0.00001: "1.0E-5", math.Inf(-1): "-INF", math.Copysign(0, -1): "-0"} {
		must.Equal(t, php.ToString(f), want, "%v as text", f)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"nothing": "", "text": "hello", "single quotes": `{'a':1}`, "comment": `{/**/}`, "trailing comma": `[1,]`, "two documents": `{}{}`,
		"NaN": "NaN", "plus": "+1", "leading zero": "01", "no digit behind the point": "1.", "BOM": "\xef\xbb\xbf{}",
		"invalid UTF-8": "\"\xff\"", "lone surrogate": `"\ud800"`, "low surrogate first": `"\udc00\ud800"`, "bad escape": `"\x"`,
		"control character": "\"\n\"", "open string": `"a`, "open object": `{"a":1`, "too deep": strings.Repeat("[", 512) + strings.Repeat("]", 512), "words in capitals": "TRUE", "words run together": "[truefalse]",
	} {
		v, err := php.Decode([]byte(in))
		must.Expect(t, errors.Is(err, php.ErrSyntax), "%s was read as %v", name, v)
	}
	_, err := php.Decode([]byte(strings.Repeat("[", 511) + strings.Repeat("]", 511)))
	must.Expect(t, err == nil, "511 levels: %v", err)
}

func TestEncodeRefusesWhatPHPRefuses(t *testing.T) {
	_, err := php.Encode(math.Inf(1))
	must.Expect(t, errors.Is(err, php.ErrInfNaN), "infinity: %v", err)
	deep := php.List()
	for range 512 {
		deep = php.List(deep)
	}
	_, err = php.Encode(deep)
	must.Expect(t, errors.Is(err, php.ErrDepth), "513 levels: %v", err)
}

func TestLiteralKeepsNumbersAndShape(t *testing.T) {
	const in = `{ "o": {}, "l": [ ], "big": 123456789012345678901234567890, "f": 1.0, "e": 1E2, "s": "é/" }`
	const want = `{"o":{},"l":[],"big":123456789012345678901234567890,"f":1.0,"e":1E2,"s":"\u00e9\/"}`
	out, err := php.Encode(php.Literal(in))
	must.Expect(t, err == nil && string(out) == want, "got %s (%v), want %s", out, err, want)
}

func TestMembersAndElementsGiveTheBytesAsWritten(t *testing.T) {
	doc := []byte(` { "a" : {"x": [1, 2]} , "b\u0041":"}\",", "a":1.0 } `)
	var got []string
	for _, m := range php.Members(doc) {
		got = append(got, m.Name+"="+string(m.Raw))
	}
	want := `a={"x": [1, 2]}|bA="}\","|a=1.0`
	must.Expect(t, strings.Join(got, "|") == want, "members %q, want %q", got, want)
	got = nil
	for _, e := range php.Elements([]byte(`[1 ,[2,3], {"a":"]"} ]`)) {
		got = append(got, string(e))
	}
	want = `1|[2,3]|{"a":"]"}`
	must.Expect(t, strings.Join(got, "|") == want, "elements %q, want %q", got, want)
	must.Expect(t, php.Members([]byte("[]")) == nil && php.Elements([]byte("{}")) == nil, "a list has members, or an object elements")
}

func TestArraysAreMapsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringMatching(`[a-c]?[0-9]{0,2}`), 0, 40).Draw(t, "names")
		a, want, order := &php.Array{}, map[string]int{}, []string{}
		for i, name := range names {
			if _, has := want[name]; !has {
				order = append(order, name)
			}
			want[name] = i
			a.Set(php.KeyOf(name), int64(i))
		}
		must.Assert(t, a.Len() == len(order), "%d elements, want %d", a.Len(), len(order))
		for i, name := range order {
			if k, v := a.At(i); k.String() != name || v != int64(want[name]) || a.Member(name) != v {
				t.Fatalf("element %d is %s = %v, want %s = %d", i, k, v, name, want[name])
			}
		}
	})
}

func TestFloatsReadBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		out, err := php.Encode(f)
		must.Need(t, err == nil, "no number")
		back, err := strconv.ParseFloat(string(out), 64)
		must.Assert(t, err == nil && back == f, "%v was written as %s", f, out)
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"\u00e9\ud83d\ude80",null]}`, `[}`, `{"a"`, `"\`, `-`, `[[[[`, "\xff", `-0.0`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		php.Members(data)
		php.Elements(data)
		v, err := php.Decode(data)
		if err != nil {
			return
		}
		out, err := php.Encode(v)
		if err != nil {
			return
		}
		again, err := php.Decode(out)
		must.Assert(t, err == nil, "what was written cannot be read: %s", out)
		// PHP writes the float -0.0 as -0 and reads that as the integer 0.
		zeros := strings.NewReplacer("-0", "0")
		twice, err := php.Encode(again)
		must.Assert(t, err == nil && zeros.Replace(string(twice)) == zeros.Replace(string(out)), "%s became %s (%v)", out, twice, err)
	})
}

func TestCursorsAndPagesAsPHPReadsThem(t *testing.T) {
	for cursor, want := range map[string]int64{
		"NTA=": 50, "NTA": 50, "NTAK": 50, "MTAuOQ==": 10, "MWUx": 10, "IDEw": 10, "MTBhYmM=": 10, "LTU=": -5, "!!!!": 0, "abc": 0, "": 0, "NTAx5": 501, "MWU5OTk=": 0,
	} {
		must.Equal(t, php.ToInt(php.Base64Decode(cursor)), want, "cursor %q", cursor)
	}
	for _, v := range []php.Value{"99999999999999999999", 1e300} {
		n := php.ToInt(v)
		must.Expect(t, n > 0 && n+1000 >= n, "%v is %d", v, n)
	}
	must.Expect(t, php.ToInt(true) == 1 && php.ToInt(php.List()) == 0 && php.ToInt(-1.9) == -1 && php.ToInt(nil) == 0,
		"other types are cast otherwise")
}
