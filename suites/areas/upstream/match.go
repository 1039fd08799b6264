package upstream

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/onsi/gomega/types"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// allOf matches what all matchers match; the finding is that of the first that does not.
func allOf(matchers ...types.GomegaMatcher) types.GomegaMatcher { return &conjunction{all: matchers} }

type conjunction struct {
	all   []types.GomegaMatcher
	first types.GomegaMatcher // that did not match
}

func (m *conjunction) Match(actual any) (bool, error) {
	for _, matcher := range m.all {
		if ok, err := matcher.Match(actual); err != nil || !ok {
			m.first = matcher
			return false, err
		}
	}
	return true, nil
}

func (m *conjunction) Finding(actual any, matched bool) check.Finding {
	return m.first.(check.Finder).Finding(actual, matched)
}

func (m *conjunction) FailureMessage(actual any) string { return m.first.FailureMessage(actual) }

func (m *conjunction) NegatedFailureMessage(actual any) string {
	return "not: " + m.FailureMessage(actual)
}

// refuseHangingCall matches the refusal of a call while the site hangs: in the envelope, and within the limit.
func refuseHangingCall(t *check.T, limit time.Duration) types.GomegaMatcher {
	return allOf(match.BeRefusedWith(504, 502, 500), match.BeEnvelope(), match.HaveDocumentedCode(t.Contract), comeWithin(t, limit))
}

// refuseHanging is refuseHangingCall for a list, and for a call of a site that lets nobody connect: it may as well be down.
func refuseHanging(t *check.T, limit time.Duration) types.GomegaMatcher {
	return allOf(match.BeRefusedWith(504, 503, 502, 500), match.BeEnvelope(), match.HaveDocumentedCode(t.Contract), comeWithin(t, limit))
}

// comeWithin matches a response that took no longer than the limit.
func comeWithin(t *check.T, limit time.Duration) types.GomegaMatcher {
	return match.Conform(fmt.Sprintf("a response within %v", limit), func(r *check.Response) string {
		if r.Took <= limit {
			return ""
		}
		t.ExemptIfLate()
		return fmt.Sprintf("one after %v", r.Took.Round(time.Millisecond))
	})
}

// haveCalledNothing matches a response during which, since the last Mark, no call of the methods reached the site; without
// any, no call at all.
func haveCalledNothing(at *site.Upstream, methods ...string) types.GomegaMatcher {
	return match.Conform("no call to the site", func(r *check.Response) string {
		if calls := at.Calls(methods...); len(calls) > 0 {
			return fmt.Sprintf("%s, and a call of %s", r.Outcome(), match.Abbreviate(match.MethodsOf(calls)))
		}
		return ""
	})
}

// beUpstreamError matches the refusal of a call to which the site sent no valid response: 500, 502 or 503, never the page
// itself.
func beUpstreamError() OmegaMatcher {
	return match.Conform("500, 502 or 503 with the envelope, and nothing of the site's page", func(r *check.Response) string {
		switch at := strings.Index(string(r.Body), pageMark); {
		case r.Code() == "" || !slices.Contains([]int{500, 502, 503}, r.Status):
			return r.Outcome()
		case at >= 0:
			return fmt.Sprintf("%d with the site's page in it: …%s", r.Status, exact.Cut(client.OneLine(string(r.Body[max(0, at-60):])), 120))
		}
		return ""
	})
}

// beUpstreamErrorOrList matches the response to a list while discovery fails: such a refusal, of any form by MCP alone, or the first
// page of the list as the bridge had it for others with the same permissions.
func beUpstreamErrorOrList(known check.Listing, byMCP bool) OmegaMatcher {
	refused := beUpstreamError()
	return match.Conform("500, 502 or 503 with the envelope, and no list of other tools", func(r *check.Response) string {
		switch ok, _ := refused.Match(r); {
		case ok, byMCP && r.IsError():
			return ""
		case r.Succeeded() && len(r.Tools()) > 0 && len(match.Minus(check.Listing{Pages: []*check.Response{r}}.Names(), known.Names())) == 0:
			return ""
		case r.Succeeded():
			return fmt.Sprintf("%d with %d tools", r.Status, len(r.Tools()))
		}
		return r.Outcome()
	})
}

// showFailure matches the refusal of a call whose method failed with the text.
func showFailure(text string) OmegaMatcher {
	return match.MatchWhere(fmt.Sprintf("500 with %q", text), func(r *check.Response) bool {
		return r.Status == http.StatusInternalServerError && strings.Contains(r.Message(), text)
	})
}

// showSameFailure matches the refusal of a call whose method failed: as the other one, and with the text.
func showSameFailure(other *check.Response, text string) OmegaMatcher {
	return match.MatchWhere("that error: "+other.Outcome(), func(r *check.Response) bool {
		return r.Status == other.Status && r.Code() == other.Code() && strings.Contains(r.Message(), text)
	})
}

func mustBeValidCall(t *check.T, entry mockdrupal.Entry) {
	fault := callFault(entry)
	t.Expect(fault).To(BeEmpty(), check.Mismatch("a request to the site", "valid JSON-RPC 2.0 with an id", fmt.Sprintf("one that is not (%s): %s", fault, exact.Cut(client.OneLine(string(entry.Body)), 200))))
}

// callFault returns why a request to the site is not valid JSON-RPC 2.0 with an id; "" when it is.
func callFault(entry mockdrupal.Entry) string {
	if t, _, _ := strings.Cut(entry.Header.Get("Content-Type"), ";"); strings.TrimSpace(t) != "application/json" {
		return fmt.Sprintf("the Content-Type is %q", entry.Header.Get("Content-Type"))
	}
	v, err := exact.Parse(entry.Body)
	if err != nil {
		return "the body " + err.Error()
	}
	calls, batch := v.([]any)
	if !batch {
		calls = []any{v}
	}
	for _, c := range calls {
		call, ok := c.(map[string]any)
		if !ok {
			return "the body is no object"
		}
		if call["jsonrpc"] != "2.0" {
			return "`jsonrpc` is not \"2.0\""
		}
		if method, ok := call["method"].(string); !ok || method == "" {
			return "`method` is no string"
		}
		switch id := call["id"].(type) {
		case nil:
			return "there is no `id`"
		case map[string]any, []any, bool:
			return "`id` is " + match.TypeOf(id)
		}
		switch params := call["params"].(type) {
		case nil:
			if _, there := call["params"]; there {
				return "`params` is null"
			}
		case map[string]any, []any:
		default:
			return "`params` is " + match.TypeOf(params)
		}
	}
	return ""
}
