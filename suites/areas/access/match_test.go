package access

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/check/checktest"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

func TestMatchers(t *testing.T) {
	const refused = `{"error":{"code":"tool_not_found","message":"There is no tool named x."}}`
	page := func(body string) *check.Response { return checktest.Response(t, 200, body) }
	anonymous := page(`{"tools":[{"name":"a"}],"nextCursor":"Zm9v"}`)
	checktest.Run(t, map[string]checktest.Case{
		"the anonymous list, another cursor": checktest.For(beRejected(anonymous), page(`{"tools":[{"name":"a"}],"nextCursor":"YmFy"}`), true),
		"the anonymous list, no cursor":      checktest.For(beRejected(anonymous), page(`{"tools":[{"name":"a"}]}`), false),
		"another list, the same cursor":      checktest.For(beRejected(anonymous), page(`{"tools":[{"name":"b"}],"nextCursor":"Zm9v"}`), false),
		"a 401 with a challenge":             checktest.For(match.HaveChallengeIf401(), checktest.Response(t, 401, refused, "Www-Authenticate", `Basic realm="x"`), true),
		"a 401 without":                      checktest.For(match.HaveChallengeIf401(), checktest.Response(t, 401, refused), false),
		"a 403 without":                      checktest.For(match.HaveChallengeIf401(), checktest.Response(t, 403, refused), true),
		"another caller's tool in a refusal": checktest.For(nameNoOtherTool("no.such.1.tool"), checktest.Response(t, 404, `{"error":{"message":"no.such.11.tool"}}`), false),
		"the caller's own tool in a refusal": checktest.For(nameNoOtherTool("no.such.1.tool"), checktest.Response(t, 404, `{"error":{"message":"no.such.1.tool"}}`), true),
		"another caller's name":              checktest.For(nameOnlyCaller("check1", []check.Identity{"check1", "check12"}), checktest.Response(t, 200, `{"result":{"name":"check12"}}`), false),
		"the caller's own name":              checktest.For(nameOnlyCaller("check1", []check.Identity{"check1", "check12"}), checktest.Response(t, 200, `{"result":{"name":"check1"}}`), true),
	})
}
