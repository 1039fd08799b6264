package scenario

import (
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/suites/check"
)

// ForbidsStoring reports whether no shared cache may store a response for other callers, by Cache-Control and by what
// CDNs obey in its place (RFC 9213). A directive with field names, as private="Set-Cookie", is about those fields alone.
func ForbidsStoring(a *check.Response) bool {
	for _, header := range []string{"Cache-Control", "CDN-Cache-Control"} {
		directives := Listed(a, header)
		forbids := slices.ContainsFunc(directives, func(d string) bool { return d == "no-store" || d == "no-cache" || d == "private" })
		if !forbids && (header == "Cache-Control" || len(directives) > 0) {
			return false
		}
	}
	return true
}

// Listed are the members of a header that is a list, in lower case.
func Listed(a *check.Response, header string) []string {
	var members []string
	for _, value := range a.Header.Values(header) {
		for member := range strings.SplitSeq(value, ",") {
			members = append(members, strings.ToLower(strings.TrimSpace(member)))
		}
	}
	return members
}

func Quoted(values []string) string {
	if len(values) == 0 {
		return "missing"
	}
	return `"` + strings.Join(values, ", ") + `"`
}
