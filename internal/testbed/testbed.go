// Package testbed starts the reference bridge over the mock Drupal, both in this process, in one of the profiles in which
// the reference bridge is tested. A run without a target tests a testbed; the selftest tests testbeds with a fault in
// them. It is no mutant and no check, and decides no verdict.
//
// Invariant: bridge and mock share one clock, which is ahead of real time by what Advance added and by nothing else.
//
// A request goes from the caller through Options.Middleware to the bridge, from there through Options.Transport to the
// mock, and the response goes back the same way. On stdio it goes to the bridge directly and back through Options.Stdout.
package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/upstream"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/inmemory"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/module"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

// TTL is how long the bridge may show the old state of a site that changed, on the testbed's clock, and PermissionTTL how long
// a caller's old permissions. They are so far apart, and so long, that no check that waits in real time takes one for the other.
const TTL, PermissionTTL = 6 * time.Second, 2500 * time.Millisecond

// UpstreamTimeout is how long the bridge waits for the site unless Options.Bridge says otherwise.
const UpstreamTimeout = 500 * time.Millisecond

// The largest bodies that the bridge reads, in bytes: larger than all that the checks send except the endless ones.
const (
	MaxResponse = 2 << 20 // of the site
	MaxBody     = 2 << 20 // of the caller
)

// The account that the bridge uses where it speaks MCP on stdio.
const (
	stdioUser     = "service"
	stdioPassword = "service-pass"
)

// Options configure a testbed. The zero value is the reference bridge in the first profile.
type Options struct {
	Profile string           // name of the profile; "" is the first one
	Keys    *authserver.Keys // of the authorization server; nil: new ones
	Fixture string           // name of the built-in site; "" is default
	Module  string           // beside the site's own interface, as package module names it; "": none

	Bridge     func(*bridge.Options)                              // changes the settings of the profile
	Middleware func(b Backends, bridge http.Handler) http.Handler // between the caller and the bridge
	Transport  func(site http.RoundTripper) http.RoundTripper     // between the bridge and the site
	Stdout     func(io.Writer) io.Writer                          // between the bridge's stdout and the caller
	Server     func(*http.Server)                                 // changes the settings of the bridge's HTTP server
}

// Backends are what the bridge of a testbed talks to.
type Backends struct {
	SiteURL   string
	Authority *authserver.Server // nil in a profile without OAuth
	Resource  string             // the bridge's MCP endpoint, the audience of tokens
	Replica   int                // of the bridge, from 0
	Transport http.RoundTripper  // for requests that a change sends past the bridge
}

// Testbed is a bridge with a mock Drupal behind it, both listening on 127.0.0.1. Dial saves requests the way through the
// kernel, as the bridge's way to the mock is saved.
type Testbed struct {
	URL       string // of the bridge
	Drupal    *mockdrupal.Drupal
	Authority *authserver.Server // whose tokens the bridge takes; nil in a profile without OAuth
	Profile   Profile

	ahead    atomic.Int64 // nanoseconds between real time and Now
	options  Options
	settings bridge.Options     // of every replica
	replicas []*replica         // the first at URL
	memory   *inmemory.Listener // of the bridge at URL
	site     *mockdrupal.Server
	stdout   func(io.Writer) io.Writer
}

// replica is a bridge with its HTTP server.
type replica struct {
	url     string
	bridge  *bridge.Bridge
	handler http.Handler
	server  *http.Server
}

// Start starts a testbed. Close ends it.
func Start(o Options) (*Testbed, error) {
	p, err := profile(o.Profile)
	if err != nil {
		return nil, err
	}
	t := &Testbed{Profile: p, options: o, stdout: o.Stdout}
	if err := t.start(o); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Testbed) start(o Options) (err error) {
	o.Fixture = cmp.Or(o.Fixture, "default")
	site, err := fixtures.Builtin(o.Fixture)
	if err != nil {
		return err
	}
	t.Profile.Site(site)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start the bridge: %w", err)
	}
	t.URL, t.memory = "http://"+listener.Addr().String(), inmemory.Listen(listener.Addr())
	defer func() {
		if err != nil {
			listener.Close()
		}
	}()
	mock := mockdrupal.Options{Now: t.Now}
	if o.Module != "" {
		module.ForMCP(site)
		extension, err := module.New(o.Module)
		if err != nil {
			return err
		}
		mock.Extensions = append(mock.Extensions, extension)
	}
	if slices.Contains(t.Profile.Capabilities, check.OAuth) {
		if t.Authority, err = authserver.Listen("127.0.0.1:0", authserver.Options{Now: t.Now, Keys: o.Keys, Login: func(account, secret string) bool { return t.Drupal.LogsIn(account, secret) }}); err != nil {
			return err
		}
		mock.Trusted = t.Authority.Account
	}
	if t.Drupal, err = mockdrupal.New(site, mock); err != nil {
		return fmt.Errorf("start the mock Drupal: %w", err)
	}
	if t.site, err = t.Drupal.Listen("127.0.0.1:0"); err != nil {
		return fmt.Errorf("start the mock Drupal: %w", err)
	}
	settings := bridge.Options{
		Drupal:           t.site.URL,
		DiscoveryOptions: bridge.DiscoveryOptions{DiscoveryTTL: TTL, PermissionTTL: PermissionTTL},
		CallOptions:      bridge.CallOptions{UpstreamTimeout: UpstreamTimeout, MaxAnswer: MaxResponse},
		ServingOptions:   bridge.ServingOptions{MaxBody: MaxBody},
		Now:              t.Now,
		Logger:           slog.New(slog.DiscardHandler),
		CallerOptions:    bridge.CallerOptions{AddressFailures: maxRefusals, TotalFailures: maxRefusals},
	}
	t.Profile.Bridge(&settings)
	if t.Authority != nil {
		settings.OAuthIssuer, settings.OAuthResource = t.Authority.URL, t.URL+check.MCPPath
		if slices.Contains(t.Profile.Capabilities, check.TokenExchange) {
			settings.OAuthExchange, settings.OAuthClient, settings.OAuthClientSecret = t.site.URL, authserver.Client, authserver.ClientSecret
		}
	}
	toSite := upstream.NewTransport(nil)
	toSite.DialContext = t.site.Dial
	if settings.Transport = toSite; o.Transport != nil {
		settings.Transport = o.Transport(&http.Transport{DialContext: t.site.Dial, MaxIdleConnsPerHost: 256})
	}
	if o.Bridge != nil {
		o.Bridge(&settings)
	}
	t.settings = settings
	for n := range max(1, t.Profile.Replicas) {
		if n > 0 {
			if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
				return fmt.Errorf("start the bridge: %w", err)
			}
		}
		t.replicas = append(t.replicas, &replica{})
		if err := t.serve(n, listener); err != nil {
			return err
		}
	}
	return nil
}

// serve starts a replica.
func (t *Testbed) serve(n int, listener net.Listener) (err error) {
	r := t.replicas[n]
	r.url = "http://" + listener.Addr().String()
	if n > 0 && t.Profile.OneBridge {
		r.bridge = t.replicas[0].bridge
	} else if r.bridge, err = bridge.New(t.settings); err != nil {
		listener.Close()
		return fmt.Errorf("start the bridge: %w", err)
	}
	if r.handler == nil {
		r.handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.bridge.ServeHTTP(w, q) }) // which a restart replaces
		if t.options.Middleware != nil {
			r.handler = t.options.Middleware(Backends{t.site.URL, t.Authority, t.settings.OAuthResource, n, http.DefaultTransport}, r.handler)
		}
	}
	// Broken connections are part of the tests, so the server does not log them.
	r.server = &http.Server{Handler: r.handler, ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	if t.options.Server != nil {
		t.options.Server(r.server)
	}
	go r.server.Serve(listener) //nolint:errcheck // it ends with Close
	if n == 0 {
		go r.server.Serve(t.memory) //nolint:errcheck // as above
	}
	return nil
}

// Dial connects to the bridge at URL in memory, and to all else by TCP. It is a suites.Dial.
func (t *Testbed) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return t.memory.DialContext(ctx, network, address)
}

// Replicas are those of the bridge beside the one at URL.
func (t *Testbed) Replicas() []check.Replica {
	var others []check.Replica
	for n, r := range t.replicas[1:] {
		others = append(others, check.Replica{URL: r.url, Kill: func() error { return t.kill(r) }, Start: func(ctx context.Context) error {
			listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", strings.TrimPrefix(r.url, "http://"))
			if err != nil {
				return err
			}
			return t.serve(n+1, listener)
		}})
	}
	return others
}

// kill ends a replica with all that it does.
func (t *Testbed) kill(r *replica) error {
	err := r.server.Close()
	if !t.Profile.OneBridge || r == t.replicas[0] {
		r.bridge.Close()
	}
	return err
}

// Now returns the time on the testbed's clock.
func (t *Testbed) Now() time.Time { return time.Now().Add(time.Duration(t.ahead.Load())) }

// Advance moves the testbed's clock forward.
func (t *Testbed) Advance(d time.Duration) { t.ahead.Add(int64(d)) }

// Stdio connects to the bridge as an MCP client on stdin and stdout does, authenticated as the account service. Closing
// the connection ends the session.
func (t *Testbed) Stdio(context.Context) (io.ReadWriteCloser, error) {
	stdin, toBridge := io.Pipe()
	fromBridge, out := io.Pipe()
	var stdout io.Writer = out
	if t.stdout != nil {
		stdout = t.stdout(out)
	}
	go func() {
		// The caller reads the reason for the end in place of io.EOF.
		out.CloseWithError(t.replicas[0].bridge.ServeStdio(context.Background(), stdin, stdout, stdioUser, stdioPassword))
	}()
	return pipes{fromBridge, toBridge}, nil
}

// pipes are the stdout and the stdin of a bridge.
type pipes struct {
	*io.PipeReader
	stdin *io.PipeWriter
}

func (p pipes) Write(b []byte) (int, error) { return p.stdin.Write(b) }

func (p pipes) Close() error { return errors.Join(p.stdin.Close(), p.PipeReader.Close()) }

// Close ends the servers and their connections.
func (t *Testbed) Close() {
	for _, r := range t.replicas {
		if r.server != nil {
			t.kill(r) //nolint:errcheck // it ends anyway
		}
	}
	if t.site != nil {
		t.site.Close()
	}
	if t.Authority != nil {
		t.Authority.Close()
	}
}

// maxRefusals is above what a run sends of credentials that the site refuses, all from one address.
const maxRefusals = 10_000
