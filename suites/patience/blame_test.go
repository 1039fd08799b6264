package patience

import (
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites/client"
	suitessite "github.com/bridgecheck/bridgecheck/suites/site"
)

// Only a late turn while the check ran exempts it: one that ended before it began does not.
func TestLatenessExemptsTheCheckThatMetIt(t *testing.T) {
	run := &Run{Settings: Settings{Secrets: &redact.Redactor{}}}
	began := time.Now()
	run.lateness.part, run.lateness.shared = 1, began // or it is measured, on a machine that may be busy
	check := &Scope{run: run, began: began}
	run.lateness.turns = []lateTurn{{began.Add(-2 * time.Second), time.Second}}
	check.ExemptIfLate()
	why, _ := check.Exemption()
	must.Expect(t, why == "", "exempt for a late turn before the check: %s", why)
	run.lateness.turns = append(run.lateness.turns, lateTurn{began.Add(-100 * time.Millisecond), 300 * time.Millisecond}, lateTurn{began.Add(time.Second), 250 * time.Millisecond})
	check.ExemptIfLate()
	why, site := check.Exemption()
	must.Expect(t, !site && strings.Contains(why, "the machine is overloaded: this process got its turn 300ms late"), "got %q, by the site: %v", why, site)
}

// Many small waits hold a request up as one long one does; a turn that is late by little holds up nothing.
func TestSeveralTurnsHoldARequestUp(t *testing.T) {
	began := time.Now()
	var l lateness
	for i := range 10 {
		l.turns = append(l.turns, lateTurn{began.Add(time.Duration(i) * 50 * time.Millisecond), 30 * time.Millisecond})
	}
	must.Expect(t, l.since(began) == 0 && l.heldUp(began) == 300*time.Millisecond && l.heldUp(began.Add(400*time.Millisecond)) == 60*time.Millisecond,
		"late by %s at once, by %s in all, by %s at the end", l.since(began), l.heldUp(began), l.heldUp(began.Add(400*time.Millisecond)))
}

// A bridge that says after the whole of its time that the mock was late, which was not, is contradicted by the journal: it is
// tested again alone. One that fails at once, or while the authorization server hangs, says nothing of the kind.
func TestAMockThatWasInTimeContradictsTheBridge(t *testing.T) {
	site := must.Get(fixtures.Builtin("default"))(t)
	drupal := must.Get(mockdrupal.New(site, mockdrupal.Options{}))(t)
	const limit = 500 * time.Millisecond
	issuer := must.Get(authserver.Listen("127.0.0.1:0", authserver.Options{}))(t)
	t.Cleanup(issuer.Close)
	run := &Run{Settings: Settings{Known: true, Issuer: issuer, SiteLimit: limit, Observed: &suitessite.Upstream{Recorder: drupal}, Secrets: &redact.Redactor{}}}
	check := func(a client.Response) *sending {
		return &sending{Client: Client{Scope: &Scope{run: run, began: time.Now()}}, faulty: run.faulty(), response: &a}
	}
	for name, c := range map[string]struct {
		response client.Response
		want     bool
	}{
		"502":                {client.Response{Status: 502, Took: limit}, true},
		"an error of MCP":    {client.Response{Status: 200, Path: client.MCPPath, Took: limit, Body: []byte(`{"error": {"code":-32000}}`)}, true},
		"at once":            {client.Response{Status: 502, Took: limit / 10}, false},
		"without a response": {client.Response{Err: client.ErrTimeout, Took: limit}, false},
	} {
		must.Equal(t, check(c.response).passedOn(), c.want, "%s", name)
	}
	why := run.Carried()
	must.Assert(t, why == "", "carried: %s", why)
	late := client.Response{Status: 503, Took: limit, At: time.Now()}
	issuer.Misbehave(authserver.Hangs)
	check(late).exemptIfSiteFailed()
	must.Equal(t, run.Carried(), "", "what is carried while the authorization server hangs")
	issuer.Misbehave(authserver.None)
	check(late).exemptIfSiteFailed()
	must.Has(t, run.Carried(), "a time-out of the site", "what is carried")
}
