package mapping

import (
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// A real site gets the methods by a control plane, as JSON, and reads them as a site file.
func TestAControlPlaneTakesTheMethods(t *testing.T) {
	site := must.Get(fixtures.Builtin("default"))(t)
	site.Methods = append(append(site.Methods, delicate, plainLines), worded()...)
	text := must.Get(site.JSON())(t)
	read := must.Get(fixtures.Parse("site", text))(t)
	again, err := read.JSON()
	must.Expect(t, err == nil && string(again) == string(text), "the site that was read is another: %v", err)
}

func TestListAsPropertiesSearchesSchemasNotData(t *testing.T) {
	empty, list := map[string]any{}, []any{}
	for name, c := range map[string]struct {
		schema any
		found  string
	}{
		"at the top":               {map[string]any{"properties": list}, "[] at s/properties"},
		"null":                     {map[string]any{"properties": nil}, "null at s/properties"},
		"within a property":        {map[string]any{"properties": map[string]any{"a": map[string]any{"properties": list}}}, "s/properties/a/properties"},
		"within items of a list":   {map[string]any{"items": []any{map[string]any{"properties": list}}}, "s/items/0/properties"},
		"within a combinator":      {map[string]any{"anyOf": []any{empty, map[string]any{"properties": list}}}, "s/anyOf/1/properties"},
		"a property of that name":  {map[string]any{"properties": map[string]any{"properties": map[string]any{"type": "string"}}}, ""},
		"data of that name":        {map[string]any{"default": map[string]any{"properties": list}, "enum": []any{map[string]any{"properties": list}}}, ""},
		"an object":                {map[string]any{"properties": empty}, ""},
		"a definition of the name": {map[string]any{"definitions": map[string]any{"properties": empty}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := listAsProperties(c.schema, "s")
			must.Expect(t, (c.found != "" || got == "") && strings.Contains(got, c.found), "got %q, want %q in it", got, c.found)
		})
	}
}
