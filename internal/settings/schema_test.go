package settings_test

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/settings"
)

func TestSchema(t *testing.T) {
	text := must.Get(settings.Schema())(t)
	doc := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(text)))(t)
	c := jsonschema.NewCompiler()
	must.Do(t, c.AddResource("config.json", doc))
	schema := must.Get(c.Compile("config.json"))(t)
	takes := func(text string) error {
		var v any
		must.Do(t, yaml.Unmarshal([]byte(text), &v))
		return schema.Validate(v)
	}
	page := must.Get(os.ReadFile("../../docs/my-drupal.md"))(t)
	examples := regexp.MustCompile("(?s)```yaml\n(url:.*?)```").FindAllStringSubmatch(string(page), -1)
	must.Assert(t, len(examples) > 0, "docs/my-drupal.md has no example of a configuration")
	for _, example := range examples {
		err := takes(example[1])
		must.Expect(t, err == nil, "the schema refuses the documented configuration: %v", err)
		_, err = settings.Parse("example.yaml", []byte(example[1]))
		must.Expect(t, err == nil, "the documented configuration is wrong: %v", err)
	}
	for _, wrong := range []string{"urll: x", "identities: {nobody: {}}", "identities: {agent: {basic: {user: a, password: hunter2}}}", "timeout: soon", "settings: {page_size: many}", "invocations: [{tol: x}]"} {
		must.Expect(t, takes(wrong) != nil, "the schema takes %s", wrong)
		must.Refuse(settings.Parse("wrong.yaml", []byte(wrong)))(t, "", wrong)
	}
	must.Expect(t, bytes.Contains(text, []byte("base URL of a running bridge")), "the schema has no descriptions")
}
