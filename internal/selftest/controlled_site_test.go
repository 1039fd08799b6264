package selftest_test

import (
	"context"
	"flag"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/control"
	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/areas"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	suitessite "github.com/bridgecheck/bridgecheck/suites/site"
)

var siteURL = flag.String("site", "", "`URL` of a Drupal with the fixture module of the site default, whose control plane has the token of "+controlToken)

const controlToken = "BRIDGECHECK_CONTROL_TOKEN"

// killedOnAControlledSite are mutants of different areas.
var killedOnAControlledSite = []string{
	"pages-never-end-with-new-cursors", "describe-hidden-403", "denied-runs-then-403", "every-tool-for-everyone", "error-code-camel-case",
	"removed-tools-linger", "result-beside-an-error", "output-schema-through-a-struct", "reference-one-value-short", "mcp-cursor-null",
}

// controlledSite opens the site of -site, or without it a mock of the site default that has its own control plane.
func controlledSite(t *testing.T) (address string, remote *suitessite.Remote) {
	t.Helper()
	address, token := *siteURL, os.Getenv(controlToken)
	if address == "" {
		t.Log("without -site URL the site is a mock with a control plane, not a Drupal")
		token = "a-token"
		site := must.Get(fixtures.Builtin("default"))(t)
		mock := must.Get(mockdrupal.New(site, mockdrupal.Options{ControlToken: token}))(t)
		server := must.Get(mock.Listen("127.0.0.1:0"))(t)
		t.Cleanup(func() { server.Close() })
		address = server.URL
	}
	client := must.Get(control.New(address, token))(t)
	remote, err := suitessite.OpenRemote(t.Context(), client)
	must.Assert(t, err == nil, "the control plane of %s, with the token of %s: %v", address, controlToken, err)
	t.Cleanup(func() {
		err := remote.Restore(context.WithoutCancel(t.Context()))
		must.Expect(t, err == nil, "the site could not be put back as it was: %v", err)
	})
	return address, remote
}

// A mutant fails the same clauses before a site that is changed through its control plane as over the mock of the testbed,
// which the golden sets name.
func TestMutantsBeforeAControlledSite(t *testing.T) {
	must.Need(t, !testing.Short(), "it runs the suites once for each of the mutants")
	golden := must.Get(selftest.Golden())(t)
	for _, name := range killedOnAControlledSite {
		t.Run(name, func(t *testing.T) {
			m, ok := mutants.Find(name)
			must.Assert(t, ok, "there is no mutant %s", name)
			failed := map[string]bool{}
			for _, r := range runBeforeControlledSite(t, m, golden[name]).Results {
				switch r.Verdict {
				case reports.Fail, reports.Warn, reports.Error:
					failed[r.ID] = true
					must.Expect(t, slices.Contains(golden[name], r.ID) || slices.Contains(m.MayFail, r.ID),
						"%s is %s here and not over the mock: %s", r.ID, r.Verdict, r.Message)
				case reports.NotTestable:
					t.Logf("%s is not testable: %s", r.ID, r.Message)
				}
			}
			for _, id := range golden[name] {
				if failed[id] {
					t.Logf("%s fails, as over the mock", id)
				} else if !slices.Contains(m.MayFail, id) {
					t.Errorf("%s fails over the mock and not here", id)
				}
			}
		})
	}
}

// A change of the site whose response is lost is undone as any other: what the next check finds is not the site of this one.
func TestAChangeWithoutAResponse(t *testing.T) {
	must.Need(t, *siteURL == "", "SKIPPED: -site: the control plane's responses are not lost")
	site := must.Get(fixtures.Builtin("default"))(t)
	mock := must.Get(mockdrupal.New(site, mockdrupal.Options{ControlToken: "a-token"}))(t)
	lost := false
	server := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mock.ServeHTTP(w, r)
		if anonymous := mock.Site().Roles[0]; r.Method == http.MethodPut && !lost && anonymous.ID == fixtures.AnonymousRole && slices.Contains(anonymous.Permissions, fixtures.UseJSONRPC) {
			lost = true
			panic(http.ErrAbortHandler)
		}
	}))
	client := must.Get(control.New(server.URL, "a-token"))(t)
	remote := must.Get(suitessite.OpenRemote(t.Context(), client))(t)
	for _, want := range []struct {
		id      string
		verdict reports.Verdict
	}{{"access/anonymous-granted", reports.NotTestable}, {"access/route-permission", reports.Pass}} {
		for _, r := range runBefore(t, mutants.Mutant{}, server.URL, remote, []string{want.id}).Results {
			must.Expect(t, r.Verdict == want.verdict, "%s is %s, want %s: %s", r.ID, r.Verdict, want.verdict, r.Message)
		}
	}
	must.Expect(t, lost, "no response was lost")
}

// A Drupal reads 72 bytes of a password, as bcrypt does, names the configuration of a role after it, and locks an account after five
// failures. The bridge counts none of them, as most do.
func TestAControlledSiteThatStoresAsDrupalDoes(t *testing.T) {
	must.Need(t, *siteURL == "", "SKIPPED: -site: the site is a Drupal")
	mock := must.Get(mockdrupal.New(must.Get(fixtures.Builtin("default"))(t), mockdrupal.Options{ControlToken: "a-token", Flood: true}))(t)
	server := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/flood") {
			defer mock.SetFlood(true) // it forgets, and goes on
		}
		if name, password, ok := r.BasicAuth(); ok && len(password) >= 72 {
			if u, found := mock.Site().User(name); found && strings.HasPrefix(u.Password, password[:72]) {
				r.SetBasicAuth(name, u.Password)
			}
		}
		mock.ServeHTTP(w, r)
	}))
	remote := must.Get(suitessite.OpenRemote(t.Context(), must.Get(control.New(server.URL, "a-token"))(t)))(t)
	patient := mutants.Mutant{Options: func(o *bridge.Options) { o.AccountFailures, o.AddressFailures, o.TotalFailures = 1e6, 1e6, 1e6 }}
	owned := func(o *engine.Options) { o.Bridge.Owned = true } // then it is sent all that the checks have
	only := []string{"access/bad-credentials", "access/credentials-forwarded", "load/large-catalogue"}
	for _, r := range runBefore(t, patient, server.URL, remote, only, owned).Results {
		must.Expect(t, (r.Verdict != reports.Pass) == (r.ID == "load/large-catalogue"),
			"%s is %s: %s", r.ID, r.Verdict, r.Message) // a Drupal is slow with 10,000 methods
	}
}

// runBeforeControlledSite tests a mutant by the clauses that it fails over the mock, before a Drupal by all of their areas.
func runBeforeControlledSite(t *testing.T, m mutants.Mutant, golden []string) *reports.Report {
	t.Helper()
	address, remote := controlledSite(t)
	return runBefore(t, m, address, remote, golden)
}

func runBefore(t *testing.T, m mutants.Mutant, address string, site *suitessite.Remote, golden []string, change ...func(*engine.Options)) *reports.Report {
	t.Helper()
	o := engine.Options{Site: engine.Site{Control: site}, Bridge: engine.Bridge{DiscoveryTTL: testbed.TTL, UpstreamTimeout: testbed.UpstreamTimeout}, Contract: contract.Draft, Cases: 12}
	o.Only = slices.Clone(golden)
	if *siteURL != "" {
		o.Bridge.UpstreamTimeout, o.Connection.Timeout = 8*time.Second, 30*time.Second
		for i, id := range golden {
			o.Only[i] = path.Dir(id) + "/*"
		}
	}
	for _, alter := range change {
		alter(&o)
	}
	clauses := must.Get(engine.Checked())(t)
	for _, c := range clauses {
		if check, _ := areas.Check(c.ID); check.Costly && !slices.Contains(golden, c.ID) {
			o.Skip = append(o.Skip, c.ID)
		}
	}
	bed := startBefore(t, m, &o, proxy.Options{Accepts: site.Accepts}, func(string) string { return address })
	o.Capabilities = must.Get(engine.Claim(bed.Profile.Capabilities, m.Claims))(t)
	// A real site has no tokens of the site file, and its control plane opens no sessions.
	o.Capabilities = slices.DeleteFunc(o.Capabilities, func(c string) bool {
		return c == "auth-bearer" || c == "auth-cookie" || !m.MCP && strings.HasPrefix(c, "mcp")
	})
	bed.Profile.Run(&o)
	return must.Get(engine.Run(t.Context(), engine.Target{URL: bed.URL, Name: m.Name}, o))(t)
}
