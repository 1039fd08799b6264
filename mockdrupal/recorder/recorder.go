// Package recorder puts a journal and faults around a site: every request is recorded, and responded to by the site or as
// an armed fault has it. The mock and the recording proxy are both such sites. It knows no Drupal: routes, accounts and
// responses are the site's.
//
// Its invariant: every request has exactly one entry, whatever a fault does to it. A request is begun, the site names its
// route and caller, a fault may act, the body is read, a fault may act again, the site responds, the exchange is ended.
package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/inmemory"
	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/port"
)

// Site makes the responses that a recorder records.
type Site interface {
	// Begin sets the exchange's Route, Named, User and Title and notes the caller. The body has not been read. It returns
	// what sets the exchange's Response later, or its Done when the client goes away meanwhile.
	Begin(*exchange.Exchange) (respond func())
	// Routes lists the names of the site's routes, sorted.
	Routes() []string
	// CheckUser fails when no account has the name, CheckMethod when no method matches the pattern.
	CheckUser(name string) error
	CheckMethod(pattern string) error
	// State returns the present state of the site, for Exchange.Past. It fails where the site is not known.
	State() (any, error)
}

// Options are the settings of a recorder.
type Options struct {
	JournalLimit int          // entries that the journal keeps; 0: journal.DefaultLimit
	Logger       *slog.Logger // one line a request, at debug level; nil: none
}

// Recorder is the journal and the faults of a site. It is safe for use by many goroutines.
type Recorder struct {
	site    Site
	journal *journal.Journal
	faults  *fault.Set
	peers   peers
	port    atomic.Pointer[port.Port] // of the server that listens, the first where there are several
	log     *slog.Logger
}

// New returns a recorder of what a site does.
func New(site Site, o Options) *Recorder {
	r := &Recorder{site: site, journal: journal.New(o.JournalLimit), log: o.Logger}
	r.log = cmp.Or(r.log, slog.New(slog.DiscardHandler))
	r.faults = fault.NewSet(machine{site, r})
	return r
}

// machine is the site and its port, as faults see them.
type machine struct {
	Site
	recorder *Recorder
}

func (m machine) Port() (*port.Port, error) {
	if p := m.recorder.port.Load(); p != nil {
		return p, nil
	}
	return nil, errors.New("it works on a site started with Listen only: a bare handler has no port of its own")
}

// Journal returns the journal of all requests.
func (r *Recorder) Journal() *journal.Journal { return r.journal }

// Arm puts a fault in force and returns how to end it. Of several faults that match a request the one armed first acts.
// It fails, and arms nothing, when the fault is unknown, incomplete or can match no request of this site.
func (r *Recorder) Arm(f fault.Fault) (disarm func(), err error) {
	id, err := r.ArmNumbered(f)
	return func() { r.Disarm(id) }, err
}

// ArmNumbered is Arm for callers who end the fault by its number.
func (r *Recorder) ArmNumbered(f fault.Fault) (id int64, err error) { return r.faults.Arm(f) }

// Faults returns the armed faults, in the order in which they are tried.
func (r *Recorder) Faults() []fault.Armed { return r.faults.List() }

// Disarm ends the fault with this number, and lets requests that hang on it go on; false when there is none.
func (r *Recorder) Disarm(id int64) bool { return r.faults.Disarm(id) }

// DisarmAll ends all faults.
func (r *Recorder) DisarmAll() { r.faults.DisarmAll() }

// ServeHTTP responds to one request as the site does, or as an armed fault has it.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	x := exchange.Begin(w, req, r.journal, r.connection(req))
	r.serve(x)
	x.End()
	if r.log.Enabled(req.Context(), slog.LevelDebug) {
		e := x.Entry()
		r.log.Debug("request", "method", req.Method, "path", req.URL.Path, "user", e.User, "status", e.Status, "fault", e.Fault)
	}
}

func (r *Recorder) serve(x *exchange.Exchange) {
	respond := r.site.Begin(x)
	if r.port.Load().IsShut() { // a connection from before
		x.Reset()
		return
	}
	if !r.faults.ApplyEarly(x, respond) {
		if err := x.ReadBody(); err != nil {
			return // the client went away
		}
		if !r.faults.Apply(x, respond) {
			respond()
		}
	}
	if !x.Done && x.Response != nil {
		x.Send()
	}
}

// Server is a recorder that listens on an address.
type Server struct {
	URL string // http://host:port

	recorder *Recorder
	port     *port.Port
	http     *http.Server
	memory   *inmemory.Listener
	done     chan error
}

// Listen serves a handler that leads to the recorder on an address ("127.0.0.1:0" picks a port). It fails when the address
// is taken.
func (r *Recorder) Listen(address string, handler http.Handler) (*Server, error) {
	p, err := port.Listen(address)
	if err != nil {
		return nil, fmt.Errorf("the mock cannot listen on %s: %w", address, err)
	}
	s := &Server{URL: "http://" + p.Addr().String(), recorder: r, port: p, memory: inmemory.Listen(p.Addr()), done: make(chan error, 1)}
	s.http = &http.Server{Handler: handler, ConnContext: r.ConnContext, ReadHeaderTimeout: time.Minute, ConnState: p.Watch}
	p.KeepAlives = s.http.SetKeepAlivesEnabled
	r.port.CompareAndSwap(nil, p) // a second one is for somebody else
	go func() {
		s.done <- s.http.Serve(&countingListener{p, &r.peers})
		close(s.done)
	}()
	go s.http.Serve(&countingListener{s.memory, &r.peers}) //nolint:errcheck // it ends as the other one does
	return s, nil
}

// Dial connects a client in this process to the server without the kernel, which thousands of requests spend much of their time
// in. To another address, and while the port is shut, which shows how, it connects by TCP. It is for
// http.Transport.DialContext.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if s.recorder.port.Load().IsShut() {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return s.memory.DialContext(ctx, network, address)
}

// Close ends the server and its connections; hanging requests end with them.
func (s *Server) Close() error {
	s.recorder.port.CompareAndSwap(s.port, nil)
	err := errors.Join(s.http.Close(), s.memory.Close())
	<-s.done
	return err
}

// Shutdown ends the server once the requests under way have been responded to, or with ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.recorder.DisarmAll()
	s.recorder.port.CompareAndSwap(s.port, nil)
	err := errors.Join(s.http.Shutdown(ctx), s.memory.Close())
	<-s.done
	return err
}
