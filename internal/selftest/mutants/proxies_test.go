package mutants

import (
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// What fails of a broken proxy names it and what to change; a page of the bridge's own is not the proxy's for its header.
func TestBrokenProxiesAreNamed(t *testing.T) {
	for _, area := range Areas() {
		for _, m := range brokenProxies(area.Name) {
			t.Run(m.Name, func(t *testing.T) {
				bed := must.Get(testbed.Start(m.Testbed()))(t)
				defer bed.Close()
				capabilities := bed.Profile.Capabilities
				if m.Claims != "" {
					capabilities = append(capabilities[:len(capabilities):len(capabilities)], m.Claims)
				}
				report := must.Get(engine.Run(t.Context(), engine.Target{URL: bed.URL}, engine.Options{Site: engine.Site{Drupal: bed.Drupal},
					Bridge: engine.Bridge{DiscoveryTTL: testbed.TTL, UpstreamTimeout: testbed.UpstreamTimeout, Advance: bed.Advance}, Only: m.Breaks[:1], Capabilities: capabilities}))(t)
				r := report.Results[0]
				must.Need(t, !strings.HasPrefix(r.Message, "the machine is overloaded"), "%v", "SKIPPED: "+r.Message)
				if strings.HasPrefix(m.Name, "proxy-") && (!strings.Contains(r.Message, "nginx (Server: nginx/1.22.1)") || !strings.Contains(r.Message, "the proxy, not the bridge")) {
					t.Errorf("%s: the proxy is not named: %s", r.ID, r.Message)
				}
				for _, f := range r.Findings {
					must.Expect(t, m.Name != "html-errors-as-if-by-nginx" || f.Proxy == "",
						"%s: a page of the bridge counts as the proxy's: %s", r.ID, f.Message)
				}
				must.Expect(t, report.Target.Proxy != "", "the report does not say that a proxy was seen")
			})
		}
	}
}
