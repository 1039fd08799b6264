package workers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
)

// worker is one that finds every clause kept, and differs from others in its kind.
func worker(kind, dir string) func(context.Context, int, *Worker) error {
	return func(ctx context.Context, _ int, w *Worker) error {
		for {
			i, ok := w.Next()
			if !ok {
				return nil
			}
			part := &engine.Part{Selected: clauses, Report: &reports.Report{}}
			for _, id := range clauses {
				if !w.Take(id) {
					continue
				}
				switch kind {
				case "fails":
					return errOfAWorker
				case "hangs":
					select {}
				case "waits":
					for _, err := os.Stat(dir); err != nil && ctx.Err() == nil; _, err = os.Stat(dir) {
						time.Sleep(10 * time.Millisecond)
					}
				case "carries":
					part.Carried = "it was slow"
				}
				result := reports.Result{ID: id, Level: reports.MUST, Verdict: reports.Pass, Evidence: []reports.Exchange{}, Tested: []reports.Part{{Identity: fmt.Sprint(i)}}}
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
	}
}

var (
	errOfAWorker = errors.New("not that")
	clauses      = []string{"list/answers-json", "list/names-unique", "invoke/result-exact", "describe/unknown-404"}
)

func runKind(ctx context.Context, kind string, n int, finished func(reports.Result) string) ([][]*engine.Part, error) {
	parts, again, err := runBundles(ctx, kind, n, true, finished)
	if len(again.Bundles) > 0 {
		return nil, fmt.Errorf("bundles that are shared are to be tested again: %v", again.Bundles)
	}
	return parts, err
}

func runBundles(ctx context.Context, kind string, n int, shared bool, finished func(reports.Result) string) ([][]*engine.Part, Again, error) {
	return Run(ctx, Staff{First: n, Most: n}, worker(kind, ""), twoPasses(shared), Observer{Started: func(string) {}, Finished: finished})
}

func twoPasses(shared bool) *Queue {
	checks := map[string]int{}
	for _, id := range clauses {
		checks[id] = worthJoining
	}
	return NewQueue(2, Bundle{Checks: checks, Shared: shared}, Bundle{Pass: 1, Checks: checks, Shared: shared})
}

func TestEveryCheckIsTestedOnce(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	parts := must.Get(runKind(t.Context(), "works", 3, func(r reports.Result) string {
		mu.Lock()
		defer mu.Unlock()
		seen[r.ID+" in pass "+r.Tested[0].Identity]++
		return ""
	}))(t)
	for i := range parts {
		for _, id := range clauses {
			must.Equal(t, seen[fmt.Sprintf("%s in pass %d", id, i)], 1, "how often %s was tested in pass %d", id, i)
		}
		tested := 0
		for _, p := range parts[i] {
			tested += len(p.Report.Results)
			for _, r := range p.Report.Results {
				must.Expect(t, len(r.Tested) == 1, "the part has lost what %s tested", r.ID)
			}
		}
		must.Expect(t, tested == len(clauses), "the parts of pass %d hold %d results", i, tested)
	}
}

// A worker joins while a bundle waits and a processor was free twice in succession.
func TestWorkersJoinWhereAProcessorIsFree(t *testing.T) {
	for name, c := range map[string]struct {
		spare func(asked int) bool
		want  int
	}{
		"free":              {func(int) bool { return true }, 2},
		"free now and then": {func(asked int) bool { return asked%2 == 1 }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			asked, end := 0, filepath.Join(t.TempDir(), "end")
			var started atomic.Int32
			goOn := func() {
				err := os.WriteFile(end, nil, 0o600)
				must.Expect(t, err == nil, "%v", err)
			}
			spare := func() bool {
				if asked++; asked == 4 {
					goOn()
				}
				return c.spare(asked)
			}
			work := worker("waits", end)
			parts, _, err := Run(ctx, Staff{First: 1, Most: 8, Spare: spare}, func(ctx context.Context, n int, w *Worker) error {
				if started.Add(1) == 2 {
					goOn()
				}
				return work(ctx, n, w)
			}, twoPasses(false), Observer{Started: func(string) {}, Finished: func(reports.Result) string { return "" }})
			must.Assert(t, err == nil && ctx.Err() == nil, "%v %v", err, ctx.Err())
			must.Equal(t, int(started.Load()), c.want, "workers that started")
			for i := range parts {
				must.Expect(t, len(parts[i]) == 1 && len(parts[i][0].Report.Results) == len(clauses), "the parts of pass %d are %v", i, parts[i])
			}
		})
	}
}

func TestAWorkerThatCannotGoOnEndsTheRun(t *testing.T) {
	for kind, want := range map[string]string{"fails": "not that", "carries": "it was slow"} {
		t.Run(kind, func(t *testing.T) {
			_, err := runKind(t.Context(), kind, 2, func(reports.Result) string { return "" })
			must.Expect(t, err != nil && err.Error() == want, "the error is %v, want %q", err, want)
			must.Expect(t, errors.Is(err, errOfAWorker) == (kind == "fails"), "the error is %#v", err)
		})
	}
}

// What may depend on more than its bundle is not counted, and nobody goes on with that bundle.
func TestABundleIsTestedAgain(t *testing.T) {
	parts, again, err := runBundles(t.Context(), "carries", 3, false, func(reports.Result) string { return "" })
	must.Do(t, err)
	if n := len(slices.Concat(parts...)); n != 0 || len(again.Bundles) != 2 || len(again.Found) != 2 || again.Why != "it was slow" {
		t.Errorf("%d parts count, and to be tested again are %+v", n, again)
	}
	parts, again, err = runBundles(t.Context(), "works", 3, false, func(reports.Result) string { return "" })
	n := len(slices.Concat(parts...))
	must.Expect(t, err == nil && n == 2 && len(again.Bundles) == 0, "%d parts count, to be tested again are %+v, %v", n, again, err)
}

func TestWorkersEndWithTheRun(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, end)
	began := time.Now()
	_, err := runKind(ctx, "hangs", 2, func(reports.Result) string { return "" })
	must.Expect(t, err == nil, "%v", err)
	took := time.Since(began)
	must.Expect(t, took <= endTime+5*time.Second, "the workers ended after %s", took)
}

func TestAReasonEndsTheRun(t *testing.T) {
	parts := must.Get(runKind(t.Context(), "works", 1, func(reports.Result) string { return "enough" }))(t)
	for _, p := range parts[0] {
		if p.Report.CutShort == "enough" {
			return
		}
	}
	must.Expect(t, len(parts[0])+len(parts[1]) <= 1, "the run went on: %d and %d parts", len(parts[0]), len(parts[1]))
}

func TestTheQueueGivesTheBundleWithMostLeft(t *testing.T) {
	q := NewQueue(3, Bundle{Pass: 1, Checks: map[string]int{"a": 900}}, Bundle{Pass: 0, Checks: map[string]int{"b": 1200}}, Bundle{Pass: 2, Checks: map[string]int{"c": 0}})
	var passes []int
	for range 4 {
		_, pass := q.next()
		passes = append(passes, pass)
	}
	want := []int{0, 1, 2, none}
	must.Expect(t, slices.Equal(passes, want), "the passes are %v, want %v: each bundle is for one worker", passes, want)
	must.Expect(t, q.take(0, "a") && !q.take(0, "a") && !q.take(1, "a") && !q.take(none, "b"), "a check is given once, in its bundle")
}

func TestWorkersJoinASharedBundle(t *testing.T) {
	q := NewQueue(1, Bundle{Checks: map[string]int{"a": worthJoining, "b": worthJoining}, Shared: true})
	first, _ := q.next()
	second, _ := q.next()
	third, _ := q.next()
	must.Expect(t, first == 0 && second == 0 && third == none,
		"the workers are at %d, %d, %d, want two at the bundle, which has work for no more", first, second, third)
	must.Expect(t, q.take(second, "a") && !q.take(first, "a") && q.take(first, "b"), "a check is given once")
}

// last are the checks of the last area.
func last(checks map[string]int) map[string]int {
	found := maps.Clone(checks)
	maps.DeleteFunc(found, func(id string, _ int) bool { return !engine.IsLast(id) })
	return found
}

// Each check is in one bundle, those of the last area are together, and nothing depends on more than the weights.
func TestBundles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checks := rapid.MapOf(rapid.SampledFrom([]string{"list/a", "list/b", "list/c", "invoke/d", "invoke/e", "http/f", "upstream/g", "upstream/h", "upstream/i"}), rapid.IntRange(0, 3000)).Draw(t, "checks")
		all := Bundles(3, checks, 1000)
		seen := map[string]int{}
		for _, b := range all {
			must.Assert(t, b.Pass == 3 && !b.Shared, "a bundle is %+v", b)
			areas := map[bool]bool{}
			for id, weight := range b.Checks {
				seen[id]++
				areas[engine.IsLast(id)] = true
				must.Assert(t, checks[id] == weight, "%s has the weight %d, want %d", id, weight, checks[id])
			}
			must.Assert(t, len(areas) <= 1 || total(last(checks)) < 500, "the last area takes long, and is among others in %v", b.Checks)
		}
		for id := range checks {
			must.Assert(t, seen[id] == 1, "%s is in %d bundles of %v", id, seen[id], all)
		}
		again := Bundles(3, checks, 1000)
		must.Assert(t, reflect.DeepEqual(again, all), "the bundles are %v, and then %v", all, again)
	})
	mixed := Bundles(0, map[string]int{"list/a": 3000, "upstream/b": 900, "upstream/c": 50}, 1000)
	must.Expect(t, len(mixed) == 4, "3 s and 0.95 s of the last area are %d bundles, want 3 and 1: %v", len(mixed), mixed)
	for _, b := range Bundles(0, map[string]int{"describe/answers-tool": 900, "describe/equals-list": 900, "list/a": 900, "list/b": 900}, 900) {
		_, one := b.Checks["describe/answers-tool"]
		_, other := b.Checks["describe/equals-list"]
		must.Expect(t, one == other, "two checks that share requests are not in one bundle: %v", b.Checks)
	}
	few := Bundles(0, map[string]int{"list/a": 300, "upstream/b": 400}, 1000)
	must.Expect(t, len(few) == 1, "0.7 s are %d bundles, want 1: %v", len(few), few)
}
