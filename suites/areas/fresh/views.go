package fresh

import (
	"context"
	"maps"
	"slices"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// view is a way beside the list in which a caller sees a tool. A bridge may keep on its own what it shows by each.
type view struct {
	name   string
	others bool // of another caller or another language than the agent's list
	tool   func() check.Tool
}

// viewsOf looks at the method that arrives in every way, so that a bridge keeps what each shows now, and returns the ways.
func viewsOf(ctx context.Context, t *check.T) []view {
	name := t.ToolName(scenario.Arrival)
	other := scenario.NewCaller(t)
	other.List(ctx)
	views := []view{
		{name: "describe", tool: func() check.Tool { return t.As(check.Agent).Describe(ctx, name).Tool() }},
		{name: "describe of another caller", others: true, tool: func() check.Tool { return other.Describe(ctx, name).Tool() }},
	}
	if t.Claims("languages") && t.Claims("tools") {
		c := inFrisian(t.As(check.Agent))
		views = append(views,
			view{name: "describe in another language", others: true, tool: func() check.Tool { return c.Describe(ctx, name).Tool() }},
			view{name: "list in another language", others: true, tool: func() check.Tool {
				tool, _ := c.ListAll(ctx).Find(name)
				return tool
			}})
	}
	if session, opened := t.MCPBeside(ctx, check.Agent); opened {
		views = append(views, view{name: "tools/list in a session that was open before", tool: func() check.Tool {
			list := check.ListAllTools(ctx, session)
			if !list.Fault.IsZero() { // a server may end a session at any time
				if again, opened := t.MCPBeside(ctx, check.Agent); opened {
					session, list = again, check.ListAllTools(ctx, again)
				}
			}
			tool, _ := list.Find(name)
			return tool
		}})
	}
	look(views)
	return views
}

func look(views []view) {
	for _, v := range views {
		v.tool()
	}
}

// inFrisian is the client with a language in each of its requests.
func inFrisian(c check.Client) check.Client {
	header := map[string]string{"Accept-Language": "fy"}
	maps.Copy(header, c.Creds.Header)
	c.Creds.Header = header
	return c
}

// poll asks until done, for as long as a view may show the state before, and reports whether it was done.
type poll func(ctx context.Context, done func() bool) bool

// allShow tests that every view shows the arriving method with the schema, or none where the schema is "".
func allShow(ctx context.Context, t *check.T, views []view, schema, when string, until poll) {
	want := map[string]string{"": "no tool ", scenario.ArrivalOld: "the tool ", scenario.ArrivalNew: "the new schema of "}[schema] + scenario.Arrival
	for _, v := range views {
		fault := ""
		until(ctx, func() bool {
			tool := v.tool()
			switch {
			case schema == "" && tool == nil:
				fault = ""
			case schema == "":
				fault = "the tool"
			case tool == nil:
				fault = "none"
			default:
				fault = scenario.SchemaFault(tool, schema)
			}
			return fault == ""
		})
		t.Row(check.Agent, t.ToolName(scenario.Arrival), v.name+" "+when, func() {
			t.Expect(fault).To(BeEmpty(), check.Mismatch(v.name+" "+when, want, fault))
		})
	}
}

// ofTheAgent are those of one caller in one language: what the bridge learns from a call of the agent changes them all. Of several
// processes only one learns it, which need not be that of the session.
func ofTheAgent(t *check.T, views []view) []view {
	if t.Several() {
		return views[:1]
	}
	return slices.DeleteFunc(slices.Clone(views), func(v view) bool { return v.others })
}

// once asks a single time.
func once(_ context.Context, done func() bool) bool { return done() }
