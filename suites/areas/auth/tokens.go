package auth

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// row is a token with what is special about it.
type row struct{ name, token string }

// wayOff is how far a time is from now where no difference of clocks explains it.
const wayOff = 10 * time.Minute

// sample is a right token of the agent: a new one, or the one of the configuration.
func (d *door) sample() string {
	if d.Authority != nil {
		return d.Authority.Issue(string(check.Agent), d.Resource())
	}
	token := d.right.Client.Creds.Token
	if strings.Count(token, ".") != 2 {
		check.NotTestable("the agent's credentials are no JSON Web Token, so that none can be made like it")
	}
	return token
}

// good are the claims of a right token of the agent.
func (d *door) good() map[string]any {
	_, claims, _ := parts(d.sample())
	return decoded(claims)
}

// keyID is the kid of a right token.
func (d *door) keyID() any {
	header, _, _ := parts(d.sample())
	return decoded(header)["kid"]
}

func decoded(part string) map[string]any {
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		check.NotTestable("the agent's token is no JSON Web Token")
	}
	v, err := exact.Parse(text)
	object, ok := v.(map[string]any)
	if err != nil || !ok {
		check.NotTestable("the agent's token is no JSON Web Token")
	}
	return maps.Clone(object)
}

// issued are rows of tokens that the authorization server signed, by the changes of their claims.
func (d *door) issued(changes map[string]map[string]any) []row {
	var rows []row
	for name, change := range check.InOrder(changes) {
		rows = append(rows, row{name, d.Authority.Issue(string(check.Agent), d.Resource(), change)})
	}
	return rows
}

func parts(token string) (header, claims, signature string) {
	p := strings.Split(token, ".")
	return p[0], p[1], p[2]
}

func encoded(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func malformed(d *door, _ *authserver.Server) []row {
	good := d.sample()
	header, claims, signature := parts(good)
	return []row{
		{"a random text", "bridgecheck-" + rand.Text()},
		{"two parts of three", header + "." + claims},
		{"a fourth part", good + "." + signature},
		{"a header that is no JSON", encoded("no JSON "+rand.Text()) + "." + claims + "." + signature},
		{"a header that is a list", encoded(`["`+rand.Text()+`"]`) + "." + claims + "." + signature},
		{"claims that are a list", header + "." + encoded(`["`+rand.Text()+`"]`) + "." + signature},
		{"characters outside of base64", header + "." + claims + "!" + "." + signature},
		{"the name of an account", string(check.Admin) + "-" + rand.Text()},
	}
}

func wrongSignature(d *door, as *authserver.Server) []row {
	header, claims, signature := parts(d.sample())
	others := decoded(claims)
	others["sub"] = string(check.Admin)
	admin := encoded(string(client.Encode(others)))
	rows := []row{
		{"another account in the claims", header + "." + admin + "." + signature},
		{"one character of the signature altered", header + "." + claims + "." + altered(signature)},
		{"half of the signature", header + "." + claims + "." + signature[:len(signature)/2]},
		{"an empty signature", header + "." + claims + "."},
		{"another key with the same kid", as.Sign(authserver.Token{Claims: d.good(), Key: d.stranger().Key(), Header: map[string]any{"kid": d.keyID()}})},
	}
	if used := d.right.Client.Creds.Token; strings.Count(used, ".") == 2 { // which a bridge may remember by what it says
		header, claims, signature := parts(used)
		rows = append(rows, row{"an empty signature, of a token in use", header + "." + claims + "."},
			row{"one character of the signature altered, of a token in use", header + "." + claims + "." + altered(signature)})
	}
	return rows
}

// altered is a signature of which one character is another.
func altered(signature string) string {
	middle := len(signature) / 2
	return signature[:middle] + map[bool]string{true: "A", false: "B"}[signature[middle] != 'A'] + signature[middle+1:]
}

func unsigned(d *door, as *authserver.Server) []row {
	var rows []row
	for _, alg := range []string{"none", "None", "NONE", "nOnE"} {
		token := as.Sign(authserver.Token{Claims: d.good(), Method: "none", Header: map[string]any{"alg": alg, "kid": d.keyID()}})
		rows = append(rows, row{"alg " + alg, token}, row{"alg " + alg + " with a signature", token + encoded("signature")})
	}
	return append(rows,
		row{"alg none without a kid", as.Sign(authserver.Token{Claims: d.good(), Method: "none", Header: map[string]any{"kid": nil}})},
		row{"an empty alg", as.Sign(authserver.Token{Claims: d.good(), Method: "none", Header: map[string]any{"alg": ""}})},
		row{"no alg", as.Sign(authserver.Token{Claims: d.good(), Method: "none", Header: map[string]any{"alg": nil}})})
}

func keyConfusion(d *door, as *authserver.Server) []row {
	var rows []row
	for name, public := range check.InOrder(as.Key().PublicKeys()) {
		rows = append(rows,
			row{"HS256 with " + name, as.Sign(authserver.Token{Claims: d.good(), Secret: public})},
			row{"HS256 with " + name + ", without a kid", as.Sign(authserver.Token{Claims: d.good(), Secret: public, Header: map[string]any{"kid": nil}})})
	}
	return append(rows,
		row{"HS512 with the PEM file", as.Sign(authserver.Token{Claims: d.good(), Secret: as.Key().PublicKeys()["the PEM file"], Method: "HS512"})},
		row{"HS256 with an empty secret", as.Sign(authserver.Token{Claims: d.good(), Secret: []byte{}})})
}

func keyAlgorithm(d *door, as *authserver.Server) []row {
	var rows []row
	for _, method := range []string{"RS384", "RS512", "PS256"} {
		rows = append(rows, row{method + " by a key for RS256", as.Sign(authserver.Token{Claims: d.good(), Method: method})})
	}
	return rows
}

func expired(d *door, as *authserver.Server) []row {
	return d.issued(map[string]map[string]any{
		"expired ten minutes ago": {"exp": as.Ago(wayOff), "iat": as.Ago(2 * wayOff)},
		"expired a day ago":       {"exp": as.Ago(24 * time.Hour), "iat": as.Ago(25 * time.Hour)},
		"expired in 1970":         {"exp": 1, "iat": 0},
		"expired before 1970":     {"exp": -1, "iat": -2},
	})
}

func noExpiry(d *door, _ *authserver.Server) []row {
	return d.issued(map[string]map[string]any{"no exp": {"exp": nil}, "an exp that is text": {"exp": "tomorrow"}})
}

func notYetValid(d *door, as *authserver.Server) []row {
	return d.issued(map[string]map[string]any{
		"valid in ten minutes": {"nbf": as.Ago(-wayOff)},
		"valid in an hour":     {"nbf": as.Ago(-time.Hour)},
	})
}

func wrongIssuer(d *door, as *authserver.Server) []row {
	other := d.stranger()
	return append(d.issued(map[string]map[string]any{
		"another issuer":                   {"iss": "https://other.example"},
		"an issuer that begins like right": {"iss": as.URL + ".other.example"},
		"the issuer and a slash":           {"iss": as.URL + "/"},
		"no issuer":                        {"iss": nil},
		"an empty issuer":                  {"iss": ""},
	}), row{"another server's own token", other.Issue(string(check.Agent), d.Resource())})
}

func wrongAudience(d *door, as *authserver.Server) []row {
	return d.issued(map[string]map[string]any{
		"another resource":                   {"aud": "https://other.example/mcp"},
		"others in a list":                   {"aud": []string{"https://other.example/mcp", "https://third.example"}},
		"an audience that begins like right": {"aud": d.Resource() + ".other.example"},
		"the endpoint with a query":          {"aud": d.Resource() + "?tenant=other"},
		"the endpoint and a slash":           {"aud": d.Resource() + "/"},
		"the host alone":                     {"aud": strings.TrimSuffix(d.Resource(), "/mcp")},
		"a path in other case": {"aud": d.Resource()[:strings.LastIndex(d.Resource(), "/")] +
			strings.ToUpper(d.Resource()[strings.LastIndex(d.Resource(), "/"):])},
		"the authorization server": {"aud": as.URL},
		"the client":               {"aud": "bridgecheck"},
		"no audience":              {"aud": nil},
		"an empty audience":        {"aud": ""},
		"an empty list":            {"aud": []string{}},
	})
}

func unknownKey(d *door, as *authserver.Server) []row {
	other := d.stranger().Key()
	sign := func(kid any) string {
		return as.Sign(authserver.Token{Claims: d.good(), Key: other, Header: map[string]any{"kid": kid}})
	}
	return []row{
		{"a kid that nobody has", sign(other.ID)},
		{"no kid, and another key", sign(nil)},
		{"an empty kid, and another key", sign("")},
		{"a kid that is a number", sign(7)},
		{"a kid that is a path", as.Sign(authserver.Token{Claims: d.good(), Secret: []byte{}, Header: map[string]any{"kid": "../../../../../../dev/null"}})},
		{"a kid that is SQL", as.Sign(authserver.Token{Claims: d.good(), Secret: []byte("secret"), Header: map[string]any{"kid": "x' UNION SELECT 'secret'; --"}})},
	}
}

// ownKey tests tokens that bring the key to check them by, or name where it is. The bridge must not fetch it.
func ownKey(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	as, other := d.authority(), d.stranger()
	for name, header := range check.InOrder(map[string]map[string]any{
		"a key in the header":           {"jwk": other.Key().JWK()},
		"a key in the header, kid kept": {"jwk": other.Key().JWK(), "kid": as.Key().ID},
		"an address of keys":            {"jku": other.URL + authserver.KeysPath},
		"an address of keys, kid kept":  {"jku": other.URL + authserver.KeysPath, "kid": as.Key().ID},
		"an address of a certificate":   {"x5u": other.URL + "/certificate.pem"},
	}) {
		d.refuse(ctx, name, as.Sign(authserver.Token{Claims: d.good(), Key: other.Key(), Header: header}))
		d.Row(check.Agent, "", name+": requests for it", func() {
			if n := other.Requests(""); n > 0 {
				d.Fail(check.Mismatch("a token with "+name, "no request to the address in it", fmt.Sprintf("%d", n)))
			}
		})
	}
	d.stillServes(ctx)
}

func critical(d *door, as *authserver.Server) []row {
	return []row{{"a critical header that nobody knows", as.Sign(authserver.Token{Claims: d.good(), Header: map[string]any{"crit": []string{"https://other.example/ext"}, "https://other.example/ext": true}})}}
}

// shortestLeak is how many characters of a token's part a response may hold by chance.
const shortestLeak = 16

// tokenSecret tests that no response holds a token that was sent, right or wrong, or its claims or its signature.
func tokenSecret(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	as := d.authority()
	account := string(check.Agent)
	tokens := []row{
		{"a right token", as.Issue(account, d.Resource())},
		{"an expired one", as.Issue(account, d.Resource(), map[string]any{"exp": as.Ago(wayOff)})},
		{"one for another resource", as.Issue(account, "https://other.example/mcp")},
		{"one of another issuer", as.Issue(account, d.Resource(), map[string]any{"iss": "https://other.example"})},
		{"one with an unknown key", as.Sign(authserver.Token{Claims: d.good(), Key: d.stranger().Key()})},
		{"no JSON Web Token", "bridgecheck-" + rand.Text()},
	}
	for _, r := range tokens {
		d.Row(check.Agent, "", r.name, func() {
			wrong := d.as(check.Credentials{Token: r.token})
			for _, response := range []*check.Response{
				d.use(ctx, wrong), wrong.CallTool(ctx, "no.such.tool", check.Args{}),
				wrong.Client.Send(ctx, check.Request{Method: http.MethodPut, Path: check.MCPPath}),
			} {
				d.Expect(response).To(match.Conform("no part of the token in the response", func(a *check.Response) string { return leak(a, r.token) }), r.name)
			}
		})
	}
	d.stillServes(ctx)
}

// leak says where a response holds a part of a token; "": nowhere.
func leak(a *check.Response, token string) string {
	secrets := slices.DeleteFunc(strings.Split(token, "."), func(part string) bool { return len(part) < shortestLeak })
	if len(secrets) > 1 {
		secrets = secrets[1:] // what a header says is no secret
	}
	for _, secret := range secrets {
		if strings.Contains(string(a.Body), secret) {
			return fmt.Sprintf("%d with a part of the token in the body", a.Status)
		}
		for name, values := range check.InOrder(a.Header) {
			if strings.Contains(strings.Join(values, " "), secret) {
				return fmt.Sprintf("%d with a part of the token in the header %s", a.Status, name)
			}
		}
	}
	return ""
}

// ownAccount tests that each token acts as its own account, by what the site saw.
func ownAccount(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	d.authority()
	for _, who := range []check.Identity{check.Agent, check.Agent2, check.Agent, check.Agent2} {
		d.Row(who, "", "in turn with others", func() {
			s := d.T.As(who).MCP(ctx, d.right.Revision)
			d.Mark()
			r := d.use(ctx, s)
			d.Expect(r).To(d.beServed())
			d.Expect(r).To(match.Conform("a run as "+who.String(), func(a *check.Response) string { return ranAs(d.T, d.method, who) }))
		})
	}
}

// ranAs names the account as which a method ran, if it was another one; "" if it was the right one.
func ranAs(t *check.T, method string, who check.Identity) string {
	seen := "no run"
	for _, entry := range t.Drupal.Journal() {
		for _, call := range entry.Calls {
			if call.Ran && call.Method == method {
				if entry.User == string(who) {
					return ""
				}
				seen = "a run as " + check.Identity(entry.User).String()
			}
		}
	}
	return seen
}
