package k6_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/k6"
)

const (
	password = "the agent's password"
	key      = "the key of the gateway"
)

// bridge has two pages of tools, and serves calls whose arguments it knows. It notes what it invoked.
func bridge(t *testing.T) (url string, invoked *[]string) {
	invoked = &[]string{}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, given, _ := r.BasicAuth()
		switch {
		case user != "agent" || given != password || r.Header.Get("X-Gateway-Key") != key:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/base/mcp/tools/list" && r.URL.Query().Get("cursor") == "":
			io.WriteString(w, `{"tools":[
				{"name":"content.get","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","required":["id"],"properties":{"id":{"type":"integer","minimum":9007199254740993,"maximum":9007199254740993}}}},
				{"name":"content.delete","annotations":{"readOnlyHint":false},"inputSchema":{"type":"object"}}],"nextCursor":"a b"}`)
		case r.URL.Path == "/base/mcp/tools/list" && r.URL.Query().Get("cursor") == "a b":
			io.WriteString(w, `{"tools":[{"name":"content.silent","inputSchema":{"type":"object"}},
				{"name":"content.refused","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]}`)
		case r.URL.Path == "/base/mcp/tools/invoke":
			body, _ := io.ReadAll(r.Body)
			*invoked = append(*invoked, string(body))
			if !slices.Contains([]string{`{"arguments":{"id":9007199254740993},"name":"content.get"}`, `{"arguments":{"n":1},"name":"content.add"}`}, string(body)) {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			io.WriteString(w, `{"result":{}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(front.Close)
	return front.URL + "/base", invoked
}

// script is the script for the bridge, as the configuration says.
func script(t *testing.T, url string) (text string, left []string) {
	t.Helper()
	t.Setenv("AGENT_PASSWORD", password)
	t.Setenv("GATEWAY_KEY", key)
	file, err := settings.Parse("bridgecheck.yaml", []byte(`
url: `+url+`
identities:
  agent:
    basic: {user: agent, password: {env: AGENT_PASSWORD}}
    headers: {X-Gateway-Key: {env: GATEWAY_KEY}}
invocations:
  - {tool: content.add, arguments: {n: 1}}
`))
	if err != nil {
		t.Fatal(err)
	}
	o, err := file.Options(t.Context(), suites.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, left, err := k6.Collect(t.Context(), k6.Options{URL: url, Client: http.DefaultClient, Run: o, Seed: 1}, k6.Callers(file))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String(), left
}

func TestOnlySafeCallsAreTried(t *testing.T) {
	url, invoked := bridge(t)
	text, left := script(t, url)
	if !slices.Equal(left, []string{"content.refused"}) {
		t.Errorf("left out: %q", left)
	}
	for _, body := range *invoked {
		if strings.Contains(body, "content.delete") || strings.Contains(body, "content.silent") || strings.Contains(body, "content.add") {
			t.Errorf("a tool that may change something was invoked: %s", body)
		}
	}
	for _, secret := range []string{password, key, base64.StdEncoding.EncodeToString([]byte("agent:" + password))} {
		if strings.Contains(text, secret) {
			t.Errorf("the script holds the secret %q", secret)
		}
	}
	for _, name := range []string{"AGENT_PASSWORD", "GATEWAY_KEY"} {
		if !strings.Contains(text, `"env": "`+name+`"`) {
			t.Errorf("the script does not read %s:\n%s", name, text)
		}
	}
}

// The secrets in a caller's own headers go to the bridge alone: net/http would send them on to where it redirects.
func TestNoSecretFollowsARedirect(t *testing.T) {
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = true }))
	t.Cleanup(elsewhere.Close)
	front := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(front.Close)
	_, _, err := k6.Collect(t.Context(), k6.Options{URL: front.URL, Client: http.DefaultClient}, map[check.Identity][]k6.Header{check.Anonymous: {}})
	if err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("expected an error that names the status 307, got %v", err)
	}
	if asked {
		t.Error("the request went on to another server")
	}
}

// The modules of k6 that the script uses, as far as it does. Requests are noted in place of being sent.
var standIn = map[string]string{
	"node_modules/k6/package.json": `{"name": "k6", "type": "module", "exports": {".": "./index.js", "./http": "./http.js", "./encoding": "./encoding.js"}}`,
	"node_modules/k6/index.js":     `export const check = (r, checks) => Object.entries(checks).forEach(([name, holds]) => noted.checks.push([name, holds(r)]));`,
	"node_modules/k6/encoding.js":  `export default { b64encode: (text) => Buffer.from(text).toString('base64') };`,
	"node_modules/k6/http.js": `const send = (method, url, body, params) => { noted.sent.push({ method, url, body, ...params }); return { status: 200, body: '{"result": {}, "tools": []}' }; };
export default { get: (url, params) => send('GET', url, '', params), post: (url, body, params) => send('POST', url, body, params) };`,
	"run.mjs": `globalThis.__ENV = process.env;
globalThis.noted = { sent: [], checks: [] };
const script = await import('./load.mjs');
for (let i = 0; i < 20; i++) script.default();
console.log(JSON.stringify({ ...noted, options: script.options }));`,
}

// The script runs, and what it sends the bridge serves.
func TestTheScriptSendsWhatTheBridgeServes(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("NOT TESTED: node is not installed: whether the script for k6 runs was not tested")
	}
	url, _ := bridge(t)
	text, _ := script(t, url)
	dir := t.TempDir()
	for name, content := range standIn {
		write(t, filepath.Join(dir, name), content)
	}
	write(t, filepath.Join(dir, "load.mjs"), text)
	run := func(env ...string) ([]byte, string, error) {
		cmd := exec.Command(node, "run.mjs")
		var stderr strings.Builder
		cmd.Dir, cmd.Env, cmd.Stderr = dir, env, &stderr
		out, err := cmd.Output()
		return out, stderr.String(), err
	}
	if _, said, err := run("AGENT_PASSWORD=x"); err == nil || !strings.Contains(said, "set the environment variable GATEWAY_KEY") {
		t.Errorf("without a secret: %v\n%s", err, said)
	}
	out, said, err := run("AGENT_PASSWORD="+password, "GATEWAY_KEY="+key, "RATE=7", "P95=250")
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, said, text)
	}
	var noted struct {
		Sent []struct {
			Method, URL, Body string
			Headers           map[string]string
		}
		Checks  [][2]any
		Options struct {
			Scenarios  struct{ Calls struct{ Rate int } }
			Thresholds map[string][]string
		}
	}
	if err := json.Unmarshal(out, &noted); err != nil {
		t.Fatal(err)
	}
	sent := map[string]int{}
	for _, s := range noted.Sent {
		req, err := http.NewRequest(s.Method, s.URL, strings.NewReader(s.Body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range s.Headers {
			req.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("the bridge responds with %d to %s %s", res.StatusCode, s.Method, s.Body)
		}
		sent[s.Body]++
	}
	if len(sent) != 3 || sent[""] != 2 {
		t.Errorf("want two calls and 2 lists among 20 calls, got %v", sent)
	}
	for _, c := range noted.Checks {
		if c[1] != true {
			t.Errorf("check %q fails for a result", c[0])
		}
	}
	if len(noted.Checks) != len(noted.Sent) || noted.Options.Scenarios.Calls.Rate != 7 || !slices.Equal(noted.Options.Thresholds["http_req_duration{name:invoke}"], []string{"p(95)<250"}) {
		t.Errorf("options: %+v, %d checks of %d responses", noted.Options, len(noted.Checks), len(noted.Sent))
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
