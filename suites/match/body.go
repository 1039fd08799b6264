package match

import (
	"bytes"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// BeJSON matches a response with a JSON content type and a body that reads strictly as one JSON object. What came by MCP was
// read as MCP has it, as JSON or in a stream of events.
func BeJSON() types.GomegaMatcher {
	return Conform("application/json with one JSON object", func(a *check.Response) string {
		if a.Err != nil {
			return a.Err.Error()
		}
		t, parameters, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
		charset, named := parameters["charset"]
		if (t != "application/json" || named && !isUTF8(charset)) && !a.IsView() {
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

// isUTF8 reports whether a text in UTF-8 is read as such under the charset; of ASCII alone it may be as well.
func isUTF8(charset string) bool {
	return slices.Contains([]string{"utf-8", "utf8", "us-ascii", "ascii"}, strings.ToLower(charset))
}

// BeHTML matches an HTML page, whatever its content type says.
func BeHTML() types.GomegaMatcher {
	return &ResponseMatcher{Expected: "HTML", Test: func(a *check.Response) (string, bool) {
		start := strings.ToLower(strings.TrimSpace(string(a.Body[:min(len(a.Body), 200)])))
		return fmt.Sprintf("Content-Type %q: %s", a.Header.Get("Content-Type"), a.Outcome()),
			strings.Contains(a.Header.Get("Content-Type"), "html") || strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html")
	}}
}

// ContainAnyOf matches a response that contains one of the words, as it is or as JSON escapes it, in a header or in the body.
func ContainAnyOf(words []string, expected string) types.GomegaMatcher {
	return &ResponseMatcher{Expected: expected, Test: func(r *check.Response) (string, bool) {
		for _, word := range words {
			if ContainsText(r, word) {
				return fmt.Sprintf("%q in it: %s", word, r.Outcome()), true
			}
		}
		return "", false
	}}
}

// shortestSecret is the shortest secret, in bytes, that cannot be a word of a response by chance.
const shortestSecret = 8

// HoldSecret matches a response that contains one of the secrets.
func HoldSecret(secrets []string) types.GomegaMatcher {
	return &ResponseMatcher{Expected: "to hold a credential", Test: func(r *check.Response) (string, bool) {
		for _, secret := range secrets {
			if len(secret) >= shortestSecret && ContainsText(r, secret) {
				return "one in it: " + exact.Cut(r.Outcome(), 200), true
			}
		}
		return "", false
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
		if d := Difference(withoutCursor(want), withoutCursor(got)); d != "" {
			return "another body " + d
		}
		return ""
	})
}

// Difference says where two documents with tools, or two tools, differ in meaning: exactly, but for the order of what is a set
// in their schemas; "" when nowhere.
func Difference(want, got any) string {
	if exact.Equal(want, got) {
		return ""
	}
	return exact.Diff(want, jsonschema.Aligned(want, got))
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

// BeUnknown matches a refusal that cannot be distinguished from that of an unknown name: 404, in nothing different. The difference
// is what scenario.DiffersFromUnknown found.
func BeUnknown(difference string) types.GomegaMatcher {
	return Conform("the same refusal as for an unknown name", func(a *check.Response) string {
		if difference == "" && a.Status != http.StatusNotFound {
			return a.Outcome()
		}
		return difference
	})
}

// WithObjects is a value with {} for each empty list where the schema requires an object.
func WithObjects(value, schema any) any {
	s, _ := schema.(map[string]any)
	switch v := value.(type) {
	case []any:
		if len(v) == 0 && s["type"] == "object" {
			return map[string]any{}
		}
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = WithObjects(item, s["items"])
		}
		return items
	case map[string]any:
		members := map[string]any{}
		properties, _ := s["properties"].(map[string]any)
		for name, member := range v {
			members[name] = WithObjects(member, properties[name])
		}
		return members
	}
	return value
}

// trace matches a step of a stack trace in a JSON text, as PHP, Node, Java, Python and Go write one, the class of an exception with the
// package that it stands in, and an address on this machine, where the site is.
var trace = regexp.MustCompile(`\b(?:\w+(?:\.|\\\\))+[A-Z]\w*(?:Exception|Error)\b|\b(?:127\.0\.0\.1|localhost):\d+|#\d+ [^\s"]+\(\d+\): |\\n(?: |\\t)+at [^"]+?:\d+\)?(?:\\n|")|Traceback \(most recent call last\)|goroutine \d+ \[| at \S+\.p[lm] line \d+|\.rb:\d+:in ` + "[`']" + `| in \S+\.php(?:\(\d+\)|:\d+| on line \d+)`)

// HoldTrace matches a response with what a trace consists of.
func HoldTrace() types.GomegaMatcher {
	return &ResponseMatcher{Expected: "to contain a stack trace, the class of an exception or the site's address", Test: func(r *check.Response) (string, bool) {
		found := trace.Find(r.Body)
		return fmt.Sprintf("%q in it: %s", found, r.Outcome()), found != nil
	}}
}
