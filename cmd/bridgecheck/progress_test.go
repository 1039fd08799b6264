package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
)

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := &progress{out: &out, end: make(chan struct{}), began: time.Now(), total: 3, open: map[string]int{"list/a": 2, "list/b": 1}}
		p.ended.Go(p.beat)
		time.Sleep(heartbeatEvery - time.Millisecond)
		synctest.Wait()
		must.Expect(t, out.Len() == 0, "before %s: %q", heartbeatEvery, out.String())
		time.Sleep(2 * time.Millisecond)
		p.started("list/a")
		p.finished(reports.Result{ID: "list/a"})
		p.finished(reports.Result{ID: "list/a"}) // a verdict that the culprit rule changed
		p.started("list/inapplicable")
		p.finished(reports.Result{ID: "list/inapplicable"})
		p.started("list/b")
		time.Sleep(heartbeatEvery)
		p.finished(reports.Result{ID: "list/b"})
		time.Sleep(heartbeatEvery)
		p.stop()
		time.Sleep(heartbeatEvery)
		want := "[0/3] waiting for the bridge, 10 s\n[1/3] list/b, 20 s\n[2/3] between two clauses, 30 s\n"
		must.Expect(t, out.String() == want, "expected %q, got %q", want, out.String())
	})
}
