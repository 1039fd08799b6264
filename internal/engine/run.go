package engine

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/areas"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// Run tests the target and reports every clause that has a check exactly once. The error is a *UsageError, an
// *UnreachableError, or a defect of the harness; a run that ctx or the run time-out ends early has a report that says so.
func Run(ctx context.Context, target Target, o Options) (*reports.Report, error) {
	part, err := RunPart(ctx, target, o)
	if err != nil {
		return nil, err
	}
	return o.Report(part)
}

// RunPart is Run for the checks that o.Pass.Take lets this worker test. Join makes the report.
func RunPart(ctx context.Context, target Target, o Options) (*Part, error) {
	s, err := Open(ctx, target, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for _, c := range s.Checks() {
		s.Test(ctx, c)
	}
	return s.Part(), nil
}

// Report joins the parts of a run with these options and applies its baseline.
func (o Options) Report(parts ...*Part) (*reports.Report, error) {
	report, err := Join(o.Progress, parts...)
	if err != nil {
		return nil, err
	}
	if o.Baseline != nil {
		if err := o.Baseline.Check(parts[0].known()); err != nil {
			return nil, &UsageError{err.Error()}
		}
		o.Baseline.Apply(report, time.Now())
	}
	return report, nil
}

// Listing is a clause with its check.
type Listing struct {
	Clause contract.Clause
	Check  check.Check
}

// Listed lists the selected clauses that have a check, in the order of the contract, but for the area of a site that fails,
// which comes last. It runs nothing. The error is a *UsageError.
func Listed(o Options) ([]Listing, error) {
	env, err := newRun(Target{URL: "http://listed.invalid"}, Options{Contract: o.Contract, Capabilities: o.Capabilities, Only: o.Only, Skip: o.Skip, Short: o.Short, Sample: o.Sample, Extra: o.Extra})
	if err != nil {
		return nil, err
	}
	var all []Listing
	for _, c := range (&Session{env: env, options: o}).Checks() {
		clause, _ := env.Contract.Clause(c.ID)
		all = append(all, Listing{clause, c})
	}
	return all, nil
}

// Session is a run that is under way. Whoever holds it runs the checks one after the other: the engine itself, a Go test
// with a subtest each, or Ginkgo with a spec each.
type Session struct {
	env     *check.Environment
	options Options
	target  Target
	started time.Time
	ctx     context.Context
	undo    []func()
	cutOff  []reports.Exchange // of the check that the end of the run ended

	filtered  bool // somebody has left clauses out beside the options
	results   map[string]reports.Result
	exempt    []string // clauses that are not testable for the machine or the site
	outlook   outlook
	unsettled []string         // clauses that what ran beside them may explain
	noticed   []reports.Result // of other clauses than that which was tested
	carried   string           // why what a check found may depend on those before it, or on what else runs; "": it does not
}

// Open begins a run: it checks what it was given and finds out whether there is a bridge. The errors are those of Run. Who
// calls it calls Close.
func Open(ctx context.Context, target Target, o Options) (*Session, error) {
	env, err := newRun(target, o)
	if err != nil {
		return nil, err
	}
	s := &Session{env: env, options: o, target: target, started: time.Now(), results: map[string]reports.Result{}}
	s.undo = append(s.undo, env.Transport.CloseIdleConnections)
	limit := cmp.Or(o.RunTimeout, runTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errRunTimeout)
	ctx, end := context.WithCancelCause(ctx)
	env.End = func(error) {} // a bridge that never accepts a connection is no bridge that has ended
	s.undo = append(s.undo, cancel, func() { end(nil) })
	env.Context, s.ctx = ctx, ctx
	go env.WatchLateness(ctx)
	if o.Site.Drupal != nil {
		undo, err := env.StartMeasures(ctx)
		if err != nil {
			s.Close()
			return nil, &UnreachableError{URL: env.URL, Reason: err}
		}
		s.undo = append(s.undo, undo, areas.Prepare(o.Site.Drupal))
	}
	readSite(env, o)
	if err := preflight(ctx, check.NewT(env)); err != nil {
		s.Close()
		return nil, err
	}
	env.Run.End, env.Run.Spent, env.Run.Brief = end, o.Pass.Spent, o.Pass.Independent // from here on: each bridge responds once, or is none
	env.Waiting = o.Pass.Waiting
	if err := env.MeasureNow(ctx); err != nil {
		s.Close()
		return nil, &UnreachableError{Reason: err}
	}
	env.Clock, env.Apart, env.Log = o.Pass.Clock, o.Pass.Apart, o.Pass.Log
	s.outlook = newOutlook(len(s.Checks()), env, s.started, limit)
	return s, nil
}

// Close puts back what Open changed.
func (s *Session) Close() {
	for _, undo := range slices.Backward(s.undo) {
		undo()
	}
	s.undo = nil
}

// Checks lists the selected checks in the order in which they run: that of the contract, or, where several workers share
// them, the one that takes longest first. The area of a site that fails comes last.
func (s *Session) Checks() []check.Check {
	ids := s.env.Contract.IDs()
	rank := func(c check.Check) int { // those of a higher rank come later
		switch {
		case c.Guesses > 0 && s.env.Spares():
			return 2 + c.Guesses
		case IsLast(c.ID):
			return 2
		case c.Waits && s.env.Measures():
			return 1
		}
		return 0
	}
	selected := slices.DeleteFunc(allChecks(s.options.Extra), func(c check.Check) bool { return !s.env.Selected(c.ID) })
	slices.SortStableFunc(selected, func(x, y check.Check) int {
		order := cmp.Compare(slices.Index(ids, x.ID), slices.Index(ids, y.ID))
		if s.options.Pass.Take != nil {
			order = heavier(x.ID, y.ID, s.env.Advance != nil)
		}
		return cmp.Or(cmp.Compare(rank(x), rank(y)), order)
	})
	return selected
}

// Test runs one check until it ends, or ctx does. False: it was not run, since the run has ended or another worker tests it.
func (s *Session) Test(ctx context.Context, c check.Check) (reports.Result, bool) {
	o := s.options.Pass
	if s.ctx.Err() != nil {
		return reports.Result{}, false
	}
	if o.Take != nil && !o.Take(c.ID) {
		s.outlook.left--
		return reports.Result{}, false
	}
	if o.Started != nil {
		o.Started(c.ID)
	}
	if c.Sees != check.Front || c.ByMock {
		s.env.AwaitChange(s.ctx)
	}
	s.env.LookBetweenChecks(s.ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()
	s.env.Context = ctx // what ends the check ends its requests, and nothing is made of their absence
	defer func() { s.env.Context = s.ctx }()
	found := s.env.Test(ctx, c)
	if o.Observe != nil {
		o.Observe(c, found)
	}
	if found.CutOff {
		s.cutOff = found.Result.Evidence
		return reports.Result{}, false
	}
	s.note(c.ID, found)
	s.noticed = append(s.noticed, found.Noticed...)
	return found.Result, true
}

// note keeps what a check found, and ends the run where it makes no sense to go on.
func (s *Session) note(id string, found check.Outcome) {
	r := found.Result
	s.results[id] = r
	settled := r.Verdict == reports.Pass || r.Verdict == reports.NotApplicable || r.Verdict == reports.NotTestable && len(r.Evidence) == 0
	if s.env.Sharers > 1 && (!settled || found.Unserved) {
		s.unsettled = append(s.unsettled, id)
	}
	if found.Exemption != "" && r.Verdict == reports.NotTestable {
		s.exempt = append(s.exempt, id)
	}
	if s.options.Progress != nil {
		s.options.Progress(r)
	}
	if s.ctx.Err() != nil {
		return
	}
	o := s.options.Pass
	if s.carried = cmp.Or(s.carried, s.env.Carried(), found.Exemption); o.Independent && s.carried != "" {
		s.env.End(errors.New(s.carried))
		return
	}
	reason := s.outlook.reasonToStop(found.Exemption, found.BySite)
	if reason == "" && o.StopAfter != nil {
		reason = o.StopAfter(r)
	}
	if reason != "" {
		s.env.End(errors.New(reason))
	}
}

// TestShown is Test whose result has been looked up in the baseline.
func (s *Session) TestShown(ctx context.Context, c check.Check) (reports.Result, bool) {
	r, ran := s.Test(ctx, c)
	if ran {
		r = s.excused(r)
	}
	return r, ran
}

// PartOf is a part with nothing but what the check of a clause found.
func (s *Session) PartOf(id string) *Part {
	part := s.Part()
	part.Report.Results = slices.DeleteFunc(part.Report.Results, func(r reports.Result) bool { return r.ID != id })
	part.Noticed = slices.DeleteFunc(part.Noticed, func(r reports.Result) bool { return r.During != id })
	part.Exempt = slices.DeleteFunc(slices.Clone(part.Exempt), func(other string) bool { return other != id })
	return part
}

// excused is a result as the baseline sees it.
func (s *Session) excused(r reports.Result) reports.Result {
	if s.options.Baseline == nil {
		return r
	}
	one := &reports.Report{Results: []reports.Result{r}, Capabilities: s.env.Claimed, Ledger: s.ledger()}
	s.options.Baseline.Apply(one, time.Now())
	return one.Results[0]
}

// Applies reports whether the bridge claims what the clause of a check stands under.
func (s *Session) Applies(c check.Check) bool {
	clause, _ := s.env.Contract.Clause(c.ID)
	return s.env.Lacks(clause, c) == ""
}

// LeaveOut takes clauses out of what the run tests, as a filter does.
func (s *Session) LeaveOut(ids ...string) {
	if len(ids) == 0 {
		return
	}
	s.filtered = true
	selected := s.env.Selected
	s.env.Selected = func(id string) bool { return selected(id) && !slices.Contains(ids, id) }
}

// End ends the run early: what has not been tested is not testable, and the report says why.
func (s *Session) End(why error) { s.env.End(why) }

// Part is what has been found so far.
func (s *Session) Part() *Part {
	r, o := s.env, s.options
	report := &reports.Report{
		Schema: reports.SchemaVersion, Tool: o.Tool, Started: s.started.UTC(), DurationMS: time.Since(s.started).Milliseconds(),
		Ledger:       s.ledger(),
		Environment:  reports.CurrentEnvironment(os.Getenv),
		Target:       reports.Target{URL: r.URL, Name: s.target.Name, Version: s.target.Version, Organisation: s.target.Organisation, Contact: s.target.Contact},
		Capabilities: r.Claimed, Measured: r.Measured(), Settings: settings(r, o), Seed: r.Seed, Strict: o.Strict, Sample: o.Sample, Wire: reports.Wire(o.Wire),
		Filtered: len(o.Only)+len(o.Skip) > 0 || o.Short || s.filtered, Results: s.inOrder(),
	}
	if front := r.Front(); front != nil {
		report.Target.Proxy = r.Redact.Text(front.String())
	}
	report.NoBridge = r.Redact.Text(r.NotABridge)
	if s.ctx.Err() != nil {
		report.CutShort = cutShortReason(s.ctx)
		if errors.Is(context.Cause(s.ctx), errRunTimeout) {
			report.CutShort += s.outlook.afterRunTimeout()
		}
	}
	selected := []string{}
	short := s.Checks()
	for _, clause := range r.Contract.Clauses {
		if slices.ContainsFunc(short, func(c check.Check) bool { return c.ID == clause.ID }) {
			selected = append(selected, clause.ID)
		}
	}
	return &Part{Contract: o.Contract, Extra: extraClauses(o.Extra), Selected: selected, Report: report, Exempt: s.exempt,
		Noticed:         slices.Clone(s.noticed),
		Unauthenticated: r.Unauthenticated, Unsettled: s.unsettled, Carried: cmp.Or(s.carried, r.Carried()), cutOff: s.cutOff}
}

// ledger counts the clauses that have a check, and names those without one.
func (s *Session) ledger() reports.Ledger {
	l := reports.Ledger{Version: s.env.Contract.Version, Revision: s.env.Contract.Revision, Unchecked: []string{}}
	for _, c := range s.env.Contract.Clauses {
		if hasCheck(c.ID, s.options.Extra) {
			l.Checked++
		} else {
			l.Unchecked = append(l.Unchecked, c.ID)
		}
	}
	return l
}

// inOrder lists the results in the order of the contract.
func (s *Session) inOrder() []reports.Result {
	results := []reports.Result{}
	for _, clause := range s.env.Contract.Clauses {
		if r, ok := s.results[clause.ID]; ok {
			results = append(results, r)
		}
	}
	return results
}

// readSite reads the methods of the real site behind the bridge, where there is one.
func readSite(r *check.Environment, o Options) {
	at := o.Site.URL
	if at == nil && o.Site.Recorder != nil {
		at = o.Site.Recorder.Site()
	}
	if r.Drupal != nil || at == nil {
		return
	}
	known, err := site.NewReal(at, site.Reader{Context: r.Context, Transport: newTransport(o.Connection.TLS, nil, nil), Credentials: r.Credentials,
		Timeout: r.Timeout, Pace: r.WaitForRate, Redact: r.Redact})
	if err != nil {
		r.SiteUnknown = err.Error()
		return
	}
	r.Site = known
}

var errRunTimeout = errors.New("the run time-out (--run-timeout) passed")

func cutShortReason(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != nil && cause != context.Canceled {
		return cause.Error()
	}
	return "interrupted"
}

func settings(e *check.Environment, o Options) map[string]any {
	s := map[string]any{"page_size": e.PageSize, "timeout": e.Timeout.String(), "mock": o.Site.Drupal != nil}
	if e.Upstream != nil && e.Upstream.Proxy {
		s["recording_proxy"] = true
	}
	if o.Site.Control != nil {
		s["control"] = true
	}
	if e.Site != nil && e.Drupal == nil {
		s["site_methods"] = true
	}
	if e.Spares() {
		s["wrong_credentials"] = check.MostWrong
	}
	if e.UpstreamTimeout > 0 {
		s["upstream_timeout"] = e.UpstreamTimeout.String()
	}
	if e.DiscoveryTTL > 0 {
		s["discovery_ttl"] = e.DiscoveryTTL.String()
	}
	if len(o.Only) > 0 {
		s["only"] = o.Only
	}
	if len(o.Skip) > 0 {
		s["skip"] = o.Skip
	}
	if o.Sample > 0 {
		s["sample"] = o.Sample
	}
	if o.Clients != nil {
		s["clients"] = o.Clients
	}
	return s
}

// Client is a client of the bridge as one caller, outside of any check.
func Client(ctx context.Context, target Target, o Options, who check.Identity) (check.Client, error) {
	env, err := newRun(target, o)
	if err != nil {
		return check.Client{}, err
	}
	env.Context, env.End = ctx, func(error) {}
	t := check.NewT(env)
	if _, ok := t.CredentialsOf(who); !ok {
		return check.Client{}, usage("there are no credentials for %s", who)
	}
	return t.As(who), nil
}

// Try runs one check that is no clause's of the contract, outside of any run: nothing has looked at the target before.
func Try(ctx context.Context, target Target, o Options, c check.Check) (reports.Result, error) {
	o.Extra = append(slices.Clone(o.Extra), c)
	env, err := newRun(target, o)
	if err != nil {
		return reports.Result{}, err
	}
	defer env.Transport.CloseIdleConnections()
	env.Context, env.End = ctx, func(error) {}
	return env.Test(ctx, named(c)).Result, nil
}
