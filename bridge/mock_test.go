package bridge_test

import (
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bridgecheck/bridge"
	"bridgecheck/bridge/upstream"
	"bridgecheck/fixtures"
	"bridgecheck/mockdrupal"
	"bridgecheck/mockdrupal/module"
)

// mock serves a built-in site.
func mock(t *testing.T, name string, change func(*fixtures.Site)) *httptest.Server {
	t.Helper()
	s, err := fixtures.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	s = s.Clone()
	change(s)
	face, err := module.Face(module.V13)
	if err != nil {
		t.Fatal(err)
	}
	d, err := mockdrupal.New(s, mockdrupal.Options{Faces: []mockdrupal.Face{face}})
	if err != nil {
		t.Fatal(err)
	}
	behind := httptest.NewServer(d)
	t.Cleanup(behind.Close)
	return behind
}

var toolName = regexp.MustCompile(`\{"name":"([^"]*)","(?:title|description)"`)

// all lists every tool's name, page by page.
func all(t *testing.T, front *httptest.Server, user string) []string {
	t.Helper()
	var names []string
	for path := "/mcp/tools/list"; path != ""; {
		r := send(t, front, user, "GET", path, "")
		if r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		for _, m := range toolName.FindAllStringSubmatch(r.Body, -1) {
			names = append(names, m[1])
		}
		_, next, more := strings.Cut(r.Body, `,"nextCursor":"`)
		if path = ""; more {
			path = "/mcp/tools/list?cursor=" + strings.TrimSuffix(next, `"}`)
		}
	}
	return names
}

// The module's own list, with all its faults, gives the same tools as the site's methods do.
func TestTheModulesListGivesTheSameTools(t *testing.T) {
	for _, name := range []string{"default", "transcripts"} {
		t.Run(name, func(t *testing.T) {
			behind := mock(t, name, func(s *fixtures.Site) { s.Extensions, s.Auth.MCP = true, []string{"basic"} })
			byMethods := all(t, front(t, bridge.Options{Drupal: behind.URL}), "agent")
			byModule := all(t, front(t, bridge.Options{Drupal: behind.URL, Source: bridge.SourceModule}), "agent")
			slices.Sort(byMethods)
			slices.Sort(byModule)
			if len(byMethods) < 20 || !slices.Equal(byMethods, byModule) {
				t.Errorf("%d tools by methods, %d by the module's list\n%v\n%v", len(byMethods), len(byModule), byMethods, byModule)
			}
		})
	}
}

// A poisoned site costs the tools that are poisoned, and says which.
func TestAPoisonedSiteLosesOnlyItsBadTools(t *testing.T) {
	behind := mock(t, "poisoned", func(*fixtures.Site) {})
	f := front(t, bridge.Options{Drupal: behind.URL, AdminTokens: []upstream.Secret{"operator"}})
	names := all(t, f, "agent")
	good := 0
	for _, name := range names {
		if strings.HasPrefix(name, "good.") {
			good++
		}
	}
	r := send(t, f, "", "GET", "/mcp/admin/diagnostics", "", "Authorization", "Bearer operator")
	if good == 0 || r.Status != 200 || !strings.Contains(r.Body, `"quarantined":true`) {
		t.Errorf("%d good tools of %v; diagnostics %d %s", good, names, r.Status, r.Body)
	}
}

func front(t *testing.T, o bridge.Options) *httptest.Server {
	t.Helper()
	b, err := bridge.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, b)
}
