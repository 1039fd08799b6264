package phpschema

import (
	"regexp"
	"strconv"
	"strings"
)

// The library's UriValidator and RelativeReferenceValidator.
var (
	hierarchical = regexp.MustCompile(`(?i)^([a-z][a-z0-9+\-.]*)://` + // scheme
		`(?:[^:@/?#]+(?::[^@/?#]*)?@)?` + // user and password
		`([a-z0-9._~-]+|\[[a-f0-9:.]+\])` + // host
		`(?::(\d{1,5}))?` + // port
		`(?:/[a-zA-Z0-9._~!$&'()*+,;=:@/%-]*)*` + // path
		`(?:\?[^#]*)?(?:#.*)?$`)
	opaque    = regexp.MustCompile(`(?i)^(mailto|data|urn):(.+)$`)
	mailto    = regexp.MustCompile(`^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$`)
	absolute  = regexp.MustCompile(`^(http|https)://`)
	reference = regexp.MustCompile(`^(([^/?#]+):)?(//([^/?#]*))?([^?#]*)(\?([^#]*))?(#(.*))?$`)
	odd       = regexp.MustCompile(`^:/|^//$|^///[^/]|\s|^\?#|^#$|^\?$`)
)

func validURI(s string) bool {
	if m := hierarchical.FindStringSubmatch(s); m != nil {
		port, _ := strconv.Atoi(m[3])
		return !strings.Contains(m[2], "..") && (m[3] == "" || m[3] == "0" || port >= 1 && port <= 65535)
	}
	m := opaque.FindStringSubmatch(s)
	return m != nil && (!strings.EqualFold(m[1], "mailto") || mailto.MatchString(m[2]))
}

func validReference(s string) bool {
	return validURI(s) || reference.MatchString(s) && !absolute.MatchString(s) && !odd.MatchString(s)
}
