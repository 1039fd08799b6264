package fresh

import (
	"context"
	"net/http"
	"net/url"
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
		inFrisian := func(path string, query url.Values) *check.Response {
			return t.As(check.Agent).Send(ctx, check.Request{Path: path, Query: query, Header: http.Header{"Accept-Language": {"fy"}}})
		}
		views = append(views,
			view{name: "describe in another language", others: true, tool: func() check.Tool { return inFrisian(check.DescribePath, url.Values{"name": {name}}).Tool() }},
			view{name: "list in another language", others: true, tool: func() check.Tool {
				page := inFrisian(check.ListPath, nil)
				for range 50 { // pages that never end fail list/pages-cover-all-once
					if tool := named(name, page.Tools()); tool != nil || page.NextCursor() == "" {
						return tool
					}
					page = inFrisian(check.ListPath, url.Values{"cursor": {page.NextCursor()}})
				}
				return nil
			}})
	}
	if session := byMCP(ctx, t, check.Agent); session != nil {
		views = append(views, view{name: "tools/list in a session that was open before", tool: func() check.Tool {
			list := check.ListAllTools(ctx, session)
			if !list.Fault.IsZero() { // a server may end a session at any time
				if again, opened := t.MCPBeside(ctx, check.Agent); opened {
					session, list = again, check.ListAllTools(ctx, again)
				}
			}
			return named(name, list.Tools)
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

// named is the tool of that name; nil: there is none.
func named(name string, tools []check.Tool) check.Tool {
	if i := slices.IndexFunc(tools, func(tool check.Tool) bool { return tool.Name() == name }); i >= 0 {
		return tools[i]
	}
	return nil
}

// allShow tests that every view shows the arriving method with the schema, or does not show it where the schema is "". Each is asked by poll.
func allShow(t *check.T, views []view, schema, when string, poll func(func() bool) bool) {
	want := "the tool " + scenario.Arrival
	if schema == "" {
		want = "no tool " + scenario.Arrival
	} else if schema == scenario.ArrivalNew {
		want = "the new schema of " + scenario.Arrival
	}
	for _, v := range views {
		fault := ""
		poll(func() bool {
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

// once is a poll that asks once.
func once(done func() bool) bool { return done() }
