package selftest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge"
)

// Faults of bridges that show everybody what one account sees.
var broadMutants = []Mutant{
	{Name: "broad-list-filtered", Setup: Broad, Breaks: Clauses("access/discovery-broad", "list/pages-cover-all-once"), Origin: Imagined, Options: func(o *bridge.Options) {
		o.Visibility, o.ServiceUser, o.ServicePassword = bridge.VisibilityFiltered, "", ""
	}},
	{Name: "broad-describe-filtered", Setup: Broad, Breaks: Clauses("access/discovery-broad", "describe/answers-tool"), Origin: Imagined, Wired: func(site *wire) front {
		return onAnswer(toDescribe, func(x *exchange) {
			if _, own := site.method(x.Request.Header.Get("Authorization"), x.described()); x.Status == http.StatusOK && !own {
				x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.described()))
			}
		})
	}},
	{Name: "broad-denied-404", Setup: Broad, Breaks: Clauses("invoke/denied-clear"), Origin: Imagined, Front: onShownAndDenied(func(x *exchange) {
		x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.invoked()))
	})},
	{Name: "broad-denied-unclear", Setup: Broad, Breaks: Clauses("invoke/denied-clear"), Origin: Imagined, Front: onShownAndDenied(func(x *exchange) {
		x.Refuse(http.StatusForbidden, "access_denied", fmt.Sprintf("Error with %q.", x.invoked()))
	})},
	{Name: "broad-runs-as-service", Setup: Broad, Breaks: Clauses("access/credentials-forwarded", "access/discovery-broad", "access/discovery-not-execution", "invoke/denied"), Origin: Peer,
		Why: "the account that discovers makes the calls as well", Upstream: onCall(func(r *http.Request, _ map[string]any) { r.Header.Set("Authorization", signedAs("service")) })},
	{Name: "broad-to-everybody", Setup: Broad, Breaks: Clauses("access/list-403", "access/describe-403", "access/anonymous"), Origin: Imagined,
		Why: "who may discover is asked of the account, not of the caller", Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if !isCall(r) {
				r = r.Clone(r.Context())
				r.Header.Set("Authorization", signedAs("service"))
			}
			return next.RoundTrip(r)
		})},
}

// onShownAndDenied changes the answer to a call that the site denies though the bridge shows the tool.
func onShownAndDenied(change func(*exchange)) front {
	return onInvoke(func(x *exchange) {
		if x.Status != http.StatusForbidden || !strings.Contains(x.errorMessage(), "does not let this caller run") {
			return
		}
		if _, shown := x.tool(x.invoked()); shown {
			change(x)
		}
	})
}
