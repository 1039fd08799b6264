package access

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/harness/harnesstest"
)

func TestMatchers(t *testing.T) {
	const refused = `{"error":{"code":"tool_not_found","message":"There is no tool named x."}}`
	page := func(body string) *harness.Response { return harnesstest.Response(t, 200, body) }
	anonymous := page(`{"tools":[{"name":"a"}],"nextCursor":"Zm9v"}`)
	harnesstest.Run(t, map[string]harnesstest.Case{
		"the anonymous list, another cursor": harnesstest.For(beRejected(anonymous), page(`{"tools":[{"name":"a"}],"nextCursor":"YmFy"}`), true),
		"the anonymous list, no cursor":      harnesstest.For(beRejected(anonymous), page(`{"tools":[{"name":"a"}]}`), false),
		"another list, the same cursor":      harnesstest.For(beRejected(anonymous), page(`{"tools":[{"name":"b"}],"nextCursor":"Zm9v"}`), false),
		"a 401 with a challenge":             harnesstest.For(haveChallengeIf401(), harnesstest.Response(t, 401, refused, "Www-Authenticate", `Basic realm="x"`), true),
		"a 401 without":                      harnesstest.For(haveChallengeIf401(), harnesstest.Response(t, 401, refused), false),
		"a 403 without":                      harnesstest.For(haveChallengeIf401(), harnesstest.Response(t, 403, refused), true),
		"another caller's tool in a refusal": harnesstest.For(nameNoOtherTool("no.such.1.tool"), harnesstest.Response(t, 404, `{"error":{"message":"no.such.11.tool"}}`), false),
		"the caller's own tool in a refusal": harnesstest.For(nameNoOtherTool("no.such.1.tool"), harnesstest.Response(t, 404, `{"error":{"message":"no.such.1.tool"}}`), true),
		"another caller's name":              harnesstest.For(nameOnlyCaller("check1", []harness.Identity{"check1", "check12"}), harnesstest.Response(t, 200, `{"result":{"name":"check12"}}`), false),
		"the caller's own name":              harnesstest.For(nameOnlyCaller("check1", []harness.Identity{"check1", "check12"}), harnesstest.Response(t, 200, `{"result":{"name":"check1"}}`), true),
	})
}
