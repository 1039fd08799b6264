package repo

import (
	"maps"
	"slices"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge/translate"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// A field type that the reference bridge knows is on the built-in site that the checks of translate use.
func TestEveryFieldTypeHasAFixture(t *testing.T) {
	site := must.Get(fixtures.Builtin("types"))(t)
	shown := map[string]bool{}
	for _, m := range site.Methods {
		for _, p := range m.Params {
			if p.Drupal != nil {
				shown[p.Drupal.Type] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(translate.FieldTypes())) {
		must.Expect(t, shown[name],
			"the field type %s is on no site: add `%s: {drupal: %s}` to the params of a method in fixtures/sites/types.yaml", name, name, name)
	}
}
