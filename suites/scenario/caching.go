package scenario

import (
	"strings"

	"github.com/bridgecheck/bridgecheck/suites/harness"
)

func ForbidsStoring(a *harness.Response) bool {
	for _, directive := range Listed(a, "Cache-Control") {
		name, _, _ := strings.Cut(directive, "=")
		switch name {
		case "no-store", "no-cache", "private":
			return true
		}
	}
	return false
}

// Listed are the members of a header that is a list, in lower case.
func Listed(a *harness.Response, header string) []string {
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
