package suites

import (
	"fmt"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// HaveRunNothing matches an answer during which, since the last Mark, no method ran on the site. In a black-box run
// there is nothing to see, and it matches.
func HaveRunNothing() types.GomegaMatcher {
	return Meet("no method to run on the site", func(a *Response) string {
		if a.t.Upstream == nil {
			return ""
		}
		if runs := a.t.Upstream.Runs(); len(runs) > 0 {
			return fmt.Sprintf("%s, and a run of %s", a.Outcome(), fewOf(methodsOf(runs)))
		}
		return ""
	})
}

// HaveRun matches an answer during which, since the last Mark, the method ran exactly so many times.
func HaveRun(method string, times int) types.GomegaMatcher {
	return Meet(fmt.Sprintf("%s to run %s", method, often(times)), func(a *Response) string {
		if n := len(a.t.Upstream.Runs(method)); n != times {
			return fmt.Sprintf("%s, and it ran %s", a.Outcome(), often(n))
		}
		return ""
	})
}

// HaveReachedOnce matches an answer during which, since the last Mark, exactly one call of the method reached the site,
// whatever became of it there.
func HaveReachedOnce(method string) types.GomegaMatcher {
	return Meet("one call of "+method+" to reach the site", func(a *Response) string {
		if n := len(a.t.Upstream.Calls(method)); n != 1 {
			return fmt.Sprintf("%s, and %s reached it %s", a.Outcome(), method, often(n))
		}
		return ""
	})
}

// CallNothing matches an answer during which, since the last Mark, no call of the methods reached the site; without any,
// no call at all.
func CallNothing(methods ...string) types.GomegaMatcher {
	return Meet("no call to the site", func(a *Response) string {
		if calls := a.t.Upstream.Calls(methods...); len(calls) > 0 {
			return fmt.Sprintf("%s, and a call of %s", a.Outcome(), fewOf(methodsOf(calls)))
		}
		return ""
	})
}

func often(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func methodsOf(calls []mockdrupal.Call) []string {
	var methods []string
	for _, call := range calls {
		methods = append(methods, call.Method)
	}
	return methods
}
