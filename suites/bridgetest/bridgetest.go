// Package bridgetest puts a bridge under test in one call: it serves a mock Drupal, which can go down and come back, starts
// the bridge before it, and gives clients that call the bridge as each account of the site. Five lines test a handler:
//
//	func TestBridge(t *testing.T) {
//		stand := bridgetest.Start(t, bridgetest.Handler(func(t testing.TB, site string) http.Handler {
//			return mybridge.New(site)
//		}))
//		suites.RunT(t, stand.Target(), stand.Options())
//	}
//
// For tests of one's own, stand.As(suites.Agent) sends requests, package match has the matchers, and stand.Drupal shows
// what reached the site. Everything ends with the test.
package bridgetest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/processtree"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// How long a bridge that Start starts may show the old state of a site that changed, and may wait for the site, unless
// Options say otherwise. A bridge of Command is told by its environment.
const (
	DiscoveryTTL    = time.Second
	UpstreamTimeout = 2 * time.Second
)

// Bridge starts a bridge before the site at a URL and returns the bridge's own URL. What it starts ends with the test.
type Bridge func(t testing.TB, site string) (url string)

// Handler is a bridge that is an http.Handler of the test's own process.
func Handler(of func(t testing.TB, site string) http.Handler) Bridge {
	return func(t testing.TB, site string) string {
		server := httptest.NewServer(of(t, site))
		t.Cleanup(server.Close)
		return server.URL
	}
}

// Command is a bridge that is a program. It gets the environment variables that `bridgecheck run --exec` sets: DRUPAL_URL,
// BRIDGE_LISTEN (HOST:PORT to listen on), BRIDGE_DISCOVERY_TTL and BRIDGE_UPSTREAM_TIMEOUT in seconds, and the account of
// DRUPAL_USER. It is ready when it responds to a request for its list with anything but 502 to 504.
func Command(name string, args ...string) Bridge {
	return func(t testing.TB, site string) string {
		t.Helper()
		listen, release, err := freeport.Address()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
		cmd := exec.Command(name, args...)
		cmd.Env = append(cmd.Environ(), "DRUPAL_URL="+site, "BRIDGE_LISTEN="+listen, "DRUPAL_USER=service", "DRUPAL_PASSWORD=service-pass",
			fmt.Sprintf("BRIDGE_DISCOVERY_TTL=%d", int(DiscoveryTTL.Seconds())), fmt.Sprintf("BRIDGE_PERMISSION_TTL=%d", int(DiscoveryTTL.Seconds())),
			fmt.Sprintf("BRIDGE_UPSTREAM_TIMEOUT=%d", int(UpstreamTimeout.Seconds())),
			"BRIDGE_AUTH_ADDRESS_FAILURES=100000", "BRIDGE_AUTH_TOTAL_FAILURES=100000")
		cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
		group := processtree.NewGroup()
		t.Cleanup(func() { group.Close(5 * time.Second) })
		if _, err := group.Start(cmd); err != nil {
			t.Fatalf("start the bridge %q: %v", name, err)
		}
		url := "http://" + listen
		if err := ready(t.Context(), url+check.ListPath); err != nil {
			t.Fatalf("the bridge %q: %v", name, err)
		}
		return url
	}
}

// readyTime is how long a program may take until it serves.
const readyTime = 30 * time.Second

func ready(ctx context.Context, list string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	last := "no connection"
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, list, nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if !client.Failing(response.StatusCode) {
				return nil
			}
			last = response.Status
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("it was not ready within %v: %s for GET %s", readyTime, last, list)
		}
	}
}

// Options change what Start starts. The zero value is the default site, served by a mock without peculiarities.
type Options struct {
	Site            *fixtures.Site // nil: the built-in site default
	Mock            mockdrupal.Options
	DiscoveryTTL    time.Duration // of the bridge; 0: DiscoveryTTL
	UpstreamTimeout time.Duration // of the bridge; 0: UpstreamTimeout
}

// Stand is a bridge with a mock Drupal behind it.
type Stand struct {
	Drupal  *mockdrupal.Drupal // changes the site, arms faults, shows what reached it
	SiteURL string
	URL     string // of the bridge

	t       testing.TB
	options Options
}

// Start serves a mock Drupal at 127.0.0.1 and starts the bridge before it. Options are at most one.
func Start(t testing.TB, bridge Bridge, o ...Options) *Stand {
	t.Helper()
	s := &Stand{t: t}
	if len(o) > 0 {
		s.options = o[0]
	}
	site := s.options.Site
	if site == nil {
		site = must.Get(fixtures.Builtin("default"))(t)
	}
	s.Drupal = must.Get(mockdrupal.New(site, s.options.Mock))(t)
	server := must.Get(s.Drupal.Listen("127.0.0.1:0"))(t)
	t.Cleanup(func() { server.Close() })
	s.SiteURL = server.URL
	s.URL = bridge(t, server.URL)
	return s
}

// Target is the bridge, for suites.Run, suites.RunT and specs.Register.
func (s *Stand) Target() suites.Target { return suites.Target{URL: s.URL} }

// Options are those of a run against the bridge with its mock; fill in the capabilities and what else is known.
func (s *Stand) Options() suites.Options {
	b := suites.Bridge{DiscoveryTTL: s.options.DiscoveryTTL, UpstreamTimeout: s.options.UpstreamTimeout}
	b.DiscoveryTTL = cmp.Or(b.DiscoveryTTL, DiscoveryTTL)
	b.UpstreamTimeout = cmp.Or(b.UpstreamTimeout, UpstreamTimeout)
	return suites.Options{Site: suites.Site{Drupal: s.Drupal}, Bridge: b}
}

// As is a client that calls the bridge as an account of the site, by the first scheme of authentication that the
// capabilities claim; none means suites.DefaultCapabilities. Its List, Describe, Invoke and Send return the response, which
// the matchers of package match take.
func (s *Stand) As(who suites.Identity, capabilities ...string) check.Client {
	s.t.Helper()
	o := s.Options()
	o.Capabilities = capabilities
	client, err := engine.Client(s.t.Context(), s.Target(), o, who)
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}
