package suites_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
)

// Replicas behind one URL, which takes turns, are blamed neither for a TTL of which one shows the end early, as where replicas tell
// each other what changed, nor for the time that the end of a session takes from one to the other.
func TestReplicasBehindOneURL(t *testing.T) {
	for clause, early := range map[string]bool{"access/anonymous-granted": true, "mcp/session": false} {
		t.Run(clause, func(t *testing.T) {
			t.Parallel()
			drupal := defaultSite(t, mockdrupal.Options{}, nil)
			site := serveAt(t, drupal)
			replica := func(ttl time.Duration) http.Handler {
				o := bridge.Options{Drupal: site, DiscoveryOptions: bridge.DiscoveryOptions{DiscoveryTTL: ttl, PermissionTTL: ttl}}
				o.SessionKeys = []caller.Secret{"these replicas have a key in common that is no secret"}
				return reference(t, o)
			}
			quick, slow := replica(50*time.Millisecond), []http.Handler{replica(time.Second), replica(time.Second)}
			var turn atomic.Int64
			at := serveAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				who, _, _ := r.BasicAuth()
				one, other := slow[turn.Add(1)%2], slow[turn.Load()%2]
				switch {
				case early && strings.HasPrefix(who, "check-"):
					one = quick
				case r.Method == http.MethodDelete:
					one, other = slow[0], slow[1]
					late := r.Clone(t.Context())
					time.AfterFunc(200*time.Millisecond, func() { other.ServeHTTP(httptest.NewRecorder(), late) })
				}
				one.ServeHTTP(w, r)
			}))
			report := must.Get(suites.Run(t.Context(), suites.Target{URL: at}, suites.Options{Site: suites.Site{Drupal: drupal},
				Capabilities: append([]string{"mcp", "permission-ttl", "discovery-cache"}, suites.DefaultCapabilities()...), Only: []string{clause}}))(t)
			got := verdicts(report)[clause]
			must.Expect(t, got.Verdict == reports.Pass, "%s: %s; measured %v", got.Verdict, got.Message, report.Measured)
		})
	}
}

// Lists that a busy bridge refuses while a run measures do not show that it keeps what was before: it caches for less time than a check
// of its cache takes, and is not blamed for that.
func TestListsThatFailMeasureNothing(t *testing.T) {
	drupal := defaultSite(t, mockdrupal.Options{}, nil)
	const ttl = 300 * time.Millisecond
	t.Parallel()
	b := reference(t, bridge.Options{Drupal: serveAt(t, drupal), DiscoveryOptions: bridge.DiscoveryOptions{DiscoveryTTL: ttl, PermissionTTL: ttl}})
	var seen sync.Map // the accounts that the run measures with, which come first, once each
	var accounts atomic.Int64
	at := serveAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(30 * time.Millisecond)
		who, _, _ := r.BasicAuth()
		if _, again := seen.LoadOrStore(who, strings.HasPrefix(who, "check-") && accounts.Load() < 3); !again && strings.HasPrefix(who, "check-") {
			accounts.Add(1)
		} else if measures, _ := seen.Load(who); measures == true {
			time.Sleep(100 * time.Millisecond)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusServiceUnavailable)
			w.Write([]byte(`{"error":{"code":"upstream_unavailable","message":"busy"}}`)) //nolint:errcheck // the run has gone
			return
		}
		b.ServeHTTP(w, r)
	}))
	report := must.Get(suites.Run(t.Context(), suites.Target{URL: at}, suites.Options{Site: suites.Site{Drupal: drupal},
		Capabilities: append([]string{"permission-ttl", "discovery-cache"}, suites.DefaultCapabilities()...), Only: []string{"list/next-cursor-type", "fresh/cache-hit"}}))(t)
	got := verdicts(report)["fresh/cache-hit"]
	must.Expect(t, got.Verdict == reports.NotTestable, "%s: %s; measured %v", got.Verdict, got.Message, report.Measured)
}
