//go:build unix

package proxies

import (
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
)

// Proxies that break what clients need: a clause fails of each, and the message names the proxy and what to change.
func TestBrokenProxies(t *testing.T) {
	nginx := proxies[0]
	for _, c := range []struct {
		name, http, location string // lines of nginx
		clause, want         string
	}{
		{"buffers streams", "", "proxy_buffering on; proxy_ignore_headers X-Accel-Buffering;", "fresh/notify", "proxy_buffering off;"},
		{"caches by path alone", "proxy_cache_path DIR/cache keys_zone=z:1m;",
			"proxy_cache z; proxy_cache_key $request_uri; proxy_ignore_headers Cache-Control Vary; proxy_cache_valid 200 1m; add_header X-Cache-Status $upstream_cache_status;",
			"access/no-cross-talk", "proxy_cache off;"},
		{"drops Authorization", "", `proxy_set_header Authorization "";`, "access/credentials-forwarded", "proxy_set_header Authorization $http_authorization;"},
		{"rewrites 404", "", `proxy_intercept_errors on; error_page 404 = @gone;`, "errors/envelope", "proxy_intercept_errors off;"},
		{"times out", "", "proxy_read_timeout 500ms;", "upstream/timeout", "proxy_read_timeout 1h;"},
		{"strips the MCP session header", "", `proxy_hide_header Mcp-Session-Id; proxy_set_header Mcp-Session-Id "";`, "mcp/session", "Mcp-Session-Id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.Need(t, !testing.Short(), "SKIPPED: -short: no broken proxy is tested")
			must.Need(t, nginx.path() != "", "SKIPPED: nginx is not installed: no broken proxy is tested")
			site := free(t)
			at, flags := reference(t, site)
			s := nginx.start(t, strings.ReplaceAll(c.http, "DIR", t.TempDir())+"\nserver {\nlisten 127.0.0.1:PORT;\nlocation @gone { default_type text/html; return 404 \"<html><h1>Not here</h1></html>\"; }\nlocation / { proxy_pass http://AT; "+c.location+" }\n}\n", at)
			report := run(t, s, "http://localhost:"+s.port, site, append(flags, "--only", c.clause))
			found := false
			for _, r := range report.Results {
				must.Need(t, !strings.HasPrefix(r.Message, "the machine is overloaded"), "%v", "SKIPPED: "+r.Message)
				if r.Verdict == reports.Fail {
					found = true
					must.Expect(t, strings.Contains(r.Message, "the proxy") && strings.Contains(r.Message, "nginx (") && strings.Contains(r.Message, c.want),
						"%s does not name nginx and %s: %s", r.ID, c.want, r.Message)
				}
			}
			must.Expect(t, found, "nothing fails, want %s", c.clause)
		})
	}
}
