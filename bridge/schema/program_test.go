package schema

import (
	"fmt"
	"regexp/syntax"
	"runtime"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// The price of an expression is what it compiles to, or more, and never much less.
func FuzzProgramSize(f *testing.F) {
	for _, pattern := range []string{`^[a-z]{1,500}$`, `((a?){9}){9}`, `(\pL{1000}){3}`, `(?i)é|\x{10FFFF}`, `(){1000}`, `(?:(?:a*)+)?`,
		``, `abc`, `^[a-z]+$`, `(a|b|c){0,30}`, `(([a-z]{0,30}){0,30})*`, `(?i)word`, `x{3,}`, `.`, `[^x]\b\d{4}-\d{2}`} {
		f.Add(pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		price, err := programSize(pattern)
		if err != nil || price == 0 {
			return
		}
		parsed := must.Get(syntax.Parse(pattern, syntax.Perl))(t)
		prog := must.Get(syntax.Compile(parsed.Simplify()))(t)
		must.Expect(t, 3*price+10 >= len(prog.Inst), "%q costs %d, and compiles to %d instructions", pattern, price, len(prog.Inst))
	})
}

func TestDearPatterns(t *testing.T) {
	for name, c := range map[string]struct {
		schema string
		dear   bool
	}{
		"ordinary":              {`{"pattern":"^[a-z]{1,500}$","patternProperties":{"^x-":{"type":"string"}}}`, false},
		"foreign":               {`{"pattern":"(?=x)y"}`, false},
		"repeated repetition":   {`{"pattern":"((a{0,100}){0,100}){0,100}"}`, false}, // more than Go takes, so that the site checks it
		"classes, repeated":     {`{"pattern":"` + strings.Repeat(`(\\pL{1000})`, 20) + `"}`, true},
		"22 KB":                 {`{"pattern":"` + strings.Repeat(`(a{1000})`, 2500) + `"}`, true},
		"22 KB of alternatives": {`{"pattern":"` + strings.Repeat(`a|`, 11_000) + `"}`, true},
		"as a name":             {`{"patternProperties":{"` + strings.Repeat("a{1000}", 20) + `":{}}}`, true},
		"many together":         {`{"properties":{` + many(`"pattern":"^[a-z]{0,900}$"`, 40) + `}}`, true},
		"within a definition":   {`{"$defs":{"x":{"items":{"pattern":"` + strings.Repeat("a{1000}", 20) + `"}}}}`, true},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Compile([]byte(c.schema))
		runtime.ReadMemStats(&after)
		must.Expect(t, (err != nil) == c.dear, "%s: %v", name, err)
		bytes := after.TotalAlloc - before.TotalAlloc
		must.Expect(t, bytes <= 32<<20, "%s: %d bytes", name, bytes)
	}
}

func many(member string, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"p%d":{%s}`, i, member))
	}
	return strings.Join(all, ",")
}

// However many schemas are used, few stay compiled; each goes on to work.
func TestCompiledSchemasAreBounded(t *testing.T) {
	const schemaCount = 40
	var schemas []*Lazy
	for i := range schemaCount {
		schemas = append(schemas, NewLazy([]byte(fmt.Sprintf(`{"type":"string","pattern":"^(%d|%s)$"}`, i, strings.Repeat("[a-z]{0,900}", 5)))))
	}
	held := func() uint64 {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := held()
	for range 2 {
		for i, l := range schemas {
			s := must.Get(l.Schema())(t)
			for value, want := range map[string]int{fmt.Sprintf("%q", fmt.Sprint(i)): 0, `"Z"`: 1} {
				found, err := NewValidator(fair.NewWork(1, 1), nil).Validate(t.Context(), [32]byte{}, s, []byte(value))
				must.Expect(t, err == nil && len(found) == want, "%s: %v, %v", value, found, err)
			}
		}
	}
	if bytes := int64(held()) - int64(before); bytes > 2*maxCompiled {
		t.Errorf("the schemas keep %d bytes, more than twice %d", bytes, maxCompiled)
	} else {
		t.Logf("the schemas keep %d MiB", bytes>>20)
	}
	kept := compiled.Len()
	must.Expect(t, kept >= 2 && kept < schemaCount, "%d schemas are kept", kept)
	broken := NewLazy([]byte(`{"type":1}`))
	for range 2 {
		must.Refuse(broken.Schema())(t, "", "a broken schema compiles")
	}
	runtime.KeepAlive(schemas)
}
