package suites_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/bridgetest"
)

// listing is a bridge that has a list, and nothing else. change is called with the site's methods.
func listing(site string, keep bool, change func(method map[string]any) map[string]any) http.Handler {
	fetch := func(r *http.Request) []any {
		request, _ := http.NewRequest(http.MethodGet, site+"/jsonrpc/methods", nil)
		request.Header.Set("Authorization", r.Header.Get("Authorization"))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		var body struct{ Data []map[string]any }
		json.Unmarshal(text, &body)
		tools := []any{}
		for _, method := range body.Data {
			tools = append(tools, change(method))
		}
		return tools
	}
	var mu sync.Mutex
	var kept []any
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp/tools/list" {
			http.NotFound(w, r)
			return
		}
		tools := fetch(r)
		mu.Lock()
		defer mu.Unlock()
		if keep && len(kept) > 0 {
			tools = kept
		}
		kept = tools
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"tools": tools})
	})
}

// A bridge that is half written shows no change of the site, whatever the TTL: a run does not wait for it longer than it must.
func TestHalfWrittenBridgeIsNotWaitedFor(t *testing.T) {
	tool := func(name, description any) map[string]any {
		return map[string]any{"name": name, "description": description, "inputSchema": map[string]any{"type": "object"}}
	}
	for name, c := range map[string]struct {
		keep   bool
		change func(method map[string]any) map[string]any
		only   string
		waits  bool
	}{
		"descriptions of its own": {false, func(m map[string]any) map[string]any { return tool(m["id"], "x") }, "list/page-size", false},
		"names of its own": {false, func(m map[string]any) map[string]any {
			return tool("x."+m["id"].(string), m["attributes"].(map[string]any)["usage"])
		}, "list/page-size", true},
		"a list that stays, and a front clause": {true, func(m map[string]any) map[string]any { return tool(m["id"], m["attributes"].(map[string]any)["usage"]) }, "list/tool-required-members", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand := bridgetest.Start(t, bridgetest.Handler(func(_ testing.TB, site string) http.Handler { return listing(site, c.keep, c.change) }),
				bridgetest.Options{DiscoveryTTL: 50 * time.Millisecond})
			var waited []string
			o := stand.Options()
			o.Only, o.RunTimeout, o.Pass.Waiting = []string{c.only}, 30*time.Second, func(why string) { waited = append(waited, why) }
			report := must.Get(suites.Run(t.Context(), stand.Target(), o))(t)
			must.Expect(t, report.CutShort == "", "the run was cut short: %s", report.CutShort)
			must.Expect(t, (len(waited) > 0) == c.waits && (!c.waits || strings.Contains(waited[0], "a change of the site")), "it waited for %q", waited)
		})
	}
}
