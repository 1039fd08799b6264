package mockdrupal_test

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
)

// TestSiteSetsCookiesPerAccountAndResponse shows what a check needs: a client that shares one cookie jar among its
// callers is seen in the journal, one with a jar for each is not.
func TestSiteSetsCookiesPerAccountAndResponse(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared jar %v", shared), func(t *testing.T) {
			s := start(t, smallSite(), mockdrupal.Options{})
			for _, user := range []string{"agent", "admin"} {
				must.Get(s.Arm(mockdrupal.Fault{Kind: fault.SetCookie, User: user, Cookie: "marker-" + user + "={seq}; Path=/"}))(t)
			}
			jars := map[string]http.CookieJar{}
			for _, user := range []string{"agent", "admin", "agent", "admin", "outsider"} {
				of := user
				if shared {
					of = "all"
				}
				if jars[of] == nil {
					jars[of], _ = cookiejar.New(nil) // never fails
				}
				r, _ := http.NewRequest("POST", s.URL+"/jsonrpc", strings.NewReader(whoami))
				r.SetBasicAuth(user, user+"-pass")
				res := must.Get((&http.Client{Jar: jars[of]}).Do(r))(t)
				res.Body.Close()
			}
			e := s.Journal().Entries(0)
			must.Expect(t, e[2].SentCookie("marker-agent", "1") && e[3].SentCookie("marker-admin", "2"),
				"the own cookies did not come back: %v, %v", e[2].Cookies, e[3].Cookies)
			got := e[1].SentCookie("marker-agent", "1")
			must.Expect(t, got == shared, "the agent's cookie came with the admin's request: %v, want %v", got, shared)
			if len(e[0].SetCookies) != 1 || e[0].SetCookies[0].Name != "marker-agent" || e[0].SetCookies[0] == e[2].SetCookies[0] || len(e[4].SetCookies) != 0 {
				t.Errorf("cookies set: %v, %v, and for an account without a fault %v", e[0].SetCookies, e[2].SetCookies, e[4].SetCookies)
			}
		})
	}
}

func TestCookieFaultNeedsACookie(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	for _, cookie := range []string{"", "no-value", "=x"} {
		_, err := s.Arm(mockdrupal.Fault{Kind: fault.SetCookie, Cookie: cookie})
		must.Expect(t, err != nil, "the cookie %q was armed", cookie)
	}
}
