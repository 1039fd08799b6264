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
	opaque    = regexp.MustCompile(`(?i)^(mailto|data|urn|news|tel|file):(.+)$`)
	mailto    = regexp.MustCompile(`^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$`)
	absolute  = regexp.MustCompile(`^(http|https)://`)
	reference = regexp.MustCompile(`^(([^/?#]+):)?(//([^/?#]*))?([^?#]*)(\?([^#]*))?(#(.*))?$`)
	odd       = regexp.MustCompile(`\\|^:/|^//$|^///[^/]|\s`)
	news      = regexp.MustCompile(`(?i)^[a-z0-9]+(\.[a-z0-9]+)*$`)
	tel       = regexp.MustCompile(`^\+?[0-9.\-() ]+$`)
)

func validURI(s string) bool {
	if m := hierarchical.FindStringSubmatch(s); m != nil {
		port, _ := strconv.Atoi(m[3])
		return !strings.Contains(m[2], "..") && (m[3] == "" || m[3] == "0" || port >= 1 && port <= 65535)
	}
	m := opaque.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	further := map[string]*regexp.Regexp{"mailto": mailto, "news": news, "tel": tel}[strings.ToLower(m[1])]
	return further == nil || further.MatchString(m[2])
}

func validReference(s string) bool {
	return validURI(s) || reference.MatchString(s) && !absolute.MatchString(s) && !odd.MatchString(s)
}
