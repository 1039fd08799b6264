// Package suites tests a bridge, by its URL, against the contract: Run from any program, RunT from a Go test, and
// specs.Register from a Ginkgo suite. All three run the same checks and reach the same verdicts.
//
// A run sends requests to the bridge as several callers, looks at what reaches the site where a mock Drupal or a recording
// proxy stands behind the bridge, and returns a reports.Report with a result for each clause. Runs are independent of each
// other: several may go on at once. A run changes nothing in the process but the mock that it was given, which is put back.
//
// Where to go on: package bridgetest starts mock and bridge for a test in one call; packages check, match and contract are
// what a check of one's own is written with (Options.Extra).
package suites

import (
	"context"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

// Run tests the target and reports every clause that has a check exactly once. The error is a *UsageError where the run was
// given something wrong, an *UnreachableError where nothing responds, or a defect of the harness. A run that ctx or
// Options.RunTimeout ends early has a report that says so.
func Run(ctx context.Context, target Target, o Options) (*reports.Report, error) {
	return engine.Run(ctx, target, o)
}

// What a run is given.
type (
	// Target is the bridge: URL, and Name, Version, Organisation and Contact for the report.
	Target = engine.Target

	// Options is all that a run can be given; package check documents the types of Bridge and Callers field by field.
	//
	//	Site         Site           // what stands behind the bridge: Drupal, the mock; or Recorder, Control, URL
	//	Bridge       Bridge         // DiscoveryTTL, PermissionTTL, UpstreamTimeout, PageSize, RateLimit, Replicas, Patterns, Invalidate
	//	Callers      Callers        // Credentials, Tokens, Invocations, …
	//	Connection   Connection     // TLS, Proxy, Dial, Rate, Timeout
	//	Contract     string         // version of the contract; "": the latest released
	//	Capabilities []string       // claimed; nil: DefaultCapabilities
	//	Clients      []string       // whose refusals the area profile tests; nil: those of all
	//	Only, Skip   []string       // globs over clause ids
	//	Extra        []check.Check  // checks that bring a clause of their own
	//	Wire         contract.Wire  // contract.Front: what only the site shows does not count while it cannot be tested
	//	Strict       bool           // a SHOULD that is not kept makes the run fail
	//	Short        bool           // leaves out the checks that send most
	//	Seed         int64          // of generated cases; 0: 1
	//	Cases        int            // generated cases of one check at most; 0: 220
	//	Sample       int            // tools and cases of one check at most; 0: all
	//	RunTimeout   time.Duration  // of the whole run; 0: 10 min
	//	Baseline     *baseline.File // what is known to fail
	//	Tool         reports.Tool   // who runs, for the report
	//	Progress     func(reports.Result)
	//	Pass         engine.Pass    // for who shares the checks of a run among several
	Options = engine.Options

	Site       = engine.Site       // what stands behind the bridge
	Bridge     = engine.Bridge     // how the bridge behaves, as far as that is known
	Callers    = engine.Callers    // who calls, and what they may call
	Connection = engine.Connection // to the bridge

	UsageError       = engine.UsageError
	UnreachableError = engine.UnreachableError
)

// What a run knows of callers and calls.
type (
	Identity    = check.Identity    // a caller, by the name of its account
	Credentials = check.Credentials // how a caller authenticates
	Invocation  = check.Invocation  // a call that a run without a mock may make
	Invalidate  = check.Invalidate  // the call that empties a bridge's cache
	Patterns    = check.Patterns    // which methods are tools where no attribute says so
	Replica     = check.Replica     // one of several processes that are one bridge
)

// The accounts of the default site; package check documents what each holds.
const (
	Anonymous  = check.Anonymous
	Outsider   = check.Outsider
	Discoverer = check.Discoverer
	Agent      = check.Agent
	Agent2     = check.Agent2
	NoRPC      = check.NoRPC
	Blocked    = check.Blocked
	Service    = check.Service
	Admin      = check.Admin
)

// DefaultCapabilities are claimed for a bridge of which nothing else is known.
func DefaultCapabilities() []string { return append([]string(nil), engine.DefaultCapabilities...) }

// Claim adds and takes capabilities: `a,b` adds, `-c` takes away; a naming, exposure or visibility that is added takes
// the place of the default one. The error is a *UsageError.
func Claim(from []string, changes string) ([]string, error) { return engine.Claim(from, changes) }
