package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/workers"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/format"
)

// heartbeatEvery is the time between two lines on what is running, where there is no terminal to show it live.
const heartbeatEvery = 10 * time.Second

// progress shows how far a run is: live on a terminal, else by a heartbeat line. It is safe for concurrent use.
type progress struct {
	out     io.Writer
	seen    func(reports.Result) // nil: nobody asks for verdicts
	console *format.Console      // nil: nothing is shown live
	end     chan struct{}        // closed by stop
	ended   sync.WaitGroup

	mu          sync.Mutex
	began       time.Time
	running     []string // clauses
	done, total int      // clauses
	open        map[string]int
}

// progress starts to show the progress of bundles of a plan, unless --quiet is given. Call stop at the end.
func (f *runFlags) progress(cmd *cobra.Command, plan *plan, bundles []workers.Bundle) *progress {
	p := &progress{seen: f.seen, out: cmd.ErrOrStderr(), end: make(chan struct{}), began: time.Now(), open: map[string]int{}}
	for _, b := range bundles {
		for _, c := range plan.legs[b.Pass].checks {
			if _, ours := b.Checks[c.ID]; ours {
				p.total++
				p.open[c.ID]++
			}
		}
	}
	if f.Quiet {
		return p
	}
	if console := format.NewConsole(os.Stderr, os.Getenv); console.Live {
		p.console, console.Verbose = console, f.Verbose
		return p
	}
	p.ended.Go(p.beat)
	return p
}

// stop ends the heartbeat.
func (p *progress) stop() {
	close(p.end)
	p.ended.Wait()
}

// beat writes the heartbeat lines until stop.
func (p *progress) beat() {
	tick := time.NewTicker(heartbeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.end:
			return
		case <-tick.C:
			fmt.Fprintln(p.out, p.line())
		}
	}
}

// line says what is running.
func (p *progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	running := strings.Join(p.running, ", ")
	switch {
	case running != "":
	case p.done == 0:
		running = "waiting for the bridge"
	default:
		running = "between two clauses"
	}
	return fmt.Sprintf("[%d/%d] %s, %.0f s%s", p.done, p.total, running, time.Since(p.began).Seconds(), p.left())
}

// left says how long the rest takes where that is minutes, were it as slow as what is done; those that take longest come first
// where several workers share them, so that it is often less.
func (p *progress) left() string {
	if p.done < p.total/20 || p.done == 0 {
		return ""
	}
	left := time.Since(p.began) / time.Duration(p.done) * time.Duration(p.total-p.done)
	if left < 2*time.Minute {
		return ""
	}
	return fmt.Sprintf(", some %.0f min left (--sample 10 and --only test less)", left.Minutes())
}

// started notes a clause that is running.
func (p *progress) started(clause string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = append(p.running, clause)
}

// finished counts a clause; those that do not apply are not in the total, and a verdict may come twice.
func (p *progress) finished(r reports.Result) {
	if p.seen != nil {
		p.seen(r)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.running, r.ID); i >= 0 {
		p.running = slices.Delete(p.running, i, i+1)
		if p.open[r.ID] > 0 {
			p.open[r.ID]--
			p.done++
		}
	}
	if p.console != nil {
		p.console.Progress(p.done, p.total, r)
	}
}

// clear takes the live line away.
func (p *progress) clear() {
	if p.console != nil {
		p.console.ClearProgress()
	}
}
