package invoke

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/suites/harness/harnesstest"
)

func TestMatchers(t *testing.T) {
	const refused = `{"error":{"code":"tool_not_found","message":"There is no tool named x."}}`
	harnesstest.Run(t, map[string]harnesstest.Case{
		"no-store":                       harnesstest.For(forbidStoring(), harnesstest.Response(t, 200, `{}`, "Cache-Control", "max-age=0, No-Store"), true),
		"private with a field":           harnesstest.For(forbidStoring(), harnesstest.Response(t, 200, `{}`, "Cache-Control", `private="set-cookie"`), false),
		"public":                         harnesstest.For(forbidStoring(), harnesstest.Response(t, 200, `{}`, "Cache-Control", "public, max-age=60"), false),
		"no Cache-Control":               harnesstest.For(forbidStoring(), harnesstest.Response(t, 200, `{}`), false),
		"a canary behind JSON's escapes": harnesstest.For(holdAny([]string{`A\B`}), harnesstest.Response(t, 500, `{"error":{"message":"A\\B"}}`), true),
		"a canary in a header":           harnesstest.For(holdAny([]string{"CANARY"}), harnesstest.Response(t, 500, refused, "X-Debug", "CANARY"), true),
		"no canary":                      harnesstest.For(holdAny([]string{"CANARY"}), harnesstest.Response(t, 500, refused), false),
		"a parameter named":              harnesstest.For(nameParameter("n"), harnesstest.Response(t, 400, `{"error":{"data":{"parameter":"n","expected":"integer","received":null}}}`), true),
		"a parameter named in a list":    harnesstest.For(nameParameter("n"), harnesstest.Response(t, 400, `{"error":{"data":[{"parameter":"/n","expected":"integer","received":"x"}]}}`), true),
		"what was received missing":      harnesstest.For(nameParameter("n"), harnesstest.Response(t, 400, `{"error":{"data":{"parameter":"n","expected":"integer"}}}`), false),
		"all names somewhere":            harnesstest.For(nameAll([]string{"a", "b"}), harnesstest.Response(t, 400, `{"error":{"data":{"parameter":"a","others":[{"parameter":"b"}]}}}`), true),
		"one name missing":               harnesstest.For(nameAll([]string{"alpha", "beta"}), harnesstest.Response(t, 400, `{"error":{"data":{"parameter":"alpha"}}}`), false),
	})
}
