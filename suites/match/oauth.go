package match

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

// ResourceMetadata says what is wrong with a response that should be the metadata of a protected resource (RFC 9728) whose
// tokens an issuer makes; "" for nothing. An empty issuer is any.
func ResourceMetadata(a *check.Response, resource, issuer string) string {
	document := a.Object()
	kind, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	servers, _ := document["authorization_servers"].([]any)
	methods, listed := document["bearer_methods_supported"].([]any)
	switch {
	case a.Status != http.StatusOK || document == nil:
		return a.Outcome()
	case !strings.EqualFold(strings.TrimSpace(kind), "application/json"):
		return fmt.Sprintf("the Content-Type %q", kind)
	case document["resource"] != resource:
		return "`resource` " + exact.Short(document["resource"])
	case len(servers) == 0 || slices.ContainsFunc(servers, func(s any) bool { return !IsAddress(s) }):
		return "`authorization_servers` " + exact.Short(document["authorization_servers"])
	case issuer != "" && !slices.Contains(servers, any(issuer)):
		return "`authorization_servers` " + exact.Short(servers) + " without " + issuer
	case listed && !slices.Contains(methods, any("header")):
		return "`bearer_methods_supported` " + exact.Short(methods)
	}
	return ""
}

// IsAddress reports whether a value is an absolute http or https URL without a query.
func IsAddress(v any) bool {
	text, _ := v.(string)
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.RawQuery == "" && u.Fragment == ""
}
