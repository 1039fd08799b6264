package site

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/control"
)

func open(t *testing.T) (*mockdrupal.Drupal, *Remote) {
	t.Helper()
	return openBehind(t, func(site http.Handler) http.Handler { return site })
}

func openBehind(t *testing.T, proxy func(site http.Handler) http.Handler) (*mockdrupal.Drupal, *Remote) {
	t.Helper()
	site := must.Get(fixtures.Builtin("default"))(t)
	mock := must.Get(mockdrupal.New(site, mockdrupal.Options{ControlToken: "a-token"}))(t)
	server := must.Serve(t, proxy(mock))
	client := must.Get(control.New(server.URL, "a-token"))(t)
	opened := must.Get(OpenRemote(context.Background(), client))(t)
	return mock, opened
}

func TestASiteIsChangedAndRestored(t *testing.T) {
	mock, remote := open(t)
	first := len(mock.Site().Methods)
	other := remote.Site().Clone()
	other.Methods = other.Methods[:3]
	other.Users[0].Blocked = true
	remote.SetSite(other)
	must.Expect(t, len(mock.Site().Methods) == 3 && remote.Site() == other && mock.Site().Users[0].Blocked, "the site has %d methods", len(mock.Site().Methods))
	must.Do(t, remote.Restore(context.Background()))
	must.Expect(t, len(mock.Site().Methods) == first && !mock.Site().Users[0].Blocked, "the site has %d methods, had %d", len(mock.Site().Methods), first)
}

// What an earlier run has left on the site is not in the way of the next one.
func TestNewUsersAreNew(t *testing.T) {
	_, remote := open(t)
	other := remote.Site().Clone()
	other.Users = append(other.Users, fixtures.User{UID: 100, Name: "check1", Password: "check1-pass"})
	remote.SetSite(other)
	drupal := &Drupal{Upstream: &Upstream{}, Mock: remote}
	users := drupal.NewUsers(2)
	must.Expect(t, users[0] == "check2" && users[1] == "check3", "created %v beside check1", users)
}

func TestAccepts(t *testing.T) {
	_, remote := open(t)
	for name, test := range map[string]struct {
		password string
		want     bool
	}{"agent": {"agent-pass", true}, "agent2": {"agent-pass", false}, "blocked": {"blocked-pass", false}, "nobody": {"nobody-pass", false}} {
		must.Expect(t, remote.Accepts(name, test.password) == test.want, "%s with %s: accepted %v", name, test.password, !test.want)
	}
}

// A change that the control plane refuses leaves the site as it was.
func TestARefusedChange(t *testing.T) {
	mock, remote := open(t)
	before := remote.Site()
	broken := before.Clone()
	broken.Users[0].Roles = []string{"no_such_role"}
	err := remote.set(context.Background(), broken)
	if err == nil || remote.Site() != before || len(mock.Site().Methods) != len(before.Methods) {
		t.Fatal(err)
	}
	if got := reason(err); got == "" || got == err.Error() {
		t.Error(got)
	}
}

// A change whose response is lost was made all the same: it is undone.
func TestALostResponse(t *testing.T) {
	lose := false
	mock, remote := openBehind(t, func(site http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !lose {
				site.ServeHTTP(w, r)
				return
			}
			site.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		})
	})
	first := len(mock.Site().Methods)
	other := remote.Site().Clone()
	other.Methods = other.Methods[:3]
	lose = true
	err := remote.set(context.Background(), other)
	must.Assert(t, err != nil && len(mock.Site().Methods) == 3, "the change failed with %v, and the site has %d methods", err, len(mock.Site().Methods))
	lose = false
	must.Do(t, remote.Restore(context.Background()))
	must.Expect(t, len(mock.Site().Methods) == first, "the site has %d methods, had %d", len(mock.Site().Methods), first)
}
