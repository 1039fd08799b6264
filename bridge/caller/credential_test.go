package caller

import (
	"encoding/base64"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

func pair(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// Whatever spells one credential is one caller, in what is remembered, in what it owns and in what is counted.
func TestSpellingsOfACredentialAreOneCaller(t *testing.T) {
	cs := Callers{Schemes: []Scheme{Basic, Bearer, Cookie}}
	for name, c := range map[string]struct{ plain, spelt http.Header }{
		"scheme in capitals":     {http.Header{"Authorization": {"Basic " + pair("ann", "pw")}}, http.Header{"Authorization": {"bASIC " + pair("ann", "pw")}}},
		"blanks before":          {http.Header{"Authorization": {"Basic " + pair("ann", "pw")}}, http.Header{"Authorization": {"Basic    " + pair("ann", "pw")}}},
		"a tab":                  {http.Header{"Authorization": {"Basic " + pair("ann", "pw")}}, http.Header{"Authorization": {"Basic \t" + pair("ann", "pw")}}},
		"name in capitals":       {http.Header{"Authorization": {"Basic " + pair("ann", "pw")}}, http.Header{"Authorization": {"Basic " + pair("ANN", "pw")}}},
		"blanks around the name": {http.Header{"Authorization": {"Basic " + pair("ann", "pw")}}, http.Header{"Authorization": {"Basic " + pair(" ann ", "pw")}}},
		"a cookie beside Basic":  {http.Header{"Authorization": {"Basic " + pair("ann", "pw")}}, http.Header{"Authorization": {"Basic " + pair("ann", "pw")}, "Cookie": {"SESSx=junk"}}},
		"a cookie beside Bearer": {http.Header{"Authorization": {"Bearer t"}}, http.Header{"Authorization": {"bearer  t"}, "Cookie": {"SESSx=junk"}}},
		"a cookie twice":         {http.Header{"Cookie": {"SESSx=a"}}, http.Header{"Cookie": {"SESSx=a; SESSx=a", "theme=dark"}}},
		"an escaped cookie":      {http.Header{"Cookie": {"SESSx=a%2Cb"}}, http.Header{"Cookie": {"SESSx=%61,b"}}},
		"a quoted cookie":        {http.Header{"Cookie": {"SESSx=a"}}, http.Header{"Cookie": {`SESSx="a"`}}},
		"a CSRF token":           {http.Header{"Cookie": {"SESSx=a"}}, http.Header{"Cookie": {"SESSx=a"}, "X-Csrf-Token": {"1"}}},
	} {
		one, err := cs.From(&http.Request{Header: c.plain})
		two, err2 := cs.From(&http.Request{Header: c.spelt})
		if err != nil || err2 != nil || one.Identity != two.Identity || one.Owner() != two.Owner() || one.Account() != two.Account() ||
			one.Attempt().Credential != two.Attempt().Credential {
			t.Errorf("%s: another caller (%v, %v)", name, err, err2)
		}
	}
	accents := map[Identity]bool{}
	for _, name := range []string{"andre", "ANDRE", "andré", "Andre\u0301", "ＡＮＤＲＥ"} {
		c := must.Get(cs.From(&http.Request{Header: http.Header{"Authorization": {"Basic " + pair(name, "pw")}}}))(t)
		accents[c.Account()] = true
	}
	must.Expect(t, len(accents) == 1, "a name is %d accounts, which a database takes for one", len(accents))
}

func TestMalformedCredentialsAreRefused(t *testing.T) {
	cs := Callers{Schemes: []Scheme{Basic, Bearer, Cookie}}
	encoded := pair("ann", "pw!")
	jwt := "eyJhIjoxfQ.eyJhIjoxfQ.AAE"
	for _, h := range []http.Header{
		{"Authorization": {""}}, {"Authorization": {"Basic"}}, {"Authorization": {"Basic "}}, {"Authorization": {encoded}},
		{"Authorization": {"Basic " + encoded + "%"}}, {"Authorization": {"Basic " + encoded[:4] + " " + encoded[4:]}},
		{"Authorization": {"Basic " + encoded + "="}}, {"Authorization": {"Basic " + strings.TrimRight(pair("ann", "pw1"), "=")}},
		{"Authorization": {"Basic YTpiZR=="}}, // bits that nobody reads
		{"Authorization": {"Basic " + pair("", "pw")}}, {"Authorization": {"Basic " + pair("  ", "pw")}},
		{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("ann"))}},
		{"Authorization": {"Basic " + pair("ann\x00", "pw")}}, {"Authorization": {"Basic " + pair("ann", "p\nw")}}, {"Authorization": {"Basic " + pair("\xff", "pw")}},
		{"Authorization": {"Basic " + encoded, "Basic " + encoded}},
		{"Authorization": {"Bearer"}}, {"Authorization": {"Bearer ="}}, {"Authorization": {"Bearer a b"}}, {"Authorization": {"Bearer a,b"}},
		{"Authorization": {"Bearer " + jwt[:len(jwt)-1] + "F"}}, {"Authorization": {"Bearer " + jwt + "="}},
		{"Cookie": {"SESSx=a; SESSy=b"}}, {"Cookie": {"SESSx=a; SESSx=b"}}, {"Cookie": {"SESSx=a", "SSESSx=a"}}, {"Cookie": {"SESSx=a b"}},
		{"Cookie": {"SESSx=%zz"}}, {"Cookie": {"SESSx="}}, {"Cookie": {"SESS=a"}}, {"Cookie": {"SESSx=" + strings.Repeat("a", 300)}},
	} {
		c, err := cs.From(&http.Request{Header: h})
		must.Expect(t, fault.Is(err, fault.AuthRequired) && c.Anonymous(), "%q: %v", h, err)
	}
}

// What Basic credentials go on as is read by everybody in the same way.
func FuzzAuthorization(f *testing.F) {
	for _, s := range []string{"Basic YTpi", "bearer a.b.c", "Basic  YTpi", "Basic IGE6Yg==", "Bearer eyJhIjoxfQ.eyJhIjoxfQ.AAE"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		cred, account, ok := authorization(value)
		if !ok {
			return
		}
		again, same, ok := authorization(cred.value)
		must.Expect(t, ok && again == cred && same == account, "%q goes on as %q, which is read as %q", value, cred.value, again.value)
		r := http.Request{Header: http.Header{"Authorization": {cred.value}}}
		if user, _, basic := r.BasicAuth(); basic && (!utf8.ValidString(user) || user == "" || strings.TrimSpace(user) != user) {
			t.Errorf("%q goes on for the user %q", value, user)
		}
	})
}

func FuzzSessionCookie(f *testing.F) {
	for _, s := range []string{"SESSa=b", "x=1; SSESSa=%2C", "SESSa=b; SESSa=c", `SESSa="b"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		cookie, ok := sessionCookie(http.Header{"Cookie": {line}})
		if !ok || cookie == "" {
			return
		}
		again, ok := sessionCookie(http.Header{"Cookie": {cookie}})
		must.Expect(t, ok && again == cookie && !strings.ContainsAny(cookie, ";, \t\"\r\n"), "%q goes on as %q, which is read as %q", line, cookie, again)
	})
}

func TestOneLanguageIsChosen(t *testing.T) {
	site := Languages{"en", "de", "pt-br"}
	for header, want := range map[string][2]string{ // of the site's, of all
		"de":                                     {"de", "de"},
		"DE-at, en;q=0.5":                        {"de", "de"},
		"mt, de;q=0.1":                           {"de", "mt"},
		"en;q=0.1, de;q=0.9":                     {"de", "de"},
		"pt":                                     {"pt-br", "pt"},
		"pt-BR":                                  {"pt-br", "pt-br"},
		"zh-TW":                                  {"", "zh-hant"},
		"*":                                      {"", ""},
		"*, de":                                  {"", ""},
		"de;q=0, en;q=0.5":                       {"en", "en"},
		"qq, x-1, deutsch, e":                    {"", ""},
		"de;q=nan, de;q=2, de;q=-1, de;p=1, en":  {"en", "en"},
		strings.Repeat("x", 257):                 {"", ""},
		strings.Repeat("a-b,", maxRanges) + "de": {"", ""},
	} {
		must.Equal(t, [2]string{site.Choose(header), Languages(nil).Choose(header)}, want, "credentials of %q", header)
	}
}

// Callers cannot invent languages: the set is closed whatever they send.
func TestLanguagesAreAClosedSet(t *testing.T) {
	closed := map[string]bool{"": true, "pt-br": true, "pt-pt": true, "zh-hans": true, "zh-hant": true}
	for code := range strings.FieldsSeq(iso639) {
		closed[code] = true
	}
	rapid.Check(t, func(t *rapid.T) {
		header := rapid.StringMatching(`([a-zA-Z]{1,3}(-[a-zA-Z0-9]{1,4})?(; ?q=[0-9.]{1,4})?, ?){0,5}[a-zA-Z*-]{1,8}`).Draw(t, "header")
		got := Languages(nil).Choose(header)
		must.Expect(t, closed[got], "%q gives %q", header, got)
		got = (Languages{"de", "pt-br"}).Choose(header)
		must.Expect(t, got == "" || got == "de" || got == "pt-br", "%q gives %q of a site that has de and pt-br", header, got)
	})
}

func TestTheClientsAddress(t *testing.T) {
	proxies := must.Get(ParseProxies([]string{"10.0.0.0/8", "::1"}))(t)
	for _, c := range []struct {
		remote    string
		forwarded []string
		want      string
	}{
		{"192.0.2.1:1", nil, "192.0.2.1"},
		{"192.0.2.1:1", []string{"198.51.100.7"}, "192.0.2.1"}, // no proxy: anybody could have written it
		{"10.1.1.1:1", []string{"198.51.100.7"}, "198.51.100.7"},
		{"10.1.1.1:1", []string{"1.1.1.1, 198.51.100.7, 10.2.2.2"}, "198.51.100.7"},
		{"10.1.1.1:1", []string{"1.1.1.1", "198.51.100.7"}, "198.51.100.7"},
		{"10.1.1.1:1", []string{"198.51.100.7:4711"}, "198.51.100.7"},
		{"[::1]:1", []string{"2001:db8::1"}, "2001:db8::1"},
		{"[::1]:1", []string{"[2001:db8::1]:99"}, "2001:db8::1"},
		{"[::ffff:10.1.1.1]:1", []string{"::ffff:198.51.100.7"}, "198.51.100.7"},
		{"10.1.1.1:1", []string{"198.51.100.7, junk"}, "10.1.1.1"},
		{"10.1.1.1:1", nil, "10.1.1.1"},
	} {
		got := proxies.client(&http.Request{RemoteAddr: c.remote, Header: http.Header{"X-Forwarded-For": c.forwarded}})
		must.Expect(t, got == netip.MustParseAddr(c.want), "%s, forwarded for %q: %s, want %s", c.remote, c.forwarded, got, c.want)
	}
	must.Refuse(ParseProxies([]string{"proxy.example"}))(t, "", "a name passes for an address")
}
