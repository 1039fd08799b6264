package mutants

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/mockdrupal/module"
)

// filterMutants expose methods that are not selected, or hide some that are.
func filterMutants() []Mutant {
	return []Mutant{
		{Name: "exclude-forgotten", Profile: "patterns", Breaks: Clauses("filter/include-exclude", "filter/defaults-safe", "access/filtered-by-method", "filter/invoke-guarded"), Origin: Imagined,
			Options: func(o *bridge.Options) { o.Exclude = []string{"nothing.at.all"} }},
		{Name: "everything-included", Profile: "patterns", Breaks: Clauses("filter/include-exclude", "list/empty-site", "describe/hidden-404", "invoke/hidden-404", "access/filtered-by-method", "access/no-oracle"), Origin: Imagined,
			Options: func(o *bridge.Options) { o.Include = []string{"*"} }},
		{Name: "patterns-anywhere", Profile: "patterns", Breaks: Clauses("filter/include-exclude"), Origin: Imagined, Why: "an expression is not anchored at both ends",
			Options: func(o *bridge.Options) { o.Include = []string{"*content.*", "*search.*", "*taxonomy.*", "*media.*"} }},
		{Name: "dot-for-any-character", Profile: "patterns", Breaks: Clauses("filter/include-exclude"), Origin: Imagined, Why: "a glob is used as a regular expression",
			Options: func(o *bridge.Options) { o.Include = []string{"content*", "search.*", "taxonomy.*", "media.*"} }},
		{Name: "search-forgotten", Profile: "patterns", Breaks: Clauses("filter/include-exclude", "filter/defaults-safe", "invoke/answers-result", "invoke/result-exact", "access/filtered-by-method"), Origin: Imagined,
			Options: func(o *bridge.Options) { o.Include = []string{"content.*", "taxonomy.*", "media.*"} }},
		{Name: "filter-on-the-list-alone", Profile: "patterns", Breaks: Clauses("filter/include-exclude", "filter/invoke-guarded", "invoke/hidden-404"), Origin: Peer,
			SiteMiddleware: withSite(toInvoke, func(site *siteClient, x *exchange) {
				if x.Status == http.StatusNotFound {
					if reply := site.call(authorized(x.Request), x.invoked(), map[string]any{}); reply["result"] != nil {
						x.Set(http.StatusOK, map[string]any{"result": reply["result"]})
					}
				}
			})},
		{Name: "batch-past-the-filter", Profile: "patterns", Breaks: Clauses("filter/invoke-guarded"), Origin: Imagined,
			SiteMiddleware: withSite(toInvoke, func(site *siteClient, x *exchange) {
				if !bytes.HasPrefix(bytes.TrimSpace(x.Sent), []byte("[")) {
					return
				}
				for _, call := range decode([]byte(`{"calls":` + string(x.Sent) + `}`))["calls"].([]any) {
					if call, ok := call.(map[string]any); ok && call["method"] != nil {
						site.call(authorized(x.Request), fmt.Sprint(call["method"]), map[string]any{})
					}
				}
			})},
		{Name: "filter-reads-the-first-name", Profile: "patterns", Breaks: Clauses("filter/invoke-guarded"), Origin: Peer, Why: "the filter and the call use parsers that choose a different one of two members",
			SiteMiddleware: withSite(toInvoke, func(site *siteClient, x *exchange) {
				if last := lastName.FindAllSubmatch(x.Sent, -1); len(last) > 1 {
					site.call(authorized(x.Request), string(last[len(last)-1][1]), map[string]any{})
				}
			})},
		{Name: "rate-unlimited", Profile: "patterns", Breaks: Clauses("filter/rate-limit"), Origin: Imagined,
			Options: func(o *bridge.Options) { o.RatePerSec, o.RateBurst = 1e6, 1e6 }},
		{Name: "rate-limit-by-forwarded-address", Profile: "patterns", Breaks: Clauses("filter/rate-limit"), Origin: Peer, Why: "the limit is counted by X-Forwarded-For, which any caller can write",
			SiteMiddleware: withSite(toInvoke, func(site *siteClient, x *exchange) {
				if x.Status == http.StatusTooManyRequests && x.Request.Header.Get("X-Forwarded-For") != "" {
					site.run(x, authorized(x.Request))
				}
			})},
		{Name: "rate-limit-by-language", Profile: "patterns", Breaks: Clauses("filter/rate-limit"), Origin: Peer, Why: "the limit is counted by the key of the cache, which has the language",
			SiteMiddleware: func(site *siteClient) middleware {
				calls := newMemory[*atomic.Int64]()
				return onResponse(toInvoke, func(x *exchange) {
					language := x.Request.Header.Get("Accept-Language")
					n := calls.keep(authorized(x.Request)+language, &atomic.Int64{}).Add(1)
					if x.Status == http.StatusTooManyRequests && language != "" && n <= testbed.RateBurst {
						site.run(x, authorized(x.Request))
					}
				})
			}},
		{Name: "rate-limit-till-soon", Profile: "patterns", Breaks: Clauses("filter/rate-limit"), Origin: Imagined,
			Middleware: onResponse(toInvoke, atStatus(http.StatusTooManyRequests, setHeader("Retry-After", "soon")))},
		{Name: "rate-unlimited-over-mcp", Profile: "patterns", MCP: true, Breaks: Clauses("filter/rate-limit"), Origin: Peer,
			Why: "the limit is a middleware of the three endpoints",
			SiteMiddleware: func(site *siteClient) middleware {
				return onRPC("tools/call", func(m *rpc) {
					if strings.Contains(string(m.Body), "too often") {
						method := strings.Replace(fmt.Sprint(m.Params["name"]), "_", ".", 1)
						reply := site.call(authorized(m.Request), method, m.Params["arguments"])
						m.Succeed(map[string]any{"content": textContent(string(encode(reply["result"])))})
					}
				})
			}},
		{Name: "rate-limit-without-retry-after", Profile: "patterns", Breaks: Clauses("filter/rate-limit"), Origin: Peer,
			Middleware: onResponse(toInvoke, atStatus(http.StatusTooManyRequests, dropHeader("Retry-After")))},
		{Name: "rate-limit-told-once", Profile: "patterns", Breaks: Clauses("filter/rate-limit"), Origin: Peer,
			Why: "who has been told when to come back and calls before is not told again",
			Middleware: func() middleware {
				told := newMemory[bool]()
				return onResponse(toInvoke, atStatus(http.StatusTooManyRequests, func(x *exchange) {
					if known, _ := told.get(authorized(x.Request)); known {
						x.Header.Del("Retry-After")
					}
					told.put(authorized(x.Request), true)
				}))
			}()},
	}
}

// lastName finds the names in the body of an invoke.
var lastName = regexp.MustCompile(`"name":"([^"]*)"`)

// filterVariants select tools by patterns instead of the attribute.
func filterVariants() []Mutant {
	return []Mutant{
		{Name: "exposure-patterns", Why: "patterns instead of the attribute", Claims: "exposure-patterns,-discovery-permission,-drupal-types,-custom-types", Options: func(o *bridge.Options) { o.Expose = discovery.ExposePatterns }},
		{Name: "exposure-mcp-module", MCP: true, Why: "a bridge with MCP alone that reads the tools of the module mcp", Module: module.MCP, Transport: throughTheModule,
			Claims: "exposure-mcp-module,-tools,-drupal-types,-custom-types,-invalidation"},
	}
}
