package suites

import "github.com/bridgecheck/bridgecheck/suites/check"

// What a run knows of callers and calls.
type (
	Identity    = check.Identity    // a caller, by the name of its account
	Credentials = check.Credentials // how a caller authenticates
	Invocation  = check.Invocation  // a call that a run without a mock may make
	Invalidate  = check.Invalidate  // the call that empties a bridge's cache
	Patterns    = check.Patterns    // which methods are tools where no attribute says so
)

// The accounts of the default site; harness documents what each holds.
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
