// Package profile checks for what MCP clients and model providers refuse although it is valid. Each clause names the public
// thread in which it was met.
package profile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area profile.
var Checks = []check.Check{
	{ID: "profile/array-items", Sees: check.Front, ByMCP: true, Run: arrayItems},
	{ID: "profile/no-root-combinator", Sees: check.Front, ByMCP: true, Run: noRootCombinator},
	{ID: "profile/enum-fits-type", Sees: check.Front, ByMCP: true, Run: enumFitsType},
	{ID: "profile/name-with-prefix", Sees: check.Front, ByMCP: true, Run: nameWithPrefix},
	{ID: "profile/depth", Sees: check.Front, ByMCP: true, Run: depth},
	{ID: "profile/names-apart", Sees: check.Front, ByMCP: true, Run: namesApart},
	{ID: "profile/strict-mode", Sees: check.Front, ByMCP: true, Run: strictMode},
}

func arrayItems(ctx context.Context, t *check.T) {
	eachInput(ctx, t, "`items` in every array", func(s map[string]any) string {
		if !slices.Contains(typesOf(s), any("array")) || s["items"] != nil || s["prefixItems"] != nil {
			return ""
		}
		return "an array without `items`"
	})
}

func noRootCombinator(ctx context.Context, t *check.T) {
	eachTool(ctx, t, "no anyOf, oneOf or allOf at the top of the inputSchema", func(tool check.Tool) string {
		for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
			if _, there := tool.Input()[keyword]; there {
				return keyword
			}
		}
		return ""
	})
}

func enumFitsType(ctx context.Context, t *check.T) {
	eachInput(ctx, t, "an enum with values of the type beside it", func(s map[string]any) string {
		values, _ := s["enum"].([]any)
		types := typesOf(s)
		for _, v := range values {
			if types != nil && !slices.ContainsFunc(types, func(name any) bool { return isOf(v, name) }) {
				return fmt.Sprintf("the value %s of an enum of the type %s", exact.Short(v), exact.Short(s["type"]))
			}
		}
		return ""
	})
}

// typesOf are the types that a schema names; nil: none.
func typesOf(s map[string]any) []any {
	if name, one := s["type"].(string); one {
		return []any{name}
	}
	types, _ := s["type"].([]any)
	return types
}

// isOf reports whether a JSON value is of a type of JSON Schema. An unknown type has every value: schema/input-valid tests
// the type.
func isOf(v, name any) bool {
	switch name {
	case "string":
		_, ok := v.(string)
		return ok
	case "boolean":
		_, ok := v.(bool)
		return ok
	case "null":
		return v == nil
	case "object":
		_, ok := v.(map[string]any)
		return ok
	case "array":
		_, ok := v.([]any)
		return ok
	case "number":
		_, ok := v.(json.Number)
		return ok
	case "integer":
		n, ok := v.(json.Number)
		if !ok {
			return false
		}
		f, err := n.Float64()
		return err != nil || f == float64(int64(f))
	}
	return true
}

// longest is how long a name may be with the client's prefix, in characters.
const longest = 64

// prefix is what a client puts before the names of a server that is called drupal.
const prefix = "mcp__drupal__"

func nameWithPrefix(ctx context.Context, t *check.T) {
	if t.Claims("naming-id") {
		check.End(check.Ending{Kind: check.Inapplicable, Why: check.Finding{Subject: "the names are the method ids, which the bridge cannot shorten"}})
	}
	eachTool(ctx, t, fmt.Sprintf("a name of at most %d characters behind %s", longest, prefix), func(tool check.Tool) string {
		if n := len([]rune(prefix + tool.Name())); n > longest {
			return fmt.Sprintf("%d characters", n)
		}
		return ""
	})
}

// deepest is how many levels deep a schema may go.
const deepest = 10

func depth(ctx context.Context, t *check.T) {
	eachTool(ctx, t, fmt.Sprintf("an inputSchema of at most %d levels", deepest), func(tool check.Tool) string {
		if levels := jsonschema.Depth(map[string]any(tool.Input())); levels > deepest {
			return fmt.Sprintf("%d levels", levels)
		}
		return ""
	})
}

// namesApart compares names as clients write them that allow only letters, digits, _ and - in a name, fold case and cut it. The
// methods that the run itself has put behind the bridge differ in such characters alone: their names count where the bridge
// chooses them.
func namesApart(ctx context.Context, t *check.T) {
	fixed := map[string]bool{}
	if t.Drupal != nil && (t.Claims("naming-id") || t.Claims("naming-underscore")) {
		for _, m := range t.Site.Methods() {
			fixed[t.ToolName(m.ID)] = true
		}
	}
	for _, list := range append([]check.Listing{scenario.AgentsTools(ctx, t)}, scenario.ListsOfOthers(ctx, t)...) {
		names := map[string]string{} // as they are, by how clients write them
		t.EachTool(list, func(page *check.Response, tool check.Tool) {
			plain := plainName(tool.Name())
			other, taken := names[plain]
			names[plain] = tool.Name()
			t.Expect(page).To(match.HaveTool(tool, "a name that no other tool of the list has in letters, digits, _ and - alone", func(check.Tool) string {
				if taken && other != tool.Name() && !(fixed[other] && fixed[tool.Name()]) { // list/names-unique tests equal names
					return fmt.Sprintf("%s, as %s has", plain, other)
				}
				return ""
			}))
		})
	}
}

// plainName is a name as such clients write it.
func plainName(name string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	return plain[:min(len(plain), longest)]
}

// strictMode looks at the top alone, which the bridge writes: parameters are the site's, and clients make what is optional nullable.
func strictMode(ctx context.Context, t *check.T) {
	eachTool(ctx, t, "an inputSchema that is not open", func(tool check.Tool) string {
		if more, there := tool.Input()["additionalProperties"]; there && more != false {
			return "additionalProperties: " + exact.Short(more)
		}
		return ""
	})
}

// eachTool tests every tool that is listed to the agent or to other callers; fault is "" when nothing is wrong.
func eachTool(ctx context.Context, t *check.T, expected string, fault func(tool check.Tool) string) {
	scenario.EveryTool(ctx, t, func(_ check.Listing, page *check.Response, tool check.Tool) {
		t.Expect(page).To(match.HaveTool(tool, expected, fault))
	})
}

// eachInput tests every schema within the inputSchema of every tool.
func eachInput(ctx context.Context, t *check.T, expected string, fault func(s map[string]any) string) {
	eachTool(ctx, t, expected, func(tool check.Tool) string {
		var faults []string
		jsonschema.Each(map[string]any(tool.Input()), func(at func() string, s map[string]any) {
			if len(faults) == 3 {
				return
			}
			if f := fault(s); f != "" {
				faults = append(faults, fmt.Sprintf("%s at inputSchema%s", f, at()))
			}
		})
		return strings.Join(faults, ", ")
	})
}
