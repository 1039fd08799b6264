package protocol

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/suites/check/checktest"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func TestMatchers(t *testing.T) {
	const refused = `{"error":{"code":"tool_not_found","message":"There is no tool named x."}}`
	checktest.Run(t, map[string]checktest.Case{
		"Vary: Authorization":                 checktest.For(scenario.ExcludeSharedCaches(), checktest.Response(t, 200, `{}`, "Vary", "Accept-Encoding, authorization"), true),
		"Vary: Cookie for Basic":              checktest.For(scenario.ExcludeSharedCaches(), checktest.Response(t, 200, `{}`, "Vary", "Cookie"), false),
		"Allow with GET":                      checktest.For(allowGET(), checktest.Response(t, 405, refused, "Allow", "HEAD, GET"), true),
		"Allow without GET":                   checktest.For(allowGET(), checktest.Response(t, 405, refused, "Allow", "POST"), false),
		"a response of another shape":         checktest.For(haveHeadOf(checktest.Response(t, 200, `{}`), checktest.Response(t, 200, `{}`)), checktest.Response(t, 200, ``, "Content-Type", "text/plain"), false),
		"a head without what may be left out": checktest.For(haveHeadOf(checktest.Response(t, 200, `{}`, "Content-Length", "2"), checktest.Response(t, 200, `{}`, "Content-Length", "2")), checktest.Response(t, 200, ``), true),
		"a head of another length":            checktest.For(haveHeadOf(checktest.Response(t, 200, `{}`, "Content-Length", "2"), checktest.Response(t, 200, `{}`, "Content-Length", "2")), checktest.Response(t, 200, ``, "Content-Length", "0"), false),
	})
}
