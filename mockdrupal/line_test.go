package mockdrupal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// What the lines of the jsonrpc module do differently.
func TestLinesOfTheJSONRPCModule(t *testing.T) {
	const null = `{"jsonrpc":"2.0","id":1,"method":"test.null"}`
	preflight := []string{"Origin", "https://page.example", "Access-Control-Request-Method", "POST"}
	for _, line := range []int{0, mockdrupal.Line3, mockdrupal.Line2} {
		two := line == mockdrupal.Line2
		site := smallSite()
		site.Auth.JSONRPC = append(site.Auth.JSONRPC, "cookie")
		site.Methods = append(site.Methods, fixtures.Method{ID: "test.null", Usage: "Null",
			Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw("null")}})
		s := start(t, site, mockdrupal.Options{JSONRPC: line})

		res, _ := do(t, "OPTIONS", s.URL+"/jsonrpc", "", preflight...)
		must.Expect(t, res.StatusCode == http.StatusUnauthorized,
			"line %d: a preflight without credentials: %d %v", line, res.StatusCode, res.Header)
		asked := append([]string{"Authorization", agentBasic}, preflight...)
		res, _ = do(t, "OPTIONS", s.URL+"/jsonrpc?query="+url.QueryEscape(null), "", asked...)
		must.Expect(t, res.StatusCode == 204 && res.Header.Get("Allow") == "OPTIONS, GET, HEAD, POST" && res.Header.Get("Access-Control-Allow-Origin") == "",
			"line %d: a preflight: %d %v", line, res.StatusCode, res.Header)
		if res, _ := do(t, "OPTIONS", s.URL+"/jsonrpc/methods", "", asked...); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("line %d: a preflight of an address without OPTIONS: %d", line, res.StatusCode)
		}
		if res, _ := do(t, "OPTIONS", s.URL+"/jsonrpc", ""); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("line %d: OPTIONS that is no preflight: %d", line, res.StatusCode)
		}
		if res, _ := do(t, "POST", s.URL+"/jsonrpc", null, preflight...); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("line %d: the headers of a preflight on POST: %d", line, res.StatusCode)
		}

		status, body := call(t, s, "agent", null)
		failed := strings.Contains(body, "-32603")
		must.Expect(t, status == 200 && failed == two, "line %d: a method that returns null: %d %s", line, status, body)

		login, _ := do(t, "POST", s.URL+"/user/login?_format=json", `{"name":"agent","pass":"agent-pass"}`)
		must.Assert(t, len(login.Cookies()) > 0, "line %d: a login opens no session: %d", line, login.StatusCode)
		session := login.Cookies()[0]
		cookie := []string{"Cookie", session.Name + "=" + session.Value}
		res, _ = do(t, "GET", s.URL+"/jsonrpc/methods", "", cookie...)
		must.Expect(t, res.StatusCode == http.StatusOK, "line %d: discovery by a session: %d", line, res.StatusCode)
		res, _ = do(t, "POST", s.URL+"/jsonrpc", null, cookie...)
		accepted := res.StatusCode == http.StatusOK
		must.Expect(t, accepted != two, "line %d: a session where the site names cookie: %d", line, res.StatusCode)
	}
	_, err := mockdrupal.New(smallSite(), mockdrupal.Options{JSONRPC: 4})
	must.Expect(t, err != nil && strings.Contains(err.Error(), "line 4"), "line 4 is accepted: %v", err)
}
