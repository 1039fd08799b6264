package control_test

import (
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/quirk"
)

func TestClientSwitchesWhatTheMockHas(t *testing.T) {
	s, c := remote(t)
	ctx := t.Context()
	must.Do(t, c.SetQuirk(ctx, quirk.StickyGet, true))
	on := s.ActiveQuirks()
	must.Expect(t, len(on) == 1, "quirks after switching one on: %v", on)
	must.Do(t, c.SetQuirk(ctx, quirk.StickyGet, false))
	on = s.ActiveQuirks()
	must.Expect(t, len(on) == 0, "quirks after switching it off: %v", on)
	must.Do(t, c.ClearCaches(ctx))
	must.Do(t, c.SetFlood(ctx, true))
	must.Do(t, c.SetFlood(ctx, false))
	id, err := c.Arm(ctx, mockdrupal.Fault{Kind: fault.Empty})
	must.Do(t, err)
	must.Do(t, c.Disarm(ctx, id))
	armed := s.Faults()
	must.Expect(t, len(armed) == 0, "armed after disarming: %v", armed)
	err = c.Disarm(ctx, id)
	must.Expect(t, err != nil, "a fault was disarmed twice")
}

func TestClientHoldsAndReleasesCalls(t *testing.T) {
	s, c := remote(t)
	ctx := t.Context()
	must.Do(t, c.Freeze(ctx, "content.*"))
	done := make(chan string, 1)
	go func() { done <- ask(t, s, "content.list") }()
	for waiting := 0; waiting == 0; time.Sleep(time.Millisecond) {
		var err error
		waiting, err = c.Waiting(ctx)
		must.Do(t, err)
	}
	n, err := c.Step(ctx, 5)
	must.Expect(t, err == nil && n == 1, "%d calls continued, %v; want 1", n, err)
	must.Has(t, <-done, `"result"`, "the call that waited")
	must.Do(t, c.Freeze(ctx, ""))
	ask(t, s, "content.list") // waits for nothing
	if n, err := c.Runs(ctx, "content.list"); err != nil || n != 2 {
		t.Errorf("%d runs, %v; want 2", n, err)
	}
	must.Do(t, c.ClearJournal(ctx))
	if page, err := c.Journal(ctx, journal.Filter{}); err != nil || len(page.Entries) != 0 || page.Last != 2 || page.Lost != 2 {
		t.Errorf("after clearing: %d entries, last %d, lost %d (%v)", len(page.Entries), page.Last, page.Lost, err)
	}
}
