package match

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/harness/harnesstest"
)

func TestMatchers(t *testing.T) {
	const refused = `{"error":{"code":"tool_not_found","message":"There is no tool named x."}}`
	harnesstest.Run(t, map[string]harnesstest.Case{
		"the envelope":                 harnesstest.For(KeepEnvelope(), harnesstest.Response(t, 404, refused), true),
		"the envelope with data":       harnesstest.For(KeepEnvelope(), harnesstest.Response(t, 400, `{"error":{"code":"invalid_params","message":"no","data":{}},"request":"7"}`), true),
		"the envelope as problem+json": harnesstest.For(KeepEnvelope(), harnesstest.Response(t, 404, refused, "Content-Type", "application/problem+json"), true),
		"the envelope as HTML":         harnesstest.For(KeepEnvelope(), harnesstest.Response(t, 404, refused, "Content-Type", "text/html"), false),
		"an HTML page":                 harnesstest.For(KeepEnvelope(), harnesstest.Response(t, 500, `<html></html>`, "Content-Type", "text/html"), false),
		"no body":                      harnesstest.For(KeepEnvelope(), harnesstest.Response(t, 405, ``), false),
		"a page before routing":        harnesstest.For(KeepEnvelope(), harnesstest.Response(t, 431, `too large`, "Content-Type", "text/plain"), true),
		"a text as error":              harnesstest.For(KeepEnvelope(), harnesstest.Response(t, 404, `{"error":"not found"}`), false),
		"no code":                      harnesstest.For(KeepEnvelope(), harnesstest.Response(t, 404, `{"error":{"message":"no"}}`), false),
		"a number as code":             harnesstest.For(KeepEnvelope(), harnesstest.Response(t, 404, `{"error":{"code":404,"message":"no"}}`), false),
		"an empty message":             harnesstest.For(KeepEnvelope(), harnesstest.Response(t, 404, `{"error":{"code":"not_found","message":""}}`), false),
		"a result beside the error":    harnesstest.For(KeepEnvelope(), harnesstest.Response(t, 500, `{"error":{"code":"execution_error","message":"no"},"result":null}`), false),
	})
}

func TestAMissingHeaderIsNamed(t *testing.T) {
	m := ConformHeader("WWW-Authenticate", "a challenge", func(*harness.Response) string { return "none" }).(*ResponseMatcher)
	for name, c := range map[string]struct {
		r    *harness.Response
		want string
	}{
		"a 401 without it":   {harnesstest.Response(t, 401, `{}`), "WWW-Authenticate"},
		"a 401 with another": {harnesstest.Response(t, 401, `{}`, "WWW-Authenticate", "Basic"), ""},
		"no 401":             {harnesstest.Response(t, 200, `{}`), ""},
	} {
		if got := m.Finding(c.r, false).Missing; got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
