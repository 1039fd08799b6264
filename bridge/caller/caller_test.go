package caller

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestACallerIsItsCredentialAndLanguage(t *testing.T) {
	read := func(headers ...string) Caller {
		h := http.Header{}
		for i := 0; i < len(headers); i += 2 {
			h.Add(headers[i], headers[i+1])
		}
		c, err := Callers{Schemes: []Scheme{Basic, Bearer, Cookie}}.From(&http.Request{Header: h})
		must.Assert(t, err == nil, "%v: %v", headers, err)
		return c
	}
	all := []Caller{
		read(), read("Authorization", "Bearer a"), read("Authorization", "Bearer b"), read("Authorization", "Basic YTpi"),
		read("Authorization", "Bearer a", "Accept-Language", "de"), read("Cookie", "SESSa=b"),
	}
	for i, a := range all {
		for j, b := range all {
			must.Expect(t, (a.Identity == b.Identity) == (i == j), "callers %d and %d", i, j)
		}
	}
	must.Expect(t, read("Authorization", "Bearer a", "X-Other", "x", "Cookie", "theme=dark").Identity == all[1].Identity,
		"a header that authenticates nobody makes another caller")
}

func TestTheOwnerIsTheAuthenticatedCaller(t *testing.T) {
	account := &ServiceAccount{User: "u", Password: "p", Tokens: []Secret{"a", "b"}}
	for _, cs := range []Callers{{Schemes: []Scheme{Bearer}}, {Service: account}} {
		read := func(token, language string) Caller {
			return must.Get(cs.From(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}, "Accept-Language": {language}}}))(t)
		}
		a, german, b := read("a", "en"), read("a", "de"), read("b", "en")
		must.Expect(t, a.Identity != german.Identity && a.Owner() == german.Owner() && a.Owner() != b.Owner(),
			"%v: the same token in two languages, and another, are owners %s, %s and %s", cs.Service != nil, a.Owner(), german.Owner(), b.Owner())
	}
}

func TestSecretsShowNowhere(t *testing.T) {
	c := must.Get(Callers{Schemes: []Scheme{Bearer}}.From(&http.Request{Header: http.Header{"Authorization": {"Bearer canary"}}}))(t)
	account := ServiceAccount{User: "u", Password: "canary", Tokens: []Secret{"canary"}}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "caller", c, "account", account, "secret", Secret("canary"))
	encoded := must.Get(json.Marshal(account))(t)
	must.Lacks(t, fmt.Sprintf("%s %v %+v %#v %s", c, c, account, account, encoded)+log.String(), "canary", "what is shown")
}

func TestFrontEndTokensAreCallers(t *testing.T) {
	account := &ServiceAccount{User: "u", Password: "p", Tokens: []Secret{"a", "b"}}
	read := func(cs Callers, authorization string) Caller {
		return must.Get(cs.From(&http.Request{Header: http.Header{"Authorization": {authorization}}}))(t)
	}
	a, b := read(Callers{Service: account}, "Bearer a"), read(Callers{Service: account}, "bearer b")
	own := read(Callers{Schemes: []Scheme{Basic}}, "Basic dTpw")
	all := map[Identity]bool{a.Identity: true, b.Identity: true, own.Identity: true, account.For(own).Identity: true}
	must.Expect(t, len(all) == 4 && account.For(own).Identity == account.For(Caller{}).Identity, "%d callers, want 4", len(all))
}
