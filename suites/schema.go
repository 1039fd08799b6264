package suites

import (
	"context"
	"fmt"

	"github.com/bridgecheck/bridgecheck/suites/jsonschema"
)

// The bounds of schema/bounded.
const (
	maxSchemaDepth = 32
	maxSchemaBytes = 64 << 10
)

// checks__schema__schema are the checks of this file.
var checks__schema__schema = []Check{
	{ID: "schema/input-valid", Sees: Front, Run: chk__schema__inputValid},
	{ID: "schema/output-valid", Sees: Front, Run: chk__schema__outputValid},
	{ID: "schema/no-remote-ref", Sees: Front, Run: chk__schema__noRemoteRef},
	{ID: "schema/bounded", Sees: Front, Run: chk__schema__bounded},
	{ID: "schema/accepts-valid-example", Sees: Front, Run: chk__schema__acceptsValidExample},
}

func chk__schema__inputValid(ctx context.Context, t *T) {
	t.eachSchema(ctx, "a valid JSON Schema", validity, "inputSchema")
}

func chk__schema__outputValid(ctx context.Context, t *T) {
	t.eachSchema(ctx, "a valid JSON Schema", validity, "outputSchema")
}

func chk__schema__noRemoteRef(ctx context.Context, t *T) {
	t.eachSchema(ctx, "no $ref but to the schema itself", jsonschema.Unresolved, "inputSchema", "outputSchema")
}

func chk__schema__bounded(ctx context.Context, t *T) {
	t.eachSchema(ctx, fmt.Sprintf("at most %d levels and %d bytes", maxSchemaDepth, maxSchemaBytes), func(schema any) string {
		if depth := jsonschema.Depth(schema); depth > maxSchemaDepth {
			return fmt.Sprintf("%d levels", depth)
		}
		if size := jsonschema.Size(schema); size > maxSchemaBytes {
			return fmt.Sprintf("%d bytes", size)
		}
		return ""
	}, "inputSchema", "outputSchema")
}

func chk__schema__acceptsValidExample(ctx context.Context, t *T) {
	t.eachSchema(ctx, "a schema that some value fits", jsonschema.Impossible, "inputSchema")
}

// eachSchema judges the schemas in these members of every tool that is listed to the agent or to others: fault says what is wrong with one.
func (t *T) eachSchema(ctx context.Context, expected string, fault func(schema any) string, members ...string) {
	t.everyTool(ctx, func(_ Listing, page *Response, tool Tool) {
		for _, member := range members {
			t.Expect(page).To(HoldTool(tool, expected+" as `"+member+"`", func(tool Tool) string {
				schema, there := tool[member]
				if _, isObject := schema.(map[string]any); !there || !isObject {
					return "" // list/tool-required-members and list/tool-optional-members judge that
				}
				return fault(schema)
			}))
		}
	})
}

// validity judges by the dialect that a schema declares, Draft 7 where it declares none.
func validity(schema any) string {
	if f := jsonschema.Fault(schema, jsonschema.Draft7); f != "" {
		return "one that is not: " + f
	}
	return ""
}
