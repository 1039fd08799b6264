package yamlfile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

type sample struct {
	Name    string         `yaml:"name"`
	Pages   int            `yaml:"pages,omitempty"`
	Keep    time.Duration  `yaml:"keep"`
	Items   []item         `yaml:"items"`
	Free    map[string]int `yaml:"free"`
	Private item           `yaml:"private"`
	Token   *secret        `yaml:"token"`
}

type item struct {
	Key string `yaml:"key"`
}

type secret struct {
	Env string `yaml:"env"`
}

func (secret) WrongKind() string { return "write {env: VARIABLE}" }

func TestDecodeNotesLines(t *testing.T) {
	var s sample
	lines := must.Get(Decode("f.yaml", []byte("name: x\npages: 3\nitems:\n- key: a\n- &b\n  key: b\n- *b\nfree: {z: 1}\ntoken: {env: T}\n"), &s))(t)
	must.Expect(t, s.Name == "x" && s.Pages == 3 && len(s.Items) == 3 && s.Items[2].Key == "b" && s.Free["z"] == 1 && s.Token.Env == "T",
		"it is %+v", s)
	for path, want := range map[string]int{"name": 1, "items": 3, "items[1]": 5, "items[1].key": 6, "items[2]": 7, "free.z": 8} {
		must.Expect(t, lines[path] == want, "%s is on line %d, want %d", path, lines[path], want)
	}
}

func TestDecodeNamesEveryMistake(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing":             {"# no\n", "f.yaml: the file is empty"},
		"another document":    {"name: x\n---\nname: y\n", "f.yaml:3: a second document"},
		"no mapping":          {"[]", "f.yaml:1: the file should be a mapping with some of the keys name, pages, keep"},
		"an unknown key":      {"items:\n- kye: a", "f.yaml:2: there is no key items[0].kye; did you mean key?"},
		"a key like no other": {"nothing: 3\n", "f.yaml:1: there is no key nothing; there are name, pages, keep"},
		"a key twice":         {"name: x\nname: y", "f.yaml:2: the key name stands here and on line 1"},
		"a free key twice":    {"free:\n  a: 1\n  a: 2", "f.yaml:3: the key free.a stands here and on line 2"},
		"merged keys":         {"items:\n- &a {key: x}\n- {<<: *a}", "f.yaml:3: items[1]: keys are not merged"},
		"another kind":        {"items: 3", `f.yaml:1: items should be a list, and is "3"`},
		"no number":           {"pages: many", `f.yaml:1: pages should be a whole number, and is "many"`},
		"a fraction":          {"pages: 1.5", `f.yaml:1: pages should be a whole number, and is "1.5"`},
		"nothing given":       {"name:", "f.yaml:1: name is empty"},
		"its own words":       {"token: abc", "f.yaml:1: token: write {env: VARIABLE}"},
		"several":             {"name: []\npages: x", "f.yaml:1: name should be a text, and is a list\nf.yaml:2: pages"},
		"a hidden value":      {"private: hunter2", "f.yaml:1: private should be a mapping with some of the keys key, and is a text"},
		"an alias of itself":  {"items: &a [*a]", "f.yaml:1: items[0] should be a mapping"},
		"a tab":               {"items:\n\t- {}", "f.yaml:2: found character that cannot start any token: YAML is indented by blanks"},
	} {
		t.Run(name, func(t *testing.T) {
			var s sample
			must.Refuse(Decode("f.yaml", []byte(c.in), &s, "private"))(t, c.want)
		})
	}
}

// Whatever form the nesting has, a file costs a bounded time, and one that is deep and allowed is read.
func TestDepthAndAliasesAreBounded(t *testing.T) {
	lines := func(line func(int) string, n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i))
		}
		return b.String()
	}
	forms := map[string]func(n int) string{
		"keys":          func(n int) string { return lines(func(i int) string { return strings.Repeat(" ", i) + "a:\n" }, n) },
		"flow mappings": func(n int) string { return strings.Repeat("{a: ", n) + "1" + strings.Repeat("}", n) },
		"flow lists":    func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) },
		"lists":         func(n int) string { return strings.Repeat("- ", n) + "1" },
		"quoted keys":   func(n int) string { return strings.Repeat(`{"]\"": `, n) + "1" + strings.Repeat("}", n) },
		"many lines":    func(n int) string { return lines(func(int) string { return "[\n" }, n) + strings.Repeat("]\n", n) },
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			for _, n := range []int{maxDepth + 1, 3000} {
				if _, err := Root("f.yaml", []byte(form(n))); err == nil || !strings.Contains(err.Error(), "values are nested more than 200 deep") || !strings.HasPrefix(err.Error(), "f.yaml:") {
					t.Errorf("%d deep: the error is %v", n, err)
				}
			}
			took := time.Since(began)
			must.Expect(t, took <= 5*time.Second, "refusing it takes %s", took)
			root, err := Root("f.yaml", []byte(form(maxDepth-2)))
			must.Expect(t, err == nil && root != nil, "%d deep is refused: %v", maxDepth-2, err)
		})
	}
	const brackets = "[{[{[{[{"
	for name, in := range map[string]string{
		"a text":          "text: a " + strings.Repeat(brackets, 100),
		"a quoted text":   "text: '" + strings.Repeat(brackets, 100) + "'",
		"a comment":       "a: 1 # " + strings.Repeat(brackets, 100),
		"a block scalar":  "- a: |\n    x\n\n     " + strings.Repeat(brackets, 100) + "\n  b: 1",
		"a folded scalar": ">\n  " + strings.Repeat(brackets, 100),
		"many siblings":   strings.Repeat("- {a: [1]}\n", 1000),
		"many key levels": strings.Repeat("- a:\n    b:\n      c: []\n", 1000),
	} {
		_, err := Root("f.yaml", []byte(in))
		must.Expect(t, err == nil, "brackets in %s count as nesting: %v", name, err)
	}
	bomb := "a0: &a0 [x, x]\n" + lines(func(i int) string {
		return fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i)
	}, 40)
	if _, err := Root("f.yaml", []byte(bomb)); err == nil || !strings.Contains(err.Error(), "f.yaml:13: column ") || !strings.Contains(err.Error(), "with its aliases") {
		t.Errorf("aliases of aliases: the error is %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("name: x\nitems: [{key: a}]\nfree: {a: 1}\ntoken: {env: T}"))
	f.Add([]byte("items: &a [*a]\nfree: {<<: {a: 1}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sample
		lines, err := Decode("f.yaml", data, &s)
		must.Expect(t, err != nil || lines != nil, "neither lines nor an error")
	})
}
