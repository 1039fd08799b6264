package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// excuse is why a scenario, or some checks of it, cannot pass.
type excuse struct {
	Reason string
	Checks []string // nil: all
}

// scenarioDir is the folder in which the suite leaves a scenario's checks.
var scenarioDir = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT`)

func TestOfficialConformance(t *testing.T) {
	installed(t)
	data := must.Get(os.ReadFile("baseline.yaml"))(t)
	var baseline map[string]map[string]excuse
	must.Do(t, yaml.Unmarshal(data, &baseline))
	for _, revision := range slices.Sorted(maps.Keys(baseline)) {
		t.Run(revision, func(t *testing.T) {
			site := must.Get(fixtures.Load("testdata/site.yaml"))(t)
			url := serveModule(t, site)
			dir := t.TempDir()
			cmd := exec.CommandContext(within(t, 3*time.Minute), node22, modules+"/@modelcontextprotocol/conformance/dist/index.js",
				"server", "--url", url+"/mcp", "--spec-version", revision, "--suite", "all", "-o", dir)
			began := time.Now()
			out, _ := cmd.CombinedOutput() // fails for the scenarios of the baseline too: the checks count
			took := time.Since(began).Seconds()
			checks := compareWithBaseline(t, dir, baseline[revision], out)
			t.Logf("official MCP suite, %s: %d checks in %.1f s, %.0f checks a second", revision, checks, took, float64(checks)/took)
		})
	}
}

// richTool has an input schema that goes beyond a method's parameters: only a site with the MCP module can show one.
const richTool = `{"name":"json_schema_2020_12_tool","description":"Tool with JSON Schema 2020-12 features","inputSchema":{
	"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
	"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
	"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},
		"phone":{"type":"string"},"email":{"type":"string"}},
	"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
	"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
	"additionalProperties":false}}`

// trigger is the method that changes the site's tools, as the suite wants to hear of it.
const trigger = "test_trigger_tool_change"

// change adds a method to the site, each time another one.
func change(drupal *mockdrupal.Drupal) {
	site := drupal.Site().Clone()
	added := site.Methods[slices.IndexFunc(site.Methods, func(m fixtures.Method) bool { return m.ID == trigger })]
	added.ID = fmt.Sprintf("test_added_tool_%d", len(site.Methods))
	site.Methods = append(site.Methods, added)
	drupal.SetSite(site)
}

// serveModule puts a bridge before a site with the MCP module, whose list holds the rich tool as well. For the module's
// list stands that of another bridge, which has the same form.
func serveModule(t *testing.T, site *fixtures.Site) (url string) {
	t.Helper()
	drupal, module, _ := serve(t, site)
	upstream := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp/tools/list" {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			drupal.ServeHTTP(w, r)
			if bytes.Contains(body, []byte(trigger)) {
				change(drupal)
			}
			return
		}
		res, err := http.Get(module + r.URL.RequestURI())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		list, err := io.ReadAll(res.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, strings.Replace(string(list), `"tools":[`, `"tools":[`+richTool+`,`, 1)) //nolint:errcheck // the bridge complains
	}))
	b := must.Get(bridge.New(bridge.Options{Drupal: upstream.URL, ToolOptions: bridge.ToolOptions{Source: bridge.SourceModule}, DiscoveryOptions: bridge.DiscoveryOptions{DiscoveryTTL: ttl, PermissionTTL: ttl}}))(t)
	t.Cleanup(b.Close)
	front := httptest.NewServer(b)
	t.Cleanup(front.CloseClientConnections)
	return front.URL
}

// compareWithBaseline compares the checks of all scenarios with the baseline.
// compareWithBaseline gives how many checks there were.
func compareWithBaseline(t *testing.T, dir string, baseline map[string]excuse, out []byte) (all int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	must.Assert(t, err == nil && len(files) >= len(baseline), "the suite ran %d scenarios, fewer than the baseline names: %s", len(files), out)
	for _, file := range files {
		name := scenarioDir.FindStringSubmatch(filepath.Base(filepath.Dir(file)))
		must.Assert(t, name != nil, "the suite left its checks in %s, whose name says no scenario", file)
		excused, known := baseline[name[1]]
		checks, failed, err := failures(file)
		all += checks
		must.Do(t, err)
		if known && len(failed) == 0 {
			t.Errorf("%s passes; take it out of the baseline", name[1])
		}
		for id, message := range failed {
			if !known || excused.Checks != nil && !slices.Contains(excused.Checks, id) {
				t.Errorf("%s: %s: %s", name[1], id, message)
			}
		}
	}
	return all
}

// failures reads the checks of a scenario.
func failures(file string) (all int, failed map[string]string, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, nil, err
	}
	var checks []struct{ ID, Status, ErrorMessage string }
	if err := json.Unmarshal(data, &checks); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", file, err)
	}
	failed = map[string]string{}
	for _, c := range checks {
		if c.Status == "FAILURE" || c.Status == "WARNING" {
			failed[c.ID] = c.ErrorMessage
		}
	}
	return len(checks), failed, nil
}
