package selftest

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/invoke"
	"github.com/bridgecheck/bridgecheck/bridge/translate"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites"
)

// The call rate of a reference that limits it: enough for every check but the one of the limit itself.
const (
	callsAtOnce    = 1000
	callsPerSecond = 100
)

// Broad names the setup in which one account discovers for all callers.
const Broad = "broad"

// Setup is one way in which the reference bridge is set up and judged.
type Setup struct {
	Name     string
	Bridge   func(*bridge.Options)
	Site     func(*fixtures.Site) // changes the default site; nil: as it is
	Claimed  []string
	Settings func(*suites.Options) // what the suites are told beside the capabilities; nil: nothing

	UpstreamTimeout time.Duration // how long the bridge waits for the site
	Leaves          []string      // globs of clauses that a run in all setups judges in another one
}

// Setups are those in which the reference bridge is judged: with all that it has over a site that shows the McpTool
// attribute, with patterns over a site that has nothing but the jsonrpc module, and, by the areas which that changes,
// with an account that discovers for all callers.
func Setups() []Setup {
	attribute := slices.Concat(suites.DefaultCapabilities, []string{"cursor-base64-offset", "auth-bearer", "auth-cookie", "drupal-types", "custom-types",
		"eager-validation", "output-validation", "discovery-cache", "invalidation", "permission-ttl", "languages",
		"mcp", "mcp-2026", "mcp-list-changed", "mcp-stdio"})
	everything := func(o *bridge.Options) {
		o.Output = invoke.OutputRefuse
		o.Credentials = append(o.Credentials, "basic", "bearer", "cookie")
		o.Types = map[string]translate.FieldType{"geofield": {Schema: json.RawMessage(
			`{"type":"object","properties":{"lat":{"type":"number"},"lon":{"type":"number"}},"required":["lat","lon"]}`)}}
	}
	takesSessions := func(site *fixtures.Site) { site.Auth.JSONRPC = append(site.Auth.JSONRPC, "cookie") }
	invalidate := &suites.Invalidate{Method: "POST", Path: "/mcp/admin/invalidate", Identity: suites.Admin}
	return []Setup{
		{
			Name:     "attribute",
			Claimed:  attribute,
			Bridge:   everything,
			Site:     takesSessions,
			Settings: func(o *suites.Options) { o.Invalidate = invalidate },

			UpstreamTimeout: UpstreamTimeout,
			Leaves:          []string{"load"}, // a busy machine under load runs into the short time-out
		},
		{
			Name: "patterns",
			Claimed: append(slices.DeleteFunc(slices.Clone(attribute), func(c string) bool {
				return slices.Contains([]string{"exposure-attribute", "discovery-permission", "naming-id"}, c)
			}), "exposure-patterns", "naming-underscore", "rate-limit"),
			Bridge: func(o *bridge.Options) {
				everything(o)
				o.Naming = "underscore"
				o.RatePerSec, o.RateBurst = callsPerSecond, callsAtOnce
			},
			Site:     func(site *fixtures.Site) { takesSessions(site); site.Extensions = false },
			Settings: func(o *suites.Options) { o.Invalidate, o.RateLimit = invalidate, callsAtOnce },

			UpstreamTimeout: 10 * time.Second,
			Leaves:          []string{"upstream", "invoke/runs-once"}, // they would wait for the long one
		},
		{
			Name:    Broad,
			Claimed: append(slices.DeleteFunc(slices.Clone(attribute), func(c string) bool { return c == "visibility-filtered" || c == "permission-ttl" }), "visibility-broad"),
			Bridge: func(o *bridge.Options) {
				everything(o)
				o.Visibility, o.ServiceUser, o.ServicePassword = bridge.VisibilityBroad, "service", "service-pass"
			},
			Site:     takesSessions,
			Settings: func(o *suites.Options) { o.Invalidate = invalidate },

			UpstreamTimeout: UpstreamTimeout,
			Leaves:          []string{"upstream", "load", "mcp", "invoke/runs-once"}, // the same code as in the other setups
		},
	}
}

// setup is the one that a mutant differs from.
func (m Mutant) setup() Setup {
	all := Setups()
	if i := slices.IndexFunc(all, func(s Setup) bool { return s.Name == m.Setup }); i >= 0 {
		return all[i]
	}
	return all[0]
}

// Claimed are the capabilities of the reference bridge in its first setup.
func Claimed() []string { return Setups()[0].Claimed }
