package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// Hash is what the journal shows in place of a credential: equal credentials have equal hashes.
func Hash(credential string) string {
	sum := sha256.Sum256([]byte(credential))
	return "sha256:" + hex.EncodeToString(sum[:6])
}

// secretWords mark the names of headers and arguments whose values are credentials.
var secretWords = []string{"auth", "cookie", "session", "token", "secret", "credential", "password", "passwd", "api-key", "apikey"}

func isSecret(name string) bool {
	name = strings.ToLower(name)
	return name == "pass" || slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

// redactHeader returns a copy of the header with hashes in place of credentials.
func redactHeader(h http.Header) http.Header {
	redacted := make(http.Header, len(h))
	for name, values := range h {
		if isSecret(name) {
			values = slices.Clone(values)
			for i, v := range values {
				values[i] = redactValue(name, v)
			}
		}
		redacted[name] = values
	}
	return redacted
}

// redactValue keeps what is no secret: the scheme of credentials, the names of cookies.
func redactValue(name, value string) string {
	if name == "Cookie" {
		pairs := strings.Split(value, ";")
		for i, pair := range pairs {
			key, v, named := strings.Cut(pair, "=")
			if pairs[i] = key + "=" + Hash(strings.TrimSpace(v)); !named {
				pairs[i] = Hash(strings.TrimSpace(pair))
			}
		}
		return strings.Join(pairs, ";")
	}
	if scheme, rest, ok := strings.Cut(value, " "); ok && isScheme(scheme) {
		return scheme + " " + Hash(rest)
	}
	return Hash(value)
}

// isScheme reports whether a word is the name of a way to authenticate that may be shown.
func isScheme(word string) bool {
	return slices.ContainsFunc([]string{"basic", "bearer", "digest", "negotiate"}, func(s string) bool { return strings.EqualFold(s, word) })
}

// redactQuery writes hashes in place of the values of arguments that are credentials.
func redactQuery(raw string) string {
	if raw == "" {
		return raw
	}
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		if name, value, ok := strings.Cut(pair, "="); ok && isSecret(php.URLDecode(name)) {
			pairs[i] = name + "=" + Hash(value)
		}
	}
	return strings.Join(pairs, "&")
}

// cookiesOf lists the cookies of a request.
func cookiesOf(h http.Header) []Cookie {
	lines := h["Cookie"]
	if len(lines) == 0 {
		return nil
	}
	var list []Cookie
	for _, line := range lines {
		for pair := range strings.SplitSeq(line, ";") {
			if name, value, ok := strings.Cut(strings.TrimSpace(pair), "="); ok {
				list = append(list, Cookie{name, Hash(strings.Trim(value, `"`))})
			}
		}
	}
	return list
}

// SetCookiesOf lists the cookies that a response sets.
func SetCookiesOf(h http.Header) []Cookie {
	var list []Cookie
	for _, line := range h["Set-Cookie"] {
		if c, err := http.ParseSetCookie(line); err == nil {
			list = append(list, Cookie{c.Name, Hash(c.Value)})
		}
	}
	return list
}
