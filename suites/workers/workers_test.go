package workers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
)

// TestMain is a worker where $WORKER says what kind of one.
func TestMain(m *testing.M) {
	kind := os.Getenv("WORKER")
	if kind == "" {
		os.Exit(m.Run())
	}
	err := Serve(context.Background(), os.Stdin, os.Stdout, func(ctx context.Context, job Job, w *Worker) error {
		for {
			i, ok := w.Next(ctx)
			if !ok {
				return nil
			}
			part := &suites.Part{Selected: clauses, Report: &reports.Report{}}
			for _, id := range clauses {
				if !w.Take(ctx, id) {
					continue
				}
				switch kind {
				case "dies":
					fmt.Fprintln(os.Stderr, "out of luck")
					os.Exit(7)
				case "fails":
					return &FailedError{Kind: "usage", Text: "not that"}
				case "hangs":
					select {}
				case "carries":
					part.Carried = "it was slow"
				}
				result := reports.Result{ID: id, Level: reports.MUST, Verdict: reports.Pass, Evidence: []reports.Exchange{}, Tested: []reports.Part{{Tool: job.Args[0], Identity: fmt.Sprint(i)}}}
				part.Report.Results = append(part.Report.Results, result)
				w.Finished(result)
			}
			if ctx.Err() != nil {
				part.Report.CutShort = context.Cause(ctx).Error()
			}
			if err := w.Done(part); err != nil {
				return err
			}
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

var clauses = []string{"list/answers-json", "list/names-unique", "invoke/result-exact", "describe/unknown-404"}

func runKind(ctx context.Context, kind string, n int, finished func(reports.Result) string) ([][]*suites.Part, error) {
	checks := map[string]int{}
	for _, id := range clauses {
		checks[id] = worthJoining
	}
	return Run(ctx, n, func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "WORKER="+kind)
		return cmd
	}, func(int) Job { return Job{Args: []string{"an argument"}} }, NewQueue(checks, checks), Observer{Started: func(string) {}, Finished: finished})
}

func TestEveryCheckIsTestedOnce(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	parts, err := runKind(t.Context(), "works", 3, func(r reports.Result) string {
		mu.Lock()
		defer mu.Unlock()
		seen[r.ID+" in pass "+r.Tested[0].Identity]++
		if r.Tested[0].Tool != "an argument" {
			t.Errorf("the worker got %q", r.Tested[0].Tool)
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range parts {
		for _, id := range clauses {
			if n := seen[fmt.Sprintf("%s in pass %d", id, i)]; n != 1 {
				t.Errorf("%s was tested %d times in pass %d", id, n, i)
			}
		}
		tested := 0
		for _, p := range parts[i] {
			tested += len(p.Report.Results)
			for _, r := range p.Report.Results {
				if len(r.Tested) != 1 {
					t.Errorf("the part has lost what %s tested", r.ID)
				}
			}
		}
		if tested != len(clauses) {
			t.Errorf("the parts of pass %d hold %d results", i, tested)
		}
	}
}

func TestAWorkerThatCannotGoOnEndsTheRun(t *testing.T) {
	for kind, want := range map[string]string{"dies": "ended by itself: exit status 7: out of luck", "fails": "not that", "carries": "it was slow"} {
		t.Run(kind, func(t *testing.T) {
			_, err := runKind(t.Context(), kind, 2, func(reports.Result) string { return "" })
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %q", err, want)
			}
			var failed *FailedError
			if errors.As(err, &failed) != (kind == "fails") {
				t.Errorf("the error is %#v", err)
			}
		})
	}
}

func TestWorkersEndWithTheRun(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, end)
	began := time.Now()
	if _, err := runKind(ctx, "hangs", 2, func(reports.Result) string { return "" }); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the workers ended after %s", took)
	}
}

func TestAReasonEndsTheRun(t *testing.T) {
	parts, err := runKind(t.Context(), "works", 1, func(reports.Result) string { return "enough" })
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts[0] {
		if p.Report.CutShort == "enough" {
			return
		}
	}
	if len(parts[0])+len(parts[1]) > 1 {
		t.Errorf("the run went on: %d and %d parts", len(parts[0]), len(parts[1]))
	}
}

func TestTheQueueGivesThePassWithMostLeft(t *testing.T) {
	q := NewQueue(map[string]int{"a": 900, "b": 900}, map[string]int{"c": 1200}, map[string]int{"d": 0})
	var got []int
	for range 3 {
		got = append(got, q.next().pass)
	}
	q.take(work{pass: 0}, "b")
	q.take(work{pass: 1}, "c")
	for range 3 {
		got = append(got, q.next().pass)
	}
	if want := []int{0, 1, 0, 2, -1, -1}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the passes are %v, want %v", got, want)
	}
	if !q.take(work{pass: 0}, "a") || q.take(work{pass: 0}, "a") || q.take(work{pass: 1}, "a") || q.take(work{pass: -1}, "b") {
		t.Error("a check is given once, in its pass")
	}
}

func TestTheSecondWorkerAtAPassBeginsWithItsLastArea(t *testing.T) {
	q := NewQueue(map[string]int{"list/a": 2000, "upstream/b": 300, "upstream/c": 300})
	first, second, third := q.next(), q.next(), q.next()
	if first.end || !second.end || third.end {
		t.Errorf("the workers test the last area alone: %t, %t, %t, want the second alone", first.end, second.end, third.end)
	}
	if q.take(second, "list/a") || !q.take(second, "upstream/b") || !q.take(first, "upstream/c") || !q.take(third, "list/a") {
		t.Error("a worker of the last area gets that alone, the others get all")
	}
}
