package scenario

import (
	"slices"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// ToolFault says what would make a client drop a whole list for one tool.
func ToolFault(tool check.Tool) string {
	if tool.Input() == nil || tool.Input()["type"] != "object" {
		return "its inputSchema is " + exact.Short(tool["inputSchema"])
	}
	for _, name := range []string{"inputSchema", "outputSchema"} {
		schema, there := tool[name]
		if !there {
			continue
		}
		if f := jsonschema.Fault(schema, jsonschema.Draft7); f != "" {
			return "its " + name + " is no valid schema " + f
		}
		if f := jsonschema.Unresolved(schema); f != "" {
			return "its " + name + " refers to elsewhere: " + f
		}
		if f := jsonschema.Circular(schema); f != "" {
			return "its " + name + " has no end: " + f
		}
	}
	if notes, there := tool["annotations"]; there {
		if _, ok := notes.(map[string]any); !ok {
			return "its annotations are " + exact.Short(notes)
		}
	}
	return ""
}

// HintFault says which hint of a tool of MCP is no boolean; "" if all are. At the three endpoints annotations have the types of the site.
func HintFault(tool check.Tool) string {
	notes, _ := tool["annotations"].(map[string]any)
	for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		if value, there := notes[hint]; there {
			if _, ok := value.(bool); !ok {
				return "the hint " + hint + " is " + exact.Short(value)
			}
		}
	}
	return ""
}

// ForCallers leaves the requests to the site that a bridge makes with its callers' credentials: calls, and requests for methods
// unless one account discovers for all.
func ForCallers(t *check.T, entries []mockdrupal.Entry) []mockdrupal.Entry {
	return slices.DeleteFunc(entries, func(e mockdrupal.Entry) bool {
		return e.Route != route.JSONRPC && (t.Claims("visibility-broad") || e.Route != route.Methods && e.Route != route.Method)
	})
}
