package site

import (
	"context"
	"net/http"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// On a busy machine calls of a check that ended reach the site while the next one counts its own: they were blamed on the bridge.
func TestWhatComesLateIsNotTheNextChecks(t *testing.T) {
	mock := must.Get(mockdrupal.New(must.Get(fixtures.Builtin("default"))(t), mockdrupal.Options{}))(t)
	server := must.Serve(t, mock)
	drupal := &Drupal{Upstream: &Upstream{Recorder: mock}, Mock: mock}
	begin := func() { drupal.Begin(func(func(context.Context)) {}) }
	seen := func(user string) int {
		req := must.Get(http.NewRequest(http.MethodGet, server.URL+"/jsonrpc/methods", nil))(t)
		req.SetBasicAuth(user, user+"-pass")
		must.Get(http.DefaultClient.Do(req))(t).Body.Close()
		return len(drupal.Journal())
	}
	begin()
	made, shared := string(drupal.NewUser()), drupal.NewUser()
	drupal.Share(shared)
	must.Equal(t, seen(made), 1, "requests of the check's own account")
	begin()
	must.Equal(t, seen(made), 0, "requests of the account of an earlier check")
	must.Equal(t, seen(string(shared)), 1, "requests of an account of all checks")
	must.Equal(t, seen("agent"), 2, "requests of the agent beside it")
}
