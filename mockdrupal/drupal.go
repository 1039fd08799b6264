// Package mockdrupal is a Drupal site's JSON-RPC interface over HTTP, for tests of what calls one: /jsonrpc,
// /jsonrpc/methods, authentication, users, roles and permissions, seeded from a fixtures.Site. It responds as a recorded
// Drupal 10 does, down to its peculiarities, misbehaves on demand (Arm) and keeps a journal of all that reached it. It is
// no JSON-RPC library, it stores nothing, and it draws no conclusions: a test reads the journal and decides.
//
// Its invariant: a response is made from one immutable snapshot of the site, so that SetSite never shows a caller half
// of a change.
//
// A request passes the recorder (package recorder: journal, faults, sending), which asks the site for a response. Here it
// is routed, its caller is authenticated (auth.go), and a handler makes the response from the snapshot: discovery.go,
// rpc.go and run.go for JSON-RPC, login.go and oauth.go for credentials, extensions for the rest. The other packages hold
// what has a name of its own: fault, journal, patch and quirk what a test sets and reads, proxy the same recorder before
// a real Drupal, control the client of a mock in another process, php and phpschema how PHP reads and checks values.
package mockdrupal

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/control"
	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/patch"
	"github.com/bridgecheck/bridgecheck/mockdrupal/quirk"
	"github.com/bridgecheck/bridgecheck/mockdrupal/recorder"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// What a test arms and reads, under the names that most programs need. More is in the packages that define them.
type (
	Fault   = fault.Fault
	Journal = journal.Journal
	Entry   = journal.Entry
	Call    = journal.Call
)

// Options are the settings of a mock site. The zero value is a well-behaved site on the wall clock.
type Options struct {
	Now          func() time.Time                             // the site's clock, for tokens, flood control and slow methods; nil: the wall clock
	JournalLimit int                                          // entries that the journal keeps; 0: journal.DefaultLimit
	Quirks       []string                                     // peculiarities of the recorded site to have from the start: see package quirk
	Flood        bool                                         // flood control with Drupal's limits: see floodEvent
	Extensions   []Extension                                  // further parts of the site on the same address: see package module
	Trusted      func(token string) (account string, ok bool) // whose bearer token of another authorization server it is; nil: the site trusts none
	Drupal       string                                       // the version of Drupal core: see Cores; "": as recorded
	JSONRPC      int                                          // the line of the jsonrpc module: 3, or 2, which was recorded; 0: 3
	ControlToken string                                       // serve the control plane below /-/mock/ on the site's own address, for callers with this token; "": not there
	Run          string                                       // address that takes connections until the test run ends which serves this mock; "": none serves it
	Logger       *slog.Logger                                 // one line a request, at debug level; nil: none
}

// Drupal is a mock site: a recorder of requests with a site behind it. It is an http.Handler, safe for use by many
// goroutines.
type Drupal struct {
	*recorder.Recorder

	options    Options
	core       Core
	clock      *clock
	addresses  []address
	routes     *route.Table
	control    http.Handler // nil: not on this address
	controlURL atomic.Value // string: of the control plane on an address of its own
	quirks     quirk.Set
	counts     counters
	flood      flood
	session    sessions
	cache      pageCache
	oauth      oauth
	log        *slog.Logger
	listened   atomic.Bool

	mu     sync.Mutex    // serialises changes of the site
	parked patch.Parking // the methods that Patch disabled
	state  atomic.Pointer[snapshot]
}

// The lines of the jsonrpc module. On line 2 no session is a credential of /jsonrpc, and a method that returns null fails; on line 3
// the site says both.
const (
	Line2 = 2
	Line3 = 3
)

// New returns a mock of the site. It fails when a quirk, the version of Drupal or the line of the jsonrpc module is unknown.
func New(site *fixtures.Site, o Options) (*Drupal, error) {
	if o.JSONRPC = cmp.Or(o.JSONRPC, Line3); o.JSONRPC != Line2 && o.JSONRPC != Line3 {
		return nil, fmt.Errorf("the jsonrpc module has no line %d that is known here; give %d or %d", o.JSONRPC, Line2, Line3)
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	core, err := CoreOf(o.Drupal)
	if err != nil {
		return nil, err
	}
	d := &Drupal{options: o, core: core, clock: newClock(o.Now), log: o.Logger}
	d.Recorder = recorder.New(behind{d}, recorder.Options{JournalLimit: o.JournalLimit, Logger: o.Logger})
	d.flood.on.Store(o.Flood)
	for _, q := range o.Quirks {
		if err := d.SetQuirk(q, true); err != nil {
			return nil, fmt.Errorf("starting the mock of %s: %w", site.Name, err)
		}
	}
	d.state.Store(newSnapshot(site, nil))
	d.addresses = d.allAddresses()
	d.routes = routeTable(d.addresses)
	if o.ControlToken != "" {
		d.control = d.ControlHandler(o.ControlToken)
	}
	return d, nil
}

// Site returns the site as it is now. It is shared: Clone it before changing anything.
func (d *Drupal) Site() *fixtures.Site { return d.state.Load().site }

// SetSite puts another site in place of the present one. Requests that are under way end on the old one; sessions,
// counters, journal and faults stay. The site must not be changed afterwards.
func (d *Drupal) SetSite(site *fixtures.Site) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setSite(site)
}

func (d *Drupal) setSite(site *fixtures.Site) {
	d.state.Store(newSnapshot(site, d.state.Load()))
	d.cache.clear()
}

// Update changes a clone of the site and puts it in place, as one step. When change fails, the site stays as it was.
func (d *Drupal) Update(change func(*fixtures.Site) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	site := d.Site().Clone()
	if err := change(site); err != nil {
		return err
	}
	d.setSite(site)
	return nil
}

// Patch changes the site as one step. It fails, and changes nothing, when the patch names what the site does not have.
func (d *Drupal) Patch(p patch.Patch) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	site, parked, err := p.Apply(d.Site(), d.parked)
	if err != nil {
		return fmt.Errorf("patching the site: %w", err)
	}
	d.parked = parked
	d.setSite(site)
	return nil
}

// SetQuirk switches a quirk on or off. It fails when there is none of this name.
func (d *Drupal) SetQuirk(name string, on bool) error { return d.quirks.Switch(name, on) }

// ActiveQuirks returns the names of the quirks that are on.
func (d *Drupal) ActiveQuirks() []string { return d.quirks.Active() }

// ServeHTTP responds to one request as the site does, or as an armed fault has it.
func (d *Drupal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == control.AboutPath {
		at, _ := d.controlURL.Load().(string)
		respond(w, control.About{Mock: "bridgecheck", Control: at, Run: d.options.Run}, nil)
		return
	}
	if d.control != nil && strings.HasPrefix(r.URL.Path, control.Prefix) {
		d.control.ServeHTTP(w, r)
		return
	}
	d.Recorder.ServeHTTP(w, r)
}

// Server is a mock that listens on an address: URL is where, Close and Shutdown end it.
type Server struct {
	*Drupal
	*recorder.Server
}

// Listen starts the mock on an address ("127.0.0.1:0" picks a port). It fails when the address is taken.
func (d *Drupal) Listen(address string) (*Server, error) {
	s, err := d.Recorder.Listen(address, d)
	if err != nil {
		return nil, err
	}
	d.listened.Store(true)
	return &Server{d, s}, nil
}

// Listened reports whether Listen has started the mock: of one that others serve, or nobody, it does not say where it is.
func (d *Drupal) Listened() bool { return d.listened.Load() }

// behind is the site as its recorder sees it.
type behind struct{ d *Drupal }

// Begin routes the request and authenticates its caller.
func (b behind) Begin(x *exchange.Exchange) func() { return b.d.begin(x) }

// Routes lists the names of the site's routes.
func (b behind) Routes() []string { return b.d.routes.Names() }

// State returns the present snapshot.
func (b behind) State() (any, error) { return b.d.state.Load(), nil }

// CheckUser fails when the site has no account of this name.
func (b behind) CheckUser(name string) error {
	if _, ok := b.d.Site().User(name); !ok {
		return fmt.Errorf("user %q matches no account of the site", name)
	}
	return nil
}

// CheckMethod fails when the pattern is malformed or matches no method of the site.
func (b behind) CheckMethod(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("method %q is no pattern: %w", pattern, err)
	}
	if !slices.ContainsFunc(b.d.Site().Methods, func(m fixtures.Method) bool { return journal.Matches(pattern, m.ID) }) {
		return fmt.Errorf("method %q matches no method of the site", pattern)
	}
	return nil
}
