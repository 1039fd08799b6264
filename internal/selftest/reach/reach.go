// Package reach finds the clauses that are beyond the reach of a mutant: what their checks exchanged with the reference bridge
// goes through the mutant's change, and comes out as it was. Such a check would test the reference bridge. It tests no
// mutant and decides no verdict.
//
// Invariant: a clause for which this is not certain is within reach. Not looked at is what a change does to the bridge or the
// site in one check and another check meets: checks begin with a state of their own, but for the lists of methods that the
// bridge may remember, so that a changed one touches all.
//
// Record runs the suites against the reference bridge in each of a few worlds and keeps what callers, the bridge and the site
// said on a tape. Beyond lets a player put it through the change of a mutant, exchanges that overlapped within each other.
package reach

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/selftest"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// world is a testbed and the clauses that are tested there.
type world struct {
	profile string
	mcp     bool
}

// worlds are those of most mutants, in the order in which the selftest comes to them.
var worlds = []world{{testbed.OAuth, true}, {"", true}, {"", false}}

// recording is what was exchanged in a world.
type recording struct {
	clauses []string        // in the order in which they were tested; the first is clause 1 of its exchanges
	passed  map[string]bool // those that passed
	front   []*exchange     // between callers and the bridge
	behind  []*exchange     // between the bridge and the site
	err     error           // why it could not be recorded
	done    chan struct{}   // closed when this is complete
}

// Recordings are what was exchanged in all worlds.
type Recordings struct {
	of map[world]*recording
}

// Record starts to record all worlds, one after the other.
func Record(ctx context.Context) *Recordings {
	r := &Recordings{of: map[world]*recording{}}
	for _, w := range worlds {
		r.of[w] = &recording{passed: map[string]bool{}, done: make(chan struct{})}
	}
	go func() {
		for _, w := range worlds {
			r.of[w].err = r.of[w].record(ctx, w)
			close(r.of[w].done)
		}
	}()
	return r
}

// record records a world.
func (r *recording) record(ctx context.Context, w world) error {
	front, behind := &tape{}, &tape{}
	reference := mutants.Mutant{Name: "reference", MCP: w.mcp, Profile: w.profile, Middleware: front.inFront, Transport: behind.behind}
	costly, err := selftest.Costly()
	if err != nil {
		return err
	}
	o := engine.Options{Contract: contract.Draft, Skip: costly, Pass: engine.Pass{Unshared: true}}
	next := func() { front.next(); behind.next() }
	first := sync.OnceFunc(next)
	o.Pass.Started = func(string) { first() }
	o.Progress = func(result reports.Result) {
		if slices.Contains(r.clauses, result.ID) { // the culprit rule has changed its verdict
			return
		}
		r.clauses = append(r.clauses, result.ID)
		next()
	}
	report, err := selftest.Run(ctx, reference, o, nil)
	if err != nil {
		return fmt.Errorf("record what the reference bridge exchanges: %w", err)
	}
	for _, result := range report.Results {
		r.passed[result.ID] = result.Verdict == reports.Pass
	}
	r.front, r.behind = front.recorded(), behind.recorded()
	return nil
}

// Last sorts entries so that those that no recording is for come last: they need not wait for one, and the selftest begins
// with the last.
func Last(all []mutants.Mutant) {
	slices.SortStableFunc(all, func(a, b mutants.Mutant) int {
		if Recorded(a) == Recorded(b) {
			return 0
		} else if Recorded(a) {
			return -1
		}
		return 1
	})
}

// Recorded reports whether a recording shows what is beyond the reach of an entry: it differs from the reference bridge by one
// change, in front of the bridge or behind it, and is in a world that is recorded.
func Recorded(m mutants.Mutant) bool {
	inFront := m.Middleware != nil || m.SiteMiddleware != nil
	return inFront != (m.Transport != nil) && slices.Contains(worlds, world{m.Profile, m.MCP}) && m.Fixture == "" && m.Claims == "" &&
		m.Options == nil && m.Server == nil && m.Stdout == nil && m.Replica == nil && m.AuthMiddleware == nil
}

// Beyond returns the clauses that passed with the reference bridge and that the change of an entry cannot touch; none where
// that is not certain. It waits for the recording of its world.
func (r *Recordings) Beyond(ctx context.Context, m mutants.Mutant) ([]string, error) {
	if !Recorded(m) {
		return nil, nil
	}
	recorded := r.of[world{m.Profile, m.MCP}]
	select {
	case <-recorded.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if recorded.err != nil {
		return nil, recorded.err
	}
	return recorded.beyond(m), nil
}

// beyond returns the clauses that passed and that the change of a mutant cannot touch.
func (r *recording) beyond(m mutants.Mutant) []string {
	p := &player{exchanges: r.front, patience: 5 * time.Second, pause: 3 * time.Millisecond}
	set := func() { p.behind(m.Transport) }
	if m.Transport != nil {
		p.exchanges = r.behind
	} else {
		set = func() {
			p.inFront(func(bridge http.Handler) http.Handler {
				return m.Testbed().Middleware(testbed.Backends{SiteURL: "http://site.invalid", Transport: roundTripper(p.stranger)}, bridge)
			})
		}
	}
	touched, all := p.play(set)
	if all {
		return nil
	}
	var ids []string
	for i, id := range r.clauses {
		// What may fail is tested, as it can rest on what came before, and the clause on requests at once, which the player sends in
		// an order of its own.
		if r.passed[id] && !touched[1+i] && !slices.Contains(m.MayFail, id) && id != "access/no-cross-talk" {
			ids = append(ids, id)
		}
	}
	return ids
}
