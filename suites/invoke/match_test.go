package invoke

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/suites/harness/harnesstest"
)

func TestMatchers(t *testing.T) {
	const refused = `{"error":{"code":"tool_not_found","message":"There is no tool named x."}}`
	harnesstest.Run(t, map[string]harnesstest.Case{
		"no-store":                       harnesstest.For(ForbidStoring(), harnesstest.Response(t, 200, `{}`, "Cache-Control", "max-age=0, No-Store"), true),
		"private with a field":           harnesstest.For(ForbidStoring(), harnesstest.Response(t, 200, `{}`, "Cache-Control", `private="set-cookie"`), true),
		"public":                         harnesstest.For(ForbidStoring(), harnesstest.Response(t, 200, `{}`, "Cache-Control", "public, max-age=60"), false),
		"no Cache-Control":               harnesstest.For(ForbidStoring(), harnesstest.Response(t, 200, `{}`), false),
		"a canary behind JSON's escapes": harnesstest.For(HoldAny([]string{`A\B`}), harnesstest.Response(t, 500, `{"error":{"message":"A\\B"}}`), true),
		"a canary in a header":           harnesstest.For(HoldAny([]string{"CANARY"}), harnesstest.Response(t, 500, refused, "X-Debug", "CANARY"), true),
		"no canary":                      harnesstest.For(HoldAny([]string{"CANARY"}), harnesstest.Response(t, 500, refused), false),
		"a parameter named":              harnesstest.For(NameParameter("n"), harnesstest.Response(t, 400, `{"error":{"data":{"parameter":"n","expected":"integer","received":null}}}`), true),
		"a parameter named in a list":    harnesstest.For(NameParameter("n"), harnesstest.Response(t, 400, `{"error":{"data":[{"parameter":"/n","expected":"integer","received":"x"}]}}`), true),
		"what was received missing":      harnesstest.For(NameParameter("n"), harnesstest.Response(t, 400, `{"error":{"data":{"parameter":"n","expected":"integer"}}}`), false),
		"all names somewhere":            harnesstest.For(NameAll([]string{"a", "b"}), harnesstest.Response(t, 400, `{"error":{"data":{"parameter":"a","others":[{"parameter":"b"}]}}}`), true),
		"one name missing":               harnesstest.For(NameAll([]string{"alpha", "beta"}), harnesstest.Response(t, 400, `{"error":{"data":{"parameter":"alpha"}}}`), false),
	})
}
