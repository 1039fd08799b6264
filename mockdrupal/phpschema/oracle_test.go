package phpschema_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
	"github.com/bridgecheck/bridgecheck/mockdrupal/phpschema"
)

var (
	library = flag.String("json-schema", "", "`directory` of the source of justinrainbow/json-schema: compare with it, by php")
	update  = flag.Bool("update", false, "with -json-schema: keep the first pairs as testdata/pairs.jsonl.gz")
)

// How many pairs are compared with the library, and how many of them are kept.
const (
	compared = 20_000
	kept     = 2_000
)

const keptFile = "testdata/pairs.jsonl.gz"

// pair is a schema, a value and what the library says of them.
type pair struct {
	Schema json.RawMessage `json:"schema"`
	Value  json.RawMessage `json:"value"`
	Says   json.RawMessage `json:"says,omitempty"`
}

// says is what this package says of a pair, in the form of testdata/oracle.php.
func says(t *testing.T, p pair) string {
	t.Helper()
	errs, thrown := phpschema.Validate(decode(t, string(p.Value)), decode(t, string(p.Schema)))
	out := php.Map()
	if thrown != nil {
		out.Set(php.KeyOf("class"), thrown.Class)
		out.Set(php.KeyOf("message"), thrown.Message)
	} else {
		list := php.List()
		for _, e := range errs {
			list.Append(e.Value())
		}
		out.Set(php.KeyOf("errors"), list)
	}
	return normal(t, must.Get(php.Encode(out))(t))
}

// normal is a JSON document without the spelling of its texts.
func normal(t *testing.T, doc []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	must.Assert(t, err == nil, "%s: %v", doc, err)
	return string(must.Get(json.Marshal(v))(t))
}

func compareAll(t *testing.T, pairs []pair) {
	t.Helper()
	differ := 0
	for _, p := range pairs {
		want, got := normal(t, p.Says), says(t, p)
		if want != got && !elsewhere(want, got) {
			if differ++; differ <= 20 {
				t.Errorf("%s under %s\nlibrary: %s\nhere:    %s", p.Value, p.Schema, want, got)
			}
		}
	}
	t.Logf("%d of %d pairs differ", differ, len(pairs))
}

// elsewhere reports whether both say that a document is not there: why depends on where the library looks for it.
func elsewhere(want, got string) bool {
	const fetched = `"message":"file_get_contents(`
	return strings.Contains(want, fetched) && strings.Contains(got, fetched)
}

// What justinrainbow/json-schema 6.11.0 says of generated pairs, as it was when they were kept.
func TestPairsAgreeWithTheLibrary(t *testing.T) {
	data := must.Get(os.ReadFile(keptFile))(t)
	unzipped := must.Get(gzip.NewReader(bytes.NewReader(data)))(t)
	var pairs []pair
	for d := json.NewDecoder(unzipped); ; {
		var p pair
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, p)
	}
	must.Expect(t, len(pairs) == kept, "%s has %d pairs, expected %d", keptFile, len(pairs), kept)
	compareAll(t, pairs)
}

// The same with the library itself: go test -run TestTheLibrary -json-schema DIR. With -update the first pairs are kept.
func TestTheLibrary(t *testing.T) {
	program, err := exec.LookPath("php")
	must.Need(t, *library != "" && err == nil,
		"SKIPPED: it needs php and -json-schema, the source of justinrainbow/json-schema; %s keeps %d pairs of it", keptFile, kept)
	g := generator{rand.New(rand.NewPCG(1, 1))}
	pairs := make([]pair, compared)
	var in bytes.Buffer
	for i := range pairs {
		pairs[i] = pair{Schema: must.Get(json.Marshal(g.schema(3)))(t), Value: must.Get(json.Marshal(g.value(3)))(t)}
		fmt.Fprintf(&in, "%s\n", must.Get(json.Marshal(pairs[i]))(t))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-d", "memory_limit=512M", "testdata/oracle.php")
	cmd.Env = append(os.Environ(), "JSON_SCHEMA="+*library)
	cmd.Stdin = &in
	out := must.Get(cmd.Output())(t)
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	n := 0
	for ; lines.Scan() && n < len(pairs); n++ {
		pairs[n].Says = bytes.Clone(lines.Bytes())
	}
	must.Assert(t, n == len(pairs), "%d responses to %d pairs", n, len(pairs))
	if *update {
		var zipped bytes.Buffer
		w, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
		for _, p := range pairs[:kept] {
			fmt.Fprintf(w, "%s\n", must.Get(json.Marshal(p))(t))
		}
		must.Do(t, w.Close())
		must.Do(t, os.WriteFile(keptFile, zipped.Bytes(), 0o644))
	}
	compareAll(t, pairs)
}

// generator draws schemas and values that meet each other often.
type generator struct{ *rand.Rand }

func draw[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

var (
	names    = []string{"a", "b", "ab", "1", "", "$schema", "é"}
	texts    = []string{"", "a", "ab", "é", "1", "2.0", "a\n", "2020-01-31", "2020-02-30", "10:20:30", "2020-01-01T00:00:00Z", "2016-12-31T23:59:60Z", "2020-01-01T00:00:60Z", "2020-01-01 00:00:00.1234567+01:00", "2020-01-01T00:00:00-25:00", "a@b.example", "http://a.example/b?c#d", "mailto:a@b.example", "tel:+1 2", "news:a..b", "a\\b", "#", "1.2.3.4", "::1", "a-b.example", "-a", "a_b", "red", "#fff", "color: red; x:y", "(", "(?=a)", "+(123) 456 7890", "foo bar", "éfoo", "aa", "aab"}
	formats  = []string{"date", "time", "date-time", "utc-millisec", "regex", "color", "style", "phone", "uri", "uri-reference", "email", "ipv4", "ip-address", "ipv6", "hostname", "host-name", "uuid", "x"}
	patterns = []string{`^\w+$`, `\bfoo\b`, `^a`, `^ab\z`, `a$`, `^(a+)+$`, `a++b`, `(a)\1`, `(?<!b)a`, `^[[:alpha:]]+$`, `^\p{L}+$`, `^\pL`, `(`, `[`, `a{2}`, `^\d+$`, `^[\w-]+$`, `\s`, `^.$`, `x{`, `^\x{e9}`, `(?i)A`, `(?P<n>a)(?P=n)`, `\h`, `\R`, `~`, `\~`, `*a`, `^[^\W\d]+$`}
	types    = []string{"string", "integer", "number", "boolean", "object", "array", "null", "any", "string", "object", "array", "integer"}
	refs     = []string{"#/definitions/a", "#/definitions/a", "#/definitions/none", "#/definitions/loop", "other.json"}
	keywords = []string{"type", "type", "properties", "properties", "items", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "divisibleBy", "minLength", "maxLength", "pattern", "pattern", "format", "format", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties", "minItems", "maxItems", "uniqueItems", "additionalItems", "allOf", "anyOf", "oneOf", "not", "disallow", "extends", "dependencies", "$ref", "contains", "if", "prefixItems", "propertyNames"}
)

func (g generator) value(depth int) any {
	n := 12
	if depth > 0 {
		n = 20
	}
	switch k := g.IntN(n); {
	case k < 5:
		return draw(g, texts...)
	case k < 8:
		return draw[any](g, 0, 1, 2, 5, -1, 10, json.Number("1.0"), 1.5, json.Number("2.0"), 0.1)
	case k < 9:
		return draw[any](g, true, false, nil)
	case k < 15:
		m := map[string]any{}
		for range g.IntN(4) {
			m[draw(g, names...)] = g.value(depth - 1)
		}
		return m
	default:
		list := make([]any, g.IntN(4))
		for i := range list {
			list[i] = g.value(depth - 1)
		}
		return list
	}
}

func (g generator) schema(depth int) map[string]any {
	s := map[string]any{}
	for range 1 + g.IntN(3) {
		name := draw(g, keywords...)
		s[name] = g.keyword(name, depth)
	}
	if depth == 3 && g.IntN(3) == 0 {
		s["definitions"] = map[string]any{"a": g.sub(0), "loop": map[string]any{"$ref": "#/definitions/loop"}}
	}
	return s
}

func (g generator) schemas(depth int) (list []any) {
	for range 1 + g.IntN(3) {
		list = append(list, g.sub(depth))
	}
	return list
}

func (g generator) sub(depth int) any {
	if depth <= 0 {
		return draw[any](g, map[string]any{"type": draw(g, types...)}, map[string]any{"minimum": 1}, map[string]any{"minLength": 2})
	}
	return g.schema(depth - 1)
}

func (g generator) named(depth int) map[string]any {
	m := map[string]any{}
	for range 1 + g.IntN(3) {
		m[draw(g, names...)] = g.sub(depth)
	}
	return m
}

func (g generator) keyword(name string, depth int) any {
	switch name {
	case "type", "disallow":
		switch g.IntN(12) {
		case 0:
			return "entity_reference"
		case 1, 2, 3:
			return []any{draw(g, types...), draw(g, types...)}
		case 4:
			return []any{map[string]any{"type": draw(g, types...)}, draw(g, types...)}
		}
		return draw(g, types...)
	case "properties":
		m := g.named(depth)
		if g.IntN(4) == 0 {
			if s, ok := m["a"].(map[string]any); ok {
				s["required"], s["requires"] = draw[any](g, true, false), "b"
			}
		}
		return m
	case "items":
		return draw[any](g, g.sub(depth), g.sub(depth), g.schemas(depth), true)
	case "enum":
		return []any{g.value(1), g.value(1), g.value(0)}
	case "const":
		return g.value(1)
	case "minimum", "maximum", "multipleOf", "divisibleBy":
		return draw[any](g, 0, 1, 2, 1.5, 5, 9007199254740993, 0.1)
	case "exclusiveMinimum", "exclusiveMaximum":
		return draw[any](g, true, false, 0, 1)
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return g.IntN(4)
	case "pattern":
		return draw(g, patterns...)
	case "format":
		return draw(g, formats...)
	case "required":
		return draw[any](g, []any{draw(g, names[:5]...)}, []any{"a", "b"}, true, false)
	case "additionalProperties", "additionalItems":
		return draw[any](g, false, false, true, g.sub(depth))
	case "patternProperties":
		return map[string]any{draw(g, patterns...): g.sub(depth)}
	case "uniqueItems":
		return g.IntN(4) > 0
	case "allOf", "anyOf", "oneOf":
		return g.schemas(depth)
	case "dependencies":
		return map[string]any{"a": draw[any](g, "b", []any{"b"}, g.sub(depth))}
	case "extends":
		return draw[any](g, g.sub(depth), g.schemas(depth))
	case "$ref":
		return draw(g, refs...)
	case "prefixItems":
		return g.schemas(depth)
	}
	return g.sub(depth) // not, contains, if, propertyNames
}
