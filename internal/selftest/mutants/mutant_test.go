package mutants

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

func TestEntriesAreWellFormed(t *testing.T) {
	clauses := must.Get(contract.Load())(t)
	words, seen := regexp.MustCompile(`^[a-z0-9]+(-[A-Za-z0-9]+)*$`), map[string]bool{}
	for _, area := range Areas() {
		for _, m := range slices.Concat(area.Mutants, area.Variants) {
			must.Expect(t, !seen[m.Name], "%s: two entries have this name", m.Name)
			seen[m.Name] = true
			must.Expect(t, words.MatchString(m.Name), "%s: a name is words joined by hyphens", m.Name)
			for _, id := range slices.Concat(m.Breaks, m.MayFail) {
				_, ok := clauses.Clause(id)
				must.Expect(t, ok, "%s: %s is not in the contract; the nearest is %s", m.Name, id, suggest.Nearest(id, clauses.IDs()))
			}
			_, err := engine.Claim(testbed.Profiles()[0].Capabilities, m.Claims)
			must.Expect(t, err == nil, "%s: %v", m.Name, err)
		}
		for _, m := range area.Mutants {
			if len(m.Breaks) == 0 || m.Origin == "" {
				t.Errorf("%s: a mutant needs Breaks and Origin", m.Name)
			} else if !strings.HasPrefix(m.Breaks[0], area.Name+"/") {
				t.Errorf("%s: its first clause is %s: move it from %s to the file of that area", m.Name, m.Breaks[0], area.File)
			}
		}
		for _, m := range area.Variants {
			must.Expect(t, len(m.Breaks) == 0 && m.Origin == "" && m.Why != "",
				"%s: a correct variant breaks nothing, has no Origin, and says in Why what room of the contract it uses", m.Name)
		}
	}
}

func TestEveryMustHasAMutant(t *testing.T) {
	clauses := must.Get(contract.Load())(t)
	files, broken := map[string]string{}, map[string]bool{}
	for _, area := range Areas() {
		files[area.Name] = area.File
		for _, m := range area.Mutants {
			for _, id := range m.Breaks {
				broken[id] = true
			}
		}
	}
	for _, c := range clauses.Clauses {
		file, ok := files[c.Area]
		switch {
		case !ok:
			t.Errorf("the area %s has no mutants: add it to Areas in internal/selftest/mutants/mutant.go", c.Area)
		case c.Level != contract.MAY && !broken[c.ID]:
			t.Errorf("%s %s: no mutant breaks it: add one to internal/selftest/mutants/%s", c.Level, c.ID, file)
		}
	}
}

// A mutant that was tested before must behave as one that was not.
func TestEntriesShareNoState(t *testing.T) {
	list := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"tools":[]}`) })
	var statuses []int
	for range 2 {
		m, ok := Find("cursor-works-once")
		must.Assert(t, ok, "the mutant is gone")
		handler := m.Middleware(list)
		for range 2 {
			rec := httptest.NewRecorder()
			handler.ServeHTTP(rec, httptest.NewRequest("GET", "/mcp/tools/list?cursor=NTA=", nil))
			statuses = append(statuses, rec.Code)
		}
	}
	want := []int{200, 400, 200, 400}
	must.Expect(t, slices.Equal(statuses, want), "the statuses are %v, not %v", statuses, want)
}

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
		}), []reports.Finding{{Tool: "whoami"}, {Tool: "whoami", Identity: "discoverer"}, {Tool: "content.list", Identity: "admin"}, {Tool: "whoami", Identity: "admin"},
			{Tool: "whoami", Identity: "agent"}}}, // by other credentials
		{"access/bad-credentials", onResponse(allRequests, func(x *exchange) {
			if _, password, _ := x.Request.BasicAuth(); password == "" && x.Status == http.StatusUnauthorized {
				x.Status = http.StatusInternalServerError
			}
		}), []reports.Finding{{Identity: "a digest"}, {Identity: "an unknown scheme"}, {Identity: "no base64"},
			{Identity: "no base64 characters"}, {Identity: "no colon"}, {Identity: "no scheme"}, {Identity: "nothing after the scheme"}, {Identity: "the scheme alone"}}},
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
