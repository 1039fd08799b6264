package errors

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/suites/harness/harnesstest"
)

func TestMatchers(t *testing.T) {
	const refused = `{"error":{"code":"tool_not_found","message":"There is no tool named x."}}`
	harnesstest.Run(t, map[string]harnesstest.Case{
		"a word as code":               harnesstest.For(haveWordAsCode(), harnesstest.Response(t, 404, refused), true),
		"capitals in the code":         harnesstest.For(haveWordAsCode(), harnesstest.Response(t, 404, `{"error":{"code":"ToolNotFound","message":"no"}}`), false),
		"a dash in the code":           harnesstest.For(haveWordAsCode(), harnesstest.Response(t, 404, `{"error":{"code":"tool-not-found","message":"no"}}`), false),
		"an undocumented code":         harnesstest.For(haveDocumentedCode(), harnesstest.Response(t, 404, `{"error":{"code":"oops","message":"no"}}`), false),
		"an error under 200":           harnesstest.For(agreeWithStatus(), harnesstest.Response(t, 200, refused), false),
		"a result under 500":           harnesstest.For(agreeWithStatus(), harnesstest.Response(t, 500, `{"result":1}`), false),
		"a code of another class":      harnesstest.For(agreeWithStatus(), harnesstest.Response(t, 500, refused), false),
		"a code of the same class":     harnesstest.For(agreeWithStatus(), harnesstest.Response(t, 403, refused), true),
		"a result that holds an error": harnesstest.For(agreeWithStatus(), harnesstest.Response(t, 200, `{"result":{"error":{}}}`), true),
		"a result and a null error":    harnesstest.For(agreeWithStatus(), harnesstest.Response(t, 200, `{"result":1,"error":null}`), true),
	})
}
