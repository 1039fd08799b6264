package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// A response is a result only with the request's own id, and is then given byte for byte.
func FuzzDecodeResponse(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{"n":1.0}}`, `{"id":null,"error":{"code":-32600,"message":"m","data":"Access Denied"}}`,
		`{"id":"7","result":1}`, `{"result":1}`, `[]`, `{"id":7,"result":1,"error":{}}`, `{"id":7,"error":{"code":1.5}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		result, err := decodeResponse(body, "7")
		if err != nil {
			if result != nil {
				t.Errorf("both a result and an error for %q", body)
			}
			return
		}
		var response map[string]json.RawMessage
		if json.Unmarshal(body, &response) != nil || string(response["id"]) != "7" || string(response["result"]) != string(result) {
			t.Errorf("%q gave the result %q", body, result)
		}
	})
}

func TestACallerIsItsCredentialAndLanguage(t *testing.T) {
	read := func(headers ...string) Caller {
		h := http.Header{}
		for i := 0; i < len(headers); i += 2 {
			h.Add(headers[i], headers[i+1])
		}
		c, err := Callers{Schemes: []Scheme{Basic, Bearer, Cookie}}.From(&http.Request{Header: h})
		if err != nil {
			t.Fatalf("%v: %v", headers, err)
		}
		return c
	}
	all := []Caller{
		read(), read("Authorization", "Bearer a"), read("Authorization", "Bearer b"), read("Authorization", "Basic YTpi"),
		read("Authorization", "Bearer a", "Accept-Language", "de"), read("Cookie", "SESSa=b"),
	}
	for i, a := range all {
		for j, b := range all {
			if (a.Identity == b.Identity) != (i == j) {
				t.Errorf("callers %d and %d", i, j)
			}
		}
	}
	if read("Authorization", "Bearer a", "X-Other", "x", "Cookie", "theme=dark").Identity != all[1].Identity {
		t.Error("a header that authenticates nobody makes another caller")
	}
}

// A caller owns the same things in any language.
func TestTheOwnerIsTheAuthenticatedCaller(t *testing.T) {
	account := &ServiceAccount{User: "u", Password: "p", Tokens: []Secret{"a", "b"}}
	for _, cs := range []Callers{{Schemes: []Scheme{Bearer}}, {Service: account}} {
		read := func(token, language string) Caller {
			c, err := cs.From(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}, "Accept-Language": {language}}})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		a, german, b := read("a", "en"), read("a", "de"), read("b", "en")
		if a.Identity == german.Identity || a.Owner() != german.Owner() || a.Owner() == b.Owner() {
			t.Errorf("%v: the same token in two languages, and another, are owners %s, %s and %s", cs.Service != nil, a.Owner(), german.Owner(), b.Owner())
		}
	}
}

func TestTwoCredentialsAreNone(t *testing.T) {
	h := http.Header{"Authorization": {"Basic YTpi", "Basic YTpj"}}
	if _, err := (Callers{Schemes: []Scheme{Basic}}).From(&http.Request{Header: h}); !fault.Is(err, fault.AuthRequired) {
		t.Errorf("error = %v", err)
	}
}

func TestSecretsShowNowhere(t *testing.T) {
	c, err := Callers{Schemes: []Scheme{Bearer}}.From(&http.Request{Header: http.Header{"Authorization": {"Bearer canary"}}})
	if err != nil {
		t.Fatal(err)
	}
	account := ServiceAccount{User: "u", Password: "canary", Tokens: []Secret{"canary"}}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "caller", c, "account", account, "secret", Secret("canary"))
	encoded, err := json.Marshal(account)
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%s %v %+v %#v %s", c, c, account, account, encoded) + log.String()
	if strings.Contains(shown, "canary") {
		t.Errorf("shown: %s", shown)
	}
}

// While the breaker is open one request a second probes the site, and all others fail at once.
func TestTheBreakerProbes(t *testing.T) {
	now := time.Unix(0, 0)
	b := newBreaker(func() time.Time { return now })
	silent := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for range breakAfter {
		if err := b.allow(); err != nil {
			t.Fatalf("closed: %v", err)
		}
		b.report(time.Now(), silent, false)
	}
	for range 3 {
		if err := b.allow(); !fault.Is(err, fault.UpstreamUnavailable) || fault.From(err).RetryAfter != probeEvery {
			t.Errorf("open: %v", err)
		}
	}
	now = now.Add(probeEvery)
	if probe, next := b.allow(), b.allow(); probe != nil || next == nil {
		t.Error("after a while exactly one request probes the site")
	}
	b.report(time.Now(), silent, false)
	if b.allow() == nil {
		t.Error("a probe that fails lets others through")
	}
	now = now.Add(probeEvery)
	if b.allow() != nil {
		t.Error("there is no second probe")
	}
	b.report(time.Now(), nil, false)
	for range 3 {
		if b.allow() != nil || !b.closed() {
			t.Error("a probe that succeeds does not let all others through")
		}
	}
}

// Callers by different front-end tokens are different callers, and none of them is the account itself.
func TestFrontEndTokensAreCallers(t *testing.T) {
	account := &ServiceAccount{User: "u", Password: "p", Tokens: []Secret{"a", "b"}}
	read := func(cs Callers, authorization string) Caller {
		c, err := cs.From(&http.Request{Header: http.Header{"Authorization": {authorization}}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b := read(Callers{Service: account}, "Bearer a"), read(Callers{Service: account}, "bearer b")
	own := read(Callers{Schemes: []Scheme{Basic}}, "Basic dTpw")
	all := map[Identity]bool{a.Identity: true, b.Identity: true, own.Identity: true, account.For(own).Identity: true}
	if len(all) != 4 || account.For(own).Identity != account.For(Caller{}).Identity {
		t.Errorf("%d callers, want 4", len(all))
	}
}
