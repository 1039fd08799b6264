// Package checktest makes responses for tests of matchers, without a bridge.
package checktest

import (
	"net/http"
	"testing"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/suites/client"
)

// Response is a response as a bridge might send it: application/json, and the headers given as name and value in turn.
func Response(t testing.TB, status int, body string, header ...string) *client.Response {
	t.Helper()
	r := &client.Response{Status: status, Body: []byte(body), Header: http.Header{"Content-Type": {"application/json"}}, Sent: http.Header{"Authorization": {"Basic x"}}}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// Case is a response, and whether a matcher matches it.
type Case struct {
	Matcher  types.GomegaMatcher
	Response *client.Response
	Matches  bool
}

// For is the case of a matcher and a response.
func For(matcher types.GomegaMatcher, r *client.Response, matches bool) Case {
	return Case{matcher, r, matches}
}

// Run tests matchers by cases with a name each.
func Run(t *testing.T, cases map[string]Case) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			matches, err := c.Matcher.Match(c.Response)
			if err != nil || matches != c.Matches {
				t.Errorf("matches: %v, %v; want %v: %s", matches, err, c.Matches, c.Matcher.FailureMessage(c.Response))
			}
		})
	}
}
