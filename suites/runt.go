package suites

import (
	"os"
	"os/signal"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/reports"
)

// RunT is Run in a Go test. Each clause that applies to the bridge is a subtest with its id as name: one that is broken
// fails, one that is not testable is skipped, a warning is logged and fails with o.Strict. `-run TestX/describe/missing-name`
// runs that clause alone, and -short leaves out the checks that send most. The test fails where the run is not conformant,
// for whatever reason, and ends at once where nothing could be tested. An interrupt (SIGINT) cuts the run short: what was
// not tested by then fails nothing but the test as a whole.
func RunT(t *testing.T, target Target, o Options) *reports.Report {
	t.Helper()
	o.Short = o.Short || testing.Short()
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	if o.Pass.Waiting == nil {
		o.Pass.Waiting = func(why string) { t.Log(settings.AsOptions(why)) }
	}
	s, err := engine.Open(ctx, target, o)
	if err != nil {
		t.Fatal(settings.AsOptions(err.Error()))
	}
	defer s.Close()
	shown := map[string]reports.Verdict{}
	var left []string // by -run
	for _, c := range s.Checks() {
		if !s.Applies(c) {
			s.Test(ctx, c) // says so
			continue
		}
		began := false
		t.Run(c.ID, func(t *testing.T) {
			began = true
			r, ran := s.TestShown(ctx, c)
			if !ran {
				t.Skip("the run ended before this was tested")
			}
			shown[r.ID] = r.Verdict
			show(t, r, o.Strict)
		})
		if !began {
			left = append(left, c.ID)
		}
	}
	s.LeaveOut(left...)
	report, err := o.Report(s.Part())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if was, ran := shown[r.ID]; ran && was != r.Verdict { // the culprit rule or the baseline has changed it
			shown[r.ID] = r.Verdict
			if r.Verdict == reports.Fail {
				t.Errorf("%s: %s", r.ID, engine.Account(r))
			}
		}
	}
	for _, m := range report.Measured {
		if m.Warning != "" {
			t.Log("warning: " + settings.AsOptions(m.Warning))
		}
	}
	if verdict := settings.AsOptions(engine.Verdict(report)); report.ExitCode() != 0 {
		t.Error(verdict)
	} else {
		t.Log(verdict)
	}
	return report
}

// show ends the subtest of a clause by its verdict.
func show(t *testing.T, r reports.Result, strict bool) {
	switch {
	case r.Verdict == reports.NotTestable, r.Verdict == reports.NotApplicable:
		t.Skip(settings.AsOptions(r.Message))
	case r.Verdict == reports.Fail, r.Verdict == reports.Error, r.Verdict == reports.Warn && strict:
		t.Error(engine.Account(r))
	case r.Verdict == reports.Warn:
		t.Log("warning: " + engine.Account(r))
	}
}
