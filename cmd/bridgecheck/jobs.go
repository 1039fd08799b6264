package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/machine"
	"github.com/bridgecheck/bridgecheck/internal/processor"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/internal/workers"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/patience"
)

const (
	mostJobs    = 12   // without --jobs
	mostAtSite  = 8    // the same, where they share a real site
	perCore     = 4    // the reference bridge waits more than it computes
	perAgain    = 2    // of what is tested again, perhaps because the workers before had too little of a processor
	atOne       = 4    // with --url: more would be a load for a bridge that others may use
	worthAJob   = 1000 // milliseconds of checks, below which a further worker does not help
	inBundle    = 1300 // milliseconds of checks that one bridge is started for
	inBundleX   = 9000 // with --exec: a bridge may take long to start, and what checks share is shared by those of one bundle
	spareShare  = 0.9  // of a processor that this process gets, above which there is one for a further worker
	spareRounds = 20   // of measuring it, of half a millisecond or more
	unmeasured  = 100  // milliseconds of a check that has no weight
)

// inWorkers runs the bundles in workers, which take them from one queue, and returns the parts of each pass. What may depend on
// more than its bundle is then tested again, one bundle after the other. It returns none where one worker has to test all.
func (f *runFlags) inWorkers(cmd *cobra.Command, p *plan, bundles []workers.Bundle, cleared func() error) ([][]*engine.Part, error) {
	staff := p.staff(f.Jobs, bundles)
	if most, why := machine.Workers(staff.Most); why != "" && f.Jobs == 0 {
		staff.First, staff.Most = min(staff.First, most), most
		p.lacks = append(p.lacks, fmt.Sprintf("%s; so %s", why, map[bool]string{true: "one worker tests all", false: fmt.Sprintf("%d workers test", most)}[most == 1]))
		cmd.PrintErrf("bridgecheck: %s\n", p.lacks[len(p.lacks)-1])
	}
	if staff.Most == 1 {
		return nil, nil
	}
	pass := engine.Pass{Independent: true}
	if p.target.URL != "" {
		pass.Sharers = staff.Most
	}
	parts, again, err := f.shift(cmd, p, staff, pass, bundles, cleared)
	if isFinal(err) {
		return nil, err
	}
	if unreachable := (*engine.UnreachableError)(nil); err != nil && !f.Quiet && !errors.As(err, &unreachable) {
		f.alone = err.Error() // said once that worker has done it: if it cannot, its error is the same
	}
	if err != nil || len(slices.Concat(parts...))+len(again.Bundles) == 0 {
		return nil, nil
	}
	if p.target.URL != "" {
		if clauses := engine.Unsettle(parts[0]); len(clauses) > 0 {
			again.Bundles = []workers.Bundle{{Checks: clauses}}
		}
	}
	if len(again.Bundles) == 0 {
		return parts, nil
	}
	if again.Why != "" && !f.Quiet {
		cmd.PrintErrf("bridgecheck: %d of %d bundles tested again, because %s\n", len(again.Bundles), len(bundles), terminal.Escape(again.Why))
	}
	if p.log != nil {
		fmt.Fprintln(p.log, "[bridgecheck: the bridges of what is tested again]")
	}
	second := workers.Staff{First: 1, Most: min(staff.Most, len(again.Bundles), perAgain*runtime.GOMAXPROCS(0)), Spare: spare}
	found, _, err := f.shift(cmd, p, second, engine.Pass{Spent: &patience.Timeouts{}}, again.Bundles, cleared)
	if err != nil {
		return nil, err
	}
	why := ""
	if err := context.Cause(cmd.Context()); err != nil {
		why = err.Error()
	}
	for i, first := range again.Found {
		if pass := again.Bundles[i].Pass; first.CutShort(why, found[pass]) {
			parts[pass] = append(parts[pass], first)
		}
	}
	for i := range parts {
		parts[i] = append(parts[i], found[i]...)
	}
	return parts, nil
}

// shift runs bundles in the workers of a staff, and spends the time of it. A pass that is not independent is the last: what it finds
// counts, and what does not respond is waited for by all its workers together as by one.
func (f *runFlags) shift(cmd *cobra.Command, p *plan, staff workers.Staff, pass engine.Pass, bundles []workers.Bundle, cleared func() error) (
	[][]*engine.Part, workers.Again, error) {
	logs := &workerLogs{of: map[int]*bridgeLog{}}
	defer logs.close()
	began := time.Now()
	shown := f.progress(cmd, p, bundles)
	parts, again, err := workers.Run(cmd.Context(), staff, func(ctx context.Context, number int, w *workers.Worker) error {
		return p.work(ctx, w, logs.add(number), began, pass)
	}, workers.NewQueue(len(p.legs), bundles...), workers.Observer{
		Started: func(clause string) {
			_ = cleared() // an error is returned by test
			shown.started(clause)
		},
		Finished: func(r reports.Result) string {
			shown.finished(r)
			if f.FailFast {
				return p.firstFailure(r)
			}
			return ""
		},
	})
	shown.clear()
	shown.stop()
	p.spend(time.Since(began))
	if p.exec != "" {
		if err := p.joinLogs(logs); err != nil {
			return nil, workers.Again{}, err
		}
	}
	return parts, again, err
}

// work is a worker of the plan: it tests what it is given of it, with a log of its own. The run gives the warnings.
func (p *plan) work(ctx context.Context, w *workers.Worker, aside func(*bridgeLog), began time.Time, pass engine.Pass) error {
	own := *p
	own.aside, own.log, own.warnings = aside, nil, io.Discard
	for {
		i, ok := w.Next()
		if !ok {
			return nil
		}
		l := own.legs[i]
		l.options.RunTimeout = max(time.Second, l.options.RunTimeout-time.Since(began))
		l.options.Pass.Take, l.options.Progress = w.Take, w.Finished
		l.options.Pass.Independent, l.options.Pass.Sharers, l.options.Pass.Spent = pass.Independent, pass.Sharers, pass.Spent
		part, err := own.part(ctx, l)
		if err != nil {
			return err
		}
		if !pass.Independent {
			part.Carried = "" // there is no third time
		}
		if err := w.Done(part); err != nil {
			return err
		}
	}
}

// isFinal reports whether another try would only give the error again, later.
func isFinal(err error) bool {
	var usage *engine.UsageError
	var notReady *notReadyError
	return errors.As(err, &usage) || errors.As(err, &notReady) && notReady.slow
}

// bundles are the checks of each pass, in one bundle where there is one bridge for all, or one process tests all.
func (p *plan) bundles() ([]workers.Bundle, error) {
	passes, err := p.weights()
	if err != nil {
		return nil, err
	}
	var all []workers.Bundle
	for i, checks := range passes {
		maps.DeleteFunc(checks, func(id string, _ int) bool { return p.shard.of > 0 && !p.shard.clauses[id] })
		switch {
		case p.target.URL != "" || p.shared() != "":
			all = append(all, workers.Bundle{Pass: i, Checks: checks, Shared: true})
		case p.exec != "":
			all = append(all, workers.Bundles(i, checks, inBundleX)...)
		default:
			all = append(all, workers.Bundles(i, checks, inBundle)...)
		}
	}
	if len(all) == 0 { // a shard may have no clause: its report says so
		all = []workers.Bundle{{}}
	}
	return all, nil
}

// weights are the clauses of each pass with the milliseconds that they take: what was measured of a clause is that of all
// passes in which it applies.
func (p *plan) weights() ([]map[string]int, error) {
	var all []map[string]int
	passes := map[string]int{}
	for _, l := range p.legs {
		for _, c := range l.checks {
			passes[c.ID]++
		}
	}
	for i, l := range p.legs {
		ids, err := engine.Selected(l.options)
		if err != nil {
			return nil, err
		}
		all = append(all, map[string]int{})
		for _, id := range ids {
			all[i][id] = 0 // it does not apply
		}
		for _, c := range l.checks {
			all[i][c.ID] = unmeasured
			if w, ok := engine.Weights()[c.ID]; ok {
				all[i][c.ID] = w.Of(p.exec == "") / passes[c.ID]
			}
		}
	}
	return all, nil
}

// shard is one of several runs that share the clauses; the zero value is a run that tests all.
type shard struct {
	run       string
	index, of int
	clauses   map[string]bool
}

// parseShard reads --shard I/N.
func parseShard(text string) (index, of int, err error) {
	i, n, _ := strings.Cut(text, "/")
	index, errI := strconv.Atoi(i)
	of, errN := strconv.Atoi(n)
	if errI != nil || errN != nil || index < 1 || index > of || of > engine.MaxShards {
		return 0, 0, usagef("--shard is %q: give I/N with I from 1 to N, and N at most %d, for example 1/3", text, engine.MaxShards)
	}
	return index, of, nil
}

// ciRuns are the variables in which CI systems give the id of a run, the same for all its jobs.
var ciRuns = []string{"GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILD_TAG", "BUILDKITE_BUILD_ID", "CIRCLE_WORKFLOW_ID"}

// selectShard settles which clauses the run tests of those that the plan has.
func (f *runFlags) selectShard(p *plan) error {
	switch {
	case f.Shard == "" && f.RunID != "":
		return usagef("--run-id names the run of a shard: give --shard too")
	case f.Shard == "":
		return nil
	case f.WriteBaseline != "":
		return usagef("--write-baseline with --shard would hold the failures of one shard: write it by a run without --shard")
	case p.keepUp:
		return usagef("--keep and --shard: give one of the two")
	}
	s := &p.shard
	var err error
	if s.index, s.of, err = parseShard(f.Shard); err != nil {
		return err
	}
	s.run = f.RunID
	for _, name := range ciRuns {
		s.run = cmp.Or(s.run, os.Getenv(name))
	}
	if s.run == "" {
		return usagef("--shard needs the id of the run, which all its shards have: give --run-id; in CI it is that of %s", strings.Join(ciRuns, ", "))
	}
	passes, err := p.weights()
	if err != nil {
		return err
	}
	total := map[string]int{}
	for _, pass := range passes {
		for id, weight := range pass {
			total[id] += weight
		}
	}
	s.clauses = engine.Share(total, s.index, s.of)
	for i := range p.legs {
		p.legs[i].checks = slices.DeleteFunc(p.legs[i].checks, func(c contract.Clause) bool { return !s.clauses[c.ID] })
	}
	return nil
}

// staff is how many workers test the plan. Where they would share what checks change, it is one; where nobody says how many,
// those that help: more where the bridge waits more than it computes.
func (p *plan) staff(given int, bundles []workers.Bundle) workers.Staff {
	fixed := func(n int) workers.Staff { return workers.Staff{First: n, Most: n} }
	most := min(mostJobs, len(bundles))
	if p.proxy.site != nil {
		most = min(mostAtSite, most)
	}
	switch {
	case p.shared() != "":
		return fixed(1)
	case given > 0:
		return fixed(given)
	case p.target.URL != "":
		return fixed(max(1, min(atOne, bundles[0].Weight()/worthAJob)))
	case p.exec == "":
		return fixed(min(most, perCore*runtime.GOMAXPROCS(0)))
	}
	first := most // each bundle has a bridge of its own, and its checks wait more than they compute
	if !spare() { // others compute, and more bridges at a time end no sooner
		first = min(most, runtime.GOMAXPROCS(0))
	}
	return workers.Staff{First: first, Most: most, Spare: spare}
}

// spare reports whether there is a processor for a further worker.
func spare() bool { return processor.Share(spareRounds) > spareShare }

// shared says what workers would share that they cannot, so that one alone tests the plan; "": nothing. A bridge of --url they
// can, where the checks only read.
func (p *plan) shared() string {
	o := p.legs[0].options
	switch {
	case p.mockListen != "":
		return "the address of --mock-listen"
	case p.proxy.listen != "":
		return "the address of --drupal-proxy"
	case p.keepUp:
		return "the bridge that --keep keeps"
	case len(p.file.Sessions()) > 0:
		return "the sessions of its identities"
	case p.target.URL == "" && p.proxy.site == nil: // each has a bridge and a site of its own
		return ""
	case len(o.Callers.Invocations) > 0:
		return "the site on which they invoke tools"
	case o.Connection.Rate > 0 || o.Bridge.RateLimit > 0:
		return "the number of requests that the bridge takes"
	case p.failFast && p.target.URL != "":
		return "the first failure, which --fail-fast ends with"
	}
	return ""
}

// spend takes time from that of every pass.
func (p *plan) spend(d time.Duration) {
	for i := range p.legs {
		o := &p.legs[i].options
		o.RunTimeout = max(time.Second, o.RunTimeout-d)
	}
}

// workerLogs are the logs of the workers that have one, by number. A worker that is late may still write to its own.
type workerLogs struct {
	mu sync.Mutex
	of map[int]*bridgeLog
}

// add returns what takes the log of a worker.
func (l *workerLogs) add(number int) func(*bridgeLog) {
	return func(log *bridgeLog) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.of[number] = log
	}
}

func (l *workerLogs) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, log := range l.of {
		if log.Close(); log.file != nil {
			_ = os.Remove(log.file.Name()) // where it could not be removed while it was open
		}
	}
}

// joinLogs writes the log of each worker into that of the run.
func (p *plan) joinLogs(logs *workerLogs) error {
	all, err := p.openLog(p.legs[0].options)
	if err != nil {
		return err
	}
	logs.mu.Lock()
	defer logs.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(logs.of)) {
		fmt.Fprintf(all, "%s%d]\n", workerMark, number)
		logs.of[number].copyTo(all)
	}
	return nil
}
