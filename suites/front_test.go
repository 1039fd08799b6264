package suites_test

import (
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// A run that counts what the front side shows can be green from outside alone, says so, and lists what it has not seen.
func TestARunOfTheFrontSide(t *testing.T) {
	at := referenceAt(t, serveAt(t, defaultSite(t, mockdrupal.Options{}, nil)), "")
	o := suites.Options{Callers: suites.Callers{Credentials: map[suites.Identity]suites.Credentials{
		suites.Agent: {User: "agent", Password: "agent-pass"}, suites.Outsider: {User: "outsider", Password: "outsider-pass"},
	}, Invocations: []suites.Invocation{{Tool: "result.string", Identity: suites.Agent, Result: fixtures.Raw(`"pong"`)}}}, Wire: contract.Front}
	report := must.Get(suites.Run(t.Context(), suites.Target{URL: at}, o))(t)
	for _, r := range report.Blocked() {
		t.Errorf("%s is of the front side and was not tested: %s", r.ID, r.Message)
	}
	must.Expect(t, report.State() == reports.ConformantFront && report.ExitCode() == 0 && !report.Summary.Conformant,
		"the run is %s with exit code %d, conformant %t", report.Headline(), report.ExitCode(), report.Summary.Conformant)
	unseen := report.Unseen()
	must.Expect(t, len(unseen) >= 10, "only %d MUSTs are listed as not seen", len(unseen))
	for _, r := range unseen {
		if !wouldHelp.MatchString(r.Message) && !strings.Contains(r.Message, "put the mock Drupal") && !strings.Contains(r.Message, "--drupal") {
			t.Errorf("%s does not say what would help: %s", r.ID, r.Message)
		}
	}

	o.Wire = ""
	report = must.Get(suites.Run(t.Context(), suites.Target{URL: at}, o))(t)
	must.Expect(t, report.State() == reports.Partial && report.ExitCode() == 4,
		"without --wire front the run is %s with exit code %d, want partial with 4", report.Headline(), report.ExitCode())
}
