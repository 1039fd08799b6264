package mutants

import (
	"net/http"
	"slices"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/reports"
)

// A known fault of one tool, caller or row must not hide another one's.
func TestTwoFaultsOfOneClauseAreBothReported(t *testing.T) {
	for _, c := range []struct {
		clause     string
		middleware middleware
		reported   []reports.Finding // without messages
	}{
		{"list/pages-cover-all-once", onList(func(p *page) {
			p.Tools = slices.DeleteFunc(p.Tools, func(v any) bool {
				name := v.(map[string]any)["name"]
				return name == "whoami" || name == "content.list" && caller(p.Request) == "admin"
			})
		}), []reports.Finding{{Tool: "whoami"}, {Tool: "whoami", Identity: "discoverer"}, {Tool: "content.list", Identity: "admin"}, {Tool: "whoami", Identity: "admin"}}},
		{"access/bad-credentials", onResponse(toList, func(x *exchange) {
			if _, password, _ := x.Request.BasicAuth(); password == "" && x.Status == http.StatusUnauthorized {
				x.Status = http.StatusInternalServerError
			}
		}), []reports.Finding{{Identity: "a digest"}, {Identity: "an unknown scheme"}, {Identity: "no base64"}, {Identity: "no base64 characters"},
			{Identity: "no colon"}, {Identity: "no scheme"}, {Identity: "nothing after the scheme"}, {Identity: "the scheme alone"}}},
		{"errors/status-agrees", onRefusal(func(x *exchange) {
			if who := caller(x.Request); who == "outsider" || who == "norpc" {
				x.Status = http.StatusOK
			}
		}), []reports.Finding{{Identity: "outsider"}, {Identity: "outsider"}, {Identity: "norpc"}}},
	} {
		bed := must.Get(testbed.Start(Mutant{Middleware: c.middleware}.Testbed()))(t)
		report, err := engine.Run(t.Context(), engine.Target{URL: bed.URL}, engine.Options{Site: engine.Site{Drupal: bed.Drupal}, Bridge: engine.Bridge{DiscoveryTTL: testbed.TTL, Advance: bed.Advance}, Only: []string{c.clause}, Capabilities: bed.Profile.Capabilities})
		bed.Close()
		must.Do(t, err)
		var reported []reports.Finding
		for _, f := range report.Results[0].Findings {
			reported = append(reported, reports.Finding{Tool: f.Tool, Identity: f.Identity})
		}
		must.Expect(t, slices.Equal(reported, c.reported), "%s: the findings are %v, not %v", c.clause, reported, c.reported)
	}
}
