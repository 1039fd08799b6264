// Package bridge is the reference bridge: it turns a Drupal site's JSON-RPC methods into MCP tools. It reads downward,
// as a request travels: httpapi takes the request apart, catalog says which tools the caller has, discovery fills it
// with what translate and filter make of the site's description, invoke runs a tool, upstream alone knows the site.
// Nothing here imports the mock, the fixtures or the suites: the package can be taken out and used alone.
package bridge

import (
	"fmt"
	"net/http"
	"time"

	"bridgecheck/bridge/discovery"
	"bridgecheck/bridge/httpapi"
	"bridgecheck/bridge/invoke"
	"bridgecheck/bridge/upstream"
)

// Bridge serves one site's methods as tools. It is an http.Handler, ready as soon as it is made.
type Bridge struct {
	handler   http.Handler
	discovery *discovery.Engine
	site      *upstream.Client
}

// New makes a bridge. It does not ask the site anything; the first caller does.
func New(o Options) (*Bridge, error) {
	o, site, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("bridge: %w", err)
	}
	client := upstream.New(upstream.Options{
		Site: site, Timeout: o.UpstreamTimeout, MaxAnswer: 32 << 20, MaxInFlight: 256, MaxWaiting: 1024,
		Transport: o.Transport, Now: o.Now,
	})
	engine, err := discovery.New(discovery.Options{
		Source: discovery.JSONRPC{Site: client},
		Rules:  discovery.Rules{Expose: discovery.ExposeAuto, PageSize: o.PageSize, AdminMethod: "cache.rebuild"},
		TTL:    o.DiscoveryTTL, Permission: o.PermissionTTL, Refused: 5 * time.Second, MaxStale: time.Hour,
		StaleAfter: 2 * time.Second, MaxCallers: 10_000, Now: o.Now, Logger: o.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("bridge: %w", err)
	}
	api := &httpapi.API{
		Callers:   upstream.Callers{Schemes: []upstream.Scheme{upstream.Basic, upstream.Bearer}},
		Discovery: engine,
		Invoker:   &invoke.Invoker{Discovery: engine, Site: client, Logger: o.Logger},
		Ready:     client.Ready, MaxBody: 4 << 20, BodyTime: 10 * time.Second, Logger: o.Logger,
	}
	return &Bridge{handler: api.Handler(nil, nil), discovery: engine, site: client}, nil
}

// ServeHTTP answers a request.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.handler.ServeHTTP(w, r) }

// Close ends what the bridge does by itself and lets go of its connections to the site.
func (b *Bridge) Close() {
	b.discovery.Close()
	b.site.Close()
}
