package invoke

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/suites/check/checktest"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func TestMatchers(t *testing.T) {
	const refused = `{"error":{"code":"tool_not_found","message":"There is no tool named x."}}`
	text := scenario.ToolCase{Case: generate.Case{What: "type at /n", Value: map[string]any{"n": "x"}}}
	null := scenario.ToolCase{Case: generate.Case{What: "type at /n", Value: map[string]any{"n": nil}}}
	missing := scenario.ToolCase{Case: generate.Case{What: "required at /n", Value: map[string]any{}}}
	checktest.Run(t, map[string]checktest.Case{
		"no-store":                       checktest.For(forbidStoring(), checktest.Response(t, 200, `{}`, "Cache-Control", "max-age=0, No-Store"), true),
		"private with a field":           checktest.For(forbidStoring(), checktest.Response(t, 200, `{}`, "Cache-Control", `private="set-cookie"`), false),
		"public":                         checktest.For(forbidStoring(), checktest.Response(t, 200, `{}`, "Cache-Control", "public, max-age=60"), false),
		"no Cache-Control":               checktest.For(forbidStoring(), checktest.Response(t, 200, `{}`), false),
		"a canary behind JSON's escapes": checktest.For(holdAny([]string{`A\B`}), checktest.Response(t, 500, `{"error":{"message":"A\\B"}}`), true),
		"a canary in a header":           checktest.For(holdAny([]string{"CANARY"}), checktest.Response(t, 500, refused, "X-Debug", "CANARY"), true),
		"no canary":                      checktest.For(holdAny([]string{"CANARY"}), checktest.Response(t, 500, refused), false),
		"a parameter named":              checktest.For(nameParameter(null), checktest.Response(t, 400, `{"error":{"data":{"parameter":"n","expected":"integer","received":null}}}`), true),
		"a parameter named in a list":    checktest.For(nameParameter(text), checktest.Response(t, 400, `{"error":{"data":[{"parameter":"/n","expected":"integer","received":"x"}]}}`), true),
		"what was received missing":      checktest.For(nameParameter(text), checktest.Response(t, 400, `{"error":{"data":{"parameter":"n","expected":"integer"}}}`), false),
		"null in place of a text":        checktest.For(nameParameter(text), checktest.Response(t, 400, `{"error":{"data":{"parameter":"n","expected":"integer","received":null}}}`), false),
		"nothing received of none":       checktest.For(nameParameter(missing), checktest.Response(t, 400, `{"error":{"data":{"parameter":"n","expected":"integer"}}}`), true),
		"nothing expected":               checktest.For(nameParameter(missing), checktest.Response(t, 400, `{"error":{"data":{"parameter":"n","expected":""}}}`), false),
		"all names somewhere":            checktest.For(nameAll([]string{"a", "b"}), checktest.Response(t, 400, `{"error":{"data":{"parameter":"a","others":[{"parameter":"b"}]}}}`), true),
		"one name missing":               checktest.For(nameAll([]string{"alpha", "beta"}), checktest.Response(t, 400, `{"error":{"data":{"parameter":"alpha"}}}`), false),
	})
}
