package harness

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// lag is how late this process gets its turn. On an overloaded machine it is late, as the bridge and the mock are.
type lag struct {
	mu   sync.Mutex
	late []lateTurn
}

type lateTurn struct {
	at time.Time
	by time.Duration
}

// How lag is measured.
const (
	lagEvery   = 20 * time.Millisecond
	overloaded = 200 * time.Millisecond // a turn that is so late: an idle machine is not late by a tenth of it
)

// WatchLag measures how late this process gets its turn until ctx ends.
func (e *Environment) WatchLag(ctx context.Context) {
	for ctx.Err() == nil {
		slept := time.Now()
		time.Sleep(lagEvery)
		if by := time.Since(slept) - lagEvery; by >= overloaded {
			e.lag.mu.Lock()
			e.lag.late = append(e.lag.late, lateTurn{slept, by})
			e.lag.mu.Unlock()
		}
	}
}

// lagSince is how late this process got its turn at most since a time, as far as it counts.
func (e *Environment) lagSince(since time.Time) time.Duration {
	e.lag.mu.Lock()
	defer e.lag.mu.Unlock()
	var most time.Duration
	for i := len(e.lag.late) - 1; i >= 0 && !e.lag.late[i].at.Add(e.lag.late[i].by).Before(since); i-- {
		most = max(most, e.lag.late[i].by)
	}
	return most
}

// ExcuseLag excuses the check, which found something to be late, where the machine was overloaded while it ran.
func (t *T) ExcuseLag() {
	if by := t.lagSince(t.began); by > 0 {
		t.excuseOverload(fmt.Sprintf("this process got its turn %s late", Rounded(by)))
	}
}

func (t *T) excuseOverload(seen string) {
	t.Excuse("the machine is overloaded: " + seen + "; run it again with free cores")
}
