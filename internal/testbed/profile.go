package testbed

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/invoke"
	"github.com/bridgecheck/bridgecheck/bridge/translate"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// The names of the profiles.
const (
	Attribute = "attribute" // everything that the bridge has, over a site that shows the McpTool attribute
	Patterns  = "patterns"  // tools selected by patterns, over a site with the jsonrpc module and nothing else
	Broad     = "broad"     // one account discovers for all callers
	OAuth     = "oauth"     // MCP alone, with the tokens of an authorization server
	Exchange  = "exchange"  // the same, and tokens are exchanged for those of the site
	Replicas  = "replicas"  // three bridges that share keys alone
	Shared    = "shared"    // three addresses of one bridge, as replicas look from outside that share all they can
)

// The rate limit of the profiles with one: enough for every check except the one of the limit itself.
const (
	RateBurst  = 400
	RatePerSec = 100
)

// Profile is one configuration of the reference bridge and its site, with what a run against it has to know.
type Profile struct {
	Name         string
	Bridge       func(*bridge.Options) // configures the bridge
	Site         func(*fixtures.Site)  // changes the site
	Capabilities []string              // what the bridge claims
	Run          func(*engine.Options) // what a run has to know beside the capabilities
	Replicas     int                   // of the bridge; 0: one
	OneBridge    bool                  // behind the addresses of all replicas

	UpstreamTimeout time.Duration // how long the bridge waits for the site in a run over all profiles
	Skip            []string      // globs of the clauses that a run over all profiles tests in another profile
}

// Profiles lists the profiles in the order in which a run tests them. The first is the default.
func Profiles() []Profile {
	oauth := []string{"naming-id", "exposure-attribute", "visibility-filtered", "discovery-permission", "auth-passthrough", "mcp", "mcp-2026", "oauth"}
	attribute := slices.Concat(engine.DefaultCapabilities, []string{"cursor-base64-offset", "auth-bearer", "auth-cookie", "drupal-types", "custom-types",
		"eager-validation", "output-validation", "discovery-cache", "invalidation", "permission-ttl", "languages",
		"mcp", "mcp-2026", "mcp-list-changed", "mcp-stdio"})
	return []Profile{
		{
			Name:         Attribute,
			Capabilities: attribute,
			Bridge:       enableEverything,
			Site:         acceptSessions,
			Run:          func(o *engine.Options) { o.Bridge.Invalidate = invalidate() },

			UpstreamTimeout: UpstreamTimeout,
			Skip:            []string{"load"}, // a busy machine under load exceeds the short time-out
		},
		{
			Name:         Patterns,
			Capabilities: append(without(attribute, "exposure-attribute", "discovery-permission", "naming-id"), "exposure-patterns", "naming-underscore", "rate-limit"),
			Bridge: func(o *bridge.Options) {
				enableEverything(o)
				o.Naming = "underscore"
				o.RatePerSec, o.RateBurst = RatePerSec, RateBurst
			},
			Site: func(site *fixtures.Site) {
				acceptSessions(site)
				site.Extensions = false
			},
			Run: func(o *engine.Options) { o.Bridge.Invalidate, o.Bridge.RateLimit = invalidate(), RateBurst },

			UpstreamTimeout: 10 * time.Second,
			// Upstream would wait for the long time-out, and the rest is the same code as in the first profile.
			Skip: []string{"upstream", "invoke/arguments-forwarded", "invoke/runs-once", "invoke/[ilmops]*", "errors", "fresh/notify", "http", "mcp/[^ptu]*", "schema", "translate",
				"access/bad-credentials", "access/credentials-kept-secret", "access/no-cross-talk", "describe/equals-list", "list/order-stable"},
		},
		{
			Name:         Broad,
			Capabilities: append(without(attribute, "visibility-filtered", "permission-ttl"), "visibility-broad"),
			Bridge: func(o *bridge.Options) {
				enableEverything(o)
				o.Visibility, o.ServiceUser, o.ServicePassword = bridge.VisibilityBroad, "service", "service-pass"
			},
			Site: acceptSessions,
			Run:  func(o *engine.Options) { o.Bridge.Invalidate = invalidate() },

			UpstreamTimeout: UpstreamTimeout,
			Skip:            []string{"upstream", "load", "mcp", "invoke/[^dhu]*", "errors", "http", "mapping", "profile", "schema", "translate", "describe/equals-list", "list/order-stable"}, // the same code as in the other profiles
		},
		{
			Name:         OAuth,
			Capabilities: oauth,
			Bridge:       enableEverything,
			Site:         acceptSessions,
			Run:          func(*engine.Options) {},

			UpstreamTimeout: UpstreamTimeout,
			Skip:            allBut("auth"), // the same code as in the first profile
		},
		{
			Name:         Exchange,
			Capabilities: append(without(oauth, "auth-passthrough"), "token-exchange"),
			Bridge:       enableEverything,
			Site:         acceptSessions,
			Run:          func(*engine.Options) {},

			UpstreamTimeout: UpstreamTimeout,
			Skip:            append(allBut("auth"), "auth/token-*", "auth/*-key", "auth/*metadata*", "auth/*scope*", "auth/challenge*", "auth/server-hangs"), // as in the profile before
		},
		{
			Name:         Replicas,
			Capabilities: append(slices.Clone(attribute), "replicas"),
			Bridge: func(o *bridge.Options) {
				enableEverything(o)
				o.SessionKeys = []caller.Secret{"a key of the testbed, no secret at all"}
			},
			Site:     acceptSessions,
			Run:      func(o *engine.Options) { o.Bridge.Invalidate = invalidate() },
			Replicas: 3,

			UpstreamTimeout: 5 * time.Second,
			Skip:            allBut("replicas"), // the same code as in the first profile
		},
		{
			Name:         Shared,
			Capabilities: append(slices.Clone(attribute), "rate-limit", "replicas", "replicas-shared"),
			Bridge: func(o *bridge.Options) {
				enableEverything(o)
				o.RatePerSec, o.RateBurst = RatePerSec, RateBurst
			},
			Site:      acceptSessions,
			Run:       func(o *engine.Options) { o.Bridge.Invalidate, o.Bridge.RateLimit = invalidate(), RateBurst },
			Replicas:  3,
			OneBridge: true,

			UpstreamTimeout: 5 * time.Second,
			Skip:            append(allBut("replicas"), "replicas/[^s]*"), // in the profile before
		},
	}
}

// profile returns the profile of a name; "" is the first.
func profile(name string) (Profile, error) {
	all := Profiles()
	if name == "" {
		return all[0], nil
	}
	if i := slices.IndexFunc(all, func(p Profile) bool { return p.Name == name }); i >= 0 {
		return all[i], nil
	}
	return Profile{}, fmt.Errorf("there is no profile %q", name)
}

// enableEverything turns on what the bridge leaves off by default.
func enableEverything(o *bridge.Options) {
	o.Output = invoke.OutputRefuse
	o.Credentials = append(o.Credentials, "basic", "bearer", "cookie")
	o.Types = map[string]translate.FieldType{"geofield": {Schema: json.RawMessage(
		`{"type":"object","properties":{"lat":{"type":"number"},"lon":{"type":"number"}},"required":["lat","lon"]}`)}}
}

// acceptSessions lets the site's JSON-RPC endpoint authenticate session cookies.
func acceptSessions(site *fixtures.Site) { site.Auth.JSONRPC = append(site.Auth.JSONRPC, "cookie") }

// invalidate is the request that empties the bridge's caches.
func invalidate() *check.Invalidate {
	return &check.Invalidate{Method: "POST", Path: "/mcp/admin/invalidate", Identity: check.Admin}
}

// without returns the names except those given.
func without(all []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(c string) bool { return slices.Contains(names, c) })
}

// allBut lists the areas of the contract, without one.
func allBut(area string) []string {
	all, err := contract.Load()
	if err != nil {
		panic("testbed: " + err.Error()) // it is embedded, and tests load it
	}
	return without(all.Areas(), area)
}
