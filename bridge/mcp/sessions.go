package mcp

import (
	"cmp"
	"crypto/rand"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/keys"
	"github.com/bridgecheck/bridgecheck/bridge/recent"
)

// What open sessions may cost. One caller cannot take the places of others, and a session that is in use is ended for
// nobody.
const (
	maxSessions      = 10_000
	maxOfCaller      = 2_500 // of one credential
	maxOfAddress     = 100   // of anonymous callers from one address
	maxAnonymous     = 5_000
	inUse            = 10 * time.Minute // since a session was used last
	sessionsFullWait = 30 * time.Second // before another initialize is worth while
)

// maxEnded is how many sealed sessions that were ended are remembered; the one that was ended or asked for the longest ago goes first.
const maxEnded = 100_000

// Sessions are the open sessions of all clients. They may outlast the server that opened them: one that takes its place
// goes on with them. With keys, it also goes on with those that another replica opened.
type Sessions struct {
	mu        sync.RWMutex
	byID      map[string]*session
	holders   map[holder]map[*session]struct{}
	anonymous int
	sealing   sealing
	shared    Shared                         // nil: replicas share nothing but keys
	checked   int64                          // goes up when sessions may have ended unnoticed
	ended     *recent.Cache[string, *ending] // of sealed sessions that their clients ended
}

// Shared is what replicas share of their sessions.
type Shared interface {
	End(id string, until time.Time) // reports to all replicas that a session ended; until then it has to be remembered
	Ended(id string) bool           // whether one of them reported that; false where that cannot be found out
}

// ending is a session that has ended: its id, and when it would have ended by itself.
type ending struct {
	id    string
	until time.Time
}

// holder is the account of a session: a credential, or the anonymous callers of one network.
type holder struct {
	owner   caller.Identity
	network string // "" for callers with credentials
}

// NewSessions makes a store without sessions.
func NewSessions() *Sessions {
	return &Sessions{byID: map[string]*session{}, holders: map[holder]map[*session]struct{}{}, ended: recent.New[string, *ending](maxEnded, nil)}
}

// Seal puts the state of the sessions that are opened from now on into their ids. Such a session lasts so long, used or
// not, on every replica with a key in common. Without keys, none is sealed.
func (s *Sessions) Seal(keys *keys.Ring, life time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealing = sealing{keys, life}
}

// Share reports sealed sessions that end here to other replicas; Ended has to be called for those that end there.
func (s *Sessions) Share(with Shared) { s.shared = with }

// Ended ends a session that its client ended on another replica.
func (s *Sessions) Ended(id string, until time.Time) {
	s.ended.Set(id, &ending{id, until})
	s.mu.Lock()
	defer s.mu.Unlock()
	if there := s.byID[id]; there != nil {
		s.remove(there)
	}
}

// Recheck is for a time in which reports of ended sessions may have been lost: those of this replica are sent again, and for
// those of others the store is asked when a session is used next.
func (s *Sessions) Recheck() {
	s.mu.Lock()
	s.checked++
	s.mu.Unlock()
	for _, e := range s.ended.Values() {
		s.shared.End(e.id, e.until)
	}
}

func (s *Sessions) sealed() sealing {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.sealing
}

// Len is the number of open sessions.
func (s *Sessions) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.byID)
}

// open makes a session for the caller. Overloaded: all places are taken by sessions that are in use.
func (s *Sessions) open(revision Revision, who caller.Caller, now time.Time) (*session, error) {
	id, until := rand.Text(), time.Time{}
	if sealing := s.sealed(); !sealing.keys.Empty() {
		id, until = sealing.seal(sessionState{revision, now}, who.Owner()), now.Add(sealing.life)
	}
	return s.add(newSession(id, revision, who.Owner()), until, who, now)
}

// adopt goes on with a sealed session that another replica opened, or that this one opened and forgot. It gives nil for
// an id that is malformed, of another caller, or ended.
func (s *Sessions) adopt(id string, who caller.Caller, now time.Time) (*session, error) {
	sealing := s.sealed()
	state, ok := sealing.open(id, who.Owner())
	if until := state.opened.Add(sealing.life); ok && now.Before(until) && !s.wasEnded(id) && (s.shared == nil || !s.shared.Ended(id)) {
		adopted := newSession(id, state.revision, who.Owner())
		adopted.adopted = true
		return s.add(adopted, until, who, now)
	}
	return nil, nil
}

func (s *Sessions) wasEnded(id string) bool {
	_, ended := s.ended.Get(id)
	return ended
}

// add gives a session its place. until is when it ends, used or not; zero: it ends when it is not used.
func (s *Sessions) add(opened *session, until time.Time, who caller.Caller, now time.Time) (*session, error) {
	opened.until = until
	opened.use(now)
	opened.holder = holder{owner: opened.owner}
	most := maxOfCaller
	if who.Anonymous() {
		opened.holder.network, most = who.Network(), maxOfAddress
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	opened.checked.Store(s.checked)
	if there := s.byID[opened.id]; there != nil { // another request adopted it just now
		return there, nil
	}
	for len(s.holders[opened.holder]) >= most {
		if !s.thin(maps.Keys(s.holders[opened.holder]), now) {
			return nil, crowded()
		}
	}
	for who.Anonymous() && s.anonymous >= maxAnonymous || len(s.byID) >= maxSessions {
		if !s.fewer(who.Anonymous(), now) {
			return nil, crowded()
		}
	}
	s.byID[opened.id] = opened
	own := s.holders[opened.holder]
	if own == nil {
		own = map[*session]struct{}{}
		s.holders[opened.holder] = own
	}
	own[opened] = struct{}{}
	if who.Anonymous() {
		s.anonymous++
	}
	return opened, nil
}

func crowded() *fault.Error {
	f := fault.New(fault.Overloaded, "Too many sessions are in use; end some, or retry later.")
	f.RetryAfter = sessionsFullWait
	return f
}

// thin ends some of the sessions that are missed least: first those of anonymous callers that were opened and never used,
// then others of that kind, then those that went unused for long, the longest first. A session in use is none of them. It
// ends a twentieth at once, so that a flood does not pay for a look at all of them each time; false: there is none to end.
func (s *Sessions) thin(among iter.Seq[*session], now time.Time) bool {
	least, spare := inUseRank, []*session(nil)
	for candidate := range among {
		switch rank := candidate.rank(now); {
		case rank < least:
			least, spare = rank, []*session{candidate}
		case rank == least && rank < inUseRank:
			spare = append(spare, candidate)
		}
	}
	slices.SortFunc(spare, func(a, b *session) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
	for _, ended := range spare[:(len(spare)+19)/20] {
		s.remove(ended)
	}
	return len(spare) > 0
}

// fewer is thin among all sessions, or among those of anonymous callers, which cannot end the session of a known caller.
func (s *Sessions) fewer(anonymous bool, now time.Time) bool {
	return s.thin(func(yield func(*session) bool) {
		for _, candidate := range s.byID {
			if (!anonymous || candidate.holder.network != "") && !yield(candidate) {
				return
			}
		}
	}, now)
}

const inUseRank = 3

func (s *session) rank(now time.Time) int {
	switch {
	case !s.served.Load() && s.holder.network != "":
		return 0
	case !s.served.Load():
		return 1
	case s.unused(now) > inUse && !s.busy():
		return 2
	}
	return inUseRank
}

// find returns the session of an id to the caller who opened it, as long as it is used at least once in the idle time or, where it is
// sealed, until its time is over. To all others it does not exist: nil. Overloaded: it is another replica's, and there is no
// place for it here.
func (s *Sessions) find(id string, who caller.Caller, now time.Time, idle time.Duration) (*session, error) {
	s.mu.RLock()
	found, checked := s.byID[id], s.checked
	s.mu.RUnlock()
	if found == nil {
		var err error
		if found, err = s.adopt(id, who, now); found == nil || err != nil {
			return nil, err
		}
	}
	if found.owner != who.Owner() || found.ctx.Err() != nil {
		return nil, nil
	}
	gone := found.over(now, idle)
	if s.shared != nil && !found.until.IsZero() && found.checked.Swap(checked) != checked {
		gone = gone || s.shared.Ended(id)
	}
	if gone {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.remove(found)
		return nil, nil
	}
	found.use(now)
	found.served.Store(true)
	return found, nil
}

// close ends a session.
func (s *Sessions) close(ended *session) {
	if !ended.until.IsZero() {
		s.ended.Set(ended.id, &ending{ended.id, ended.until})
		if s.shared != nil {
			s.shared.End(ended.id, ended.until)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(ended)
}

// remove ends a session; the store is locked.
func (s *Sessions) remove(ended *session) {
	ended.end()
	if _, open := s.byID[ended.id]; !open {
		return
	}
	delete(s.byID, ended.id)
	own := s.holders[ended.holder]
	if delete(own, ended); len(own) == 0 {
		delete(s.holders, ended.holder)
	}
	if ended.holder.network != "" {
		s.anonymous--
	}
}
