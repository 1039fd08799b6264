package match

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// BeJSON matches a response with a JSON content type and a body that reads strictly as one JSON object.
func BeJSON() types.GomegaMatcher {
	return Conform("application/json with one JSON object", func(a *check.Response) string {
		if a.Err != nil {
			return a.Err.Error()
		}
		if t, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type")); t != "application/json" {
			return fmt.Sprintf("Content-Type %q", a.Header.Get("Content-Type"))
		}
		v, err := a.JSON()
		if err != nil {
			return "a body that " + err.Error()
		}
		if _, ok := v.(map[string]any); !ok {
			return "the body " + exact.Short(v)
		}
		return ""
	})
}

// BeHTML matches an HTML page, whatever its content type says.
func BeHTML() types.GomegaMatcher {
	return &ResponseMatcher{Expected: "HTML", Test: func(a *check.Response) (string, bool) {
		start := strings.ToLower(strings.TrimSpace(string(a.Body[:min(len(a.Body), 200)])))
		return fmt.Sprintf("Content-Type %q: %s", a.Header.Get("Content-Type"), a.Outcome()),
			strings.Contains(a.Header.Get("Content-Type"), "html") || strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html")
	}}
}

// HaveMessageWith matches a refusal whose message holds the text.
func HaveMessageWith(text string) types.GomegaMatcher {
	return MatchWhere(fmt.Sprintf("a message that holds %q", text), func(a *check.Response) bool { return strings.Contains(a.Message(), text) })
}

// EqualResponse matches a response of the same status and an equal JSON body. The value of a cursor does not count: a
// bridge may issue a new one in every response (list/next-cursor-type).
func EqualResponse(other *check.Response) types.GomegaMatcher {
	return Conform("the same response as before: "+other.Outcome(), func(a *check.Response) string {
		if a.Status != other.Status {
			return a.Outcome()
		}
		want, before := other.JSON()
		got, err := a.JSON()
		if err != nil && before != nil && bytes.Equal(a.Body, other.Body) {
			return "" // of which fault of form another clause tests
		}
		if err != nil {
			return "a body that " + err.Error()
		}
		if d := exact.Diff(withoutCursor(want), withoutCursor(got)); d != "" {
			return "another body " + d
		}
		return ""
	})
}

// withoutCursor returns a page of tools with its cursor, if it has one, replaced by a fixed text; other documents as they are.
func withoutCursor(v any) any {
	page, _ := v.(map[string]any)
	cursor, _ := page["nextCursor"].(string)
	if _, list := page["tools"].([]any); !list || cursor == "" {
		return v
	}
	page = maps.Clone(page)
	page["nextCursor"] = "a cursor"
	return page
}

// BeUnknown matches a refusal that cannot be distinguished from that of an unknown name: 404 tool_not_found with the
// status, code, headers and shape of message that names without a tool get. ask sends the request for a name.
func BeUnknown(ask func(ctx context.Context, name string) *check.Response, ctx context.Context, name string) types.GomegaMatcher {
	return Conform("the same refusal as for an unknown name", func(a *check.Response) string {
		difference := DiffersFromUnknown(ask, ctx, a, name)
		if difference == "" && a.Status != http.StatusNotFound {
			return a.Outcome()
		}
		return difference
	})
}

// DiffersFromUnknown says how the response for a name differs from those for names that no tool has, in status, code,
// headers and body; "" when in nothing. What differs between two of those is free (dates, request ids). So is what does
// not differ each time: a clock or a counter may have moved on between two requests.
func DiffersFromUnknown(ask func(ctx context.Context, name string) *check.Response, ctx context.Context, a *check.Response, name string) (difference string) {
	first, second := UnknownName(name, 'q'), UnknownName(name, 'z')
	for round := range 6 {
		one, two := ask(ctx, first), ask(ctx, second)
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
	if x, y, z := BodyOf(a, name), BodyOf(one, first), BodyOf(two, second); y == z && x != y {
		return fmt.Sprintf("the body %s, but an unknown name gets %s", exact.Cut(x, 200), exact.Cut(y, 200))
	}
	for _, h := range HeaderNames(a, one, two) {
		if x, y, z := HeaderOf(a, h, name), HeaderOf(one, h, first), HeaderOf(two, h, second); y == z && x != y {
			return fmt.Sprintf("%s %q, but an unknown name gets %q", h, x, y)
		}
	}
	return ""
}

// UnknownName is a name of the same length and punctuation that no tool has.
func UnknownName(name string, letter rune) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return letter
		}
		return r
	}, name)
}

// HeaderNames lists the headers of the responses, but for the one that shows the time.
func HeaderNames(responses ...*check.Response) []string {
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

func HeaderOf(a *check.Response, header, name string) string {
	if slices.Contains(VolatileHeaders, header) && len(a.Header.Values(header)) > 0 {
		return "present"
	}
	return strings.ReplaceAll(strings.Join(a.Header.Values(header), ", "), name, "NAME")
}

func BodyOf(a *check.Response, name string) string {
	return strings.ReplaceAll(client.OneLine(string(a.Body)), name, "NAME")
}
