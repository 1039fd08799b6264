// Package mockdrupal is a Drupal site's JSON-RPC face over HTTP: /jsonrpc, /jsonrpc/methods, signing in, users, roles
// and permissions, seeded from a fixtures.Site. It answers as the real site of the transcripts does, misbehaves on
// demand (Arm) and keeps a journal of all that reached it. It is no JSON-RPC library and judges nobody.
//
// Its invariant: a request is answered from one immutable snapshot of the site, so that SetSite never shows a caller
// half of a change.
package mockdrupal

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/mux"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// Options are the settings of a mock site. The zero value is a well-behaved site on the wall clock.
type Options struct {
	Now          func() time.Time // the site's clock, for tokens, flood control and slow methods; nil: the wall clock
	JournalLimit int              // entries that the journal keeps; 0: 10,000
	Quirks       []string         // faults of the recorded site to have from the start: see Quirks
	Flood        bool             // flood control: five failed logins of an account in six hours lock it
	Faces        []Face           // further parts of the site on the same address: see the package module
	ControlToken string           // serve the control plane below /-/mock/ on the site's own address, for callers with this token; "": not there
	Logger       *slog.Logger     // one line a request, at debug level; nil: none
}

// Drupal is a mock site. It is an http.Handler, safe for use by many goroutines.
type Drupal struct {
	options Options
	clock   *clock
	table   []route
	router  *mux.Router
	control http.Handler // nil: not on this address
	journal *Journal
	faults  faults
	quirks  quirks
	counts  counters
	flood   flood
	session sessions
	cache   getCache
	oauth   oauth
	conns   connections
	gate    atomic.Pointer[gate] // of the server that listens, if any
	behind  *realSite            // answers in place of the mock's own site; nil: the mock does
	log     *slog.Logger

	mu     sync.Mutex // serialises changes of the site
	parked *parking   // the methods that Patch disabled
	state  atomic.Pointer[snapshot]
}

// New returns a mock of the site. It fails when a quirk is unknown.
func New(site *fixtures.Site, o Options) (*Drupal, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Drupal{options: o, clock: newClock(o.Now), journal: newJournal(o.JournalLimit), log: o.Logger}
	d.flood.on.Store(o.Flood)
	for _, q := range o.Quirks {
		if err := d.SetQuirk(q, true); err != nil {
			return nil, fmt.Errorf("starting the mock of %s: %w", site.Name, err)
		}
	}
	d.state.Store(newSnapshot(site, nil))
	d.table = d.routeTable()
	d.router = d.routes()
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

// Journal returns the journal of all requests.
func (d *Drupal) Journal() *Journal { return d.journal }

// ServeHTTP answers one request as the site does, or as an armed fault has it.
func (d *Drupal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.control != nil && strings.HasPrefix(r.URL.Path, ControlPrefix) {
		d.control.ServeHTTP(w, r)
		return
	}
	x := d.begin(r)
	d.serve(w, x)
	d.journal.finish(x.entry, time.Now())
	d.log.Debug("request", "method", r.Method, "path", r.URL.Path, "user", x.entry.User, "status", x.entry.Status, "fault", x.entry.Fault)
}

// connections numbers the connections that requests come on.
type connections struct {
	last    atomic.Int64
	byPeer  sync.Map // remote address → number, where the server does not set ConnContext
	entries atomic.Int64
}

type connKey struct{}

// ConnContext is for http.Server.ConnContext: with it the journal numbers connections exactly. Without it a connection
// is known by its peer's address.
func (d *Drupal) ConnContext(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, d.conns.last.Add(1))
}

// maxPeers bounds what is kept of peers; beyond it the table starts anew.
const maxPeers = 65536

func (c *connections) number(r *http.Request) int64 {
	if n, ok := r.Context().Value(connKey{}).(int64); ok {
		return n
	}
	if n, ok := c.byPeer.Load(r.RemoteAddr); ok {
		return n.(int64)
	}
	if c.entries.Add(1) > maxPeers {
		c.byPeer.Clear()
		c.entries.Store(1)
	}
	n, _ := c.byPeer.LoadOrStore(r.RemoteAddr, c.last.Add(1))
	return n.(int64)
}
