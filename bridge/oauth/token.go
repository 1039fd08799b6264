package oauth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// header is that of a token, as far as it is read.
type header struct {
	algorithm, kind, key string
	critical             bool // it has extensions that must be understood; none is known here
}

// tokenTypes are what the header typ of an access token may be, in small letters.
var tokenTypes = []string{"", "jwt", "at+jwt", "application/at+jwt"}

// signed checks a JSON Web Token (RFC 7519) by the issuer's keys and gives its claims. The parser of the JWT library is not
// used: it decodes by encoding/json, see fields.read.
func (g *Guard) signed(ctx context.Context, token string) (claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, jwt.ErrTokenMalformed
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return claims{}, fmt.Errorf("%w: %w", jwt.ErrTokenMalformed, err)
		}
	}
	var h header
	var c claims
	err := fields{"alg": text(&h.algorithm), "typ": text(&h.kind), "kid": text(&h.key), "crit": present(&h.critical)}.read(decoded[0])
	if err == nil {
		err = c.fields().read(decoded[1])
	}
	if err != nil {
		return claims{}, fmt.Errorf("%w: %w", jwt.ErrTokenMalformed, err)
	}
	found, err := g.keyOf(ctx, h, c)
	if err != nil {
		return claims{}, err
	}
	if err := jwt.GetSigningMethod(h.algorithm).Verify(parts[0]+"."+parts[1], decoded[2], found.public); err != nil {
		return claims{}, fmt.Errorf("%w: %w", jwt.ErrTokenSignatureInvalid, err)
	}
	return c, g.validator.Validate(c)
}

// keyOf finds the key that a token says it is signed with.
func (g *Guard) keyOf(ctx context.Context, h header, c claims) (key, error) {
	switch {
	case !slices.Contains(algorithms, h.algorithm):
		return key{}, fmt.Errorf("%w: the algorithm is not accepted", jwt.ErrTokenSignatureInvalid)
	case !slices.Contains(tokenTypes, strings.ToLower(h.kind)):
		return key{}, errors.New("the token is of another type")
	case h.critical:
		return key{}, errors.New("the token has critical headers, of which none is known here")
	case c.Issuer != g.o.Issuer:
		return key{}, jwt.ErrTokenInvalidIssuer // the issuer is not asked for keys of tokens that are not its own
	}
	found, err := g.keys.find(ctx, h.key)
	if err == nil && found.algorithm != "" && found.algorithm != h.algorithm {
		err = errors.New("the key is for another algorithm")
	}
	return found, err
}
