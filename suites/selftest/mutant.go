// Package mutants proves the checks: deliberately broken bridges, each wrong in one realistic way, that must fail the
// clause meant for them, and correct bridges that differ from the reference wherever the contract leaves room, that must
// fail nothing. A mutant is the reference bridge with a few lines on a shared mechanism: in front of it, between it and
// the site, or in its options. This package alone may import bridge beside suites.
package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
)

// Origin tells where a mutant's fault was met.
type Origin string

// The origins of a fault.
const (
	Module   Origin = "module"   // seen on the real Drupal module
	Peer     Origin = "peer"     // seen on another bridge or server
	Imagined Origin = "imagined" // not met yet
)

// Mutant is a bridge that differs from the reference. With Breaks it is wrong; without it is a correct variant.
type Mutant struct {
	Name   string
	Breaks []string // the clauses meant to fail; nil: a correct bridge
	Free   []string // the clauses that may fall: of a variant the SHOULDs that it makes no use of, of a mutant what chance decides
	Origin Origin
	Why    string // what a correct variant uses of the contract's room, or what the fault does to people

	Front    func(next http.Handler) http.Handler           // between the caller and the bridge
	Wired    func(site *wire) front                         // a Front with its own way to the site, past the bridge
	Upstream func(next http.RoundTripper) http.RoundTripper // between the bridge and the site
	Options  func(*bridge.Options)                          // other settings of the reference
	Server   func(*http.Server)                             // other settings of the server that it runs on
	MCP      bool                                           // MCP is what it changes; all others are judged by the three endpoints, of which MCP is a mirror
	Stdout   func(io.Writer) io.Writer                      // between the bridge's stdout and the caller, where it speaks MCP on stdio
	Claims   string                                         // changes to the capabilities, as --capabilities takes them
	Site     string                                         // built-in site behind it; "" is default
	Setup    string                                         // of the reference that it differs from; "" is attribute
}

// Clauses is the list of a mutant's meant clauses.
func Clauses(ids ...string) []string { return ids }

// TTL is how long a bridge on a stand may show a changed site's old state, on the stand's own clock.
const TTL = time.Second

// UpstreamTimeout is how long a bridge on a stand waits for the site.
const UpstreamTimeout = 500 * time.Millisecond

// maxAnswer is the longest answer of the site that a bridge on a stand reads, in bytes: more than any but the endless one.
const maxAnswer = 2 << 20

// maxBody is the longest request that a bridge on a stand reads, in bytes: more than any but the endless one.
const maxBody = 2 << 20

// Stand is a mock Drupal with a bridge in front of it, on this machine, both on one clock that only Advance moves on
// beyond real time.
type Stand struct {
	URL    string
	Drupal *mockdrupal.Drupal

	ahead  atomic.Int64
	bridge *bridge.Bridge
	site   *mockdrupal.Server
	front  *http.Server
	stdout func(io.Writer) io.Writer
}

// Serve starts the stand of a mutant; the zero Mutant is the reference bridge. Close ends it.
func Serve(m Mutant) (*Stand, error) {
	name := m.Site
	if name == "" {
		name = "default"
	}
	site, err := fixtures.Builtin(name)
	if err != nil {
		return nil, err
	}
	setup := m.setup()
	if setup.Site != nil {
		setup.Site(site)
	}
	s := &Stand{stdout: m.Stdout}
	if s.Drupal, err = mockdrupal.New(site, mockdrupal.Options{Now: s.Now}); err != nil {
		return nil, fmt.Errorf("start the mock Drupal: %w", err)
	}
	if s.site, err = s.Drupal.Listen("127.0.0.1:0"); err != nil {
		return nil, err
	}
	options := bridge.Options{Drupal: s.site.URL, DiscoveryTTL: TTL, PermissionTTL: TTL,
		MaxAnswer: maxAnswer, MaxBody: maxBody,
		UpstreamTimeout: UpstreamTimeout, Now: s.Now, Logger: slog.New(slog.DiscardHandler)}
	setup.Bridge(&options)
	if m.Upstream != nil {
		options.Transport = m.Upstream(&http.Transport{MaxIdleConnsPerHost: 256})
	}
	if m.Options != nil {
		m.Options(&options)
	}
	if s.bridge, err = bridge.New(options); err != nil {
		s.Close()
		return nil, fmt.Errorf("start the bridge: %w", err)
	}
	var handler http.Handler = s.bridge
	if m.Front != nil {
		handler = m.Front(handler)
	}
	if m.Wired != nil {
		handler = m.Wired(&wire{options.Drupal})(handler)
	}
	frontAt, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Close()
		return nil, err
	}
	s.front = serve(frontAt, handler, m.Server)
	s.URL = "http://" + frontAt.Addr().String()
	return s, nil
}

func serve(at net.Listener, h http.Handler, settings func(*http.Server)) *http.Server {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ErrorLog: silent()}
	if settings != nil {
		settings(server)
	}
	go server.Serve(at) //nolint:errcheck // it ends with Close
	return server
}

// Now is the stand's time.
func (s *Stand) Now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// Advance moves the stand's clock on.
func (s *Stand) Advance(d time.Duration) { s.ahead.Add(int64(d)) }

// Stdio has the bridge speak MCP on a pipe, signed in as service, as it would as a process of its own.
func (s *Stand) Stdio(context.Context) (io.ReadWriteCloser, error) {
	in, toBridge := io.Pipe()
	fromBridge, out := io.Pipe()
	var stdout io.Writer = out
	if s.stdout != nil {
		stdout = s.stdout(out)
	}
	go func() {
		// The bridge says why it stops to the operator; a caller sees that it did.
		err := s.bridge.ServeStdio(context.Background(), in, stdout, "service", "service-pass")
		out.CloseWithError(err)
	}()
	return pipes{fromBridge, toBridge}, nil
}

// pipes are a process's stdout and stdin.
type pipes struct {
	*io.PipeReader
	stdin *io.PipeWriter
}

func (p pipes) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// Close ends both, and with them the bridge.
func (p pipes) Close() error { return errors.Join(p.stdin.Close(), p.PipeReader.Close()) }

// Close ends the servers and their connections.
func (s *Stand) Close() {
	if s.front != nil {
		s.front.Close()
	}
	if s.bridge != nil {
		s.bridge.Close()
	}
	s.site.Close()
}

// Judge runs the suites against a mutant. Options of the run may narrow it; target, mock and clock are the stand's.
func Judge(ctx context.Context, m Mutant, o suites.Options) (*reports.Report, error) {
	stand, err := Serve(m)
	if err != nil {
		return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	defer stand.Close()
	setup := m.setup()
	if o.Capabilities, err = suites.Claim(setup.Claimed, m.Claims); err != nil {
		return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	if m.Name != "" && !m.MCP {
		o.Capabilities = slices.DeleteFunc(o.Capabilities, func(c string) bool { return strings.HasPrefix(c, "mcp") })
	}
	if setup.Settings != nil {
		setup.Settings(&o)
	}
	o.Stdio = stand.Stdio
	o.Drupal, o.DiscoveryTTL, o.UpstreamTimeout, o.Advance = stand.Drupal, TTL, UpstreamTimeout, stand.Advance
	return suites.Run(ctx, suites.Target{URL: stand.URL, Name: m.Name}, o)
}

// silent is where the servers' own complaints go: broken connections are what they are here for.
func silent() *log.Logger { return slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) }
