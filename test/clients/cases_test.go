package clients

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
)

// shared is beside the checkout: small inputs from public reports that gave a wrong verdict, or none.
const shared = "../../../shared/cases"

// proxies change one thing of the reference. Each has what fails or warns of it, with the words of the README there that say so;
// the others are correct.
var proxies = map[string]map[string]string{
	"none early":     {},
	"sse":            {"mcp/stream-unbuffered": buffered},
	"only0618":       {},
	"absentArgs":     {"invoke/empty-arguments": "tools/call without arguments is refused"},
	"initLatest":     {"mcp/initialize": "a client that asks for 2025-06-18, which is served, gets the newest"},
	"noAccel":        {"mcp/stream-unbuffered": buffered},
	"getNoChallenge": {"auth/challenge": "401 to GET and DELETE without a challenge: RFC 9110, 15.5.2, whatever the revision"},
	"noFloatInt":     {}, // invoke/integral-number allows both
}

// TestCases gives every row of the README the verdict that it names.
func TestCases(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(shared, "README.md"))
	if err != nil {
		t.Skipf("SKIPPED: the cases are not beside the checkout: %v", err)
	}
	installed(t)
	run := map[string]func(*testing.T){"integer-as-float.sh": integerAsFloat, "type-list-and-colliding-names.site.yaml": typeList, "colliding-names.mjs": collidingNames}
	for name, broken := range proxies {
		capabilities := "mcp,mcp-2026,mcp-list-changed,-tools"
		switch name {
		case "only0618":
			capabilities = "mcp,mcp-list-changed,-tools"
		case "getNoChallenge":
			capabilities = "oauth,mcp,mcp-2026,-auth-basic,-tools"
		}
		run[name] = func(t *testing.T) {
			command := "env BRIDGECHECK=" + program.Build(t) + " " + node22 + " " + shared + "/proxy.mjs " + name
			tested := breaks(t, broken, map[string]any{}, []string{"--exec", command, "--capabilities", capabilities})
			must.Expect(t, tested >= 60, "%d clauses apply, want 60 at least", tested)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(string(readme), -1) {
		must.Expect(t, run[row[1]] != nil, "no test has the case %s", row[1])
	}
	for _, name := range slices.Sorted(maps.Keys(run)) {
		t.Run(name, run[name])
	}
}

// caseSite puts a bridge before the site of the cases, and gives the bridge's and the site's address.
func caseSite(t *testing.T) (bridgeURL, siteURL string) {
	t.Helper()
	_, bridgeURL, siteURL = serve(t, must.Get(fixtures.Load(filepath.Join(shared, "type-list-and-colliding-names.site.yaml")))(t))
	return bridgeURL, siteURL
}

// A client writes 3.0 for an integer, which the site refuses.
func integerAsFloat(t *testing.T) {
	url, _ := caseSite(t)
	script := string(must.Get(os.ReadFile(filepath.Join(shared, "integer-as-float.sh")))(t))
	out, err := exec.CommandContext(within(t, time.Minute), "sh", "-c", strings.ReplaceAll(script, "http://127.0.0.1:18531", url)).CombinedOutput()
	must.Expect(t, err == nil && strings.Contains(string(out), `{"result":{"n":3}}`), "expected a call that succeeds, got %s, %v", out, err)
}

func typeList(t *testing.T) {
	url, site := caseSite(t)
	t.Setenv("PASSWORD", "agent-pass")
	account := map[string]any{"identities": map[string]any{"agent": map[string]any{"basic": map[string]any{"user": "agent", "password": map[string]string{"env": "PASSWORD"}}}}}
	breaks(t, map[string]string{"profile/array-items": "an array among the types, without items", "profile/names-apart": "node.list_all and node_list.all"},
		account, []string{"--url", url, "--drupal", site})
}

// A client drops all tools where two names are equal after it sanitised them; the bridge says so when it discovers them.
func collidingNames(t *testing.T) {
	_, site := caseSite(t)
	address := program.Address(t)
	var log program.Output
	bridge := exec.CommandContext(within(t, time.Minute), program.Build(t), "bridge", "--drupal", site, "--listen", address)
	bridge.Stderr = &log
	must.Do(t, bridge.Start())
	endsWith(t, bridge)
	client := exec.CommandContext(within(t, time.Minute), node22, "--input-type=module") // of this directory, which has the library
	client.Stdin = must.Get(os.Open(filepath.Join(shared, "colliding-names.mjs")))(t)
	client.Env = append(os.Environ(), "MCP_URL=http://"+address+"/mcp", "AUTH="+agent)
	answering(t, address)
	out, err := client.CombinedOutput()
	must.Expect(t, err == nil && strings.Contains(string(out), "threw Duplicate tool names"), "expected the client to drop all tools, got %s, %v", out, err)
	must.Expect(t, strings.Contains(log.String(), "tools have the same name to some clients"), "expected a warning at discovery, got %s", log.String())
}
