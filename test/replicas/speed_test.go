//go:build unix

package replicas

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// The measurements of TestSpeed: alternately, so that what else the machine does meets both sides alike.
const (
	windows = 20
	window  = 500 * time.Millisecond // of throughput
	busy    = 48                     // callers at one time
	paired  = 3000                   // calls one after the other, at each replica
)

// TestSpeed compares three replicas, of which each has its share of the processors, with one that has them all; and a
// replica with the store with one without. All share the machine with the mock and the balancer, so that a ratio is what
// replicas cost; a gain needs more machines.
func TestSpeed(t *testing.T) {
	must.Need(t, os.Getenv("REPLICAS_TIME") != "", "make replicas runs it: it measures, and other tests would disturb it")
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"calls without rate_limit, which need no store", nil},
		{"calls under rate_limit, which the store counts", counted},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, c.flags...)
			with, without := s.extra(append(c.flags, "--shared", s.store.Address)...), s.extra(c.flags...)
			with.await("the store is reached", func() bool { return strings.Contains(with.log.String(), "the shared store is reached") })
			s.compareThroughput(with)
			s.compareLatency(with, without)
		})
	}
}

// compareThroughput compares all replicas with one.
func (s *stand) compareThroughput(alone *replica) {
	one, three := []*replica{alone}, s.replicas
	s.throughput(three, window) // warm
	s.throughput(one, window)
	var ones, threes, ratios []float64
	for i := range windows {
		measured := [2]float64{}
		for j := range 2 {
			side := (i + j) % 2 // each goes first in half of the pairs
			measured[side] = s.throughput([][]*replica{one, three}[side], window)
		}
		ones, threes, ratios = append(ones, measured[0]), append(threes, measured[1]), append(ratios, measured[1]/measured[0])
	}
	s.t.Logf("throughput: one replica %.0f calls/s, three replicas %.0f calls/s, ratio %.2f (medians of %d pairs of %v; goal 0.9)",
		median(ones), median(threes), median(ratios), windows, window)
}

// compareLatency compares a replica that has the store with one that has none.
func (s *stand) compareLatency(with, without *replica) {
	var took [2][]float64
	for i := range paired {
		for j := range 2 {
			side := (i + j) % 2
			began := time.Now()
			s.echo([]*replica{with, without}[side].now.Load().url)
			if i >= paired/10 { // the rest warms
				took[side] = append(took[side], float64(time.Since(began).Microseconds())/1000)
			}
		}
	}
	a, b := median(took[0]), median(took[1])
	s.t.Logf("latency: median %.3f ms with the store, %.3f ms without, %.3f ms more (goal 0.3)", a, b, a-b)
}

// extra is a replica that the balancer does not know. It has all processors.
func (s *stand) extra(flags ...string) *replica {
	r := &replica{stand: s}
	s.t.Cleanup(r.kill)
	r.start(flags...)
	return r
}

// throughput is how many calls a second go through the balancer.
func (s *stand) throughput(to []*replica, lasts time.Duration) float64 {
	s.t.Helper()
	s.balance(to...)
	s.drupal.Journal().Clear()
	var made atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range busy {
		wg.Go(func() {
			for time.Since(began) < lasts {
				s.echo(s.front.URL)
				made.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(made.Load()) / time.Since(began).Seconds()
}

var quick = client(30 * time.Second)

// echo makes a call, which must be served.
func (s *stand) echo(url string) {
	res, err := quick.Do(request(context.Background(), "agent", "POST", url+"/mcp/tools/invoke", `{"name":"`+echo+`","arguments":{"token":"token"}}`))
	if err != nil {
		s.t.Error(err)
		return
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 {
		s.t.Errorf("%d %s %v", res.StatusCode, body, err)
	}
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
