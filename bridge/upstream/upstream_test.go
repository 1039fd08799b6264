package upstream

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"bridgecheck/bridge/fault"
)

// An answer is a result only with the request's own id, and is then given byte for byte.
func FuzzDecodeAnswer(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{"n":1.0}}`, `{"id":null,"error":{"code":-32600,"message":"m","data":"Access Denied"}}`,
		`{"id":"7","result":1}`, `{"result":1}`, `[]`, `{"id":7,"result":1,"error":{}}`, `{"id":7,"error":{"code":1.5}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		result, err := decodeAnswer(body, "7")
		if err != nil {
			if result != nil {
				t.Errorf("both a result and an error for %q", body)
			}
			return
		}
		var answer map[string]json.RawMessage
		if json.Unmarshal(body, &answer) != nil || string(answer["id"]) != "7" || string(answer["result"]) != string(result) {
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
		c, err := Callers{Schemes: []Scheme{Basic, Bearer, Cookie}}.From(t.Context(), h)
		if err != nil {
			t.Fatalf("%v: %v", headers, err)
		}
		return c
	}
	all := []Caller{
		read(), read("Authorization", "Bearer a"), read("Authorization", "Bearer b"), read("Authorization", "Basic a"),
		read("Authorization", "Bearer a", "Accept-Language", "de"), read("Cookie", "SESSa=b"), read("Authorization", "Bearer a", "Cookie", "SESSa=b"),
	}
	for i, a := range all {
		for j, b := range all {
			if (a.Identity == b.Identity) != (i == j) {
				t.Errorf("callers %d and %d", i, j)
			}
		}
	}
	if read("Authorization", "Bearer a", "X-Other", "x", "Cookie", "theme=dark").Identity != all[1].Identity {
		t.Error("a header that signs nobody in makes another caller")
	}
}

func TestTwoCredentialsAreNone(t *testing.T) {
	h := http.Header{"Authorization": {"Basic a", "Basic b"}}
	if _, err := (Callers{Schemes: []Scheme{Basic}}).From(t.Context(), h); !fault.Is(err, fault.AuthRequired) {
		t.Errorf("error = %v", err)
	}
}

func TestSecretsShowNowhere(t *testing.T) {
	c, err := Callers{Schemes: []Scheme{Bearer}}.From(t.Context(), http.Header{"Authorization": {"Bearer canary"}})
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
