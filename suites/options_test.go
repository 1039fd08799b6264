package suites_test

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites"
)

// An alias hides its fields from go doc, so that its comment has them.
func TestOptionsAreDocumented(t *testing.T) {
	source := string(must.Get(os.ReadFile("suites.go"))(t))
	for _, field := range reflect.VisibleFields(reflect.TypeFor[suites.Options]()) {
		must.Expect(t, regexp.MustCompile(`(?m)^\t//\t(\w+, )*`+field.Name+`\b`).MatchString(source), "the comment of suites.Options lacks %s", field.Name)
	}
}
