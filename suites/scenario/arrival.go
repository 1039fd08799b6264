package scenario

import (
	"context"
	"slices"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// The method that checks of freshness add to the site, and what it takes before and after a change.
const (
	Arrival      = "content.arrival"
	ArrivalOld   = `{"type":"string","enum":["old","both"]}`
	ArrivalNew   = `{"type":"string","enum":["new","both"]}`
	ArrivalParam = "kind"
)

// WithArrival is the site as it is, with the arriving method taking a parameter of the schema ("" for no such method) and
// without the method that leaves.
func WithArrival(d *site.Drupal, schema, leaving string) *fixtures.Site {
	site := d.Site().Clone()
	site.Methods = slices.DeleteFunc(site.Methods, func(m fixtures.Method) bool { return m.ID == leaving || m.ID == Arrival })
	if schema != "" {
		site.Methods = append([]fixtures.Method{{ID: Arrival, Usage: "Has just arrived", Access: []string{fixtures.AccessContent},
			MCP:       &fixtures.Tool{Title: "Arrival", Annotations: fixtures.Raw(`{"idempotentHint":true}`)},
			Output:    fixtures.Raw(`{"type":"object","properties":{"` + ArrivalParam + `":` + schema + `}}`),
			Params:    []fixtures.Param{{Name: ArrivalParam, Schema: fixtures.Raw(schema), Required: true, Description: "What it takes"}},
			Behaviour: fixtures.Behaviour{Kind: fixtures.Echo}}}, site.Methods...)
	}
	return site
}

// WithoutMethod is a tool of the agent's that a check may take from the site.
func WithoutMethod(t *check.T) string {
	tools := AgentTools(t)
	return tools[len(tools)-1].ID
}

// AwaitSchema waits until list shows the arriving method with the schema, to the agent and to others.
func AwaitSchema(ctx context.Context, t *check.T, schema string, others ...check.Identity) {
	for _, who := range append([]check.Identity{check.Agent}, others...) {
		t.AwaitShown(ctx, "a method that came or changed", func() bool { return Shows(ctx, t, who, schema) },
			func() string { return shownFault(ctx, t, who, schema) })
	}
}

// Shows reports whether list shows a caller the arriving method with the schema.
func Shows(ctx context.Context, t *check.T, who check.Identity, schema string) bool {
	return shownFault(ctx, t, who, schema) == ""
}

// shownFault says what list shows a caller in place of the arriving method with the schema; "" when it shows that.
func shownFault(ctx context.Context, t *check.T, who check.Identity, schema string) string {
	tool, ok := t.As(who).ListAll(ctx).Find(t.ToolName(Arrival))
	if !ok {
		return "a list without " + t.ToolName(Arrival)
	}
	return SchemaFault(tool, schema)
}

// SchemaFault says where a tool's schema of the arriving parameter differs in its values; "" when it does not.
func SchemaFault(tool check.Tool, schema string) string {
	property, _ := jsonschema.At(map[string]any(tool.Input()), "/properties/"+ArrivalParam)
	want := exact.MustParse(schema).(map[string]any)
	return jsonschema.Difference(map[string]any{"enum": want["enum"]}, map[string]any{"enum": property["enum"]}, "")
}
