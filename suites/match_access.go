package suites

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// BeRefusal matches a 4xx or 5xx.
func BeRefusal() types.GomegaMatcher {
	return matching("a refusal", func(a *Response) bool { return a.Status >= 400 })
}

// ChallengeIf401 matches an answer that is no 401, or one that tells how to sign in.
func ChallengeIf401() types.GomegaMatcher {
	return Meet("a 401 to carry WWW-Authenticate", func(a *Response) string {
		if a.Status != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") != "" {
			return ""
		}
		return "a 401 without"
	})
}

// NameAnyTool matches an answer in which one of the names stands, in a header or in the body.
func NameAnyTool(names []string) types.GomegaMatcher {
	return &responseMatcher{expected: "to name a tool", test: func(a *Response) (string, bool) {
		for _, name := range names {
			if len(name) > 5 && HoldsText(a, name) {
				return fmt.Sprintf("%q in it: %s", name, a.Outcome()), true
			}
		}
		return "", false
	}}
}

// eachShown judges every tool that the caller must see or does see: none may be missing, and no other may be there. A
// method with parameters by position may be left out; names that collide when underscored are not judged.
func (t *T) eachShown(who Identity, list Listing) {
	got := list.Names()
	wrong := t.shownFaults(who, got)
	for _, name := range union(t.Visible(who), got) {
		t.For(who, name, func() { t.Expect(list).To(BeExactFor(who, wrong[name])) })
	}
}

// BeExactFor matches a listing of exactly what the caller may see, as far as one tool goes: fault says what is wrong with
// it.
func BeExactFor(who Identity, fault string) types.GomegaMatcher {
	return &listingMatcher{expected: fmt.Sprintf("exactly the tools that %s may see", who), judge: func(Listing) string { return fault }}
}

func union(one, two []string) []string {
	return append(slices.Clone(one), minus(two, one)...)
}

// shownFault is the first of shownFaults; "" when there is none.
func (t *T) shownFault(who Identity, got []string) string {
	wrong := t.shownFaults(who, got)
	if len(wrong) == 0 {
		return ""
	}
	return wrong[slices.Sorted(maps.Keys(wrong))[0]]
}

// shownFaults says of each name that is missing or too many among those that the caller is shown what is wrong.
func (t *T) shownFaults(who Identity, got []string) map[string]string {
	want := t.Visible(who)
	wrong := map[string]string{}
	loose := map[string]bool{}
	for i, name := range want {
		if slices.Contains(want[:i], name) {
			loose[name] = true
		}
	}
	for _, m := range t.Drupal.Site().Methods {
		if m.ByPosition || m.Unchecked {
			loose[t.ToolName(m.ID)] = true
		}
	}
	for _, name := range want {
		if !loose[name] && !slices.Contains(got, name) {
			wrong[name] = fmt.Sprintf("%d tools without %q", len(got), name)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) && !startsWithAny(name, loose) {
			wrong[name] = fmt.Sprintf("%q among %d tools", name, len(got))
		}
	}
	return wrong
}

func startsWithAny(name string, beginnings map[string]bool) bool {
	for beginning := range beginnings {
		if strings.HasPrefix(name, beginning) {
			return true
		}
	}
	return false
}

// listingMatcher judges the pages of a list together.
type listingMatcher struct {
	expected string
	judge    func(Listing) string
	got      string
}

func (m *listingMatcher) Match(actual any) (bool, error) {
	l, ok := actual.(Listing)
	if !ok {
		return false, fmt.Errorf("a listing is needed, not a %T", actual)
	}
	m.got = m.judge(l)
	return m.got == "", nil
}

func (m *listingMatcher) FailureMessage(actual any) string {
	return m.Finding(actual, false).String()
}

func (m *listingMatcher) NegatedFailureMessage(actual any) string {
	return m.Finding(actual, true).String()
}

func (m *listingMatcher) Finding(actual any, matched bool) Finding {
	l := actual.(Listing)
	l.Last().Blame()
	expected, got := m.expected, m.got
	if matched {
		expected, got = "not "+expected, "them"
	}
	return mismatch("list as "+l.Pages[0].Who.String(), expected, got)
}

// BeTurnedAway matches the answer to credentials that are none: 401 or 403, or exactly what an anonymous caller got.
func BeTurnedAway(anonymous *Response) types.GomegaMatcher {
	return Meet("401, 403 or what an anonymous caller gets: "+anonymous.Outcome(), func(a *Response) string {
		if a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden {
			return ""
		}
		if a.Status != anonymous.Status || !sameBody(a, anonymous) {
			return a.Outcome()
		}
		return ""
	})
}

func sameBody(a, b *Response) bool {
	x, errX := a.JSON()
	y, errY := b.JSON()
	if errX != nil || errY != nil {
		return string(a.Body) == string(b.Body)
	}
	return exact.Equal(x, y)
}

// HoldsText tells whether a text stands in an answer's headers or body, as it is or as JSON escapes it.
func HoldsText(a *Response, text string) bool {
	if strings.Contains(string(a.Body), text) {
		return true
	}
	for _, values := range a.Header {
		if strings.Contains(strings.Join(values, "\n"), text) {
			return true
		}
	}
	return slices.ContainsFunc(texts(a.anything()), func(s string) bool { return strings.Contains(s, text) })
}

// BeLikeUnknown matches an answer that cannot be told from those that two names of nobody get: in status, code, headers
// and shape. What differs between those two is free. ask sends the request for a name.
func BeLikeUnknown(ask func(ctx context.Context, name string) *Response, ctx context.Context, name string) types.GomegaMatcher {
	return Meet("the answer that an unknown name gets", func(a *Response) string {
		first, second := nobody(name, 'q'), nobody(name, 'z')
		one, two := ask(ctx, first), ask(ctx, second)
		if a.Status != one.Status || a.Code() != one.Code() {
			return fmt.Sprintf("%s, but an unknown name gets %s", a.Outcome(), one.Outcome())
		}
		if x, y, z := bodyOf(a, name), bodyOf(one, first), bodyOf(two, second); y == z && x != y {
			return fmt.Sprintf("the body %s, but an unknown name gets %s", exact.Cut(x, 200), exact.Cut(y, 200))
		}
		for _, h := range headerNames(a, one, two) {
			x, y, z := headerOf(a, h, name), headerOf(one, h, first), headerOf(two, h, second)
			if y == z && x != y {
				return fmt.Sprintf("%s %q, but an unknown name gets %q", h, x, y)
			}
		}
		return ""
	})
}
