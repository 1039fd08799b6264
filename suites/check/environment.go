package check

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
)

// Bridge is how the bridge behaves, as far as the run was told. The zero value says nothing.
type Bridge struct {
	PageSize        int                                               // tools on a full page; 0: 50
	DiscoveryTTL    time.Duration                                     // how long the bridge may show a changed site's old state; 0: unknown
	UpstreamTimeout time.Duration                                     // how long the bridge waits for the site; 0: unknown
	RateLimit       int                                               // calls of one caller that the bridge accepts at once; 0: unknown
	Invalidate      *Invalidate                                       // how the bridge's cache is emptied; nil: unknown
	Patterns        *Patterns                                         // which methods are tools where no attribute says so; nil: DefaultPatterns
	Replicas        []Replica                                         // of the bridge, beside the target; nil: there is one
	Stdio           func(context.Context) (io.ReadWriteCloser, error) // starts the bridge for MCP on stdin and stdout, authenticated as service; nil: unknown
	Owned           bool                                              // the run has started the bridge, whose limits for wrong credentials no check reaches
	Advance         func(time.Duration)                               // moves the clock of the mock and the bridge; nil: both live in real time
}

// Callers are who calls the bridge, and what they may call.
type Callers struct {
	Credentials map[Identity]Credentials // beside those of the mock's accounts
	Authority   *authserver.Server       // whose tokens the bridge accepts, with the accounts of the mock; nil: none
	WrongTokens map[string]string        // that the bridge must refuse, by what is wrong with each, for a run without Authority
	Secrets     []string                 // what no output may show, beside the credentials
	Invocations []Invocation             // what a run without a mock may invoke
}

// Config is what a run was given. It does not change while the run lasts.
type Config struct {
	Bridge
	Callers
	URL       string   // of the bridge, without a slash at its end
	Claimed   []string // capabilities
	Clients   []string // whose refusals are tested; nil: those of all
	Contract  *contract.Contract
	Selected  func(id string) bool // by filters
	Seed      int64
	Cases     int // generated for one check at most
	Sharers   int // workers that test the bridge at the same time; 0: this one
	Transport *http.Transport
	Redact    *redact.Redactor
}

// Behind is the site behind the bridge as the run sees it.
type Behind struct {
	Upstream    *SiteSide   // what reaches the site; nil in a black-box run
	Drupal      *Drupal     // the site at its end, which a check may change; nil in a black-box run and before a real site that is only read
	Site        SiteMethods // what is known of the site's methods; nil: nothing
	SiteUnknown string      // why nothing is known of a real site that was given; ""
}

// Learned is what the run has found out about the bridge and its site so far.
type Learned struct {
	Responded       bool                        // the bridge has responded as one
	NotABridge      string                      // why nothing can be tested: the target is no bridge
	Strangers       bool                        // the bridge has responded to wrong credentials, not with a failure of its site
	Unauthenticated bool                        // the bridge refuses the agent that the run was given, which is not the bridge's fault
	Makers          *generate.Makers            // of generated cases
	Taken           map[TakenBy]*generate.Maker // of what was generated that which the tool takes; nil: nothing
	tokens          tokens
	flaps           atomic.Bool  // the site has failed and come back
	vain            atomic.Int32 // requests that were sent again for a site that then failed still
	limited         atomic.Int32 // requests that the bridge refused for their number however long they waited
	unauthorized    atomic.Int32 // credentials that the bridge refused with 401
	endless         Finding      // a list that has no end; zero: none was met
	bodies          documents
	refusals        refusals
	unseen          []string // changes of the site that the bridge did not show in time
	replaced        bool     // a check has put another site behind the bridge
	lanes           int      // of a Table's rows, as many as the bridge served side by side; 0: not known
	vainLanes       int      // tables for which the bridge was no faster with rows side by side, or did not serve them
	lag             lag
}

// Environment is the target of a run: what the run was given, the site behind the bridge, and what the run has learned.
type Environment struct {
	Config
	Policy // around every request
	Behind
	Learned

	Context context.Context // of the whole run
	End     func(why error) // ends the whole run
	Running *T              // the check that runs, or ran last
}

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
}

// Invalidate is the call that empties a bridge's cache.
type Invalidate struct {
	Method, Path string
	Identity     Identity
}
