// Package match holds the matchers that several areas use. A matcher compares one value with what the contract expects and
// makes the Finding where they differ; it sends nothing.
package match

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

// BeSuccess matches any 2xx without an error in it.
func BeSuccess() OmegaMatcher { return MatchWhere("a 2xx", (*check.Response).Succeeded) }

// ResponseMatcher compares one Response. Where it fails it gives a Finding in the words of the contract.
type ResponseMatcher struct {
	about    string // what of the response is tested; "": all
	Expected string
	Header   string // the test is about it alone; "": it is not about one header
	Test     func(a *check.Response) (got string, ok bool)
	got      string // "": the outcome
}

func (m *ResponseMatcher) Match(actual any) (bool, error) {
	a, ok := actual.(*check.Response)
	if !ok {
		return false, fmt.Errorf("a response of the bridge is needed, not a %T", actual)
	}
	got, ok := m.Test(a)
	m.got = got
	return ok, nil
}

func (m *ResponseMatcher) FailureMessage(actual any) string { return m.Finding(actual, false).String() }

func (m *ResponseMatcher) NegatedFailureMessage(actual any) string {
	return m.Finding(actual, true).String()
}

// Finding is asked for when the expectation fails: the response shows it.
func (m *ResponseMatcher) Finding(actual any, matched bool) check.Finding {
	a := actual.(*check.Response)
	expected, got := m.Expected, m.got
	if matched {
		expected = "not " + expected
	}
	if got == "" {
		got = a.Outcome()
	}
	finding := check.Mismatch(a.Subject(), expected, got).About(m.about)
	finding.Response = a
	if m.lacksHeader(a) {
		finding.Missing = m.Header
	}
	return finding
}

// lacksHeader reports whether the header is what is wrong: a challenge belongs to a 401 alone.
func (m *ResponseMatcher) lacksHeader(a *check.Response) bool {
	return m.Header != "" && len(a.Header.Values(m.Header)) == 0 && (a.Status == http.StatusUnauthorized || m.Header != "WWW-Authenticate")
}

// MatchWhere builds a matcher of the responses for which ok holds; expected says what the contract asks.
func MatchWhere(expected string, ok func(a *check.Response) bool) types.GomegaMatcher {
	return &ResponseMatcher{Expected: expected, Test: func(a *check.Response) (string, bool) { return "", ok(a) }}
}

// Conform builds a matcher for one Response: expected says what the contract asks, fault says what is wrong with the
// response ("" when it is right).
func Conform(expected string, fault func(a *check.Response) string) types.GomegaMatcher {
	return &ResponseMatcher{Expected: expected, Test: func(a *check.Response) (string, bool) {
		f := fault(a)
		return f, f == ""
	}}
}

// ConformHeader is Conform for one header, without which nothing else about it can be right.
func ConformHeader(header, expected string, fault func(a *check.Response) string) types.GomegaMatcher {
	m := Conform(expected, fault).(*ResponseMatcher)
	m.Header = header
	return m
}

// HaveChallengeIf401 matches a response that is no 401, or a 401 with a challenge.
func HaveChallengeIf401() types.GomegaMatcher {
	return ConformHeader("WWW-Authenticate", "a 401 to carry WWW-Authenticate", func(a *check.Response) string {
		if a.Status != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") != "" {
			return ""
		}
		return "a 401 without it"
	})
}

// BeRefused matches a response of the status whose error.code is one of codes; without codes the status alone counts.
func BeRefused(status int, codes ...string) types.GomegaMatcher {
	expected := fmt.Sprint(status)
	if len(codes) > 0 {
		expected += " " + strings.Join(codes, " or ")
	}
	return MatchWhere(expected, func(a *check.Response) bool {
		return a.Is(status) && (len(codes) == 0 || a.HasCode(codes...))
	})
}

// BeRefusedWith matches a response of any of the statuses.
func BeRefusedWith(statuses ...int) types.GomegaMatcher {
	words := make([]string, len(statuses))
	for i, s := range statuses {
		words[i] = fmt.Sprint(s)
	}
	expected := strings.Join(words, " or ")
	if last := len(words) - 1; last > 1 {
		expected = strings.Join(words[:last], ", ") + " or " + words[last]
	}
	return MatchWhere(expected, func(a *check.Response) bool { return a.Is(statuses...) })
}

// BeClientError matches any 4xx.
func BeClientError() types.GomegaMatcher {
	return MatchWhere("a 4xx", func(a *check.Response) bool { return a.Status > 0 && a.Status < 500 && a.IsError() })
}

// HaveStatus matches a response of exactly the status.
func HaveStatus(status int) types.GomegaMatcher { return BeRefused(status) }

// BeTool matches a describe response: 200 with the tool of that name.
func BeTool(name string) types.GomegaMatcher {
	return Conform(fmt.Sprintf("200 with the tool %q", name), func(a *check.Response) string {
		switch _, err := a.JSON(); {
		case a.Status != http.StatusOK:
		case err != nil:
			return a.Outcome() + ", a body that " + err.Error()
		case a.Tool().Name() == name:
			return ""
		}
		return a.Outcome()
	})
}

// HaveResult matches an invoke response: 200 with a `result` member.
func HaveResult() types.GomegaMatcher {
	return MatchWhere("200 with a `result`", func(a *check.Response) bool {
		_, ok := a.Member("result")
		_, err := a.JSON()
		return err == nil && a.Status == http.StatusOK && ok
	})
}

// GiveResult matches an invoke response whose result equals a JSON document, numbers by value, {} apart from [].
func GiveResult(want string) types.GomegaMatcher {
	expected := exact.MustParse(want)
	return &ResponseMatcher{Expected: "200 with the result " + exact.Short(expected), Test: func(a *check.Response) (string, bool) {
		got, ok := a.Member("result")
		if a.Status != http.StatusOK || !ok {
			return a.Outcome(), false
		}
		if d := exact.Diff(expected, got); d != "" {
			return cmp.Or(EncodedTwice(expected, got), "a result that differs "+d), false
		}
		return "", true
	}}
}

// EncodedTwice says of a result that is a string with the expected one in it, as JSON, what is wrong with it; "" of another. A
// number or a boolean as a string is another fault.
func EncodedTwice(want, got any) string {
	text, _ := got.(string)
	inner, err := exact.Parse([]byte(text))
	if err != nil || !exact.Equal(want, inner) {
		return ""
	}
	switch inner.(type) {
	case json.Number, bool:
		return ""
	}
	return reports.EncodedTwice
}
