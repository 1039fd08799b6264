package bridge_test

import (
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/module"
	"github.com/bridgecheck/bridgecheck/suites/input/mcpschema"
)

// mock serves a built-in site.
func mock(t *testing.T, name string, change func(*fixtures.Site)) *httptest.Server {
	t.Helper()
	s := must.Get(fixtures.Builtin(name))(t)
	s = s.Clone()
	change(s)
	extension := must.Get(module.New(module.V13))(t)
	d := must.Get(mockdrupal.New(s, mockdrupal.Options{Extensions: []mockdrupal.Extension{extension}}))(t)
	return must.Serve(t, d)
}

var toolName = regexp.MustCompile(`\{"name":"([^"]*)","(?:title|description)"`)

// all lists every tool's name, page by page.
func all(t *testing.T, front *httptest.Server, user string) []string {
	t.Helper()
	var names []string
	for path := "/mcp/tools/list"; path != ""; {
		r := send(t, front, user, "GET", path, "")
		must.Assert(t, r.Status == 200, "%d %s", r.Status, r.Body)
		for _, m := range toolName.FindAllStringSubmatch(r.Body, -1) {
			names = append(names, m[1])
		}
		_, next, more := strings.Cut(r.Body, `,"nextCursor":"`)
		if path = ""; more {
			path = "/mcp/tools/list?cursor=" + strings.TrimSuffix(next, `"}`)
		}
	}
	return names
}

// The module's own list, with all its faults, gives the same tools as the site's methods do.
func TestTheModulesListGivesTheSameTools(t *testing.T) {
	for _, name := range []string{"default", "transcripts"} {
		t.Run(name, func(t *testing.T) {
			behind := mock(t, name, func(s *fixtures.Site) { s.Extensions, s.Auth.MCP = true, []string{"basic"} })
			byMethods := all(t, front(t, bridge.Options{Drupal: behind.URL}), "agent")
			byModule := all(t, front(t, bridge.Options{Drupal: behind.URL, ToolOptions: bridge.ToolOptions{Source: bridge.SourceModule}}), "agent")
			slices.Sort(byMethods)
			slices.Sort(byModule)
			must.Expect(t, len(byMethods) >= 20 && slices.Equal(byMethods, byModule),
				"%d tools by methods, %d by the module's list\n%v\n%v", len(byMethods), len(byModule), byMethods, byModule)
		})
	}
}

// What a client of MCP is shown of a poisoned site is valid in each revision, so that the strictest loses no tool.
func TestAPoisonedSiteShowsMCPOnlyValidTools(t *testing.T) {
	behind := mock(t, "poisoned", func(*fixtures.Site) {})
	f := front(t, bridge.Options{Drupal: behind.URL, ToolOptions: bridge.ToolOptions{PageSize: 7}})
	want := all(t, f, "agent")
	for _, revision := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		var shown []string
		for _, tool := range toolsOf(t, f, revision) {
			name, _ := tool.(map[string]any)["name"].(string)
			shown = append(shown, name)
			must.Equal(t, mcpschema.Fault(revision, mcpschema.Tool, tool), "", "fault of %s in %s", name, revision)
		}
		must.Expect(t, len(want) > 0 && slices.Equal(shown, want), "%s shows %v, list %v", revision, shown, want)
	}
}

// toolsOf lists the agent's tools over all pages of tools/list, as they came.
func toolsOf(t *testing.T, f *httptest.Server, revision string) []any {
	t.Helper()
	headers := []string{"Mcp-Protocol-Version", revision, "Mcp-Method", "tools/list"}
	meta := `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	if revision != "2026-07-28" {
		meta = ""
		headers = append(headers, "Mcp-Session-Id", mcpPost(t, f, "agent", "", strings.Replace(initialize, "2025-11-25", revision, 1)).Header.Get("Mcp-Session-Id"))
	}
	var tools []any
	for cursor := ""; ; {
		r := send(t, f, "agent", "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"`+cursor+`"`+meta+`}}`, headers...)
		var page struct {
			Result struct {
				Tools      []any
				NextCursor string
			}
		}
		dec := json.NewDecoder(strings.NewReader(r.Body))
		dec.UseNumber()
		err := dec.Decode(&page)
		must.Assert(t, err == nil && len(page.Result.Tools) > 0, "tools/list in %s: %d %s %v", revision, r.Status, r.Body, err)
		tools = append(tools, page.Result.Tools...)
		if cursor = page.Result.NextCursor; cursor == "" {
			return tools
		}
	}
}

func front(t *testing.T, o bridge.Options) *httptest.Server {
	t.Helper()
	return serve(t, must.Get(bridge.New(o))(t))
}
