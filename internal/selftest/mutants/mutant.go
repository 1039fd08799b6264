// Package mutants holds the bridges that the selftest tests: mutants, each wrong in one realistic way, and correct
// variants, which differ from the reference bridge where the contract leaves room. It runs nothing and knows no verdict.
//
// Invariant: an entry holds no state outside itself. Mutants returns fresh entries each time, so that a mutant starts with
// an empty memory whenever it is tested.
//
// An entry is in the file of the area of the first clause that it breaks; Areas lists the areas. Its change works
// in front of the bridge (Middleware), between the bridge and the site (Transport), or in the bridge's settings (Options).
package mutants

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// Origin is where the fault of a mutant comes from.
type Origin string

// The origins of a fault.
const (
	Module   Origin = "module"   // seen in the real Drupal module
	Peer     Origin = "peer"     // seen in another bridge or server
	Imagined Origin = "imagined" // not seen yet
)

// Mutant is a bridge that differs from the reference. With Breaks it is wrong; without Breaks it is a correct variant.
type Mutant struct {
	Name    string
	Breaks  []string // the clauses that must fail; nil: a correct variant
	MayFail []string // the clauses that may fail: of a variant the SHOULDs that it ignores, of a mutant what depends on chance
	Origin  Origin   // of a mutant
	Why     string   // the room of the contract that a variant uses, or how a fault comes about and who is affected

	Middleware     func(bridge http.Handler) http.Handler         // between the caller and the bridge
	SiteMiddleware func(site *siteClient) middleware              // a Middleware that sends requests of its own to the site
	AuthMiddleware func(b testbed.Backends) middleware            // a Middleware that makes tokens of its own
	Replica        func(replica int) middleware                   // a Middleware of one replica of several, from 0; nil where it gives nil
	Transport      func(site http.RoundTripper) http.RoundTripper // between the bridge and the site
	Options        func(*bridge.Options)                          // changes the settings of the bridge
	Server         func(*http.Server)                             // changes the settings of the bridge's HTTP server
	Stdout         func(io.Writer) io.Writer                      // between the bridge's stdout and the caller, where it speaks MCP on stdio

	Remedy func(bridge http.Handler) http.Handler // of a mutant: does what the fix of the first clause of Breaks says; only tests apply it

	MCP     bool   // tested by the clauses of MCP, too; the others are tested by the three endpoints, which MCP mirrors
	Claims  string // changes to the claimed capabilities, in the form of --capabilities
	Fixture string // name of the built-in site; "" is default
	Profile string // of the testbed; "" is the first one
	Module  string // of the site behind the testbed; "": none
}

// Mechanism is how an entry differs from the reference: where its change is made, and on which site and profile.
type Mechanism struct {
	Fixture, Profile                                    string
	Middleware, SiteMiddleware, AuthMiddleware, Replica bool
	Transport, Options, Server, Stdout, MCP             bool
}

// Mechanism returns the mechanism of an entry.
func (m Mutant) Mechanism() Mechanism {
	return Mechanism{
		Fixture: m.Fixture, Profile: m.Profile,
		Middleware: m.Middleware != nil, SiteMiddleware: m.SiteMiddleware != nil, AuthMiddleware: m.AuthMiddleware != nil, Replica: m.Replica != nil,
		Transport: m.Transport != nil, Options: m.Options != nil, Server: m.Server != nil, Stdout: m.Stdout != nil, MCP: m.MCP,
	}
}

// Area is the area of the first clause that a mutant breaks; "" of a correct variant.
func (m Mutant) Area() string {
	if len(m.Breaks) == 0 {
		return ""
	}
	area, _, _ := strings.Cut(m.Breaks[0], "/")
	return area
}

// Place returns what the correct variants have in common that Together makes one bridge of; "" of an entry that stands alone.
func (m Mutant) Place() string {
	if len(m.Breaks) > 0 || m.SiteMiddleware != nil || m.AuthMiddleware != nil || m.Replica != nil || m.Server != nil || m.Stdout != nil {
		return ""
	}
	return fmt.Sprintf("site %s %s, profile %s, claims %s, MCP %v, may fail %v", m.Fixture, m.Module, m.Profile, m.Claims, m.MCP, m.MayFail)
}

// Together returns a bridge with the changes of all of some variants of one place.
func Together(all []Mutant) Mutant {
	one := all[0]
	for _, m := range all[1:] {
		one.Name += " + " + m.Name
		one.Middleware, one.Transport = both(one.Middleware, m.Middleware), both(one.Transport, m.Transport)
		if first, then := one.Options, m.Options; first == nil {
			one.Options = then
		} else if then != nil {
			one.Options = func(o *bridge.Options) { first(o); then(o) }
		}
	}
	return one
}

// both is a change around another one; nil is none.
func both[T any](inner, outer func(T) T) func(T) T {
	if inner == nil {
		return outer
	}
	if outer == nil {
		return inner
	}
	return func(v T) T { return outer(inner(v)) }
}

// Clauses lists clause ids.
func Clauses(ids ...string) []string { return ids }

// Testbed returns the options of a testbed with the mutant in it.
func (m Mutant) Testbed() testbed.Options {
	return testbed.Options{
		Profile: m.Profile, Fixture: m.Fixture, Module: m.Module,
		Bridge: m.Options, Transport: m.Transport, Stdout: m.Stdout, Server: m.Server,
		Middleware: func(b testbed.Backends, handler http.Handler) http.Handler {
			if m.Middleware != nil {
				handler = m.Middleware(handler)
			}
			if m.SiteMiddleware != nil {
				handler = m.SiteMiddleware(&siteClient{b.SiteURL, b.Transport})(handler)
			}
			if m.AuthMiddleware != nil {
				handler = m.AuthMiddleware(b)(handler)
			}
			if m.Replica != nil {
				if own := m.Replica(b.Replica); own != nil {
					handler = own(handler)
				}
			}
			return handler
		},
	}
}

// Area is the mutants and the correct variants of one area of the contract.
type Area struct {
	Name     string // as in the ids of the clauses
	File     string // the file of this package to add a mutant to
	Mutants  []Mutant
	Variants []Mutant
}

// Areas returns the entries by area, in the order of the contract.
func Areas() []Area {
	return []Area{
		{"list", "list.go", slices.Concat(listMutants(), listPageMutants(), brokenProxies("list")), listVariants()},
		{"mapping", "mapping.go", slices.Concat(mappingMutants(), mappingValueMutants()), mappingVariants()},
		{"schema", "schemas.go", schemaMutants(), schemaVariants()},
		{"describe", "describe.go", describeMutants(), describeVariants()},
		{"invoke", "invoke.go", slices.Concat(invokeMutants(), invokeResultMutants(), invokeRequestMutants(), invokeErrorMutants(), undeclaredMutants()), slices.Concat(invokeVariants(), undeclaredVariants())},
		{"errors", "errors.go", slices.Concat(errorMutants(), brokenProxies("errors")), errorVariants()},
		{"access", "access.go", slices.Concat(accessMutants(), sessionMutants(), brokenProxies("access")), accessVariants()},
		{"http", "http.go", slices.Concat(httpMutants(), brokenProxies("http")), slices.Concat(httpVariants(), rightProxies())},
		{"translate", "schemas.go", translateMutants(), translateVariants()},
		{"filter", "filter.go", filterMutants(), filterVariants()},
		{"fresh", "fresh.go", slices.Concat(freshMutants(), brokenProxies("fresh")), freshVariants()},
		{"upstream", "upstream.go", slices.Concat(upstreamMutants(), brokenProxies("upstream")), upstreamVariants()},
		{"load", "load.go", loadMutants(), loadVariants()},
		{"replicas", "load.go", replicaMutants(), nil},
		{"profile", "undeclared.go", profileMutants(), nil},
		{"per-tool", "pertool.go", slices.Concat(perToolMutants(), brokenProxies("per-tool")), perToolVariants()},
		{"mcp", "mcp.go", slices.Concat(mcpMutants(), mcpCallerMutants(), mcpResultMutants(), brokenProxies("mcp")), slices.Concat(mcpVariants(), mcpResultVariants())},
		{"auth", "auth.go", slices.Concat(authMutants(), authTokenMutants(), authServerMutants()), authVariants()},
	}
}

// Mutants returns all mutants.
func Mutants() []Mutant {
	var all []Mutant
	for _, a := range Areas() {
		all = append(all, a.Mutants...)
	}
	return all
}

// Variants returns all correct variants.
func Variants() []Mutant {
	var all []Mutant
	for _, a := range Areas() {
		all = append(all, a.Variants...)
	}
	return all
}

// All returns the mutants, then the correct variants.
func All() []Mutant { return append(Mutants(), Variants()...) }

// Find returns the mutant or the correct variant of a name.
func Find(name string) (Mutant, bool) {
	all := All()
	if i := slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name }); i >= 0 {
		return all[i], true
	}
	return Mutant{}, false
}

// Killing returns the names of the mutants that break a clause.
func Killing(clause string) []string {
	names := []string{}
	for _, m := range Mutants() {
		if slices.Contains(m.Breaks, clause) {
			names = append(names, m.Name)
		}
	}
	return names
}
