package jsondoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestParseRefusesWhatALenientParserRepairs(t *testing.T) {
	for name, c := range map[string]struct{ doc, says string }{
		"nothing":              {"", "empty"},
		"blanks":               {" \n", "empty"},
		"byte order mark":      {"\xef\xbb\xbf{}", "byte order mark"},
		"trailing garbage":     {`{} x`, "after the end"},
		"two documents":        {`{}{}`, "after the end"},
		"cut short":            {`{"a":`, "too early"},
		"invalid UTF-8":        {"{\"a\":\"\xff\"}", "UTF-8"},
		"duplicate member":     {`{"a":1,"b":2,"a":3}`, `"a" stands twice`},
		"duplicate by escape":  {`{"a":1,"\u0061":3}`, `"a" stands twice`},
		"duplicate when many":  {`{"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,"10":0,"11":0,"12":0,"13":0,"14":0,"14":0}`, "twice"},
		"nested duplicate":     {`[{"x":{"a":1,"a":1}}]`, "twice"},
		"around an object":     {`{"a":{"b":1,"c":[{"a":2}]},"b":{},"a":3}`, `"a" stands twice`},
		"around a large one":   {`{"a":{` + sixteen + `},"b":1,"a":3}`, `"a" stands twice`},
		"within a large one":   {`{` + sixteen + `,"x":{"1":0,"1":1}}`, `"1" stands twice`},
		"large, far apart":     {`{` + sixteen + `,"x":{` + sixteen + `},"3":0}`, `"3" stands twice`},
		"lone surrogate":       {`"\ud800"`, "other half"},
		"reversed surrogates":  {`"\udc00\ud800"`, "other half"},
		"control character":    {"\"a\x01\"", "control character"},
		"unknown escape":       {`"\x"`, "no escape"},
		"leading zero":         {`01`, "after the end"},
		"plus":                 {`+1`, "cannot start"},
		"NaN":                  {`NaN`, "cannot start"},
		"bare point":           {`1.`, "decimal point"},
		"bare exponent":        {`1e`, "exponent"},
		"absurd exponent":      {`1e1000000000`, "exponent is beyond"},
		"long number":          {strings.Repeat("9", 2000), "longer than"},
		"trailing comma":       {`[1,]`, "cannot start"},
		"single quotes":        {`{'a':1}`, "must be a string"},
		"ten thousand lists":   {strings.Repeat("[", 10000) + strings.Repeat("]", 10000), "deeper than"},
		"ten thousand objects": {strings.Repeat(`{"a":`, 10000), "deeper than"},
	} {
		t.Run(name, func(t *testing.T) {
			for how, read := range map[string]func([]byte) (Value, error){"Parse": Parse, "Split": Split} {
				must.Refuse(read([]byte(c.doc)))(t, c.says, how, c.doc)
			}
		})
	}
}

// The same name may stand once in each object, however they lie in each other.
func TestNamesBelongToTheirObject(t *testing.T) {
	for _, doc := range []string{
		`{"a":{"a":{"a":1},"b":2},"b":{"a":3}}`,
		`[{"a":1},{"a":2,"b":{"a":3}},{"a":4}]`,
		`{` + sixteen + `,"x":{` + sixteen + `,"x":{"1":0}},"y":[{` + sixteen + `},{` + sixteen + `}]}`,
	} {
		for how, read := range map[string]func([]byte) (Value, error){"Parse": Parse, "Split": Split} {
			_, err := read([]byte(doc))
			must.Expect(t, err == nil, "%s(%s): %v", how, doc, err)
		}
	}
}

// sixteen members are more than the parser looks through one by one.
const sixteen = `"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,"10":0,"11":0,"12":0,"13":0,"14":0,"15":0,"16":0`

func TestSplitKeepsTheBytesOfEachMember(t *testing.T) {
	v := must.Get(Split([]byte(` { "id" : 9007199254740993, "na\u00efve": [1.0, {"b":-0}] , "s":"\ud83d\ude80"} `)))(t)
	for name, want := range map[string]string{"id": "9007199254740993", "naïve": `[1.0, {"b":-0}]`, "s": `"\ud83d\ude80"`} {
		got, ok := v.Get(name)
		must.Expect(t, ok && string(got.Raw) == want, "member %s = %s (found %v), want %s", name, got.Raw, ok, want)
	}
	text, _ := v.Members[2].Value.Text()
	must.Expect(t, text == "🚀", "text = %q, want a rocket", text)
}

// items reads the list v of a document as a stream.
func items(doc string, longest int) (all []string, others []Member, err error) {
	others, err = Stream(iotest.OneByteReader(strings.NewReader(doc)), "v", longest, func(raw []byte) error {
		if raw == nil {
			raw = []byte("too long")
		}
		all = append(all, string(raw))
		return nil
	})
	return all, others, err
}

// What cannot be read costs itself only.
func TestStream(t *testing.T) {
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	for list, want := range map[string][]string{
		`[1, {"a":1,"a":2} ,"\ud800",[[{"]":"}\""}]],tru,1e99999 , -]`: {`1`, `{"a":1,"a":2}`, `"\ud800"`, `[[{"]":"}\""}]]`, `tru`, `1e99999`, `-`},
		"[\"\xff\",{}]":    {"\"\xff\"", "{}"},
		`[]`:               nil,
		`[,1]`:             {``, `1`},
		`[` + deep + `,2]`: {deep, `2`},
		`["` + strings.Repeat("x", 20_000) + `",2]`: {`too long`, `2`},
	} {
		got, others, err := items("\xef\xbb\xbf{\"a\": {\"b\":[1]} ,\"\\u0076\":"+list+" ,\"c\":null}", 20_000)
		must.Expect(t, err == nil && slices.Equal(got, want) && len(others) == 2 && string(others[0].Value.Raw) == `{"b":[1]}` && others[1].Name == "c",
			"%.60q: %.100q, %v, %v", list, got, others, err)
	}
	for _, doc := range []string{
		``, `{`, `{"v":[1,`, `{"v":[{]`, `{"v":["]`, `{"v":["\`, `{"v":[1,]}`, `{"v":[1 2]}`, `{"v":[],"a":}`, `{"v":[],"a":1,"a":2}`, `{"v":[],"v":[]}`, `{"v":[]}x`, `[]`,
		`{"v":1}`, `{"a":1}`, `{v:[]}`, `{"v"[]}`, `{"v":[],"a":"` + strings.Repeat("x", 100) + `"}`,
	} {
		got, _, err := items(doc, 100)
		must.Expect(t, err != nil, "%q is taken: %q", doc, got)
	}
}

// What Split takes, Stream takes, and cuts at the same places.
func FuzzStream(f *testing.F) {
	f.Add(`[1,{"b":"\"]"}],null`)
	f.Fuzz(func(t *testing.T, doc string) {
		strict, wrong := Split([]byte("[" + doc + "]"))
		if wrong != nil {
			return
		}
		got, _, err := items(`{"v":[`+doc+`]}`, 1<<20)
		must.Assert(t, err == nil && len(got) == len(strict.Items), "%q: %v", doc, err)
		for i, item := range strict.Items {
			must.Expect(t, got[i] == string(item.Raw), "%q: item %d is %q", doc, i, got[i])
		}
	})
}

// Whatever encoding/json writes is read, and comes back byte for byte, whole or rebuilt from the tree.
func TestAppendGivesBackWhatParseRead(t *testing.T) {
	leaf := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.Int64(), func(n int64) any { return n }),
		rapid.Map(rapid.Float64Range(-1e300, 1e300), func(f float64) any { return f }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](nil),
	)
	rapid.Check(t, func(t *rapid.T) {
		tree := rapid.MapOf(rapid.String(), rapid.OneOf(leaf, rapid.Map(rapid.SliceOf(leaf), func(l []any) any { return l }))).Draw(t, "tree")
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		must.Do(t, enc.Encode(tree))
		doc := bytes.TrimSpace(buf.Bytes())
		v, err := Parse(doc)
		must.Assert(t, err == nil, "Parse(%s): %v", doc, err)
		got := v.Bytes()
		must.Assert(t, bytes.Equal(got, doc), "Bytes() = %s, want %s", got, doc)
		var again any
		err = json.Unmarshal(forgotten(v).Bytes(), &again)
		must.Assert(t, err == nil, "rebuilt: %v", err)
	})
}

// forgotten drops what the document looked like, so that Append has to build it again.
func forgotten(v Value) Value {
	if v.Kind == Object || v.Kind == Array {
		v.Raw = nil
	}
	for i := range v.Members {
		v.Members[i].Value = forgotten(v.Members[i].Value)
	}
	for i := range v.Items {
		v.Items[i] = forgotten(v.Items[i])
	}
	return v
}

// Parse may accept no more than encoding/json does, but for its own bounds.
func FuzzParse(f *testing.F) {
	for _, doc := range []string{`{"a":[1,2.50,"\u00e9",null]}`, `[]`, `"\ud83d\ude80"`, `-0.0e+10`, "{\"\xff\":1}"} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := Parse(doc)
		if err != nil {
			return
		}
		must.Expect(t, json.Valid(doc), "Parse took %q, which is no JSON", doc)
		must.Expect(t, bytes.Equal(bytes.TrimSpace(v.Raw), bytes.TrimSpace(doc)), "Raw = %q, want %q", v.Raw, doc)
	})
}

// What a caller sends must not cost many times its size: neither many members nor many escaped strings.
func TestSplitCostsLittle(t *testing.T) {
	var members strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&members, `,"%x":0`, i)
	}
	for name, doc := range map[string]string{
		"members":           `{"a":{` + members.String()[1:] + `}}`,
		"escaped strings":   `{"a":[` + strings.Repeat(`"\n",`, 100_000) + `0]}`,
		"outer members":     `{` + members.String()[1:] + `}`,
		"outer items":       `[` + strings.Repeat(`0,`, 300_000) + `0]`,
		"strings of commas": `{"a":"` + strings.Repeat(`,`, 300_000) + `"}`,
	} {
		raw := []byte(doc)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		Split(raw) //nolint:errcheck // what it costs is asked, whatever it says
		runtime.ReadMemStats(&after)
		per := int64(after.TotalAlloc - before.TotalAlloc)
		most := 8 * int64(len(raw))
		must.Expect(t, per <= most, "%s: %d bytes for a document of %d", name, per, len(raw))
	}
	must.Refuse(Split([]byte(`{`+members.String()[1:]+`}`)))(t, "", "an envelope of 100,000 members is split")
}
