package errorcodes

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites/check/checktest"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

func TestMatchers(t *testing.T) {
	const refused = `{"error":{"code":"tool_not_found","message":"There is no tool named x."}}`
	all := must.Get(contract.Load())(t)
	checktest.Run(t, map[string]checktest.Case{
		"a word as code":               checktest.For(haveWordAsCode(), checktest.Response(t, 404, refused), true),
		"capitals in the code":         checktest.For(haveWordAsCode(), checktest.Response(t, 404, `{"error":{"code":"ToolNotFound","message":"no"}}`), false),
		"a dash in the code":           checktest.For(haveWordAsCode(), checktest.Response(t, 404, `{"error":{"code":"tool-not-found","message":"no"}}`), false),
		"an undocumented code":         checktest.For(match.HaveDocumentedCode(all), checktest.Response(t, 404, `{"error":{"code":"oops","message":"no"}}`), false),
		"an error under 200":           checktest.For(agreeWithStatus(all), checktest.Response(t, 200, refused), false),
		"a result under 500":           checktest.For(agreeWithStatus(all), checktest.Response(t, 500, `{"result":1}`), false),
		"a code of another class":      checktest.For(agreeWithStatus(all), checktest.Response(t, 500, refused), false),
		"a code of the same class":     checktest.For(agreeWithStatus(all), checktest.Response(t, 403, refused), true),
		"a result that holds an error": checktest.For(agreeWithStatus(all), checktest.Response(t, 200, `{"result":{"error":{}}}`), true),
		"a result and a null error":    checktest.For(agreeWithStatus(all), checktest.Response(t, 200, `{"result":1,"error":null}`), true),
	})
}
