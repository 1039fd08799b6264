package suites

import "github.com/bridgecheck/bridgecheck/suites/harness"

// What a run knows of callers and calls.
type (
	Identity    = harness.Identity    // a caller, by the name of its account
	Credentials = harness.Credentials // how a caller authenticates
	Invocation  = harness.Invocation  // a call that a run without a mock may make
	Invalidate  = harness.Invalidate  // the call that empties a bridge's cache
	Patterns    = harness.Patterns    // which methods are tools where no attribute says so
)

// The accounts of the default site; harness documents what each holds.
const (
	Anonymous  = harness.Anonymous
	Outsider   = harness.Outsider
	Discoverer = harness.Discoverer
	Agent      = harness.Agent
	Agent2     = harness.Agent2
	NoRPC      = harness.NoRPC
	Blocked    = harness.Blocked
	Service    = harness.Service
	Admin      = harness.Admin
)
