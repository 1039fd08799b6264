package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
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

// ExcludeSharedCaches matches a response that no shared cache may store for other callers. What identifies the caller is the header of
// the request's credentials, or others that are named, in lower case.
func ExcludeSharedCaches(identifies ...string) types.GomegaMatcher {
	return match.ConformHeader("Cache-Control", "Cache-Control with no-store, no-cache or private, or a Vary that names what identifies the caller", func(r *check.Response) string {
		if ForbidsStoring(r) {
			return ""
		}
		named := identifies
		switch {
		case len(named) > 0:
		case r.Sent.Get("Cookie") != "":
			named = []string{"cookie"}
		default:
			named = []string{"authorization"}
		}
		if slices.ContainsFunc(Listed(r, "Vary"), func(name string) bool { return name == "*" || slices.Contains(named, name) }) {
			return ""
		}
		actual := fmt.Sprintf("Cache-Control %s, Vary %s", Quoted(r.Header.Values("Cache-Control")), Quoted(r.Header.Values("Vary")))
		if cdn := r.Header.Values("CDN-Cache-Control"); len(cdn) > 0 {
			actual += ", CDN-Cache-Control " + Quoted(cdn)
		}
		return actual
	})
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
