package mcp

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/upstream"
)

// session is what one client of the revisions with sessions has opened. It belongs to the identity that opened it and
// to nobody else; what may be seen and run in it is still decided by each request's own credentials.
type session struct {
	id       string // Mcp-Session-Id; "" on stdio
	revision Revision
	owner    upstream.Identity               // see upstream.Caller.Owner
	used     atomic.Int64                    // by the clock, Unix nanoseconds
	listed   atomic.Pointer[catalog.Version] // what the client was last shown; nil: nothing yet
	flights  flights

	ctx context.Context // ends with the session
	end context.CancelFunc

	mu      sync.Mutex
	streams []*stream // open for notifications, the newest last
}

func newSession(id string, revision Revision, owner upstream.Identity) *session {
	s := &session{id: id, revision: revision, owner: owner}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// open makes a session for the caller.
func (s *Server) open(revision Revision, owner upstream.Identity) *session {
	opened := newSession(rand.Text(), revision, owner)
	opened.used.Store(s.o.Now().UnixNano())
	s.sessions.Set(opened.id, opened)
	return opened
}

// find gives the session of an id to whoever opened it, as long as it is in use. To all others it does not exist.
func (s *Server) find(id string, who upstream.Identity) (*session, bool) {
	found, ok := s.sessions.GetIfPresent(id)
	if !ok || found.owner != who || found.ctx.Err() != nil {
		return nil, false
	}
	now := s.o.Now().UnixNano()
	if now-found.used.Load() > int64(s.o.SessionIdle) && !found.listening() {
		s.close(found)
		return nil, false
	}
	found.used.Store(now)
	return found, true
}

func (s *Server) close(ended *session) {
	s.sessions.Invalidate(ended.id)
	ended.end()
}

func (s *session) listening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams) > 0
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

// start makes a context that cancel ends; done must be called when the request is answered.
func (f *flights) start(ctx context.Context, id []byte) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	f.m.Store(string(id), cancel)
	return ctx, func() {
		f.m.Delete(string(id))
		cancel()
	}
}

// cancel ends the request that a notifications/cancelled names.
func (f *flights) cancel(m message) {
	id, _ := m.params.Get("requestId")
	if cancel, ok := f.m.Load(string(id.Raw)); ok {
		cancel.(context.CancelFunc)()
	}
}
