package check

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
)

// Environment is the target of a run: a URL to speak to, the site behind it where there is one, and what the run was given.
type Environment struct {
	Policy // around every request

	Upstream        *SiteSide     // the site side; nil in a black-box run
	Drupal          *Drupal       // the mock site at its end; nil in a black-box run and before a real site
	Site            SiteMethods   // what is known of the site's methods; nil: nothing
	SiteUnknown     string        // why nothing is known of a real site that was given; ""
	PageSize        int           // how many tools a full page holds
	DiscoveryTTL    time.Duration // how long the bridge may show a changed site's old state; 0: unknown
	UpstreamTimeout time.Duration // how long the bridge waits for the site; 0: unknown

	Context         context.Context // of the whole run
	End             func(why error) // ends the whole run
	Responded       bool            // the bridge has responded as one
	URL             string
	Sharers         int       // processes that test the bridge at the same time; 0: this one
	Replicas        []Replica // all of the bridge, the first at URL; nil: there is one
	Claimed         []string
	Credentials     map[Identity]Credentials
	Authority       *authserver.Server // that the bridge takes tokens of; nil: none that the run has a hand in
	Clients         []string           // whose refusals are tested; nil: those of all
	WrongTokens     map[string]string  // by what is wrong with each, for a run without Authority; nil: none
	tokens          tokens
	Invocations     []Invocation
	Invalidate      *Invalidate
	Patterns        Patterns
	PatternsGiven   bool // the run was given the patterns
	RateLimit       int
	Seed            int64
	Cases           int // generated for one check at most
	Makers          *generate.Makers
	Taken           map[TakenBy]*generate.Maker // of what was generated that which the tool takes; nil: nothing
	Stdio           func(context.Context) (io.ReadWriteCloser, error)
	Advance         func(time.Duration)
	Transport       *http.Transport
	Contract        *contract.Contract
	Redact          *redact.Redactor
	Selected        func(id string) bool
	Takes           func(id string) bool // asks whether this process tests a clause
	NotABridge      string               // why nothing can be tested: the target is no bridge
	Strangers       bool                 // the bridge has responded to wrong credentials, not with a failure of its site
	Unauthenticated bool                 // the bridge refuses the agent that the run was given, which is not the bridge's fault
	flaps           atomic.Bool          // the site has failed and come back
	vain            atomic.Int32         // requests that were sent again for a site that then failed still
	limited         atomic.Int32         // requests that the bridge refused for their number however long they waited
	unauthorized    atomic.Int32         // credentials that the bridge refused with 401
	endless         Finding              // a list that has no end; zero: none was met
	bodies          documents
	unseen          []string // changes of the site that the bridge did not show in time
	replaced        bool     // a check has put another site behind the bridge
	lanes           int      // of a Table's rows, as many as the bridge served side by side; 0: not known
	vainLanes       int      // tables for which the bridge was no faster with rows side by side, or did not serve them
	Running         *T       // the check that runs, or ran last
	lag             lag
}

// Replica is one of several processes that are one bridge.
type Replica struct {
	URL   string
	Kill  func() error                // ends it at once; nil: the run cannot
	Start func(context.Context) error // starts it again, and returns when it serves; there where Kill is
}

// Invalidate is the call that empties a bridge's cache.
type Invalidate struct {
	Method, Path string
	Identity     Identity
}
