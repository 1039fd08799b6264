package suites_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// runBehindProxy tests the reference bridge, which may be configured to use a transport of its own, before a recording proxy
// before a site of which the run knows nothing.
func runBehindProxy(t *testing.T, transport http.RoundTripper, o suites.Options) map[string]reports.Result {
	t.Helper()
	site := recorded(t, serveAt(t, defaultSite(t, mockdrupal.Options{}, nil)), &o)
	b := reference(t, bridge.Options{Drupal: site, Transport: transport, CallOptions: bridge.CallOptions{UpstreamTimeout: o.Bridge.UpstreamTimeout}})
	o.Callers.Credentials = passwords(suites.Agent, suites.Agent2)
	o.Callers.Invocations = []suites.Invocation{
		{Tool: "result.string", Identity: suites.Agent, Result: fixtures.Raw(`"pong"`)},
		{Tool: "result.string", Identity: suites.Agent2},
	}
	return verdicts(run(t, serveAt(t, b), o))
}

// wouldHelp matches a message that says what makes a clause testable.
var wouldHelp = regexp.MustCompile("put the mock Drupal there|under `invocations`|there are no credentials for|: give |: set a |run it again with free cores$")

func TestARecordingProxyShowsBothSides(t *testing.T) {
	results := runBehindProxy(t, nil, suites.Options{Bridge: suites.Bridge{UpstreamTimeout: 500e6}})
	for _, id := range []string{"upstream/valid-jsonrpc", "upstream/post-only", "upstream/pooled", "upstream/http-error", "upstream/auth-error", "upstream/timeout",
		"upstream/cancel", "upstream/huge-answer", "invoke/runs-once", "invoke/not-cached", "invoke/answers-result", "access/credentials-forwarded"} {
		r := results[id]
		must.Expect(t, r.Verdict == reports.Pass, "%s is %s: %s", id, r.Verdict, r.Message)
	}
	all := must.Get(contract.Load())(t)
	for id, r := range results {
		clause, _ := all.Clause(id)
		must.Expect(t, r.Verdict != reports.Fail && r.Verdict != reports.Error && r.Verdict != reports.Warn,
			"%s is %s: %s", id, r.Verdict, r.Message)
		must.Expect(t, clause.Wire != contract.Both || r.Verdict != reports.NotTestable || wouldHelp.MatchString(r.Message),
			"%s is not testable, and does not say what would help: %s", id, r.Message)
	}
	r := results["invoke/runs-once"]
	must.Expect(t, len(r.Evidence) > 0 && len(r.Evidence[0].Drupal) > 0, "the evidence shows nothing of what reached the site")
}

// again is a transport that sends a request a second time when it failed.
type again struct{}

func (again) RoundTrip(r *http.Request) (*http.Response, error) {
	body := []byte{}
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	var resp *http.Response
	var err error
	for range 2 {
		r.Body = io.NopCloser(bytes.NewReader(body))
		if resp, err = http.DefaultTransport.RoundTrip(r); err == nil && resp.StatusCode < 500 {
			break
		}
	}
	return resp, err
}

// asService is a transport that signs every request in as one account.
type asService struct{}

func (asService) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.SetBasicAuth("service", "service-pass")
	return http.DefaultTransport.RoundTrip(r)
}

func TestARecordingProxyFindsWhatIsWrongUpstream(t *testing.T) {
	for id, transport := range map[string]http.RoundTripper{"invoke/runs-once": again{}, "access/credentials-forwarded": asService{}} {
		r := runBehindProxy(t, transport, suites.Options{Only: []string{id}})[id]
		must.Expect(t, r.Verdict == reports.Fail, "%s is %s: %s", id, r.Verdict, r.Message)
	}
}

// asNobody is a transport that drops who calls.
type asNobody struct{}

func (asNobody) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	return http.DefaultTransport.RoundTrip(r)
}

// A bridge that drops its callers' credentials is to blame, whether the site refuses anonymous callers with 401 or with 403; a caller who
// lacks the permission to discover tools is not the bridge's fault.
func TestABridgeThatDropsItsCallersIsToBlame(t *testing.T) {
	run := func(kinds []string, token string, seen bool, transport http.RoundTripper) (*reports.Report, error) {
		address := must.Get(url.Parse(serveAt(t, defaultSite(t, mockdrupal.Options{}, func(s *fixtures.Site) { s.Auth.JSONRPC = kinds }))))(t)
		o, site := suites.Options{Site: suites.Site{URL: address}, Only: []string{"list/answers-json", "invoke/unknown-404", "access/*"}}, address.String()
		if seen {
			site = recorded(t, site, &o)
		}
		b := reference(t, bridge.Options{Drupal: site, Transport: transport})
		o.Callers.Credentials = map[suites.Identity]suites.Credentials{suites.Agent: {Token: token}}
		return suites.Run(t.Context(), suites.Target{URL: serveAt(t, b)}, o)
	}
	for _, kinds := range [][]string{{"basic", "bearer"}, {"bearer"}} {
		for seen, want := range map[bool]string{true: "access/credentials-forwarded", false: "list/answers-json"} {
			report := must.Get(run(kinds, "agent-token", seen, asNobody{}))(t)
			if first, _ := report.First(); first.ID != want || first.Verdict != reports.Fail {
				t.Errorf("%v, seen %v: want %s first, got %s, %s", kinds, seen, want, first.ID, report.Headline())
			}
			right := must.Get(run(kinds, "agent-token", seen, nil))(t)
			must.Expect(t, right.Summary.Fail <= 0, "%v, seen %v: %s", kinds, seen, right.Headline())
		}
	}
	if report, err := run([]string{"bearer"}, "outsider-token", true, nil); report != nil && report.Summary.Fail > 0 {
		t.Errorf("an agent who may not discover tools: %s, %v", report.Headline(), err)
	}
}
