package fault

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/port"
)

// Machine is the site that faults act on, as far as they need to know it.
type Machine interface {
	Routes() []string             // names of the routes, sorted
	CheckUser(name string) error  // whether a fault can name this account
	CheckMethod(pat string) error // whether a fault can name methods by this pattern
	State() (any, error)          // the present state of the site, for Exchange.Past; an error where it is not known
	Port() (*port.Port, error)    // the port that the site listens on; an error where it has none of its own
}

// Set is the faults in force, in the order in which they were armed.
type Set struct {
	machine Machine

	mu    sync.Mutex
	last  int64
	armed []*armed // among them those that have acted as often as they were to, as long as they still act
}

// NewSet returns a set without faults.
func NewSet(m Machine) *Set { return &Set{machine: m} }

// armed is a fault in force.
type armed struct {
	Fault
	kind     kind
	id       int64
	left     int // requests that it will still act on; negative: without end
	acting   int // requests that it acts on now
	random   *rand.Rand
	disarmed chan struct{} // closed when it is disarmed: whatever hangs on it goes on
	past     any           // the state of the site that its kind remembered
	end      func()        // what its kind does when it is disarmed; nil: nothing
	over     bool          // it ended by itself
}

// Arm puts a fault in force and returns its number. Of several faults that match a request the one armed first acts. It
// fails, and arms nothing, when the fault is unknown, incomplete or can match no request of this site.
func (s *Set) Arm(f Fault) (id int64, err error) {
	if err := s.check(f); err != nil {
		return 0, fmt.Errorf("arming a fault: %w", err)
	}
	a := &armed{Fault: f, kind: kinds[f.Kind], left: cmp.Or(f.Count, -1), random: rand.New(rand.NewPCG(f.Seed, f.Seed)), disarmed: make(chan struct{})}
	s.mu.Lock()
	s.last++
	a.id = s.last
	s.mu.Unlock()
	if a.kind.arm != nil {
		if err := a.kind.arm(a, s.machine, func() { s.ended(a) }); err != nil {
			return 0, fmt.Errorf("arming the fault %s: %w", f.Kind, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !a.over {
		s.armed = append(s.armed, a)
	}
	return a.id, nil
}

// ended takes a fault that ended by itself out of the list, if it is in it already.
func (s *Set) ended(a *armed) {
	s.mu.Lock()
	a.over = true
	s.mu.Unlock()
	s.Disarm(a.id)
}

// Armed is a fault in force and its number.
type Armed struct {
	ID    int64 `json:"id"`
	Fault Fault `json:"fault"`
	Left  int   `json:"left"` // requests that it still acts on; -1: without end
}

// List returns the armed faults, in the order in which they are tried.
func (s *Set) List() []Armed {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []Armed{}
	for _, a := range s.armed {
		if a.left != 0 {
			list = append(list, Armed{a.id, a.Fault, a.left})
		}
	}
	return list
}

// Disarm ends the fault with this number, and lets whatever hangs on it go on; false when there is none.
func (s *Set) Disarm(id int64) bool {
	return s.disarmWhere(func(a *armed) bool { return a.id == id }) > 0
}

// DisarmAll ends all faults.
func (s *Set) DisarmAll() { s.disarmWhere(func(*armed) bool { return true }) }

func (s *Set) disarmWhere(ends func(*armed) bool) int {
	var ended []*armed
	s.mu.Lock()
	s.armed = slices.DeleteFunc(s.armed, func(a *armed) bool {
		if ends(a) {
			ended = append(ended, a)
			return true
		}
		return false
	})
	s.mu.Unlock()
	for _, a := range ended {
		close(a.disarmed)
		if a.end != nil {
			a.end()
		}
	}
	return len(ended)
}

// check says what is wrong with a fault.
func (s *Set) check(f Fault) error {
	kind, known := kinds[f.Kind]
	switch {
	case !known:
		return fmt.Errorf("there is no fault %q: the mock knows %s", f.Kind, strings.Join(names(), ", "))
	case f.Route != "" && !slices.Contains(s.machine.Routes(), f.Route):
		return fmt.Errorf("route %q matches no route of the mock: %s", f.Route, strings.Join(s.machine.Routes(), ", "))
	case kind.only != "" && f.Route != "" && f.Route != kind.only:
		return fmt.Errorf("%s acts on the route %s only, not on %q", f.Kind, kind.only, f.Route)
	case f.Probability < 0 || f.Probability > 1:
		return fmt.Errorf("probability %v is not between 0 and 1", f.Probability)
	case f.Count < 0 || f.Delay < 0 || f.Size < 0:
		return fmt.Errorf("count, delay and size cannot be negative")
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return fmt.Errorf("status %d is not between 200 and 599", f.Status)
	case kind.acts != afterBody && f.Method != "":
		return fmt.Errorf("%s acts before the request is read, so it cannot depend on a method", f.Kind)
	case kind.acts == onPort && (f.Route != "" || f.User != "" || f.Count != 0 || f.Probability != 0):
		return fmt.Errorf("%s acts on the whole port, so it cannot depend on a request", f.Kind)
	}
	if kind.needs != nil {
		if err := kind.needs(f); err != nil {
			return fmt.Errorf("%s %w", f.Kind, err)
		}
	}
	if f.User != "" {
		if err := s.machine.CheckUser(f.User); err != nil {
			return err
		}
	}
	if f.Method != "" {
		return s.machine.CheckMethod(f.Method)
	}
	return nil
}

// take returns the first armed fault that acts on the exchange at this time, and counts it; nil when none does.
func (s *Set) take(x *exchange.Exchange, now moment) *armed {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.armed {
		if a.left == 0 || a.kind.acts != now || !a.matches(x) {
			continue
		}
		if a.Probability > 0 && a.random.Float64() >= a.Probability {
			continue
		}
		if a.left > 0 {
			a.left--
		}
		a.acting++
		return a
	}
	return nil
}

func (a *armed) matches(x *exchange.Exchange) bool {
	if only := cmp.Or(a.Route, a.kind.only); only != "" && x.Route != only {
		return false
	}
	if a.User != "" && a.User != x.User {
		return false
	}
	return a.Method == "" || slices.ContainsFunc(x.Calls(), func(c journal.Call) bool { return journal.Matches(a.Method, c.Method) })
}

// ApplyEarly lets the first fault that acts before the request's body is read do so; false when there is none.
func (s *Set) ApplyEarly(x *exchange.Exchange, respond func()) bool {
	return s.apply(x, beforeBody, respond)
}

// Apply lets the first fault that acts on the exchange do so; false when there is none. The fault calls respond where it
// lets the site respond first, and leaves in the exchange what is still to be sent.
func (s *Set) Apply(x *exchange.Exchange, respond func()) bool { return s.apply(x, afterBody, respond) }

func (s *Set) apply(x *exchange.Exchange, now moment, respond func()) bool {
	a := s.take(x, now)
	if a == nil {
		return false
	}
	defer s.acted(a)
	x.Note(func(e *journal.Entry) { e.Fault = a.Kind })
	x.Past = a.past
	if a.kind.runs || a.Run {
		respond()
	}
	if !x.Done {
		a.kind.act(&action{x, a, respond})
	}
	return true
}

// acted forgets a fault that acts no more.
func (s *Set) acted(a *armed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.acting--; a.acting == 0 && a.left == 0 {
		s.armed = slices.DeleteFunc(s.armed, func(b *armed) bool { return a == b })
	}
}

// action is one application of a fault.
type action struct {
	*exchange.Exchange
	fault   *armed
	respond func()
}

// pause waits until the time is over, the fault is disarmed or the client goes away; false when the client did. A zero
// time waits without end.
func (v *action) pause(d time.Duration) bool {
	var timeout <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-timeout:
		return true
	case <-v.fault.disarmed:
		return true
	case <-v.Request.Context().Done():
		return false
	}
}
