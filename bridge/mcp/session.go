package mcp

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/catalog"
)

// session is what one client of the revisions with sessions has opened. It belongs to the identity that opened it and
// to nobody else; what may be seen and run in it is still decided by each request's own credentials.
type session struct {
	id       string // Mcp-Session-Id; "" on stdio
	revision Revision
	owner    caller.Identity // see caller.Caller.Owner
	holder   holder
	until    time.Time                       // when a sealed session ends, used or not; zero: it is not sealed
	checked  atomic.Int64                    // Sessions.checked when it was known not to have ended
	adopted  bool                            // opened by another replica, or forgotten here meanwhile
	used     atomic.Int64                    // by the clock, nanoseconds since began
	served   atomic.Bool                     // a request came after initialize
	listed   atomic.Pointer[catalog.Version] // what the client was last shown; nil: nothing yet
	flights  flights

	ctx context.Context // ends with the session
	end context.CancelFunc

	mu      sync.Mutex
	streams []*stream // open for notifications, the newest last
}

func newSession(id string, revision Revision, owner caller.Identity) *session {
	s := &session{id: id, revision: revision, owner: owner}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// began is what moments are measured from: the wall clock may jump.
var began = time.Now()

// use notes that the session is used.
func (s *session) use(now time.Time) { s.used.Store(int64(now.Sub(began))) }

// unused is for how long it has not been.
func (s *session) unused(now time.Time) time.Duration {
	return now.Sub(began) - time.Duration(s.used.Load())
}

// over reports whether the session's time is.
func (s *session) over(now time.Time, idle time.Duration) bool {
	if !s.until.IsZero() {
		return !now.Before(s.until)
	}
	return s.unused(now) > idle && !s.busy()
}

// busy reports whether a stream is open in the session, or a request under way.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams) > 0 || s.flights.any()
}

// enter adds a stream to the session, until leave is called. A notification goes out on one stream only: the newest,
// for an older one is most likely what a client left behind.
func (s *session) enter(st *stream) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = append(s.streams, st)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.streams = slices.DeleteFunc(s.streams, func(other *stream) bool { return other == st })
	}
}

func (s *session) newest(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[len(s.streams)-1] == st
}

// flights are requests under way, by id, so that a client can cancel them. The zero value is ready.
type flights struct{ m sync.Map } // context.CancelFunc by the id as it was written

// start makes a context that cancel ends; done must be called when the request is done.
func (f *flights) start(ctx context.Context, id []byte) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	f.m.Store(string(id), cancel)
	return ctx, func() {
		f.m.Delete(string(id))
		cancel()
	}
}

func (f *flights) any() (under bool) {
	f.m.Range(func(any, any) bool { under = true; return false })
	return under
}

// cancel ends the request that a notifications/cancelled names.
func (f *flights) cancel(m message) {
	id, _ := m.params.Get("requestId")
	if cancel, ok := f.m.Load(string(id.Raw)); ok {
		cancel.(context.CancelFunc)()
	}
}
