package yamlfile

import (
	"strings"
	"testing"
	"time"
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
	lines, err := Decode("f.yaml", []byte("name: x\npages: 3\nitems:\n- key: a\n- &b\n  key: b\n- *b\nfree: {z: 1}\ntoken: {env: T}\n"), &s)
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "x" || s.Pages != 3 || len(s.Items) != 3 || s.Items[2].Key != "b" || s.Free["z"] != 1 || s.Token.Env != "T" {
		t.Errorf("it is %+v", s)
	}
	for path, want := range map[string]int{"name": 1, "items": 3, "items[1]": 5, "items[1].key": 6, "items[2]": 7, "free.z": 8} {
		if lines[path] != want {
			t.Errorf("%s is on line %d, want %d", path, lines[path], want)
		}
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
			_, err := Decode("f.yaml", []byte(c.in), &s, "private")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("name: x\nitems: [{key: a}]\nfree: {a: 1}\ntoken: {env: T}"))
	f.Add([]byte("items: &a [*a]\nfree: {<<: {a: 1}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sample
		lines, err := Decode("f.yaml", data, &s)
		if err == nil && lines == nil {
			t.Error("neither lines nor an error")
		}
	})
}
