package match

import (
	"fmt"
	"net/http"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// HaveInResult matches an invoke response, 200 with a `result`, in which a text stands. Its form is tested elsewhere.
func HaveInResult(text fixtures.Raw) OmegaMatcher {
	want := fmt.Sprint(exact.MustParse(text))
	return MatchWhere("200 with `result`, and "+string(text)+" in it", func(a *check.Response) bool {
		result, there := a.Member("result")
		_, err := a.JSON()
		return err == nil && a.Status == http.StatusOK && there && holdsText(result, want)
	})
}

// HaveForwarded matches an invoke whose arguments reached the method, in one call, equal to those sent.
func HaveForwarded(at *site.Upstream, method string, sent []byte) OmegaMatcher {
	want := exact.MustParse(sent)
	return Conform("the arguments to reach "+method+" as they were sent", func(a *check.Response) string { return ForwardFault(at, a, method, want) })
}

// ForwardFault says how the arguments of the last call of a method differ from what was sent; "" when they do not.
func ForwardFault(at *site.Upstream, a *check.Response, method string, want any) string {
	calls := at.Calls(method)
	if len(calls) == 0 {
		return fmt.Sprintf("no call of it on the site, and %s", a.Outcome())
	}
	params := calls[len(calls)-1].Params
	if params == nil {
		params = fixtures.Raw("{}") // JSON-RPC lets them be left out
	}
	got, err := exact.Parse(params)
	if err != nil {
		return "params that " + err.Error()
	}
	if d := exact.Diff(want, got); d != "" {
		return "others " + d
	}
	return ""
}

// HaveRunNothing matches a response during which, since the last Mark, no method ran on the site. In a black-box run
// there is nothing to see, and it matches.
func HaveRunNothing(at *site.Upstream) types.GomegaMatcher {
	return Conform("no method to run on the site", func(a *check.Response) string {
		if at == nil {
			return ""
		}
		if runs := at.Runs(); len(runs) > 0 {
			return fmt.Sprintf("%s, and a run of %s", a.Outcome(), Abbreviate(MethodsOf(runs)))
		}
		return ""
	})
}

// HaveRun matches a response during which, since the last Mark, the method ran exactly so many times.
func HaveRun(at *site.Upstream, method string, times int) types.GomegaMatcher {
	return Conform(fmt.Sprintf("%s to run %s", method, Times(times)), func(a *check.Response) string {
		if n := len(at.Runs(method)); n != times {
			return fmt.Sprintf("%s, and it ran %s", a.Outcome(), Times(n))
		}
		return ""
	})
}

func Times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func MethodsOf(calls []mockdrupal.Call) []string {
	var methods []string
	for _, call := range calls {
		methods = append(methods, call.Method)
	}
	return methods
}
