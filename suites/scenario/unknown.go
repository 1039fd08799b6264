package scenario

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// DiffersFromUnknown says how the response for a name differs from those for names that no tool has, in status, code,
// headers and body; "" when in nothing. What differs between two of those is free (dates, request ids). So is what does
// not differ each time: a clock or a counter may have moved on between two requests.
func DiffersFromUnknown(ctx context.Context, ask func(ctx context.Context, name string) *check.Response, a *check.Response, name string) (difference string) {
	first, second := unknownNames(name)
	for round := range 6 {
		one := ask(ctx, first)
		if round == 0 && a.Status == one.Status && a.Code() == one.Code() && partDiffering(a, one, one, name, first, first) == "" {
			return "" // whatever a second one would show
		}
		two := ask(ctx, second)
		if round > 0 {
			a = ask(ctx, name) // after the others, as it came before them in the first round
		}
		if round%2 == 1 {
			two = ask(ctx, second) // once more, so that no counter of a small period is the same in each round
		}
		if a.Status != one.Status || a.Code() != one.Code() {
			return fmt.Sprintf("%s, but an unknown name gets %s", a.Outcome(), one.Outcome())
		}
		seen := partDiffering(a, one, two, name, first, second)
		if seen == "" {
			return ""
		}
		difference = cmp.Or(difference, seen)
	}
	return difference
}

// partDiffering says in which header or body a response for a name differs from two that agree.
func partDiffering(a, one, two *check.Response, name, first, second string) string {
	if x, y, z := bodyOf(a, name), bodyOf(one, first), bodyOf(two, second); y == z && x != y {
		return fmt.Sprintf("the body %s, but an unknown name gets %s", exact.Cut(x, 200), exact.Cut(y, 200))
	}
	for _, h := range headerNames(a, one, two) {
		if x, y, z := headerOf(a, h, name), headerOf(one, h, first), headerOf(two, h, second); y == z && x != y {
			return fmt.Sprintf("%s %q, but an unknown name gets %q", h, x, y)
		}
	}
	return ""
}

// unknownNames are two names that no tool has, each near the name in another way: a bridge may say which of the tools that the
// caller sees is the nearest.
func unknownNames(name string) (first, second string) {
	start, end := strings.IndexFunc(name, unicode.IsLetter), strings.LastIndexFunc(name, unicode.IsLetter)
	return name[:start] + "q" + name[start+1:], name[:end] + "z" + name[end+1:]
}

// headerNames lists the headers of the responses, but for the one that shows the time.
func headerNames(responses ...*check.Response) []string {
	var names []string
	for _, a := range responses {
		for name := range a.Header {
			if name != "Date" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// VolatileHeaders are headers whose values show the time and the load, not of the request.
var VolatileHeaders = []string{"Age", "Expires", "Retry-After", "Server-Timing", "X-Response-Time", "X-Runtime",
	"X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Ratelimit-Remaining", "Ratelimit-Reset", "Ratelimit"}

// headerOf is a header without the name that was asked for.
func headerOf(a *check.Response, header, name string) string {
	if slices.Contains(VolatileHeaders, header) && len(a.Header.Values(header)) > 0 {
		return "present"
	}
	return strings.ReplaceAll(strings.Join(a.Header.Values(header), ", "), name, "NAME")
}

// bodyOf is a body without the name that was asked for.
func bodyOf(a *check.Response, name string) string {
	return strings.ReplaceAll(client.OneLine(string(a.Body)), name, "NAME")
}
