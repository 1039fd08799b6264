package fair_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge/body"
	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// On a single processor, others run for every 16 KiB of a long document that is read, taken apart or checked.
func TestLongWorkLetsOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	numbers := `[` + strings.Repeat(`0,`, 1<<19) + `0]`
	text := `"` + strings.Repeat("x", 1<<20) + `"`
	compiled := must.Get(schema.Compile([]byte(`{"type":"array","items":{"type":"integer"}}`)))(t)
	for name, c := range map[string]struct {
		work func() error
		size int // of a turn, in bytes
	}{
		"numbers taken apart": {func() error { _, err := jsondoc.Split([]byte(`{"v":` + numbers + `}`)); return err }, fair.TurnBytes},
		"a text taken apart":  {func() error { _, err := jsondoc.Split([]byte(text)); return err }, fair.TurnBytes},
		"a text read":         {func() error { _, err := body.All(strings.NewReader(text), -1, nil); return err }, 64 << 10},
		"numbers checked": {func() error {
			violations, err := schema.NewValidator(fair.NewWork(1, 1), nil).Validate(context.Background(), fair.Key{}, compiled, []byte(numbers))
			must.Expect(t, len(violations) == 0, "violations: %v", violations)
			return err
		}, fair.TurnBytes},
	} {
		t.Run(name, func(t *testing.T) {
			var turns, done atomic.Int64
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for done.Load() == 0 {
					turns.Add(1)
					runtime.Gosched()
				}
			}()
			runtime.Gosched()
			before := turns.Load()
			err := c.work()
			got, least := turns.Load()-before, int64(len(text)/c.size/2)
			done.Store(1)
			<-ended
			must.Do(t, err)
			must.Expect(t, got >= least, "another goroutine ran %d times, want %d at least", got, least)
		})
	}
}

// However many do long work, others wait for a turn or two each time that they want the processor.
func TestOthersWaitForFewTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const workers, looks, most = 50, 100, 3
	var turns atomic.Int64
	var done atomic.Bool
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for !done.Load() {
				turns.Add(1)
				fair.EndTurn()
			}
		})
	}
	for turns.Load() < 2*workers {
		runtime.Gosched()
	}
	before := turns.Load()
	for range looks {
		runtime.Gosched()
	}
	waited := turns.Load() - before
	must.Expect(t, waited != 0 && waited <= most*looks, "%d turns of others in %d waits, want some and at most %d each", waited, looks, most)
	done.Store(true)
	wg.Wait()
}
