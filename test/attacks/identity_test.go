package attacks

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// identitySpellings are ways to write the same credentials of one account, and things beside them that change nothing.
func identitySpellings() [][]string {
	basic := identityBasic("user1", "user1-pass")
	encoded := strings.TrimPrefix(basic, "Basic ")
	var all [][]string
	for _, scheme := range []string{"Basic", "basic", "BASIC", "bAsIc", "BaSiC"} {
		for blanks := 1; blanks <= 4; blanks++ {
			all = append(all, []string{"Authorization", scheme + strings.Repeat(" ", blanks) + encoded})
		}
	}
	for _, name := range []string{"USER1", "User1", "uSeR1", " user1", "user1 ", "  User1  "} {
		all = append(all, []string{"Authorization", identityBasic(name, "user1-pass")})
	}
	for i := range 30 {
		all = append(all, []string{"Authorization", basic, "Cookie", fmt.Sprintf("SESS%032x=junk%d", i, i)},
			[]string{"Authorization", basic, "Cookie", fmt.Sprintf("theme%d=x", i)},
			[]string{"Authorization", basic, "X-Csrf-Token", fmt.Sprint(i)},
			[]string{"Authorization", basic, "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i)})
	}
	return all
}

// No spelling of credentials is another entry in what is remembered: the site is asked once.
func TestIdentitySpellingsShareWhatIsRemembered(t *testing.T) {
	site := newIdentitySite(t)
	base := identityBridge(t, site.URL, func(o *bridge.Options) {
		o.Credentials = []caller.Scheme{caller.Basic, caller.Bearer, caller.Cookie}
	})
	for _, headers := range identitySpellings() {
		identitySend(t, "GET", base+"/mcp/tools/list", "", headers...).expect(t, 200, "%q", headers)
	}
	must.Equal(t, site.counts().asked, 1, "requests of the site for one account")
}

// No spelling of credentials, and no language, gives an account more calls than its rate.
func TestIdentitySpellingsShareARate(t *testing.T) {
	site := newIdentitySite(t)
	base := identityBridge(t, site.URL, func(o *bridge.Options) { o.RatePerSec, o.RateBurst = 0.001, 3 })
	refused := 0
	for i, headers := range identitySpellings() {
		headers = append(headers, "Accept-Language", []string{"de", "en", "fr", "DE-at;q=0.5"}[i%4])
		if r := identitySend(t, "POST", base+"/mcp/tools/invoke", identityCall, headers...); r.status == 429 {
			refused++
		}
	}
	n := site.counts().calls
	must.Expect(t, n == 3 && refused != 0, "%d calls reached the site, want 3; %d got 429", n, refused)
}

// Base64 that could be read in several ways, and everything else that is malformed, is refused at the bridge.
func TestIdentityJunkDoesNotReachTheSite(t *testing.T) {
	site := newIdentitySite(t)
	base := identityBridge(t, site.URL, func(o *bridge.Options) {
		o.Credentials = []caller.Scheme{caller.Basic, caller.Bearer, caller.Cookie}
	})
	encoded := strings.TrimPrefix(identityBasic("user1", "user1-pass"), "Basic ")
	var junk [][]string
	for i := range 20 {
		junk = append(junk, []string{"Authorization", "Basic " + encoded[:i] + "%" + encoded[i:]}, []string{"Authorization", "Basic " + encoded[:i+1] + " " + encoded[i+1:]},
			[]string{"Authorization", "Basic " + encoded + strings.Repeat("=", i+1)},
			[]string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("user1"+string(rune(i))+":user1-pass"))},
			[]string{"Cookie", fmt.Sprintf("SESSa=good; SESSb=%d", i)})
	}
	for _, headers := range junk {
		r := identitySend(t, "GET", base+"/mcp/tools/list", "", headers...)
		must.Expect(t, r.status == 401 && r.header.Get("WWW-Authenticate") != "", "%q: %d %s", headers, r.status, r.body)
	}
	must.Equal(t, site.counts().asked, 0, "requests of the site")
}

// Languages that callers invent are not asked for: what the site is asked, and what is remembered, stays small.
func TestIdentityInventedLanguages(t *testing.T) {
	for _, c := range []struct {
		name    string
		site    []string
		most    int
		headers func(i int) string
	}{
		{"regions", nil, 1, func(i int) string { return fmt.Sprintf("en-%c%c", 'A'+i/26%26, 'A'+i%26) }},
		{"weights", nil, 1, func(i int) string { return fmt.Sprintf("en;q=0.%03d", i+1) }},
		{"others after it", nil, 1, func(i int) string { return fmt.Sprintf("en, x%d;q=0.5", i) }},
		{"junk", nil, 1, func(i int) string { return fmt.Sprintf("xx-%d, q%d, *;q=0.1", i, i) }},
		{"letter case and blanks", nil, 1, func(i int) string { return strings.Repeat(" ", i%7) + []string{"en", "EN", "En", "eN"}[i%4] }},
		{"codes of two letters", nil, 17, func(i int) string { return fmt.Sprintf("%c%c", 'a'+i/26%26, 'a'+i%26) }},
		{"codes of two letters, of which the site has two", []string{"en", "de"}, 3, func(i int) string { return fmt.Sprintf("%c%c", 'a'+i/26%26, 'a'+i%26) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			site := newIdentitySite(t)
			base := identityBridge(t, site.URL, func(o *bridge.Options) { o.Languages = c.site })
			for i := range 676 {
				identitySend(t, "GET", base+"/mcp/tools/list", "", "Authorization", identityBasic("user1", "user1-pass"), "Accept-Language", c.headers(i))
			}
			site.count(func() {
				must.Expect(t, site.asked <= c.most && len(site.languages) <= c.most,
					"the site was asked %d times, in %d languages", site.asked, len(site.languages))
			})
		})
	}
}

// Callers who come all at once, with credentials that are known or not, do not all have the site asked at once; each is
// served in the end.
func TestIdentityDiscoveriesAtOnce(t *testing.T) {
	site := newIdentitySite(t)
	base := identityBridge(t, site.URL, func(o *bridge.Options) { o.AddressFailures, o.PermissionTTL = 1000, time.Millisecond })
	list := func(i int) {
		r := identitySend(t, "GET", base+"/mcp/tools/list", "", "Authorization", identityBasic(fmt.Sprint("user", i), fmt.Sprintf("user%d-pass", i)))
		must.Expect(t, r.status == 200, "user%d: %d %s", i, r.status, r.body)
	}
	for i := range 100 {
		list(i)
	}
	release := make(chan struct{})
	site.count(func() { site.slow = release })
	wait := crowd(200, list)
	time.Sleep(time.Second) // for more than may come
	close(release)
	wait()
	n := site.counts().mostRunning
	must.Expect(t, n <= 32 && n >= 16, "%d discoveries at one time", n)
}
