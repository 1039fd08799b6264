package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/control"
	"github.com/bridgecheck/bridgecheck/mockdrupal/module"
	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// stage is what a run needs while it lasts: the bridge, and the mock Drupal behind it if there is one.
type stage struct {
	target    engine.Target
	drupal    *mockdrupal.Drupal
	siteURL   string                                            // of drupal as the bridge reaches it; "": the reference bridge's site in this process
	site      *url.URL                                          // the real one behind the bridge; nil: none
	recorder  *proxy.Proxy                                      // in front of the real site; nil: none
	control   *site.Remote                                      // changes the real site; nil: it is only read
	keys      *authserver.Keys                                  // of authority
	authority *authserver.Server                                // whose tokens the bridge takes; nil: the run has none
	bridge    *process                                          // the bridge of --exec; nil otherwise
	replicas  []check.Replica                                   // of the bridge beside the target
	apart     *check.Replica                                    // with TTLs that differ; nil: it cannot be started
	advance   func(time.Duration)                               // moves the clock of the bridge in this process and of its site
	clock     func(time.Duration)                               // moves the one that the bridge of --exec may go by; nil: there is none
	dial      engine.Dial                                       // connects to the bridge; nil: by TCP
	stdio     func(context.Context) (io.ReadWriteCloser, error) // nil: the bridge does not speak MCP on stdio
	stops     []func()                                          // in the order of the starts

	discoveryTTL, permissionTTL, upstreamTimeout time.Duration // that the bridge was started with; 0: unknown
}

// close stops what was started, in reverse order.
func (s *stage) close() {
	for _, stop := range slices.Backward(s.stops) {
		stop()
	}
}

// stage starts what the plan requires. When it fails, nothing is left running.
func (p *plan) stage(ctx context.Context, l leg) (*stage, error) {
	s := &stage{target: p.target, keys: p.keys}
	for _, url := range p.moreURLs {
		s.replicas = append(s.replicas, check.Replica{URL: url})
	}
	var err error
	switch {
	case p.exec != "":
		err = s.execute(ctx, p, l.options)
	case p.stdioAlone:
		err = s.overStdio(ctx, p, l.options)
	case p.proxy.site != nil:
		_, err = s.real(ctx, p.proxy)
	case p.target.URL == "":
		err = s.inProcess(l)
	case p.mockListen != "":
		_, err = s.mock(ctx, p, p.mockListen, l.options)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// After so many ends of the bridge the rest of a bundle is left untested, and for what reason.
const (
	mostEnds    = 3
	bridgeEnded = "the bridge ended by itself"
)

// part tests what is left of a bundle. Where the bridge of --exec ends by itself, the clause that was tested fails, and those
// after it are tested with another.
func (p *plan) part(ctx context.Context, l leg) (*engine.Part, error) {
	take, began := l.options.Pass.Take, time.Now()
	open := map[string]bool{} // by clause: it was taken and has to be tested still
	if take != nil {
		l.options.Pass.Take = func(clause string) bool {
			again, taken := open[clause]
			open[clause] = false
			return again || !taken && take(clause)
		}
	}
	var whole *engine.Part
	for ends := 1; ; ends++ {
		part, end, err := p.onStage(ctx, l)
		switch {
		case whole == nil:
			whole = part
		case err != nil:
			whole.Report.CutShort, err = err.Error(), nil
			return whole, nil
		default:
			whole.Continue(part)
		}
		if err != nil || end.how == "" {
			return whole, err
		}
		short := whole.Report.CutShort
		if err := whole.Ended(end.clause, end.how, end.printed, end.after); err != nil {
			return nil, err
		}
		switch {
		case ctx.Err() != nil:
			whole.Report.CutShort = short
			return whole, nil
		case take == nil || ends == mostEnds:
			whole.Report.CutShort = bridgeEnded
			return whole, nil
		}
		for _, clause := range end.after {
			open[clause] = true
		}
		l.options.RunTimeout = max(time.Second, l.options.RunTimeout-time.Since(began))
		began = time.Now()
	}
}

// ending is how the bridge ended by itself, while a clause was tested; the zero value: it did not.
type ending struct {
	clause, how string
	printed     string   // its last lines
	after       []string // clauses that were begun when it had ended
}

// onStage starts the target, runs the suites against it and, without --keep, stops it.
func (p *plan) onStage(ctx context.Context, l leg) (*engine.Part, ending, error) {
	stage, err := p.stage(ctx, l)
	if err != nil {
		return nil, ending{}, err
	}
	if p.keepUp {
		p.kept = append(p.kept, &keptStage{stage: stage, profile: l.profile})
	} else {
		defer stage.close()
	}
	o := stage.options(l.options)
	o.Bridge.StdioAlone = p.stdioAlone
	if o.Bridge.Owned = p.exec != "" || p.stdioAlone; !o.Bridge.Owned && stage.drupal == nil {
		fmt.Fprintf(p.warnings, "bridgecheck: the run sends at most %d requests with wrong credentials; Drupal locks an address after 50 in an hour\n", check.MostWrong)
	}
	var end ending
	o.Pass.Started = func(clause string) {
		if stage.bridge != nil && stage.bridge.ended() != "" {
			end.after = append(end.after, clause)
		} else {
			end.clause = clause
		}
		if l.options.Pass.Started != nil {
			l.options.Pass.Started(clause)
		}
	}
	part, err := engine.RunPart(ctx, stage.target, o)
	if err != nil || stage.bridge == nil || stage.bridge.ended() == "" {
		return part, ending{}, err
	}
	fmt.Fprintf(p.warnings, "bridgecheck: the bridge ended during the run: %s%s\n", stage.bridge.ended(), stage.bridge.log.tail())
	if end.how = stage.bridge.endedByItself(); end.how == "" || end.clause == "" {
		part.Carried = "the bridge ended during the run"
		return part, ending{}, nil
	}
	end.printed = stage.bridge.log.lastLines()
	return part, end, nil
}

// options are those of a run on the stage.
func (s *stage) options(o engine.Options) engine.Options {
	if s.control != nil {
		o.Site.Control = s.control
	}
	o.Site.Drupal, o.Site.URL, o.Site.Recorder, o.Callers.Authority, o.Bridge.Advance, o.Bridge.Stdio = s.drupal, s.site, s.recorder, s.authority, s.advance, s.stdio
	o.Pass.Clock, o.Pass.Apart = s.clock, s.apart
	if s.bridge != nil {
		o.Pass.Log = s.bridge.log.text
	}
	o.Connection.Dial, o.Bridge.Replicas = s.dial, s.replicas
	o.Bridge.DiscoveryTTL = cmp.Or(o.Bridge.DiscoveryTTL, s.discoveryTTL)
	o.Bridge.PermissionTTL = s.permissionTTL
	o.Bridge.UpstreamTimeout = cmp.Or(o.Bridge.UpstreamTimeout, s.upstreamTimeout)
	return o
}

// mock serves the default site at addr, with the endpoints of a version of the MCP module if one is given, and returns its URL.
// Behind a bridge that selects tools by patterns the site shows only what the jsonrpc module shows. Where the mock of another run is
// at addr, it waits for the end of that run.
func (s *stage) mock(ctx context.Context, p *plan, addr string, o engine.Options) (string, error) {
	site, err := fixtures.Builtin(mockSite)
	if err != nil {
		return "", err
	}
	site.Extensions = !slices.Contains(o.Capabilities, "exposure-patterns")
	var modules []string
	if p.withModule != "" {
		modules = append(modules, p.withModule)
	}
	if slices.Contains(o.Capabilities, check.ExposureMCP) {
		module.ForMCP(site)
		modules = append(modules, module.MCP)
	}
	if slices.Contains(o.Capabilities, "auth-cookie") { // a real /jsonrpc accepts none by default
		site.Auth.JSONRPC = append(site.Auth.JSONRPC, "cookie")
	}
	lasts, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("letting other runs see that this one lasts: %w", err)
	}
	s.stops = append(s.stops, func() { lasts.Close() })
	mock := mockdrupal.Options{Run: lasts.Addr().String()}
	if slices.Contains(o.Capabilities, check.OAuth) {
		if s.authority, err = authserver.Listen("127.0.0.1:0", authserver.Options{Keys: s.keys, Login: func(account, secret string) bool { return s.drupal.LogsIn(account, secret) }}); err != nil {
			return "", err
		}
		s.stops = append(s.stops, s.authority.Close)
		mock.Trusted = s.authority.Account
	}
	for _, name := range slices.Compact(modules) {
		extension, err := module.New(name)
		if err != nil {
			return "", usageError(err)
		}
		mock.Extensions = append(mock.Extensions, extension)
	}
	drupal, err := mockdrupal.New(site, mock)
	if err != nil {
		return "", err
	}
	server, err := drupal.Listen(addr)
	for err != nil {
		about, is := control.Ask(ctx, addr)
		switch {
		case !is:
			return "", cannotListen("mock-listen", addr, err)
		case about.Run == "":
			return "", ofTheMock(addr, about)
		}
		fmt.Fprintf(p.warnings, "bridgecheck: another run serves its mock Drupal at %s: this one begins when that has ended\n", addr)
		if err := awaitEnd(ctx, about.Run); err != nil {
			return "", err
		}
		server, err = drupal.Listen(addr)
	}
	s.drupal = drupal
	s.stops = append(s.stops, func() { server.Close() })
	s.siteURL = reachable(server.URL)
	return s.siteURL, nil
}

// awaitEnd waits until nothing takes connections at the address any more.
func awaitEnd(ctx context.Context, address string) error {
	for {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return context.Cause(ctx)
		}
		connection.Close()
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ofTheMock is the error for an address of --mock-listen at which a mock listens that somebody has started.
func ofTheMock(addr string, about control.About) error {
	reads := "--drupal http://" + addr
	if about.Control != "" {
		reads += "; its control plane is " + about.Control
	}
	return usagef("a mock Drupal of bridgecheck listens at %s already: end it, as the run serves one of its own there, or leave --mock-listen out and test the bridge with that one behind it, which the run only reads then: %s", addr, reads)
}

// referenceBridge is the name of the bridge in this process.
const referenceBridge = "bridgecheck reference bridge"

// inProcess starts the reference bridge over the mock, both on one clock that the checks may move.
func (s *stage) inProcess(l leg) error {
	bed, err := testbed.Start(testbed.Options{Profile: l.profile, Keys: s.keys, Bridge: func(o *bridge.Options) {
		o.PageSize, o.UpstreamTimeout = l.options.Bridge.PageSize, l.options.Bridge.UpstreamTimeout
	}})
	if err != nil {
		return err
	}
	s.stops = append(s.stops, bed.Close)
	s.target = engine.Target{URL: bed.URL, Name: referenceBridge, Version: l.options.Tool.Version}
	s.drupal, s.authority, s.advance, s.dial, s.stdio = bed.Drupal, bed.Authority, bed.Advance, bed.Dial, bed.Stdio
	s.replicas = bed.Replicas()
	s.discoveryTTL, s.permissionTTL = testbed.TTL, testbed.PermissionTTL
	return nil
}

// controlled reads the site through its control plane, if there is one, and puts it back when the run ends.
func (s *stage) controlled(ctx context.Context, address string) error {
	if address == "" {
		return nil
	}
	token, err := settings.SecretFromEnv(controlTokenEnv)
	if err != nil {
		return err
	}
	client, err := control.New(address, token)
	if err != nil {
		return usagef("--control: %v", err)
	}
	var refused *control.Error
	switch s.control, err = site.OpenRemote(ctx, client); {
	case errors.As(err, &refused):
		return usagef("--control: %v; the token is that of %s", err, controlTokenEnv)
	case err != nil:
		return &engine.UnreachableError{URL: address, Reason: err}
	}
	s.stops = append(s.stops, func() {
		if err := s.control.Restore(context.WithoutCancel(ctx)); err != nil {
			slog.Error("the site could not be put back as it was", "control", address, "err", err)
		}
	})
	return nil
}
