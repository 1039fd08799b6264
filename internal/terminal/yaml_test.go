package terminal

import (
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestYAML(t *testing.T) {
	for given, want := range map[string]string{
		"a:  [plain,  'x ## y']\n": "a: [plain, \"x #\\u0023 y\"]\n",
		"a:  [plain,  'x # y']\n":  "a:  [plain,  'x # y']\n", // as it was
		"a: \"::error::\"\n":       "a: \"::error::\"\n",
		"? |\n  x\n  ::e::\n: 1\n": "? \"x\\n::e::\\n\"\n: 1\n",
		"- '\u202e'\n- |\n  x\n":   "- \"\\u202e\"\n- |\n  x\n",
	} {
		must.Equal(t, string(must.Get(YAML([]byte(given)))(t)), want, "YAML of %q", given)
	}
}

func FuzzYAML(f *testing.F) {
	f.Add("a\u202e##[error]\u009b\U000E0041\\u0023#\x00", "plain")
	f.Add("x\n::error::y\n", "\uE000 ::error::")
	f.Add("##vso["+strings.Repeat("long ", 100), "~")
	f.Fuzz(func(t *testing.T, a, b string) {
		data := must.Get(yaml.Marshal(map[string]any{"texts": []string{a, b}, "of": map[string]string{a: b}}))(t)
		safe := must.Get(YAML(data))(t)
		var before, after any
		must.Do(t, yaml.Unmarshal(data, &before))
		err := yaml.Unmarshal(safe, &after)
		must.Assert(t, err == nil && reflect.DeepEqual(before, after), "%s\nbecomes\n%s\nwhich is %v: %v", data, safe, after, err)
		must.Assert(t, !command.Match(safe) && strings.IndexFunc(string(safe), func(c rune) bool { return c != '\uFFFD' && unsafe(c) }) < 0, "%s is not safe", safe)
	})
}
