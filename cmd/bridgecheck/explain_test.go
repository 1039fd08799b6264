package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// unmarkedSite is a site that shows no McpTool attribute.
func unmarkedSite(t *testing.T) string {
	t.Helper()
	site := must.Get(fixtures.Builtin("transcripts"))(t)
	site.Extensions = false
	drupal := must.Get(mockdrupal.New(site, mockdrupal.Options{}))(t)
	return served(t, drupal)
}

func TestBridgeCheckSaysWhatAnAccountIsShown(t *testing.T) {
	site := unmarkedSite(t)
	for name, c := range map[string]struct {
		user, password string
		args           []string
		code           int
		says           []string
	}{
		"tools":            {"agent", "agent-pass", []string{"--include", "fx.*", "--exclude", "fx.whoami"}, exitOK, []string{"no pattern of include matches it", "a pattern of exclude matches it", "are tools"}},
		"no tool at all":   {"agent", "agent-pass", []string{"--include", "nothing.*"}, 1, []string{" methods, 0 match include; see --include"}},
		"a wrong password": {"agent", "wrong", nil, exitUsage, []string{"DRUPAL_USER and DRUPAL_PASSWORD"}},
		"no password":      {"agent", "", nil, exitUsage, []string{"DRUPAL_PASSWORD is not set"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DRUPAL_USER", c.user)
			t.Setenv("DRUPAL_PASSWORD", c.password)
			o := command(t, append([]string{"bridge", "--check", "--drupal", site}, c.args...)...)
			said := o.stdout + o.stderr
			must.Assert(t, o.code == c.code, "exit code %d, want %d: %s", o.code, c.code, said)
			for _, text := range c.says {
				must.Expect(t, strings.Contains(said, text), "it does not say %q: %s", text, said)
			}
		})
	}
}

// A bridge whose patterns match no method says so in its log, in the diagnostics and to a load balancer.
func TestABridgeWithoutToolsSaysSo(t *testing.T) {
	const says = " methods, 0 match include; see --include"
	var log bytes.Buffer
	b := must.Get(bridge.New(bridge.Options{Drupal: unmarkedSite(t), ToolOptions: bridge.ToolOptions{Include: []string{"nothing.*"}}, CallerOptions: bridge.CallerOptions{AdminTokens: []caller.Secret{"operator"}}, Logger: slog.New(slog.NewTextHandler(&log, nil))}))(t)
	defer b.Close()
	get := func(path, user, token string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		if user != "" {
			r.SetBasicAuth(user, user+"-pass")
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		return w.Body.String()
	}
	got := get("/readyz", "", "")
	must.Expect(t, !strings.Contains(got, "details"), "/readyz has details before anybody has called: %s", got)
	get("/mcp/tools/list", "agent", "")
	for path, got := range map[string]string{"/readyz": get("/readyz", "", ""), "diagnostics": get("/mcp/admin/diagnostics", "", "operator"), "log": log.String()} {
		must.Expect(t, strings.Contains(got, says), "%s does not say %q: %s", path, says, got)
	}
}
