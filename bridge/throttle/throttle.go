// Package throttle bounds how often a site is asked about credentials that it may refuse. Drupal counts failed
// authentications by account and by the address that they come from, which is the bridge's for everybody, and locks both:
// one guesser would lock all others out. The package counts refusals first, by account name, client address and in total,
// each in a sliding window. Its invariant: the site never sees more refusals in a window than the limit allows, and a
// credential that the site accepted is never held up by those of others.
package throttle

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/recent"
)

// Attempt is a credential on its way to the site.
type Attempt struct {
	Credential [32]byte   // digest of it
	Account    string     // the name that it is for, folded; "" where it names none, as a token does not
	Address    netip.Addr // of the client; the zero value is not counted
}

// Limits are how many refusals the site may see.
type Limits struct {
	Account int // of one account name in AccountWindow
	Address int // of different credentials from one client address in AddressWindow
	Total   int // of credentials with an account name in AddressWindow; 0: not counted
}

// The windows are those that Drupal counts in (user.flood: user_window and ip_window).
const (
	AccountWindow = 6 * time.Hour
	AddressWindow = time.Hour
)

const (
	maxTrying   = 16     // credentials that the site is asked about at one time
	maxWaiting  = 1024   // attempts that wait for one of those places
	maxCounters = 50_000 // accounts and addresses with refusals that are remembered
)

// ErrThrottled is the cause of the fault for an attempt that is not made.
var ErrThrottled = errors.New("too many failed authentications")

// Limiter counts refusals. It is safe for use by many at once.
type Limiter struct {
	now     func() time.Time
	good    *recent.Cache[[32]byte, *struct{}]    // credentials that the site accepted last
	refused *recent.Cache[[32]byte, *fault.Error] // credentials that it refused last, and how
	known   *recent.Cache[[32]byte, *struct{}]    // digests of account names of which the site accepted a credential
	shared  Shared                                // nil: this limiter counts alone

	mu       sync.Mutex
	limits   Limits
	counters map[key]*counter
	trying   int
	waiting  int
	changed  chan struct{} // closed when an attempt ends
}

// key names a counter.
type key struct {
	kind byte // account, address or total
	name string
}

const (
	account = iota
	address
	total
)

// counter is the refusals of one account, one address, or all.
type counter struct {
	failures []time.Time // the oldest first
	trying   int         // attempts that may become failures
}

// New makes a limiter that remembers so many credentials. now is the clock of the windows.
func New(limits Limits, remembered int, now func() time.Time) *Limiter {
	return &Limiter{
		now: now, limits: limits, counters: map[key]*counter{}, changed: make(chan struct{}),
		good: recent.New[[32]byte, *struct{}](remembered, nil), refused: recent.New[[32]byte, *fault.Error](remembered, nil),
		known: recent.New[[32]byte, *struct{}](remembered, nil),
	}
}

// KnownAccount reports whether the site accepted a credential of an account since the start.
func (l *Limiter) KnownAccount(name string) bool {
	_, ok := l.known.Get(sha256.Sum256([]byte(name)))
	return ok
}

// SetLimits puts other limits in force; what was counted stays.
func (l *Limiter) SetLimits(limits Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits = limits
	l.wake()
}

// Trial is an attempt that is being made. Exactly one of Accepted, Refused and Abandoned ends it.
type Trial struct {
	l       *Limiter
	attempt Attempt
	held    []key // counters in which a place is taken; nil for a credential that is known to be good
	shared  reservation
}

// Try says whether the site may be asked about a credential. It waits while so many are being tried that their failures
// could fill a window. Faults: RateLimited because of ErrThrottled with the time to wait, or the refusal that the site
// gave this credential before.
func (l *Limiter) Try(ctx context.Context, a Attempt) (*Trial, error) {
	if _, ok := l.good.Get(a.Credential); ok {
		return &Trial{l: l, attempt: a}, nil
	}
	known, _ := l.refused.Get(a.Credential)
	for {
		t, changed, err := l.begin(a, known)
		if t != nil {
			t, changed, err = t.reserve(known)
		}
		if t != nil || err != nil {
			return t, err
		}
		select {
		case <-changed:
			l.leaveQueue()
		case <-ctx.Done():
			l.leaveQueue()
			return nil, fault.New(fault.UpstreamTimeout, "The caller went away before its credentials were checked.").Because(ctx.Err())
		}
	}
}

// Check is an attempt that the bridge decides itself: refusal is nil for a right credential. A wrong one is counted. Where
// an address has guessed too often, a right credential that was never used before gets the same fault as a wrong one.
func (l *Limiter) Check(ctx context.Context, a Attempt, refusal *fault.Error) error {
	if _, ok := l.good.Get(a.Credential); ok && refusal == nil {
		return nil
	}
	t, err := l.Try(ctx, a)
	switch {
	case err != nil:
		return err
	case refusal != nil:
		t.Refused(refusal)
		return refusal
	}
	t.Accepted()
	return nil
}

// begin takes a place, or gives what to wait for. known is how the site refused the credential before.
func (l *Limiter) begin(a Attempt, known *fault.Error) (*Trial, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	keys := l.keys(a, known != nil)
	busy := l.trying >= maxTrying
	for _, k := range keys {
		c, limit := l.counter(k, now), l.limit(k)
		switch {
		case c == nil:
			return nil, nil, throttled(time.Minute)
		case len(c.failures) >= limit:
			if known != nil {
				return nil, nil, known
			}
			return nil, nil, throttled(c.failures[len(c.failures)-limit].Add(window(k)).Sub(now))
		case len(c.failures)+c.trying >= limit:
			busy = true
		}
	}
	if busy {
		if l.waiting >= maxWaiting {
			return nil, nil, throttled(time.Second)
		}
		l.waiting++
		return nil, l.changed, nil
	}
	for _, k := range keys {
		l.counters[k].trying++
	}
	l.trying++
	return &Trial{l: l, attempt: a, held: keys}, nil, nil
}

// keys are the counters that a refusal goes into. Refusing a credential once more says nothing new about its address,
// but the site counts it again for the account.
func (l *Limiter) keys(a Attempt, again bool) []key {
	keys := make([]key, 0, 3)
	if a.Address.IsValid() && !again {
		keys = append(keys, key{address, Network(a.Address)})
	}
	if a.Account != "" {
		keys = append(keys, key{account, a.Account})
		if l.limits.Total > 0 {
			keys = append(keys, key{kind: total})
		}
	}
	return keys
}

// Network is what one client has for itself: an IPv4 address, or 64 bits of IPv6.
func Network(a netip.Addr) string {
	if !a.Is6() {
		return a.String()
	}
	prefix, err := a.Prefix(64)
	if err != nil {
		return a.String()
	}
	return prefix.String()
}

func window(k key) time.Duration {
	if k.kind == account {
		return AccountWindow
	}
	return AddressWindow
}

func (l *Limiter) limit(k key) int {
	switch k.kind {
	case account:
		return l.limits.Account
	case address:
		return l.limits.Address
	}
	return l.limits.Total
}

// counter returns a counter without what has left its window; nil where no more can be remembered.
func (l *Limiter) counter(k key, now time.Time) *counter {
	c, ok := l.counters[k]
	if !ok {
		if len(l.counters) >= maxCounters {
			l.sweep(now)
		}
		if len(l.counters) >= maxCounters {
			return nil
		}
		c = &counter{}
		l.counters[k] = c
	}
	c.expire(now.Add(-window(k)))
	return c
}

func (c *counter) expire(before time.Time) {
	old := 0
	for old < len(c.failures) && !c.failures[old].After(before) {
		old++
	}
	c.failures = c.failures[old:]
}

// sweep forgets counters that count nothing.
func (l *Limiter) sweep(now time.Time) {
	for k, c := range l.counters {
		if c.expire(now.Add(-window(k))); len(c.failures) == 0 && c.trying == 0 {
			delete(l.counters, k)
		}
	}
}

func (l *Limiter) leaveQueue() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting--
}

// wake wakes all waiters; the limiter is locked.
func (l *Limiter) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// WasGood reports whether the site accepted the credential the last time.
func (t *Trial) WasGood() bool { return t.held == nil }

// Accepted says that the site accepted the credential.
func (t *Trial) Accepted() {
	t.l.refused.Remove(t.attempt.Credential)
	t.l.good.Set(t.attempt.Credential, &struct{}{})
	if t.attempt.Account != "" {
		t.l.known.Set(sha256.Sum256([]byte(t.attempt.Account)), &struct{}{})
	}
	t.end(false)
}

// Refused says that the site refused the credential, and how.
func (t *Trial) Refused(how *fault.Error) {
	t.l.good.Remove(t.attempt.Credential)
	t.l.refused.Set(t.attempt.Credential, how)
	t.end(true)
}

// Abandoned says that the site did not respond for the credential.
func (t *Trial) Abandoned() { t.end(false) }

func (t *Trial) end(failed bool) {
	t.settle(failed)
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	held := t.held
	if held == nil && failed { // it was good until now
		held = l.keys(t.attempt, false)
	}
	for _, k := range held {
		c := l.counters[k]
		if t.held != nil {
			c.trying--
		} else if c = l.counter(k, now); c == nil {
			continue
		}
		if failed {
			c.failures = append(c.failures, now)
		}
		if len(c.failures) == 0 && c.trying == 0 {
			delete(l.counters, k)
		}
	}
	if t.held != nil {
		l.trying--
		l.wake()
	}
}

// throttled is the same for every reason: whether an account exists shows nowhere in it.
func throttled(wait time.Duration) *fault.Error {
	e := fault.New(fault.RateLimited, "Too many failed authentications for this account or from this address.").Because(ErrThrottled)
	e.RetryAfter = max(wait, time.Second)
	return e
}
