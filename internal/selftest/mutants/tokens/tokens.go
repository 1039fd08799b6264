// Package tokens reads access tokens for mutants and says what is wrong with each, so that a mutant can overlook one flaw
// and no other. It refuses nothing itself.
package tokens

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// The flaws of a token, each of which alone is a reason to refuse it.
const (
	Malformed      = "malformed"
	Unsigned       = "unsigned"
	HMACOfKey      = "hmac" // with the PEM file of the public key
	OtherHMAC      = "other hmac"
	Algorithm      = "algorithm" // another one by the right key
	BadSignature   = "signature"
	UnknownKey     = "key"
	OwnKey         = "own key" // in the header, or an address of it
	Critical       = "critical"
	IssuerPrefix   = "issuer prefix"
	OtherIssuer    = "issuer"
	NoAudience     = "no audience"
	AudiencePrefix = "audience prefix"
	OtherAudience  = "audience"
	Expired        = "expired"
	NoExpiry       = "no expiry"
	Early          = "early"
)

// Sent is a token as a request brought it.
type Sent struct {
	Text           string
	Header, Claims map[string]any
	Flaws          []string
}

// Subject is the account that a token names.
func (t Sent) Subject() string {
	subject, _ := t.Claims["sub"].(string)
	return subject
}

// Within reports whether a token has flaws, and only those listed.
func (t Sent) Within(tolerated ...string) bool {
	return len(t.Flaws) > 0 && !slices.ContainsFunc(t.Flaws, func(f string) bool { return !slices.Contains(tolerated, f) })
}

// Bearer is the token of a request; "" without one.
func Bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// Read finds the flaws of a token.
func Read(b testbed.Backends, text string) Sent {
	t := Sent{Text: text, Flaws: []string{Malformed}}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return t
	}
	for i, into := range []*map[string]any{&t.Header, &t.Claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return t
		}
		if decode(raw, into) != nil {
			return t
		}
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return t
	}
	t.Flaws = slices.Concat(t.flawsOfKey(b.Authority, parts[0]+"."+parts[1], signature), t.flawsOfClaims(b))
	return t
}

func (t Sent) flawsOfKey(authority *authserver.Server, signed string, signature []byte) []string {
	var flaws []string
	key := authority.Key()
	if t.Header["kid"] != key.ID {
		flaws = append(flaws, UnknownKey)
	}
	if t.Header["jwk"] != nil || t.Header["jku"] != nil || t.Header["x5u"] != nil {
		flaws = append(flaws, OwnKey)
	}
	if t.Header["crit"] != nil {
		flaws = append(flaws, Critical)
	}
	alg, _ := t.Header["alg"].(string)
	method := jwt.GetSigningMethod(alg)
	switch {
	case alg == "" || strings.EqualFold(alg, "none"):
		return append(flaws, Unsigned)
	case method == nil:
		return append(flaws, BadSignature)
	case strings.HasPrefix(alg, "HS"):
		if method.Verify(signed, signature, key.PublicKeys()["the PEM file"]) == nil {
			return append(flaws, HMACOfKey)
		}
		return append(flaws, OtherHMAC)
	case method.Verify(signed, signature, key.Public()) != nil:
		return append(flaws, BadSignature)
	case alg != "RS256":
		return append(flaws, Algorithm)
	}
	return flaws
}

func (t Sent) flawsOfClaims(b testbed.Backends) []string {
	var flaws []string
	switch issuer, _ := t.Claims["iss"].(string); {
	case issuer == b.Authority.URL:
	case strings.HasPrefix(issuer, b.Authority.URL):
		flaws = append(flaws, IssuerPrefix)
	default:
		flaws = append(flaws, OtherIssuer)
	}
	switch audience := Texts(t.Claims["aud"]); {
	case slices.Contains(audience, b.Resource):
	case len(audience) == 0:
		flaws = append(flaws, NoAudience)
	case slices.ContainsFunc(audience, func(a string) bool { return strings.HasPrefix(a, b.Resource) }):
		flaws = append(flaws, AudiencePrefix)
	default:
		flaws = append(flaws, OtherAudience)
	}
	now := b.Authority.Now().Unix()
	switch exp, ok := Seconds(t.Claims["exp"]); {
	case !ok:
		flaws = append(flaws, NoExpiry)
	case exp <= now:
		flaws = append(flaws, Expired)
	}
	if nbf, ok := Seconds(t.Claims["nbf"]); ok && nbf > now {
		flaws = append(flaws, Early)
	}
	return flaws
}

// Seconds is the time in a claim.
func Seconds(v any) (int64, bool) {
	number, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	n, err := number.Int64()
	return n, err == nil
}

// Texts are the texts in a text or a list.
func Texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var texts []string
		for _, item := range v {
			texts = append(texts, Texts(item)...)
		}
		return texts
	}
	return nil
}

// decode reads a JSON object with its numbers as they stand.
func decode(raw []byte, into *map[string]any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}
