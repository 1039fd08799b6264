package authserver

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// algorithm is the one of every key that is published.
const algorithm = "RS256"

// Key is a key pair that signs tokens.
type Key struct {
	ID      string
	private func() *rsa.PrivateKey // made when it is first needed
}

const keyBits = 2048

// Keys are keys for servers one after the other, as making one takes long: the keys of a server that was closed are given,
// under other ids, to the next. It is safe for use by many goroutines.
type Keys struct {
	mu    sync.Mutex
	spare []func() *rsa.PrivateKey
}

func (k *Keys) take() *Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	private := sync.OnceValue(generate)
	if last := len(k.spare) - 1; last >= 0 {
		private, k.spare = k.spare[last], k.spare[:last]
	}
	return &Key{ID: "key-" + rand.Text()[:8], private: private}
}

func generate() *rsa.PrivateKey {
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		panic("authserver: generating a key: " + err.Error()) // the machine has no randomness
	}
	return private
}

func (k *Keys) giveBack(keys []*Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		k.spare = append(k.spare, key.private)
	}
}

// Public is the public key.
func (k *Key) Public() *rsa.PublicKey { return &k.private().PublicKey }

// JWK is the public key as the server publishes it.
func (k *Key) JWK() map[string]any {
	encode := base64.RawURLEncoding.EncodeToString
	return map[string]any{
		"kty": "RSA", "use": "sig", "alg": algorithm, "kid": k.ID,
		"n": encode(k.Public().N.Bytes()), "e": encode(big.NewInt(int64(k.Public().E)).Bytes()),
	}
}

// PublicKeys are the public key as texts that a careless library may take for a shared secret.
func (k *Key) PublicKeys() map[string][]byte {
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		panic("authserver: encoding a public key: " + err.Error()) // of a key that was just made
	}
	spki := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return map[string][]byte{
		"the PEM file": spki, "the PEM file without its last line break": bytes.TrimSpace(spki), "the DER bytes": der,
		"the PKCS #1 file": pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(k.Public())}),
		"the modulus":      k.Public().N.Bytes(), "the modulus in base64url": []byte(base64.RawURLEncoding.EncodeToString(k.Public().N.Bytes())),
	}
}

// Token is what a signed token says. A member of Claims or Header that is nil is left out.
type Token struct {
	Claims map[string]any
	Header map[string]any // beside alg and typ; kid is the key's unless it is given
	Key    *Key           // nil: the one that the server signs with
	Secret []byte         // signs with HMAC in place of the key
	Method string         // the algorithm; "": RS256, with a secret HS256. "none" leaves the signature empty
}

// Claims are those of a token that is valid now: of an account, for an audience.
func (s *Server) Claims(account, audience string) map[string]any {
	now := s.options.Now()
	return map[string]any{
		"iss": s.URL, "sub": account, "aud": audience, "client_id": "bridgecheck", "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(Lifetime).Unix(),
	}
}

// Issue makes a token that is valid but for the changes of its claims; nil takes a claim away.
func (s *Server) Issue(account, audience string, changes ...map[string]any) string {
	claims := s.Claims(account, audience)
	for _, change := range changes {
		maps.Copy(claims, change)
	}
	return s.Sign(Token{Claims: claims})
}

// Sign makes a token of any content.
func (s *Server) Sign(t Token) string {
	if t.Key == nil {
		t.Key = s.Key()
	}
	method := t.Method
	var key crypto.PrivateKey
	switch {
	case method == "none":
		key = jwt.UnsafeAllowNoneSignatureType
	case t.Secret != nil:
		key = t.Secret
		method = cmp.Or(method, "HS256")
	default:
		key, method = t.Key.private(), cmp.Or(method, algorithm)
	}
	token := jwt.NewWithClaims(jwt.GetSigningMethod(method), jwt.MapClaims(without(t.Claims)))
	token.Header["typ"], token.Header["kid"] = "at+jwt", t.Key.ID
	maps.Copy(token.Header, t.Header)
	token.Header = without(token.Header)
	signed, err := token.SignedString(key)
	if err != nil {
		panic(fmt.Sprintf("authserver: signing a token by %s: %v", method, err)) // a check's own mistake
	}
	return signed
}

// without returns the members that are not nil.
func without(members map[string]any) map[string]any {
	kept := map[string]any{}
	for name, value := range members {
		if value != nil {
			kept[name] = value
		}
	}
	return kept
}

// Ago is a time before now on the server's clock, as claims have it; a negative duration is a time to come.
func (s *Server) Ago(d time.Duration) int64 { return s.options.Now().Add(-d).Unix() }
