package suites

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// answerMatcher judges one Answer. Where it fails it gives a Finding in the words of the contract.
type responseMatcher struct {
	about    string // what of the answer is judged; "": all
	expected string
	test     func(a *Response) (got string, ok bool)
	got      string
}

func (m *responseMatcher) Match(actual any) (bool, error) {
	a, ok := actual.(*Response)
	if !ok {
		return false, fmt.Errorf("an answer of the bridge is needed, not a %T", actual)
	}
	got, ok := m.test(a)
	m.got = got
	return ok, nil
}

func (m *responseMatcher) FailureMessage(actual any) string { return m.Finding(actual, false).String() }

func (m *responseMatcher) NegatedFailureMessage(actual any) string {
	return m.Finding(actual, true).String()
}

// Finding is asked for when the expectation fails: then the answer is the one to blame.
func (m *responseMatcher) Finding(actual any, matched bool) Finding {
	a := actual.(*Response)
	a.Blame()
	expected, got := m.expected, m.got
	if matched {
		expected = "not " + expected
	}
	if got == "" {
		got = a.Outcome()
	}
	return mismatch(a.Subject(), expected, got).about(m.about)
}

// judging builds a matcher from what is expected and a judgement that says what came instead.
func matching(expected string, ok func(a *Response) bool) types.GomegaMatcher {
	return &responseMatcher{expected: expected, test: func(a *Response) (string, bool) {
		if ok(a) {
			return "", true
		}
		return a.Outcome(), false
	}}
}

// Meet builds a matcher for one Answer: expected says what the contract asks, fault says what is wrong with the
// answer ("" when it is right).
func Meet(expected string, fault func(a *Response) string) types.GomegaMatcher {
	return &responseMatcher{expected: expected, test: func(a *Response) (string, bool) {
		f := fault(a)
		return f, f == ""
	}}
}

// BeRefused matches an answer of the status whose error.code is one of codes; without codes the status alone counts.
func BeRefused(status int, codes ...string) types.GomegaMatcher {
	expected := fmt.Sprint(status)
	if len(codes) > 0 {
		expected += " " + strings.Join(codes, " or ")
	}
	return matching(expected, func(a *Response) bool {
		return a.Status == status && (len(codes) == 0 || slices.Contains(codes, a.Code()))
	})
}

// BeRefusedWith matches an answer of any of the statuses.
func BeRefusedWith(statuses ...int) types.GomegaMatcher {
	words := make([]string, len(statuses))
	for i, s := range statuses {
		words[i] = fmt.Sprint(s)
	}
	expected := strings.Join(words, " or ")
	if last := len(words) - 1; last > 1 {
		expected = strings.Join(words[:last], ", ") + " or " + words[last]
	}
	return matching(expected, func(a *Response) bool { return slices.Contains(statuses, a.Status) })
}

// BeClientError matches any 4xx.
func BeClientError() types.GomegaMatcher {
	return matching("a 4xx", func(a *Response) bool { return a.Status >= 400 && a.Status < 500 })
}

// HaveStatus matches an answer of exactly the status.
func HaveStatus(status int) types.GomegaMatcher { return BeRefused(status) }

// BeTools matches a list answer: 200 with a tools array.
func BeTools() types.GomegaMatcher {
	return matching("200 with a `tools` array", func(a *Response) bool {
		_, ok := a.Object()["tools"].([]any)
		return a.Status == http.StatusOK && ok
	})
}

// BeTheTool matches a describe answer: 200 with the tool of that name.
func BeTheTool(name string) types.GomegaMatcher {
	return matching(fmt.Sprintf("200 with the tool %q", name), func(a *Response) bool {
		_, err := a.JSON()
		return err == nil && a.Status == http.StatusOK && a.Tool().Name() == name
	})
}

// HaveResult matches an invoke answer: 200 with a `result` member.
func HaveResult() types.GomegaMatcher {
	return matching("200 with a `result`", func(a *Response) bool {
		_, ok := a.Member("result")
		_, err := a.JSON()
		return err == nil && a.Status == http.StatusOK && ok
	})
}

// GiveResult matches an invoke answer whose result equals a JSON document, numbers by value, {} apart from [].
func GiveResult(want string) types.GomegaMatcher {
	expected, err := exact.Parse([]byte(want))
	if err != nil {
		panic(fmt.Sprintf("a check expects a result that is no JSON: %v", err))
	}
	return &responseMatcher{expected: "200 with the result " + exact.Short(expected), test: func(a *Response) (string, bool) {
		got, ok := a.Member("result")
		if a.Status != http.StatusOK || !ok {
			return a.Outcome(), false
		}
		if d := exact.Diff(expected, got); d != "" {
			return "a result that differs " + d, false
		}
		return "", true
	}}
}

// MustSucceed is for the twin of a refusal: the smallest request that has to succeed, so that a bridge that refuses
// everything does not pass. Where the twin itself fails, nothing can be said of the refusal: the check is not testable,
// and the clause that judges the twin fails.
func (a *Response) MustSucceed() *Response {
	if !a.Succeeded() {
		a.Blame()
		Untestable("its twin, which must succeed, failed: ", mismatch(a.Subject(), "a success", a.Outcome()))
	}
	return a
}

// MustMeet is MustSucceed for a twin that has to be answered in a way of its own.
func (a *Response) MustMeet(want types.GomegaMatcher) *Response {
	if ok, err := want.Match(a); err != nil || !ok {
		Untestable("its twin failed: ", want.(finder).Finding(a, false))
	}
	return a
}
