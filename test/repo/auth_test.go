package repo

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/translate"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/authkind"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	behind "github.com/bridgecheck/bridgecheck/suites/site"
)

// An authentication kind that a bridge may claim is known to site files, the harness, the mock, the recording proxy and the
// reference bridge: a request of each kind is sent through all of them.
func TestAuthenticationKindsAgree(t *testing.T) {
	clauses := must.Get(contract.Load())(t)
	var kinds []string
	for _, c := range clauses.Capabilities {
		kind, ok := strings.CutPrefix(c.Name, "auth-")
		if !ok || kind == "passthrough" || kind == "service" { // which say where the credentials go, and whose they are
			continue
		}
		kinds = append(kinds, kind)
		t.Run(kind, func(t *testing.T) {
			for _, omission := range omissions(t, kind, kind) {
				t.Error(omission)
			}
		})
	}
	for _, kind := range authkind.Kinds {
		must.Expect(t, slices.Contains(kinds, kind.Name),
			"no bridge can claim %s: add the capability auth-%s to suites/contract/contract.yaml", kind.Name, kind.Name)
	}
}

// A place that does not know a kind is reported once, with the line to add.
func TestAnOmittedAuthenticationKindIsReportedOnce(t *testing.T) {
	for name, c := range map[string]struct{ kind, atBridge, says string }{
		"in the table":  {"key", "", "to Kinds in internal/authkind/authkind.go"},
		"in the bridge": {authkind.Bearer, authkind.Basic, "a case to Callers.From in bridge/caller/caller.go"},
	} {
		all := omissions(t, c.kind, c.atBridge)
		must.Expect(t, len(all) == 1 && strings.Contains(all[0], c.says), "%s: reported %q, want one report that says %q", name, all, c.says)
	}
}

// omissions lists the places that do not know a kind, with what to add there. It ends with the first one that others need.
// atBridge is the kind that the reference bridge accepts: another one than the one that is sent stands for a bridge that does not
// know it.
func omissions(t *testing.T, kind, atBridge string) (all []string) {
	t.Helper()
	if authkind.Of(kind).Name == "" {
		return []string{fmt.Sprintf("nothing knows %s: add `{Name: %q, Header: …, Secret: …},` to Kinds in internal/authkind/authkind.go", kind, kind)}
	}
	site := must.Get(fixtures.Builtin("default"))(t)
	site.Auth.JSONRPC = []string{kind}
	mock := must.Get(mockdrupal.New(site, mockdrupal.Options{}))(t)
	drupal := must.Serve(t, mock)
	caller := check.T{Environment: &check.Environment{Config: check.Config{Claimed: []string{"auth-" + kind}, Redact: &redact.Redactor{}},
		Behind: check.Behind{Drupal: &behind.Drupal{Upstream: &behind.Upstream{Recorder: mock}, Mock: mock}}}}
	credentials, _ := caller.CredentialsOf(check.Agent)
	header := http.Header{}
	credentials.Apply(header)
	if len(header) == 0 {
		return []string{fmt.Sprintf("the suites do not send %s: add it to credentialsOf in suites/check/client.go and Credentials.Apply in suites/client/identity.go", kind)}
	}
	send := func(address string) int {
		t.Helper()
		request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))(t)
		request.Header = header.Clone()
		response := must.Get(http.DefaultClient.Do(request))(t)
		response.Body.Close()
		return response.StatusCode
	}
	last := func(j *journal.Journal) (e journal.Entry) {
		if all := j.Entries(0); len(all) > 0 {
			e = all[len(all)-1]
		}
		return e
	}

	status := send(drupal.URL + "/jsonrpc/methods")
	if e := last(mock.Journal()); status != http.StatusOK || e.User != string(check.Agent) || e.Scheme != kind {
		return []string{fmt.Sprintf("the agent who claims auth-%s is %q by %q at the mock, with %d: add a reader to mockdrupal/credentials/credentials.go and a case to request.identify in mockdrupal/auth.go",
			kind, e.User, e.Scheme, status)}
	}

	address := must.Get(url.Parse(drupal.URL))(t)
	recorder := must.Get(proxy.New(address, proxy.Options{}))(t)
	recording := must.Serve(t, recorder)
	status = send(recording.URL + "/jsonrpc/methods")
	if e := last(recorder.Journal()); status != http.StatusOK || e.User == "" || e.Scheme != kind {
		all = append(all, fmt.Sprintf("the agent who claims auth-%s is %q by %q in the journal of the recording proxy, with %d: add a case to caller in mockdrupal/proxy/proxy.go",
			kind, e.User, e.Scheme, status))
	}

	o := bridge.Options{Drupal: drupal.URL}
	for _, s := range bridge.Settings() {
		if s.Name == "credentials" {
			must.Do(t, s.Set(&o, atBridge))
		}
	}
	reference := must.Get(bridge.New(o))(t)
	defer reference.Close()
	front := must.Serve(t, reference)
	status = send(front.URL + "/mcp/tools/list")
	if e := last(mock.Journal()); status != http.StatusOK || e.User != string(check.Agent) || e.Scheme != kind {
		all = append(all, fmt.Sprintf("the agent who claims auth-%s is %q by %q at the site behind the reference bridge, with %d: add a case to Callers.From in bridge/caller/caller.go",
			kind, e.User, e.Scheme, status))
	}
	return all
}

// A field type that the reference bridge knows is on the built-in site that the checks of translate use.
func TestEveryFieldTypeHasAFixture(t *testing.T) {
	site := must.Get(fixtures.Builtin("types"))(t)
	shown := map[string]bool{}
	for _, m := range site.Methods {
		for _, p := range m.Params {
			if p.Drupal != nil {
				shown[p.Drupal.Type] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(translate.FieldTypes())) {
		must.Expect(t, shown[name],
			"the field type %s is on no site: add `%s: {drupal: %s}` to the params of a method in fixtures/sites/types.yaml", name, name, name)
	}
}
