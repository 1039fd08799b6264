package mcp

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/keys"
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

// A sealed session id holds the state of its session, encrypted, so that every replica with the key goes on with it. The
// session's owner is what it is bound to: for another identity it cannot be opened.
//
//	base64url(nonce 12 | AES-256-GCM(revision 1 | opened, Unix seconds 8) | tag 16)
const stateLength = 1 + 8

var sealedEncoding = base64.RawURLEncoding.Strict()

// sessionState is what a session id holds.
type sessionState struct {
	revision Revision
	opened   time.Time
}

// sealing is how the state of sessions is put into their ids; without keys it is not.
type sealing struct {
	keys *keys.Ring
	life time.Duration // of a session
}

// seal makes the id of a session; there is a key.
func (s sealing) seal(state sessionState, owner caller.Identity) string {
	text := []byte{byte(slices.Index(revisions, state.revision))}
	text = binary.BigEndian.AppendUint64(text, uint64(state.opened.Unix()))
	return sealedEncoding.EncodeToString(s.keys.Seal(text, owner[:]))
}

// open reads an id that one of the keys sealed for the owner.
func (s sealing) open(id string, owner caller.Identity) (state sessionState, ok bool) {
	if len(id) != sealedEncoding.EncodedLen(stateLength+keys.Overhead) {
		return state, false
	}
	sealed, err := sealedEncoding.DecodeString(id)
	if err != nil {
		return state, false
	}
	text, ok := s.keys.Open(sealed, owner[:])
	if !ok || int(text[0]) >= len(revisions) {
		return state, false
	}
	return sessionState{revisions[text[0]], time.Unix(int64(binary.BigEndian.Uint64(text[1:])), 0)}, true
}
