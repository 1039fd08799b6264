package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
)

const openAPI = "../../docs/openapi.yaml"

// Redocly's linter takes docs/openapi.yaml for a valid OpenAPI 3.1 document.
func TestOpenAPIIsValid(t *testing.T) {
	installed(t)
	lint := exec.CommandContext(t.Context(), node22, modules+"/@redocly/cli/bin/cli.js", "lint", "--extends=spec", openAPI)
	lint.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	out, err := lint.CombinedOutput()
	must.Expect(t, err == nil, "redocly lint: %v\n%s", err, out)
}

// Prism, as a proxy before the bridge, finds no response that docs/openapi.yaml does not allow: to the requests of every
// page, of every tool and of every kind of mistake. Before a bridge that breaks the contract it finds one.
func TestPrismFindsNoViolation(t *testing.T) {
	installed(t)
	_, bridgeURL, _ := serve(t, builtin(t, "default"))
	proxy := prism(t, bridgeURL)

	names := []string{"no.such.tool", ""}
	for cursor, pages := "", 0; ; pages++ {
		status, body := throughPrism(t, http.MethodGet, proxy+"/mcp/tools/list?cursor="+url.QueryEscape(cursor), "")
		var page struct {
			Tools      []struct{ Name string }
			NextCursor string
		}
		err := json.Unmarshal(body, &page)
		must.Assert(t, err == nil && status == http.StatusOK && pages <= 50, "page %d: %d, %v\n%s", pages, status, err, body)
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	must.Assert(t, len(names) >= 100, "only %d tools are listed", len(names))
	throughPrism(t, http.MethodGet, proxy+"/mcp/tools/list?cursor=LTE%3D", "")
	throughPrism(t, http.MethodGet, proxy+"/mcp/tools/describe", "")
	for _, body := range []string{"[]", // Prism itself gives no response to a body that is no JSON
		"{}", `{"name":"content.get"}`, `{"name":"content.get","arguments":[1]}`, `{"name":"content.get","arguments":{"nid":"x"}}`} {
		throughPrism(t, http.MethodPost, proxy+"/mcp/tools/invoke", body)
	}
	for _, name := range names {
		throughPrism(t, http.MethodGet, proxy+"/mcp/tools/describe?name="+url.QueryEscape(name), "")
		body := must.Get(json.Marshal(map[string]any{"name": name, "arguments": map[string]any{}}))(t)
		throughPrism(t, http.MethodPost, proxy+"/mcp/tools/invoke", string(body))
	}

	broken := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"tools": null}`)
	}))
	found, _, _ := violations(t, http.MethodGet, prism(t, broken.URL)+"/mcp/tools/list", "")
	must.Expect(t, found != "", "Prism finds nothing in a list whose tools are null")
}

// prism starts Prism before the bridge at target and returns its address.
func prism(t *testing.T, target string) string {
	t.Helper()
	address := program.Address(t)
	_, port, _ := net.SplitHostPort(address)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, node22, modules+"/@stoplight/prism-cli/dist/index.js", "proxy", openAPI, target, "--host", "127.0.0.1", "--port", port)
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Log(log.String())
		}
	})
	for range 300 {
		if freeport.Listens(address) {
			return "http://" + address
		}
		select {
		case <-ended:
			t.Fatalf("Prism ended: %s", log.String())
		case <-time.After(200 * time.Millisecond):
		}
	}
	t.Fatal("Prism does not listen after a minute")
	return ""
}

// throughPrism sends a request as the agent and reports what Prism has against the response.
func throughPrism(t *testing.T, method, address, body string) (int, []byte) {
	t.Helper()
	found, status, received := violations(t, method, address, body)
	must.Expect(t, found == "", "%s %s %s: %d %s\nPrism says: %s", method, address, body, status, received, found)
	return status, received
}

// violations is what Prism says of the response to a request; "" when it says nothing. What it says of requests, which are
// wrong on purpose, is left out.
func violations(t *testing.T, method, address, body string) (string, int, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r := must.Get(http.NewRequestWithContext(ctx, method, address, strings.NewReader(body)))(t)
	r.SetBasicAuth("agent", "agent-pass")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	response := must.Get(http.DefaultClient.Do(r))(t)
	defer response.Body.Close()
	received := must.Get(io.ReadAll(response.Body))(t)
	var all []struct {
		Location []string
		Message  string
	}
	if header := response.Header.Get("Sl-Violations"); header != "" {
		err := json.Unmarshal([]byte(header), &all)
		must.Assert(t, err == nil, "Prism's violations are not readable: %v: %s", err, header)
	}
	found := ""
	for _, v := range all {
		if len(v.Location) > 0 && v.Location[0] == "response" {
			found += strings.Join(v.Location, ".") + ": " + v.Message + "\n"
		}
	}
	return found, response.StatusCode, received
}
