package bridge

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/httpapi"
	"github.com/bridgecheck/bridgecheck/bridge/invoke"
	"github.com/bridgecheck/bridgecheck/bridge/mcp"
	"github.com/bridgecheck/bridgecheck/bridge/oauth"
	"github.com/bridgecheck/bridgecheck/bridge/observe"
	"github.com/bridgecheck/bridgecheck/bridge/origin"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/bridge/throttle"
	"github.com/bridgecheck/bridgecheck/bridge/translate"
	"github.com/bridgecheck/bridgecheck/bridge/upstream"
)

// core is a bridge with one set of options. A reload puts another in its place; this one ends when its last request
// is served.
type core struct {
	handler   http.Handler
	operation http.Handler // the operator's endpoints alone
	base      string       // the path below which a proxy serves the bridge
	pause     time.Duration
	plainHTTP bool
	log       *slog.Logger
	discovery *discovery.Engine
	site      *upstream.Client
	mcp       *mcp.Server
	audit     *observe.Audit
	active    sync.WaitGroup
}

// maxWorkWaiting is how many long documents may wait for a processor.
const maxWorkWaiting = 32

// none is what switches a setting off that has a default.
const none = "none"

// newCore connects the parts, from the site to the front. If it returns an error, kept is unchanged.
func newCore(o Options, kept *lasting) (*core, error) {
	o, address, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	transport := o.Transport
	if transport == nil {
		config, err := clientTLS(o.UpstreamCA)
		if err != nil {
			return nil, err
		}
		transport = upstream.NewTransport(config)
	}
	c := &core{base: o.BasePath, pause: o.DrainPause, plainHTTP: o.PlainHTTP, log: o.Logger}
	guard, err := o.guard(func() []string { return c.discovery.Scopes() })
	if err != nil {
		return nil, err
	}
	callers, err := o.callers(guard)
	if err != nil {
		return nil, err
	}
	if err := kept.make(o); err != nil {
		return nil, err
	}
	callers.Attempts = kept.attempts
	state := observe.State{SiteUp: c.siteUp, Quarantined: c.quarantined, Callers: c.callers}
	if kept.store != nil {
		state.SharedUp = kept.store.Up
	}
	m := observe.NewMetrics(state)
	c.site, err = upstream.New(upstream.Options{
		Site: address, Timeout: o.UpstreamTimeout, MaxAnswer: o.MaxAnswer, MaxInFlight: o.MaxInFlight, MaxWaiting: o.MaxWaiting,
		Transport: transport, Now: o.Now, Observe: m.Upstream,
	})
	if err != nil {
		return nil, err
	}
	c.discovery, err = discovery.New(discovery.Options{
		Source: o.source(c.site), Account: o.discoverer(), Rules: o.rules(c.site), Targets: o.targets(c.site),
		TTL: o.DiscoveryTTL, Permission: o.PermissionTTL, Refused: o.RefusedTTL, MaxStale: o.MaxStale, StaleAfter: o.StaleAfter,
		Background: o.Background, Unasked: o.MaxInFlight / 4, AtOnce: o.MaxDiscovery, MaxCallers: o.MaxCallers, Attempts: kept.attempts,
		Now: o.Now, Logger: o.Logger, Observe: m.Lookup, Changed: kept.changed,
	})
	if err != nil {
		return nil, err
	}
	memory := fair.NewMemory(max(o.MaxBuffered, 4*o.MaxBody, 4*o.MaxAnswer))
	rates := throttle.NewRates(o.RatePerSec, o.RateBurst, o.Now)
	if rates != nil && kept.store != nil {
		rates.Shared = kept.store
	}
	if c.audit, err = observe.OpenAudit(o.AuditLog, o.Now, o.Logger); err != nil {
		return nil, err
	}
	// Half of the processors work on long documents, so that the other half serves callers who send short ones.
	work := fair.NewWork(max(1, runtime.GOMAXPROCS(0)/2), maxWorkWaiting)
	invoker := &invoke.Invoker{
		Discovery: c.discovery, Site: c.site, Rates: rates, Guard: guard, Work: work, Validator: schema.NewValidator(work, m.Steps),
		Output: o.Output, Audit: c.audit, Logger: o.Logger, Observe: m.Violation,
	}
	refusals := observe.NewRefusals(o.Logger, callers, m.Refused, o.Now)
	origins := origin.New(o.AllowedHosts, hostOf(o.OAuthResource))
	c.mcp, err = mcp.New(mcp.Options{
		Callers: callers, Discovery: c.discovery, Invoker: invoker, Guard: guard, Memory: memory, Sessions: kept.sessions, Origin: origins,
		MaxBody: o.MaxBody, BodyTime: o.BodyTimeout, Time: o.RequestTimeout, WriteTime: o.WriteTimeout, SessionIdle: o.SessionIdle, Refusals: refusals,
		Fresh: min(o.DiscoveryTTL, o.PermissionTTL), Now: o.Now, Logger: o.Logger, Observe: m.Request,
	})
	if err != nil {
		return nil, err
	}
	api := &httpapi.API{
		Callers:   callers,
		Discovery: c.discovery,
		Invoker:   invoker,
		Ready:     c.site.Ready, Draining: kept.draining.Load, AdminTokens: o.AdminTokens, Memory: memory, Refusals: refusals,
		MaxBody: o.MaxBody, BodyTime: o.BodyTimeout, Time: o.RequestTimeout, WriteTime: o.WriteTimeout,
		Guard:  guard,
		Origin: origins,
		Logger: o.Logger, Observe: m.Request, Invalidated: kept.invalidated,
	}
	c.operation = api.OperationHandler(m.Handler())
	if o.AdminListen == "" {
		c.handler = api.Handler(c.mcp, c.operation)
	} else {
		c.handler = api.Handler(c.mcp, nil)
		inside := *api
		inside.Origin = origin.New(nil, "") // allowed_hosts are names by which callers reach the bridge
		c.operation = inside.OperationHandler(m.Handler())
	}
	kept.adopt(o, c.discovery)
	if kept.store != nil {
		kept.store.Observe(m.Shared)
	}
	return c, nil
}

func (c *core) close() {
	c.mcp.Drain()
	c.discovery.Close()
	c.site.Close()
	c.audit.Close()
}

func (c *core) siteUp() bool { return c.site.Ready() }

func (c *core) callers() int { return c.discovery.Callers() }

func (c *core) quarantined() int {
	n := 0
	for _, d := range c.discovery.Diagnostics() {
		if d.Quarantined {
			n++
		}
	}
	return n
}

// hostOf is the host of an address that was checked before; "" of none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// callers returns how callers are identified.
func (o Options) callers(guard *oauth.Guard) (caller.Callers, error) {
	cs := caller.Callers{Schemes: o.Credentials, Forward: o.ForwardAddress}
	var err error
	if cs.Languages, err = caller.ParseLanguages(o.Languages); err != nil {
		return cs, fmt.Errorf("languages: %w", err)
	}
	if cs.Proxies, err = caller.ParseProxies(o.TrustedProxies); err != nil {
		return cs, fmt.Errorf("trusted_proxies: %w", err)
	}
	if guard != nil {
		cs.Verify, cs.Exchange, cs.Asks = guard.Verify, guard.For, o.OAuthIntrospect
	}
	if len(o.ServiceTokens) > 0 {
		cs.Service = &caller.ServiceAccount{User: o.ServiceUser, Password: o.ServicePassword, Tokens: o.ServiceTokens}
	}
	return cs, nil
}

// discoverer is the account that discovers for all callers; nil: each does so.
func (o Options) discoverer() *caller.ServiceAccount {
	if o.Visibility != VisibilityBroad {
		return nil
	}
	return &caller.ServiceAccount{User: o.ServiceUser, Password: o.ServicePassword}
}

// guard checks tokens where an authorization server is named; nil where none is.
func (o Options) guard(scopes func() []string) (*oauth.Guard, error) {
	if o.OAuthIssuer == "" {
		return nil, nil
	}
	return oauth.New(oauth.Options{Issuer: o.OAuthIssuer, Resource: o.OAuthResource, Base: o.BasePath, Audience: o.OAuthAudience, Keys: o.OAuthJWKS,
		Exchange: o.OAuthExchange, Introspect: o.OAuthIntrospect, Client: o.OAuthClient, ClientSecret: o.OAuthClientSecret,
		Wait: o.UpstreamTimeout, Scopes: scopes, Now: o.Now})
}

func (o Options) source(site *upstream.Client) discovery.Source {
	if o.Source == SourceModule {
		return discovery.Module{Site: site}
	}
	return discovery.JSONRPC{Site: site}
}

// targets says where the values of entity references are looked up.
func (o Options) targets(site *upstream.Client) *discovery.Targets {
	if o.TargetMethod == none {
		return nil
	}
	return &discovery.Targets{Site: site, Method: o.TargetMethod, Value: o.TargetValue, Max: o.TargetMax}
}

// rules returns which methods become tools. Callers who act as a service account administer nothing by it.
func (o Options) rules(site *upstream.Client) discovery.Rules {
	r := discovery.Rules{
		Expose: o.Expose, Include: o.Include, Exclude: o.Exclude, ReadOnly: o.ReadOnly, Naming: o.Naming,
		PageSize: o.PageSize, AdminMethod: o.AdminMethod, Translator: translate.Translator{Types: o.Types},
	}
	if o.LazySchemas {
		r.Lazy = site
	}
	if o.AdminMethod == none || len(o.ServiceTokens) > 0 {
		r.AdminMethod = ""
	}
	return r
}

// clientTLS trusts a file's certificates beside the system's.
func clientTLS(file string) (*tls.Config, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := readRegular(file)
	if err != nil {
		return nil, fmt.Errorf("upstream_ca: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("upstream_ca: %s holds no certificate in PEM form", file)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
