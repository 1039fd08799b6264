package http

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/suites/harness/harnesstest"
)

func TestMatchers(t *testing.T) {
	const refused = `{"error":{"code":"tool_not_found","message":"There is no tool named x."}}`
	harnesstest.Run(t, map[string]harnesstest.Case{
		"Vary: Authorization":                 harnesstest.For(excludeSharedCaches(), harnesstest.Response(t, 200, `{}`, "Vary", "Accept-Encoding, authorization"), true),
		"Vary: Cookie for Basic":              harnesstest.For(excludeSharedCaches(), harnesstest.Response(t, 200, `{}`, "Vary", "Cookie"), false),
		"Allow with GET":                      harnesstest.For(allowGET(), harnesstest.Response(t, 405, refused, "Allow", "HEAD, GET"), true),
		"Allow without GET":                   harnesstest.For(allowGET(), harnesstest.Response(t, 405, refused, "Allow", "POST"), false),
		"a response of another shape":         harnesstest.For(haveHeadOf(harnesstest.Response(t, 200, `{}`), harnesstest.Response(t, 200, `{}`)), harnesstest.Response(t, 200, ``, "Content-Type", "text/plain"), false),
		"a head without what may be left out": harnesstest.For(haveHeadOf(harnesstest.Response(t, 200, `{}`, "Content-Length", "2"), harnesstest.Response(t, 200, `{}`, "Content-Length", "2")), harnesstest.Response(t, 200, ``), true),
		"a head of another length":            harnesstest.For(haveHeadOf(harnesstest.Response(t, 200, `{}`, "Content-Length", "2"), harnesstest.Response(t, 200, `{}`, "Content-Length", "2")), harnesstest.Response(t, 200, ``, "Content-Length", "0"), false),
	})
}
