package caller

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// credential is a header that authenticates the caller at the site. Its value never leaves this package but in a request
// to the site. All spellings of one credential give the same key, so that they share what is remembered and counted.
type credential struct{ name, value, key string }

// Credentials are kept for each caller, so longer ones are malformed.
const (
	longestPair  = 2 << 10  // bytes of user-id and password: Drupal takes 60 and 128 characters
	longestToken = 16 << 10 // bytes of a bearer token
	longestCSRF  = 256
)

// authorization reads the value of an Authorization header. Malformed credentials are no credentials: what the bridge
// and the site could read differently must not go on. account is the name that Basic credentials are for.
func authorization(value string) (cred credential, account string, ok bool) {
	scheme, rest, _ := strings.Cut(value, " ")
	rest = strings.Trim(rest, " \t")
	switch {
	case strings.EqualFold(scheme, string(Basic)):
		return basic(rest)
	case strings.EqualFold(scheme, string(Bearer)):
		token, ok := bearer(rest)
		return credential{"Authorization", "Bearer " + token, "bearer\x00" + token}, "", ok
	}
	return credential{}, "", false
}

// basic reads user-id and password (RFC 7617). Blanks around the user-id are no part of it: a database may ignore them.
func basic(encoded string) (cred credential, account string, ok bool) {
	pair, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(pair) > longestPair || !utf8.Valid(pair) {
		return credential{}, "", false
	}
	user, password, colon := strings.Cut(string(pair), ":")
	name := strings.TrimSpace(user)
	if !colon || name == "" || strings.ContainsFunc(string(pair), unicode.IsControl) {
		return credential{}, "", false
	}
	if name != user {
		encoded = base64.StdEncoding.EncodeToString([]byte(name + ":" + password))
	}
	return credential{"Authorization", "Basic " + encoded, "basic\x00" + strings.ToLower(name) + "\x00" + password}, accountKey(name), true
}

// accountKey folds what databases take for the same name: letter case, accents, and forms of the same letter.
func accountKey(name string) string {
	plain := true
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf || name[i] >= 'A' && name[i] <= 'Z' {
			plain = false
			break
		}
	}
	if plain {
		return name
	}
	return strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Mn, c) {
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(c))
	}, norm.NFKD.String(name))
}

// bearer reads a token (RFC 6750: token68). A JSON Web Token whose base64 could be written otherwise is refused: each of
// its spellings would pass for another caller.
func bearer(token string) (string, bool) {
	body := strings.TrimRight(token, "=")
	if body == "" || len(token) > longestToken || strings.ContainsFunc(body, func(c rune) bool { return !isTokenChar(c) }) {
		return "", false
	}
	parts := strings.Split(body, ".")
	if len(parts) != 3 {
		return token, true
	}
	for _, part := range parts {
		decoded, err := base64.RawURLEncoding.DecodeString(urlAlphabet.Replace(part))
		if err != nil {
			return token, true // it is no JSON Web Token
		}
		if body != token || base64.RawURLEncoding.EncodeToString(decoded) != part {
			return "", false
		}
	}
	return token, true
}

var urlAlphabet = strings.NewReplacer("+", "-", "/", "_")

func isTokenChar(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._~+/", c)
}

// longestSession bounds the id of a session, in bytes.
const longestSession = 256

// Session cookies as Drupal and PHP write them.
var (
	sessionName = regexp.MustCompile(`^S?SESS[0-9A-Za-z]{1,64}$`)
	sessionID   = regexp.MustCompile(`^[0-9A-Za-z,_-]+$`)
)

// sessionCookie picks Drupal's session cookie (SESS…, SSESS…) out of a request's cookies and writes it as PHP does. ok is
// false where there are several: which of them the site would take is undefined.
func sessionCookie(h http.Header) (cookie string, ok bool) {
	for _, line := range h.Values("Cookie") {
		for pair := range strings.SplitSeq(line, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if !strings.HasPrefix(name, "SESS") && !strings.HasPrefix(name, "SSESS") {
				continue
			}
			id, err := url.QueryUnescape(strings.Trim(value, `"`))
			if err != nil || !sessionName.MatchString(name) || len(id) > longestSession || !sessionID.MatchString(id) {
				return "", false
			}
			if found := name + "=" + url.QueryEscape(id); cookie == "" {
				cookie = found
			} else if found != cookie {
				return "", false
			}
		}
	}
	return cookie, true
}
