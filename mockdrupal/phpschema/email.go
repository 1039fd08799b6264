package phpschema

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// What PHP's FILTER_VALIDATE_EMAIL takes, with FILTER_FLAG_EMAIL_UNICODE.
var (
	atom    = "[!#-'*+\\-/-9=?A-Z^-~\\pL\\pN]+"
	quoted  = `"(?:[\x01-\x08\x0B\x0C\x0E-\x1F!#-\[\]-\x7F\pL\pN]|\\[\x00-\x7F])*"`
	word    = "(?:" + atom + "|" + quoted + ")"
	label   = `[a-z0-9]+(?:-+[a-z0-9]+)*`
	address = regexp.MustCompile(`(?i)^(` + word + `(?:\.` + word + `)*)@(?:(?:` + label + `\.)+(` + label + `)|\[(.*)\])$`)
)

// Longest parts of an address, in characters.
const (
	maxAddress, maxLocal, maxLabel = 254, 64, 63
)

func validEmail(s string) bool {
	m := address.FindStringSubmatch(s)
	if m == nil || utf8.RuneCountInString(s) > maxAddress || utf8.RuneCountInString(m[1]) > maxLocal {
		return false
	}
	if m[2] == "" {
		ip, isV6 := strings.CutPrefix(strings.ToLower(m[3]), "ipv6:")
		return isV6 && validIPv6(ip) || !isV6 && validIPv4(ip)
	}
	for l := range strings.SplitSeq(s[len(m[1])+1:], ".") {
		if utf8.RuneCountInString(l) > maxLabel {
			return false
		}
	}
	return m[2][0] < '0' || m[2][0] > '9' || strings.HasPrefix(m[2], "xn--")
}
