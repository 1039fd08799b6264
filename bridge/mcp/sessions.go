package mcp

import (
	"cmp"
	"crypto/rand"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/upstream"
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

// Sessions are the open sessions of all clients. They may outlast the server that opened them: one that takes its place
// goes on with them.
type Sessions struct {
	mu        sync.RWMutex
	byID      map[string]*session
	holders   map[holder]map[*session]struct{}
	anonymous int
}

// holder is whose places a session takes: a credential's, or those of anonymous callers from one network.
type holder struct {
	owner   upstream.Identity
	network string // "" for callers with credentials
}

// NewSessions makes a store without sessions.
func NewSessions() *Sessions {
	return &Sessions{byID: map[string]*session{}, holders: map[holder]map[*session]struct{}{}}
}

// Len is the number of open sessions.
func (s *Sessions) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.byID)
}

// open makes a session for the caller. Overloaded: all places are taken by sessions that are in use.
func (s *Sessions) open(revision Revision, who upstream.Caller, now time.Time) (*session, error) {
	opened := newSession(rand.Text(), revision, who.Owner())
	opened.holder = holder{owner: opened.owner}
	most := maxOfCaller
	if who.Anonymous() {
		opened.holder.network, most = who.Network(), maxOfAddress
	}
	opened.used.Store(now.UnixNano())
	s.mu.Lock()
	defer s.mu.Unlock()
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
	f := fault.New(fault.Overloaded, "Too many sessions are in use; end some, or come again later.")
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
	case now.Sub(time.Unix(0, s.used.Load())) > inUse && !s.busy():
		return 2
	}
	return inUseRank
}

// find gives the session of an id to who opened it, as long as it is used at least once in the idle time. To all
// others it does not exist.
func (s *Sessions) find(id string, who upstream.Identity, now time.Time, idle time.Duration) (*session, bool) {
	s.mu.RLock()
	found, ok := s.byID[id]
	s.mu.RUnlock()
	if !ok || found.owner != who || found.ctx.Err() != nil {
		return nil, false
	}
	if now.UnixNano()-found.used.Load() > int64(idle) && !found.busy() {
		s.close(found)
		return nil, false
	}
	found.used.Store(now.UnixNano())
	found.served.Store(true)
	return found, true
}

// close ends a session.
func (s *Sessions) close(ended *session) {
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
