package mutants

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// loadMutants fail only when many calls are under way.
func loadMutants() []Mutant {
	return []Mutant{
		{Name: "answers-mixed-up-under-load", Breaks: Clauses("load/concurrent-exact"), MayFail: Clauses("access/no-cross-talk"), Origin: Peer, Middleware: mismatchResponses()},
		{Name: "equal-calls-at-once-run-once", Breaks: Clauses("load/concurrent-exact", "load/slow-method-isolated"), Origin: Imagined, Why: "equal calls share one request to the site, as discovery does", Middleware: coalesceCalls()},
		{Name: "one-call-at-a-time", Breaks: Clauses("load/slow-method-isolated"), Origin: Peer,
			Transport: func(next http.RoundTripper) http.RoundTripper {
				var line sync.Mutex
				return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
					if isCall(r) {
						line.Lock()
						defer line.Unlock()
					}
					return next.RoundTrip(r)
				})(next)
			}},
		{Name: "page-costs-the-catalogue", Breaks: Clauses("load/large-catalogue"), Origin: Imagined,
			Middleware: onList(func(p *page) {
				for cursor := p.Object["nextCursor"]; cursor != nil && cursor != "" && p.Cursor == ""; {
					cursor = p.Send(http.MethodGet, p.Request.URL.Path+"?cursor="+url.QueryEscape(fmt.Sprint(cursor)), nil).Object()["nextCursor"]
				}
			})},
		{Name: "list-as-slow-as-discovery", Breaks: Clauses("load/discovery-budget"), MayFail: Clauses("load/large-catalogue"), Origin: Imagined, Middleware: slowLists()},
	}
}

// loadVariants refuse a part of the calls under load, as the contract allows.
func loadVariants() []Mutant {
	return []Mutant{
		{Name: "refuses-under-load", Why: "503 with Retry-After for every fifth request while more than 40 are under way", Middleware: refuseUnderLoad(40, 5)},
	}
}

// refuseUnderLoad refuses every nth request that arrives while more than busy requests are under way.
func refuseUnderLoad(busy, nth int64) middleware {
	var under, crowded atomic.Int64
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer under.Add(-1)
			if under.Add(1) <= busy || crowded.Add(1)%nth != 0 {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"error":{"code":"overloaded","message":"Too many requests are under way."}}`)
		})
	}
}

// coalesceCalls runs a caller's equal concurrent calls once.
func coalesceCalls() middleware {
	type flight struct {
		landed   chan struct{}
		response *exchange
	}
	var mu sync.Mutex
	flights := map[string]*flight{}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !toInvoke(r) || !isSmall(r) {
				next.ServeHTTP(w, r)
				return
			}
			body := readBody(r)
			key := r.Method + r.Header.Get("Authorization") + string(body)
			mu.Lock()
			f, under := flights[key]
			if !under {
				f = &flight{landed: make(chan struct{})}
				flights[key] = f
			}
			mu.Unlock()
			if !under {
				f.response = record(next, r, body)
				mu.Lock()
				delete(flights, key)
				mu.Unlock()
				close(f.landed)
			}
			<-f.landed
			own := *f.response
			own.writeTo(w)
		})
	}
}

// mismatchResponses sends a caller the response to another caller when many invoke concurrently.
func mismatchResponses() middleware {
	var busy atomic.Int64
	var last atomic.Pointer[[]byte]
	return counting(&busy, onInvoke(func(x *exchange) {
		body := x.Body
		if other := last.Swap(&body); other != nil && busy.Load() > 48 && x.Status == http.StatusOK {
			x.Body = *other
		}
	}))
}

// slowLists delays lists as if each were discovered from the site.
func slowLists() middleware {
	first := newMemory[time.Duration]()
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !toList(r) {
				next.ServeHTTP(w, r)
				return
			}
			began := time.Now()
			key := r.Header.Get("Authorization")
			cost, known := first.get(key)
			if known && cost > 100*time.Millisecond {
				time.Sleep(cost)
			}
			next.ServeHTTP(w, r)
			first.keep(key, time.Since(began))
		})
	}
}
