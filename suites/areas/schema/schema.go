// Package schema checks that the schemas of listed tools are valid, bounded and usable by clients.
package schema

import (
	"context"
	"fmt"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area schema.
var Checks = []check.Check{
	{ID: "schema/input-valid", Sees: check.Front, ByMCP: true, Run: inputValid},
	{ID: "schema/output-valid", Sees: check.Front, ByMCP: true, Run: outputValid},
	{ID: "schema/no-remote-ref", Sees: check.Front, ByMCP: true, Run: noRemoteRef},
	{ID: "schema/bounded", Sees: check.Front, ByMCP: true, Run: bounded},
	{ID: "schema/accepts-valid-example", Sees: check.Front, ByMCP: true, Run: acceptsValidExample},
}

// The bounds of schema/bounded.
const (
	maxSchemaDepth = 32
	maxSchemaBytes = 64 << 10
)

func inputValid(ctx context.Context, t *check.T) {
	eachSchema(ctx, t, "a valid JSON Schema", validity(t), "inputSchema")
}

func outputValid(ctx context.Context, t *check.T) {
	eachSchema(ctx, t, "a valid JSON Schema", validity(t), "outputSchema")
}

func noRemoteRef(ctx context.Context, t *check.T) {
	eachSchema(ctx, t, "no $ref but those that resolve within the schema", jsonschema.Unresolved, "inputSchema", "outputSchema")
}

func bounded(ctx context.Context, t *check.T) {
	eachSchema(ctx, t, fmt.Sprintf("at most %d levels and %d bytes", maxSchemaDepth, maxSchemaBytes), func(schema any) string {
		if depth := jsonschema.Depth(schema); depth > maxSchemaDepth {
			return fmt.Sprintf("%d levels", depth)
		}
		if size := jsonschema.Size(schema); size > maxSchemaBytes {
			return fmt.Sprintf("%d bytes", size)
		}
		return ""
	}, "inputSchema", "outputSchema")
}

func acceptsValidExample(ctx context.Context, t *check.T) {
	eachSchema(ctx, t, "a schema that some value fits", jsonschema.Impossible, "inputSchema")
}

// eachSchema tests the schemas in these members of every tool that is listed to the agent or to other callers. fault
// returns what is wrong with a schema, "" when nothing is.
func eachSchema(ctx context.Context, t *check.T, expected string, fault func(schema any) string, members ...string) {
	scenario.EveryTool(ctx, t, func(_ check.Listing, page *check.Response, tool check.Tool) {
		for _, member := range members {
			t.Expect(page).To(match.HaveTool(tool, expected+" as `"+member+"`", func(tool check.Tool) string {
				schema, there := tool[member]
				if _, isObject := schema.(map[string]any); !there || !isObject {
					return "" // list/tool-required-members and list/tool-optional-members test that
				}
				return fault(schema)
			}))
		}
	})
}

// validity tests a schema against the dialect that it declares, or if it declares none against that of the interface.
func validity(t *check.T) func(schema any) string {
	dialect := jsonschema.Draft7
	if t.Alone() {
		dialect = jsonschema.Draft2020_12
	}
	return func(schema any) string {
		if f := jsonschema.Fault(schema, dialect); f != "" {
			return "an invalid one: " + f
		}
		return ""
	}
}
