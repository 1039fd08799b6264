package oauth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// Keys that are good but for what stands beside them.
func TestKeysForNoSignatures(t *testing.T) {
	const good = `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"`
	for beside, refused := range map[string]bool{
		``: false, `,"use":"sig"`: false, `,"key_ops":["verify"]`: false, `,"key_ops":null`: false,
		`,"use":"enc"`: true, `,"key_ops":["encrypt"]`: true, `,"key_ops":[]`: true, `,"key_ops":"verify"`: true,
		`,"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"`: true, `,"d":null`: true,
	} {
		_, _, err := readKey([]byte(good + beside + "}"))
		must.Expect(t, (err != nil) == refused, "%s: %v", beside, err)
	}
}

// A key that is read is one that signatures can be checked by.
func FuzzReadKey(f *testing.F) {
	for _, s := range []string{
		`{"kty":"OKP","kid":"k","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`,
		`{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","use":"sig"}`,
		`{"kty":"RSA","n":"` + strings.Repeat("w", 342) + `","e":"AQAB","alg":"RS256"}`, `{"kty":"EC","crv":"P-521","x":"","y":""}`, `[]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, k, err := readKey(raw)
		if err != nil {
			return
		}
		switch public := k.public.(type) {
		case *rsa.PublicKey:
			must.Expect(t, public.N.BitLen() >= minRSABits && public.N.BitLen() <= maxRSABits && public.E >= 3,
				"%s: a key of %d bits, exponent %d", raw, public.N.BitLen(), public.E)
		case *ecdsa.PublicKey:
			_, err := public.Bytes()
			must.Expect(t, err == nil, "%s: a point that is not on its curve: %v", raw, err)
		case ed25519.PublicKey:
			must.Expect(t, len(public) == ed25519.PublicKeySize, "%s: %d bytes", raw, len(public))
		default:
			t.Errorf("%s: a key of type %T", raw, public)
		}
	})
}

// Of all tokens only the one that the issuer signed is accepted.
func FuzzVerify(f *testing.F) {
	now := time.Unix(1_700_000_000, 0)
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) // the same in every process of the fuzzer
	server := must.Serve(f, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{ //nolint:errcheck // it shows below
			"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": base64.RawURLEncoding.EncodeToString(private.Public().(ed25519.PublicKey)),
		}}})
	}))
	g := must.Get(New(Options{Issuer: "https://issuer.example", Resource: "https://bridge.example/mcp", Keys: server.URL,
		Scopes: func() []string { return nil }, Now: func() time.Time { return now }}))(f)
	sign := func(change func(*jwt.Token)) string {
		token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"iss": "https://issuer.example", "aud": "https://bridge.example/mcp",
			"sub": "ann", "exp": now.Add(time.Hour).Unix(), "scope": "a b"})
		token.Header["kid"] = "k"
		change(token)
		return must.Get(token.SignedString(private))(f)
	}
	good := sign(func(*jwt.Token) {})
	must.Get(g.Verify(f.Context(), good))(f)
	f.Add(good)
	f.Add(good + "=")
	f.Add(sign(func(t *jwt.Token) { t.Header["crit"] = []string{"exp"} }))
	f.Add(sign(func(t *jwt.Token) { t.Header["typ"] = "other" }))
	f.Add(sign(func(t *jwt.Token) { t.Claims = jwt.MapClaims{"iss": "https://other.example"} }))
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	head, rest, _ := strings.Cut(good, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	f.Add(head + "." + payload + ".")
	f.Add(head + "." + payload[:len(payload)-2] + "." + signature)
	signed := map[string]bool{good: true}
	f.Fuzz(func(t *testing.T, token string) {
		_, err := g.Verify(t.Context(), token)
		must.Expect(t, (err == nil) == signed[token], "%q: %v", token, err)
		must.Expect(t, err == nil || fault.Is(err, fault.AuthRequired, fault.UpstreamUnavailable), "%q is refused with %v", token, err)
	})
}
