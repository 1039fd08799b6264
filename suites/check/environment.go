package check

import (
	"context"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
	"github.com/bridgecheck/bridgecheck/suites/patience"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// Bridge is how the bridge behaves, as far as the run was told. The zero value says nothing.
type Bridge struct {
	PageSize        int                                               // tools on a full page; 0: 50
	DiscoveryTTL    time.Duration                                     // how long the bridge may show a changed site's old state; 0: unknown
	PermissionTTL   time.Duration                                     // how long the bridge may show a caller's old permissions; 0: as long as DiscoveryTTL
	UpstreamTimeout time.Duration                                     // how long the bridge waits for the site; 0: unknown
	RateLimit       int                                               // calls of one caller that the bridge accepts at once; 0: unknown
	Invalidate      *Invalidate                                       // how the bridge's cache is emptied; nil: unknown
	Patterns        *Patterns                                         // which methods are tools where no attribute says so; nil: DefaultPatterns
	Replicas        []Replica                                         // of the bridge, beside the target; nil: there is one
	Stdio           func(context.Context) (io.ReadWriteCloser, error) // starts the bridge for MCP on stdin and stdout, authenticated as service; nil: unknown
	StdioAlone      bool                                              // the target serves what Stdio starts, and HTTP is not the bridge's
	Owned           bool                                              // the run has started the bridge, whose limits for wrong credentials no check reaches
	Advance         func(time.Duration)                               // moves the clock of the mock and the bridge; nil: both live in real time
}

// Callers are who calls the bridge, and what they may call.
type Callers struct {
	Credentials map[Identity]Credentials   // beside those of the mock's accounts
	Tokens      map[Identity]func() string // give the bearer token that is valid now, in place of that of Credentials
	Authority   *authserver.Server         // whose tokens the bridge accepts, with the accounts of the mock; nil: none
	WrongTokens map[string]string          // that the bridge must refuse, by what is wrong with each, for a run without Authority
	Secrets     []string                   // what no output may show, beside the credentials
	Invocations []Invocation               // what a run without a mock may invoke
}

// Config is what a run was given. It does not change while the run lasts.
type Config struct {
	*client.Target
	Bridge
	Callers
	Claimed  []string // capabilities
	Clients  []string // whose refusals are tested; nil: those of all
	Contract *contract.Contract
	Selected func(id string) bool // by filters
	OfOne    []Check              // the checks that can test one response by itself
	Seed     int64
	Cases    int           // generated for one check at most
	Sample   int           // tools that a check runs at most; 0: all
	Apart    *Replica      // not started: one with a discovery TTL that no check waits for, and the same permission TTL; nil: there is none
	Log      func() string // what the bridge has printed so far; nil: the run does not see it
	Waiting  func(string)  // is told what the run waits for before it tests what sees the site; nil: nobody asks
	Sharers  int           // workers that test the bridge at the same time; 0: this one
	Redact   *redact.Redactor
	Wrong    *atomic.Int32 // wrong credentials that were sent so far, by all that test the bridge
}

// Behind is the site behind the bridge as the run sees it.
type Behind struct {
	Upstream    *site.Upstream // what reaches the site; nil in a black-box run
	Drupal      *site.Drupal   // the site at its end, which a check may change; nil in a black-box run and before a real site that is only read
	Site        site.Methods   // what is known of the site's methods; nil: nothing
	SiteUnknown string         // why nothing is known of a real site that was given; ""
}

// Learned is what the checks have found out about the bridge and its site so far, beside what patience.Run has.
type Learned struct {
	NotABridge      string                      // why nothing can be tested: the target is no bridge
	Unauthenticated bool                        // the bridge refuses the agent that the run was given, which is not the bridge's fault
	Unforwarded     bool                        // the bridge asks the site without its callers' credentials: it can show them nothing
	Makers          *generate.Makers            // of generated cases
	Taken           map[TakenBy]*generate.Maker // of what was generated that which the tool takes; nil: nothing
	Steady          bool                        // lists and describes were right in a sequence of requests that several clauses look at
	Clock           func(time.Duration)         // moves one by which the bridge may go; nil: there is none, or the run has found out
	tokens          tokens
	visibility      visibility
	endless         Finding  // a list that has no end; zero: none was met
	unshown         []string // changes of the site that the bridge did not show in time
	refusals        refusals
	remembered
	sessions                                      sessions             // of a foreign server
	several                                       bool                 // processes are behind the URL: they notice a change at different times
	looked                                        bool                 // for several processes
	replaced                                      bool                 // a check has put another site behind the bridge
	lags                                          bool                 // it shows a change of the site much later than it should
	measures                                      *measures            // of a bridge that the run has not started; nil: none
	measuredPages, measuredUpstream, measuredRate *reports.Measurement // nil: not measured
	concurrency                                   int                  // of a Table's rows, as many as the bridge served side by side; 0: not known
	notFaster                                     int                  // tables for which the bridge was no faster with rows side by side, or did not serve them
}

// remembered are responses that later checks look at.
type remembered struct {
	asked    map[string]*exchange // of Tables that share their rows
	listings listings
	seen     seen                 // what audits compare tools and pages with
	lost     map[string]time.Time // when a call of a tool last had no response, which may still be at work
}

// TakenBy is the tool that was asked to take what was generated for the inputSchema that it shows.
type TakenBy struct {
	Tool string
	Made *generate.Maker
}

// Environment is the target of a run: what the run was given, the site behind the bridge, what the run has learned, and what
// its requests share.
type Environment struct {
	Config
	Behind
	Learned
	*patience.Run
}

// Start completes an environment with what its requests share: each may take as long as timeout; limit, if there is one,
// bounds how often they are sent. Before a site that nobody observes, the run waits while it is busy.
func (e *Environment) Start(timeout time.Duration, limit *rate.Limiter) {
	e.Run = &patience.Run{Settings: patience.Settings{Timeout: timeout, Rate: limit, Spares: e.Spares(), WaitOut: e.Upstream == nil, SiteLimit: e.UpstreamTimeout,
		Observed: e.Upstream, Issuer: e.Authority, Known: e.Drupal != nil, Secrets: e.Redact}}
	for _, i := range e.Invocations {
		e.Run.Allowed = append(e.Run.Allowed, i.Tool)
	}
	e.MCPOnly = e.Alone()
}

// Carried says why what a check found may depend on the checks that this process tested before it; "": it does not, as far as
// the harness knows.
func (e *Environment) Carried() string {
	why := e.Run.Carried()
	if why == "" && !e.endless.IsZero() {
		why = "a list has no end"
	}
	return why
}

// Alone reports whether MCP is the bridge's only interface. Then List, Describe and Invoke ask by MCP, and what comes is
// read as the three endpoints would say it: a page of tools, a tool, a result. A refusal stays what MCP makes of it, so
// that checks of refusals do not apply (Check.ByMCP).
func (c *Config) Alone() bool { return !c.Claims("tools") }

// Foreign reports whether the target is a server of MCP of which no site is known. The specification alone binds it: what the
// contract asks beyond that, it asks of bridges.
func (e *Environment) Foreign() bool {
	return e.Alone() && e.Upstream == nil && e.Drupal == nil && e.Site == nil && e.SiteUnknown == ""
}

// OneAccount reports whether one account of the site acts for all callers.
func (c *Config) OneAccount() bool { return c.Claims("auth-service") }

// Claims reports whether the bridge claims a capability.
func (c *Config) Claims(capability string) bool { return slices.Contains(c.Claimed, capability) }

// PatternsInUse are the patterns of the bridge.
func (c *Config) PatternsInUse() Patterns {
	if c.Patterns == nil {
		return DefaultPatterns
	}
	return *c.Patterns
}

// Replica is one of several processes that are one bridge.
type Replica struct {
	URL   string
	Kill  func() error                // ends it at once; nil: the run cannot
	Start func(context.Context) error // starts it again, and returns when it serves; there where Kill is
	Stop  func(time.Duration)         // ends it by SIGTERM, and at once where it has not ended by itself within this time; nil: the run cannot
}

// Invalidate is the call that empties a bridge's cache.
type Invalidate struct {
	Method, Path string
	Identity     Identity
}
