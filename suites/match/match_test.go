package match

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/check/checktest"
)

func TestEncodedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		want, got any
		twice     bool
	}{
		"an object":        {map[string]any{"a": "b"}, `{"a": "b"}`, true},
		"a text":           {"b", `"b"`, true},
		"null":             {nil, "null", true},
		"another object":   {map[string]any{}, `{"a": "b"}`, false},
		"a number as text": {exact.MustParse("7"), "7", false},
		"no JSON":          {"b", "b", false},
	} {
		if said := EncodedTwice(c.want, c.got); (said != "") != c.twice {
			t.Errorf("%s: got %q", name, said)
		}
	}
}

func TestMatchers(t *testing.T) {
	const refused = `{"error":{"code":"tool_not_found","message":"There is no tool named x."}}`
	checktest.Run(t, map[string]checktest.Case{
		"the envelope":                 checktest.For(KeepEnvelope(), checktest.Response(t, 404, refused), true),
		"the envelope with data":       checktest.For(KeepEnvelope(), checktest.Response(t, 400, `{"error":{"code":"invalid_params","message":"no","data":{}},"request":"7"}`), true),
		"the envelope as problem+json": checktest.For(KeepEnvelope(), checktest.Response(t, 404, refused, "Content-Type", "application/problem+json"), true),
		"the envelope as HTML":         checktest.For(KeepEnvelope(), checktest.Response(t, 404, refused, "Content-Type", "text/html"), false),
		"an HTML page":                 checktest.For(KeepEnvelope(), checktest.Response(t, 500, `<html></html>`, "Content-Type", "text/html"), false),
		"no body":                      checktest.For(KeepEnvelope(), checktest.Response(t, 405, ``), false),
		"a page before routing":        checktest.For(KeepEnvelope(), checktest.Response(t, 431, `too large`, "Content-Type", "text/plain"), true),
		"a text as error":              checktest.For(KeepEnvelope(), checktest.Response(t, 404, `{"error":"not found"}`), false),
		"no code":                      checktest.For(KeepEnvelope(), checktest.Response(t, 404, `{"error":{"message":"no"}}`), false),
		"a number as code":             checktest.For(KeepEnvelope(), checktest.Response(t, 404, `{"error":{"code":404,"message":"no"}}`), false),
		"an empty message":             checktest.For(KeepEnvelope(), checktest.Response(t, 404, `{"error":{"code":"not_found","message":""}}`), false),
		"a result beside the error":    checktest.For(KeepEnvelope(), checktest.Response(t, 500, `{"error":{"code":"execution_error","message":"no"},"result":null}`), false),
	})
}

func TestAMissingHeaderIsNamed(t *testing.T) {
	m := ConformHeader("WWW-Authenticate", "a challenge", func(*check.Response) string { return "none" }).(*ResponseMatcher)
	for name, c := range map[string]struct {
		r    *check.Response
		want string
	}{
		"a 401 without it":   {checktest.Response(t, 401, `{}`), "WWW-Authenticate"},
		"a 401 with another": {checktest.Response(t, 401, `{}`, "WWW-Authenticate", "Basic"), ""},
		"no 401":             {checktest.Response(t, 200, `{}`), ""},
	} {
		must.Equal(t, m.Finding(c.r, false).Missing, c.want, "%s", name)
	}
}
