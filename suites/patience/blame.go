package patience

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/machine"
	"github.com/bridgecheck/bridgecheck/internal/processor"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// exemption is why something else than the bridge may be to blame.
type exemption struct {
	why  string // "": nothing else is
	site bool   // the site fails
}

// Exempt notes that something else than the bridge may be why the running check does not pass. What fails in such a check
// says nothing of the bridge. The first reason stays.
func (s *Scope) Exempt(why string) { s.exempt(exemption{why, false}) }

// exemptBySite is Exempt where the site fails.
func (s *Scope) exemptBySite(why string) { s.exempt(exemption{why, true}) }

func (s *Scope) exempt(e exemption) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exemption.why == "" {
		s.exemption = e
	}
}

// Exemption is why the bridge is not to blame for what the check found, and whether its site fails; "": nothing else is.
func (s *Scope) Exemption() (why string, site bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exemption.why == "" {
		return "", false
	}
	return s.run.Secrets.Text(s.exemption.why), s.exemption.site
}

// SiteFailure says how the site behind the bridge failed by itself since a position of its journal: it said that it cannot
// serve, or took longer than the limit. It is "" where it did neither, where a fault is armed, and where nobody saw it.
func (s *Scope) SiteFailure(since int64, limit time.Duration) string {
	u := s.run.Observed
	if u == nil || u.Faulty() {
		return ""
	}
	for _, e := range u.Entries(since) {
		if client.Failing(e.Status) {
			return fmt.Sprintf("the site behind the bridge responds %d to %s %s", e.Status, e.HTTPMethod, e.Path)
		}
		took := time.Since(e.Start)
		if !e.End.IsZero() {
			took = e.End.Sub(e.Start)
		}
		tooLong := took >= limit*9/10                // the bridge began to wait before the request reached the site
		if tooLong && s.run.Known && e.Fault == "" { // a mock is never slow by itself
			if s.run.lateness.since(e.Start) == 0 {
				continue
			}
			s.exemptOverload(fmt.Sprintf("the mock took %s for %s %s", Rounded(took), e.HTTPMethod, e.Path))
			return ""
		}
		if tooLong {
			return fmt.Sprintf("the site behind the bridge is slow: %s for %s %s, and the bridge waits %v", Rounded(took), e.HTTPMethod, e.Path, limit)
		}
	}
	return ""
}

// ExemptFault exempts the check where an error of a connection that it made is the machine's fault.
func (s *Scope) ExemptFault(err error) {
	if why := machine.Fault(err); why != "" {
		s.Exempt(why)
	}
}

// exemptIfSiteFailed exempts the check where the site failed by itself while the request was under way, or the machine was
// overloaded or short of something.
func (s *sending) exemptIfSiteFailed() {
	a := s.response
	s.ExemptFault(a.Err)
	if s.faulty || a.Err == nil && a.Status != http.StatusInternalServerError && !client.Failing(a.Status) && !isMCPError(a) {
		return
	}
	limit := cmp.Or(s.run.SiteLimit, min(s.run.Timeout/2, unknownTimeout))
	if why := s.SiteFailure(s.since, limit); why != "" {
		s.exemptBySite(why)
	}
	passedOn := s.passedOn()
	if errors.Is(a.Err, client.ErrTimeout) || a.Status == http.StatusGatewayTimeout || passedOn {
		s.ExemptIfLate()
		if passedOn {
			s.run.spent().notePassedOn()
			if share := s.run.lateness.share(); share < fullShare {
				s.exemptOverload(fmt.Sprintf("this process gets %.0f %% of a processor", 100*share))
			}
			if part := s.run.lateness.crowded(a.At); part > muchWanted { // what it gets changes from moment to moment
				s.exemptOverload(fmt.Sprintf("somebody waited for a processor during %.0f %% of a request", 100*part))
			}
		}
		why, _ := s.Exemption()
		s.run.spent().noteExcuse(s.kind, why)
	}
	if held := s.run.lateness.heldUp(a.At); held >= overloaded {
		held = min(held, a.Took) // it may have begun before
		s.exemptOverload(fmt.Sprintf("this process was held up for %s of the %s that a request took", Rounded(held), Rounded(a.Took)))
	}
}

// passedOn reports whether the bridge says, in whatever form, that the mock was late: it failed once it had waited for as long
// as it may, and the mock, which is never late by itself, was not. Either the bridge is wrong, or the machine came between.
func (s *sending) passedOn() bool {
	limit, a := s.run.SiteLimit, s.response
	if !s.run.Known || limit == 0 || a.Err != nil || a.Took < limit*9/10 {
		return false
	}
	return !slices.ContainsFunc(s.run.Observed.Entries(s.since), func(e journal.Entry) bool {
		return e.Fault != "" || e.Status >= http.StatusBadRequest
	})
}

var mcpError = regexp.MustCompile(`"isError"\s*:\s*true|"error"\s*:\s*\{`)

// isMCPError reports whether a response of MCP holds an error or the result of a tool that failed, as it does where the site was
// too late.
func isMCPError(a *client.Response) bool {
	return a.Status == http.StatusOK && a.Path == client.MCPPath && mcpError.Match(a.Body)
}

// unknownTimeout is how long a site may take where nobody knows how long the bridge waits for it.
const unknownTimeout = 5 * time.Second

// Rounded is a duration as people say it.
func Rounded(d time.Duration) string {
	if d >= time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// lateness is how late this process gets its turn. On an overloaded machine it is late, as the bridge and the mock are.
type lateness struct {
	mu     sync.Mutex
	turns  []lateTurn
	looked time.Time     // at the clock
	jumped time.Time     // when the wall clock jumped last
	jump   time.Duration // by which
	wanted []wanting     // the oldest first

	sharing sync.Mutex
	part    float64 // of a processor, as it was measured last
	shared  time.Time
}

type lateTurn struct {
	at time.Time
	by time.Duration
}

// wanting is for how long somebody had to wait for a processor until then.
type wanting struct {
	at  time.Time
	all time.Duration
}

// How lateness is measured.
const (
	wantEvery  = 200 * time.Millisecond
	turnEvery  = 20 * time.Millisecond
	late       = 10 * time.Millisecond  // from which a turn counts
	overloaded = 200 * time.Millisecond // a turn that is so late, or several of one request together: an idle machine is not late by a tenth of it
)

// WatchLateness measures how late this process gets its turn until ctx ends.
func (r *Run) WatchLateness(ctx context.Context) {
	for ctx.Err() == nil {
		slept := time.Now()
		r.lateness.lookAtClock(slept)
		r.lateness.lookAtWaiting(slept)
		time.Sleep(turnEvery)
		if by := time.Since(slept) - turnEvery; by >= late {
			r.lateness.mu.Lock()
			r.lateness.turns = append(r.lateness.turns, lateTurn{slept, by})
			r.lateness.mu.Unlock()
		}
	}
}

// lookAtWaiting notes now and then for how long somebody had to wait for a processor.
func (l *lateness) lookAtWaiting(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.wanted); n > 0 && now.Sub(l.wanted[n-1].at) < wantEvery {
		return
	}
	if all, ok := processor.Wanting(); ok {
		l.wanted = append(l.wanted, wanting{now, all})
	}
}

// crowded is the part of the time since then, or since shortly before, in which somebody had to wait for a processor; 0 where the
// system does not tell.
func (l *lateness) crowded(since time.Time) float64 {
	all, ok := processor.Wanting()
	l.mu.Lock()
	defer l.mu.Unlock()
	i := len(l.wanted) - 1
	for i > 0 && l.wanted[i].at.After(since) {
		i--
	}
	if !ok || i < 0 {
		return 0
	}
	return float64(all-l.wanted[i].all) / float64(time.Since(l.wanted[i].at))
}

// How the wall clock is watched. A clock that is adjusted gradually gains a millisecond in a second at most.
const (
	aJump     = 500 * time.Millisecond
	jumpLasts = 10 * time.Second // what a bridge has dated may have a wrong date for as long after it
)

// lookAtClock notes a jump of the wall clock since it was looked at last.
func (l *lateness) lookAtClock(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.looked.IsZero() {
		if by := now.Round(0).Sub(l.looked.Round(0)) - now.Sub(l.looked); by.Abs() >= aJump { // by the wall clock, and really
			l.jumped, l.jump = now, by
		}
	}
	l.looked = now
}

// ExemptIfClockJumped exempts the check where the wall clock jumped while it ran, or shortly before: tokens, sessions and caches
// of a correct bridge may have ended by that.
func (s *Scope) ExemptIfClockJumped() {
	l := &s.run.lateness
	l.lookAtClock(time.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.jumped.IsZero() && l.jumped.After(s.began.Add(-jumpLasts)) {
		s.Exempt(fmt.Sprintf("the machine's clock jumped by %v: run it again", l.jump.Round(time.Second)))
	}
}

// since is how late this process got its turn at most since a time, as far as it counts.
func (l *lateness) since(start time.Time) time.Duration {
	var most time.Duration
	for _, turn := range l.turnsSince(start) {
		most = max(most, turn.by)
	}
	if most < overloaded {
		return 0
	}
	return most
}

// heldUp is how long this process waited for its turns since a time.
func (l *lateness) heldUp(start time.Time) (sum time.Duration) {
	for _, turn := range l.turnsSince(start) {
		sum += turn.by
	}
	return sum
}

func (l *lateness) turnsSince(start time.Time) []lateTurn {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := len(l.turns)
	for i > 0 && !l.turns[i-1].at.Add(l.turns[i-1].by).Before(start) {
		i--
	}
	return slices.Clone(l.turns[i:])
}

// ExemptIfLate exempts the check, which found something to be late or refused under load, where the machine was overloaded while
// it ran, or gives a process too few files for that: this process got its turn late, or gets so little of a processor that a
// bridge in its place takes several times as long. A system may wake a process in time that then hardly computes.
func (s *Scope) ExemptIfLate() {
	if why := machine.FewFiles(); why != "" {
		s.Exempt(why)
	}
	if by := s.run.lateness.since(s.began); by > 0 {
		s.exemptOverload(fmt.Sprintf("this process got its turn %s late", Rounded(by)))
		return
	}
	if why := s.run.Overloaded(); why != "" {
		s.Exempt(why + freeCores)
	}
}

// Overloaded says that this process gets so little of a processor that a bridge in its place may be slow for that alone; "": it gets
// enough.
func (r *Run) Overloaded() string {
	if share := r.lateness.share(); share < littleShare {
		return fmt.Sprintf("the machine is overloaded: this process gets %.0f %% of a processor", 100*share)
	}
	return ""
}

// Undisturbed reports whether this process got its turns in time since a time, and gets a processor now.
func (s *Scope) Undisturbed(since time.Time) bool {
	return len(s.run.lateness.turnsSince(since)) == 0 && processor.Granted(10) > freeShare
}

// Shares of a processor.
const (
	freeShare   = 0.9 // above, nothing else computes
	fullShare   = 0.7 // below, a bridge may compute too long
	littleShare = 0.3 // below, a bridge may take too long for anything
	muchWanted  = 0.5 // of a request: above, a bridge may compute too long
)

// shareLasts is how long a measured share counts, for it costs some of the processor itself.
const shareLasts = 3 * time.Second

// share is the part of a processor that this process gets.
func (l *lateness) share() float64 {
	l.sharing.Lock()
	defer l.sharing.Unlock()
	if time.Since(l.shared) > shareLasts {
		l.part, l.shared = processor.Granted(50), time.Now()
	}
	return l.part
}

// ExemptIfCrowded exempts the check, in which the bridge had not the time for what it computes, where others compute, too.
func (s *Scope) ExemptIfCrowded() {
	if share := processor.Share(100); share < fullShare {
		s.exemptOverload(fmt.Sprintf("this process gets %.0f %% of a processor", 100*share))
	}
}

// freeCores is what helps on a machine that is overloaded.
const freeCores = "; run it again with free cores"

func (s *Scope) exemptOverload(seen string) {
	s.Exempt("the machine is overloaded: " + seen + freeCores)
}
