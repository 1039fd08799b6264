package mockdrupal

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// Fault is a misbehaviour to arm. Kind says what happens (see FaultKinds), the matching fields when, the others how.
// Zero matching fields match everything.
type Fault struct {
	Kind string `json:"kind"`

	Route       string  `json:"route,omitempty"`       // jsonrpc, methods, method, login, …
	Method      string  `json:"method,omitempty"`      // path.Match pattern for the id of a JSON-RPC call in the request
	User        string  `json:"user,omitempty"`        // the account's name; "anonymous"
	Count       int     `json:"count,omitempty"`       // how many requests it spoils; 0: until disarmed
	Probability float64 `json:"probability,omitempty"` // of spoiling a request that matches; 0: 1
	Seed        uint64  `json:"seed,omitempty"`        // of the dice

	Run         bool          `json:"run,omitempty"`          // run the method, then misbehave, also where the kind would not run it
	Status      int           `json:"status,omitempty"`       // for the kinds that send one; 0: the kind's own
	Delay       time.Duration `json:"-"`                      // delay, delay-body: the pause; drip: between two bytes; refuse, deaf: how long. "delay": "1.5s" in JSON
	Body        string        `json:"body,omitempty"`         // status, html: what to send
	ContentType string        `json:"content_type,omitempty"` // status, content-type: what to call it
	Location    string        `json:"location,omitempty"`     // redirect: where to
	Size        int64         `json:"size,omitempty"`         // huge: bytes; 0: 256 MiB
}

// faults are the armed ones, in the order in which they were armed.
type faults struct {
	mu    sync.Mutex
	last  int64
	armed []*armedFault
}

// armedFault is a fault in force.
type armedFault struct {
	Fault
	id       int64
	left     int // requests that it still spoils; negative: without end
	dice     *rand.Rand
	disarmed chan struct{} // closed when it is disarmed: whoever hangs on it lets go
	stale    *snapshot     // the site as it was when the fault was armed
}

// Arm puts a fault in force and returns how to end it. Of several faults that match a request the one armed first is
// applied. It fails, and arms nothing, when the fault is unknown, incomplete or can match no request of this site.
func (d *Drupal) Arm(f Fault) (disarm func(), err error) {
	_, disarm, err = d.arm(f)
	return disarm, err
}

func (d *Drupal) arm(f Fault) (id int64, disarm func(), err error) {
	if err := d.checkFault(f); err != nil {
		return 0, nil, fmt.Errorf("arming a fault: %w", err)
	}
	switch f.Kind {
	case FaultRefuse:
		reopen, err := d.refuse(f.Delay)
		return 0, reopen, err
	case FaultDeaf:
		hear, err := d.deafen(f.Delay)
		return 0, hear, err
	}
	a := &armedFault{Fault: f, left: f.Count, dice: rand.New(rand.NewPCG(f.Seed, f.Seed)), disarmed: make(chan struct{}), stale: d.state.Load()}
	if f.Count == 0 {
		a.left = -1
	}
	d.faults.mu.Lock()
	defer d.faults.mu.Unlock()
	d.faults.last++
	a.id = d.faults.last
	d.faults.armed = append(d.faults.armed, a)
	return a.id, func() { d.Disarm(a.id) }, nil
}

// Armed is a fault in force and its number.
type Armed struct {
	ID    int64 `json:"id"`
	Fault Fault `json:"fault"`
	Left  int   `json:"left"` // requests that it still spoils; -1: without end
}

// Faults returns the armed faults, in the order in which they are tried.
func (d *Drupal) Faults() []Armed {
	d.faults.mu.Lock()
	defer d.faults.mu.Unlock()
	list := []Armed{}
	for _, a := range d.faults.armed {
		list = append(list, Armed{a.id, a.Fault, a.left})
	}
	return list
}

// Disarm ends the fault with this number, and lets go whoever hangs on it; false when there is none.
func (d *Drupal) Disarm(id int64) bool {
	return d.disarmWhere(func(a *armedFault) bool { return a.id == id }) > 0
}

// DisarmAll ends all faults.
func (d *Drupal) DisarmAll() { d.disarmWhere(func(*armedFault) bool { return true }) }

func (d *Drupal) disarmWhere(ends func(*armedFault) bool) int {
	d.faults.mu.Lock()
	defer d.faults.mu.Unlock()
	before := len(d.faults.armed)
	d.faults.armed = slices.DeleteFunc(d.faults.armed, func(a *armedFault) bool {
		if ends(a) {
			close(a.disarmed)
			return true
		}
		return false
	})
	return before - len(d.faults.armed)
}

// checkFault says what is wrong with a fault.
func (d *Drupal) checkFault(f Fault) error {
	kind, known := faultKinds[f.Kind]
	switch {
	case !known:
		return fmt.Errorf("there is no fault %q: the mock knows %s", f.Kind, strings.Join(FaultNames(), ", "))
	case f.Route != "" && !slices.ContainsFunc(d.table, func(r route) bool { return r.name == f.Route }):
		return fmt.Errorf("route %q matches no route of the mock: %s", f.Route, strings.Join(d.routeNames(), ", "))
	case kind.only != "" && f.Route != "" && f.Route != kind.only:
		return fmt.Errorf("%s acts on the route %s only, not on %q", f.Kind, kind.only, f.Route)
	case f.Probability < 0 || f.Probability > 1:
		return fmt.Errorf("probability %v is not between 0 and 1", f.Probability)
	case f.Count < 0 || f.Delay < 0 || f.Size < 0:
		return fmt.Errorf("count, delay and size cannot be negative")
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return fmt.Errorf("status %d is not between 200 and 599", f.Status)
	case kind.needsDelay && f.Delay == 0:
		return fmt.Errorf("%s needs a delay", f.Kind)
	case kind.early && f.Method != "":
		return fmt.Errorf("%s acts before the request is read, so it cannot depend on a method", f.Kind)
	}
	if d.behind != nil {
		if f.Kind == FaultStale {
			return fmt.Errorf("%s needs to know the site: a proxy does not", f.Kind)
		}
		return nil
	}
	if f.User != "" {
		if _, ok := d.Site().User(f.User); !ok {
			return fmt.Errorf("user %q matches no account of the site", f.User)
		}
	}
	if f.Method == "" {
		return nil
	}
	if _, err := path.Match(f.Method, ""); err != nil {
		return fmt.Errorf("method %q is no pattern: %w", f.Method, err)
	}
	if !slices.ContainsFunc(d.Site().Methods, func(m fixtures.Method) bool { return matches(f.Method, m.ID) }) {
		return fmt.Errorf("method %q matches no method of the site", f.Method)
	}
	return nil
}

func (d *Drupal) routeNames() []string {
	names := make([]string, len(d.table))
	for i, r := range d.table {
		names[i] = r.name
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// take returns the first armed fault that matches the request, and counts it.
func (fs *faults) take(x *exchange, rt *route, early bool) *armedFault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for i, a := range fs.armed {
		if faultKinds[a.Kind].early != early || !a.fits(x, rt) {
			continue
		}
		if a.Probability > 0 && a.dice.Float64() >= a.Probability {
			continue
		}
		if a.left > 0 {
			if a.left--; a.left == 0 {
				fs.armed = slices.Delete(fs.armed, i, i+1) // not closed: it still acts on this request
			}
		}
		return a
	}
	return nil
}

func (a *armedFault) fits(x *exchange, rt *route) bool {
	if only := cmp.Or(a.Route, faultKinds[a.Kind].only); only != "" && (rt == nil || rt.name != only) {
		return false
	}
	if a.User != "" && a.User != x.caller.user.Name {
		return false
	}
	return a.Method == "" || slices.ContainsFunc(x.sketches(), func(c Call) bool { return matches(a.Method, c.Method) })
}
