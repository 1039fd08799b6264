package selftest

import (
	"errors"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
)

func TestNullTargetsPassNothing(t *testing.T) {
	site := must.Get(fixtures.Builtin("default"))(t)
	drupal := must.Get(mockdrupal.New(site, mockdrupal.Options{}))(t)
	for _, target := range NullTargets() {
		for how, mock := range map[string]*mockdrupal.Drupal{"with a mock": drupal, "black box": nil} {
			t.Run(target.Name+" "+how, func(t *testing.T) {
				url, stop := target.Start()
				defer stop()
				o := engine.Options{Site: engine.Site{Drupal: mock}, Bridge: engine.Bridge{DiscoveryTTL: testbed.TTL}, Connection: engine.Connection{Timeout: target.Timeout}, Capabilities: testbed.Profiles()[0].Capabilities}
				report, err := engine.Run(t.Context(), engine.Target{URL: url}, o)
				var dead *engine.UnreachableError
				if errors.As(err, &dead) {
					return // reported in one sentence, and nothing was tested
				}
				must.Do(t, err)
				for _, r := range report.Results {
					must.Expect(t, r.Verdict != reports.Pass, "%s passes", r.ID)
				}
				must.Expect(t, !report.Summary.Conformant && len(report.Results) > 0, "the summary is %+v", report.Summary)
			})
		}
	}
}
