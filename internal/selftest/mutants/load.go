package mutants

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// loadMutants fail only when many calls are under way.
func loadMutants() []Mutant {
	return []Mutant{
		{Name: "answers-mixed-up-under-load", Breaks: Clauses("load/concurrent-exact"), MayFail: Clauses("access/no-cross-talk"), Origin: Peer, Middleware: mismatchResponses()},
		{Name: "large-bodies-share-a-buffer", Breaks: Clauses("load/concurrent-exact"), Origin: Peer, Why: "a buffer from a pool is put back while the arguments are still read from it", Middleware: shareLargeBodies()},
		{Name: "equal-calls-at-once-run-once", Breaks: Clauses("load/concurrent-exact"), MayFail: Clauses("load/slow-method-isolated"), Origin: Imagined, Why: "equal calls share one request to the site, as discovery does", Middleware: coalesceCalls()},
		{Name: "one-call-at-a-time", Breaks: Clauses("load/slow-method-isolated"), Origin: Peer,
			Transport: oneAtATime(isCall)},
		{Name: "mcp-calls-in-turn", MCP: true, Breaks: Clauses("load/slow-method-isolated"), Origin: Peer, Why: "the messages of MCP are handled one after the other",
			Middleware: markMCP, Transport: oneAtATime(func(r *http.Request) bool { return isCall(r) && fromMCP(r) })},
		{Name: "fast-calls-wait-for-the-time-out", Breaks: Clauses("load/slow-method-isolated"), Origin: Peer, Why: "a pool of connections to the site with a fixed size, and no limit on how many one method takes",
			Transport: func(next http.RoundTripper) http.RoundTripper {
				places := make(chan struct{}, 16)
				return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
					places <- struct{}{}
					defer func() { <-places }()
					return next.RoundTrip(r)
				})(next)
			}},
		{Name: "cursor-of-four-digits", Breaks: Clauses("load/large-catalogue"), Origin: Imagined, Why: "cursors are short: longer ones are refused",
			Middleware: onResponse(toList, func(x *exchange) {
				if raw, _ := base64.StdEncoding.DecodeString(x.Request.URL.Query().Get("cursor")); len(raw) == 4 && raw[0] == '1' {
					x.Refuse(http.StatusBadRequest, "invalid_cursor", "The cursor is invalid.")
				}
			})},
		{Name: "page-costs-the-catalogue", Breaks: Clauses("load/large-catalogue"), Origin: Imagined,
			Middleware: onList(func(p *page) {
				for cursor := p.Object["nextCursor"]; cursor != nil && cursor != "" && p.Cursor == ""; {
					cursor = p.Send(http.MethodGet, p.Request.URL.Path+"?cursor="+url.QueryEscape(fmt.Sprint(cursor)), nil).Object()["nextCursor"]
				}
			})},
		{Name: "list-as-slow-as-discovery", Breaks: Clauses("load/discovery-budget"), MayFail: Clauses("load/large-catalogue"), Origin: Imagined, Middleware: slowLists()},
		{Name: "asks-about-each-method", Breaks: Clauses("load/cold-list"), Origin: Imagined, Why: "whether a caller may run a method is asked for each, one after the other", Transport: askAboutEach(230)},
	}
}

// askAboutEach requests each method of a site that has so many, one after the other, before it hands over the discovery.
func askAboutEach(methods int) transport {
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil || !strings.HasSuffix(r.URL.Path, "/jsonrpc/methods") {
			return resp, err
		}
		body, _ := readAhead(resp)
		all, _ := decode(body)["data"].([]any)
		if len(all) != methods {
			return resp, nil
		}
		for _, method := range all {
			asked := r.Clone(context.WithoutCancel(r.Context())) // each request has a time limit of its own
			id, _ := method.(map[string]any)["id"].(string)
			asked.URL.Path += "/" + id
			if one, err := next.RoundTrip(asked); err == nil {
				one.Body.Close()
			}
		}
		return resp, nil
	})
}

// loadVariants refuse a part of the calls under load, as the contract allows.
func loadVariants() []Mutant {
	return []Mutant{
		{Name: "limits-calls", Why: "a bridge may limit how often one caller calls", Middleware: limitCalls(400, 200)},
		{Name: "eight-calls-of-a-method-at-once", Why: "further calls of the same caller and tool wait for their turn", Middleware: queuePerTool(8)},
		{Name: "refuses-under-load", Why: "503 with Retry-After for every fifth request while more than 40 are under way", Middleware: refuseUnderLoad(40, 5)},
	}
}

// queuePerTool lets so many calls of a tool by one caller through at once.
func queuePerTool(most int) middleware {
	var queues sync.Map // by caller and tool
	return throughWhere(func(r *http.Request) bool { return toInvoke(r) && isSmall(r) }, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		name, _ := calledIn(r)["name"].(string)
		queue, _ := queues.LoadOrStore(authorized(r)+"\x00"+name, make(chan struct{}, most))
		turn := queue.(chan struct{})
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// refuseUnderLoad refuses every nth request that arrives while more than busy requests are under way.
func refuseUnderLoad(busy, nth int64) middleware {
	var under, crowded atomic.Int64
	return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		defer under.Add(-1)
		if under.Add(1) <= busy || crowded.Add(1)%nth != 0 {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "1")
		refuseAt(w, r, http.StatusServiceUnavailable, "overloaded", "Too many requests are under way.")
	})
}

// coalesceCalls runs a caller's equal concurrent calls once.
func coalesceCalls() middleware {
	return shareFlights(func(r *http.Request) bool { return toInvoke(r) && isSmall(r) }, func(r *http.Request, body []byte) string {
		return r.Method + authorized(r) + string(body)
	}, func(*exchange) {})
}

// shareFlights sends equal requests that match and are under way at the same time the response to the first of them, changed.
func shareFlights(matches func(*http.Request) bool, key func(r *http.Request, body []byte) string, change func(x *exchange)) middleware {
	var flights singleflight.Group
	return throughWhere(matches, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		body := readBody(r)
		response, _, _ := flights.Do(key(r, body), func() (any, error) {
			x := record(next, r, body)
			change(x)
			return x, nil
		})
		own := *response.(*exchange)
		own.writeTo(w)
	})
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

// shareLargeBodies reads the bodies of calls over 16 KiB into one buffer, where the next one may come before a body is used.
func shareLargeBodies() middleware {
	var buffer atomic.Pointer[[]byte]
	return beforeBridge(func(r *http.Request) {
		if !toCall(r) {
			return
		}
		if body := peekBody(r); len(body) > 16<<10 {
			buffer.Store(&body)
			time.Sleep(time.Millisecond)
			setBody(r, *buffer.Load())
		}
	})
}

// slowLists delays lists as if each were discovered from the site.
func slowLists() middleware {
	first := newMemory[time.Duration]()
	return throughWhere(toList, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		began := time.Now()
		key := authorized(r)
		cost, known := first.get(key)
		if known && cost > 100*time.Millisecond {
			time.Sleep(cost)
		}
		next.ServeHTTP(w, r)
		first.keep(key, time.Since(began))
	})
}

// replicaMutants are bridges whose replicas are not one bridge.
func replicaMutants() []Mutant {
	one := func(Name, clause, why string, origin Origin, replica func(n int) middleware) Mutant {
		return Mutant{Name: Name, Breaks: Clauses(clause), Origin: origin, Why: why, MCP: true, Profile: testbed.Replicas, Replica: replica}
	}
	return []Mutant{
		{Name: "replicas-cursors-of-one-process", Breaks: Clauses("replicas/cursor"), Origin: Imagined, Why: "cursors are signed with a key that each process makes when it starts", MCP: true, Profile: testbed.Replicas, Claims: "-cursor-base64-offset", Replica: ownCursors},
		one("replica-describes-differently", "replicas/lists-agree", "a new version is on one replica only", Imagined, lastReplica(onList(func(p *page) {
			if len(p.Tools) > 0 {
				p.Tools[0].(tool)["description"] = "as in the version before"
			}
		}))),
		one("replicas-etags-of-one-process", "replicas/versions-agree", "the ETag holds when the process started", Peer, ownETags),
		one("replicas-sessions-in-memory", "replicas/mcp-session", "sessions are in the memory of the process that opened them", Peer, ownSessions),
		one("replica-lends-sessions", "replicas/mcp-session-owner", "the caller of a session is read from the store, not from the request", Peer, lendStoredSessions()),
		{Name: "replica-lists-once", Breaks: Clauses("replicas/changes", "replicas/permission-revoked"), MayFail: Clauses("replicas/cursor", "replicas/lists-agree", "replicas/restart"), Origin: Peer, Why: "the list is cached until the process ends; an invalidation reaches the others", MCP: true, Profile: testbed.Replicas, Replica: lastReplica(keepFirstPages())},
		one("replica-never-notifies", "replicas/list-changed", "the replica that finds the change notifies its own clients only", Peer, lastReplica(silentStreams)),
		one("replicas-take-calls-over", "replicas/runs-once", "calls are in a queue, and those of a consumer that dies go to another", Peer, takeCallsOver()),
		{Name: "replica-starts-too-early", Breaks: Clauses("replicas/restart"), Origin: Peer, Why: "it listens before it has read the methods", MCP: true, Profile: testbed.Replicas, Server: refuseAfterRestart()},
		{Name: "replicas-end-sessions-alone", Breaks: Clauses("replicas/shared-session-end"), MayFail: Clauses("mcp/session"), Origin: Peer,
			Why: "DELETE forgets the session in one process, and the others go on with it from the store", MCP: true,
			Profile: testbed.Shared, Replica: endAlone},
		{Name: "replicas-count-alone", Breaks: Clauses("replicas/shared-rate-limit"), Origin: Peer, Why: "each process has a bucket of its own", MCP: true, Profile: testbed.Shared,
			Options: func(o *bridge.Options) { o.RatePerSec = 0 }, Replica: countAlone},
	}
}

// lastReplica is the middleware of the third replica alone.
func lastReplica(m middleware) func(int) middleware {
	return func(n int) middleware {
		if n == 2 {
			return m
		}
		return nil
	}
}

// ownCursors marks cursors with the replica that gave them, and refuses those of others.
func ownCursors(n int) middleware {
	mark := fmt.Sprintf(".%d", n)
	return translateCursors(
		func(_ *http.Request, cursor string) string { return cursor + mark },
		func(_ *http.Request, given string) string {
			if own, ok := strings.CutSuffix(given, mark); ok || len(given) < 3 || given[len(given)-2] != '.' {
				return own
			}
			return "of another replica"
		})
}

// ownETags gives each replica versions of its own.
func ownETags(n int) middleware {
	own := func(tag string) string { return strings.TrimSuffix(tag, `"`) + fmt.Sprintf(`-%d"`, n) }
	return chain(beforeBridge(func(r *http.Request) {
		if tag := r.Header.Get("If-None-Match"); toList(r) && tag != "" {
			r.Header.Set("If-None-Match", strings.Replace(tag, fmt.Sprintf(`-%d"`, n), `"`, 1))
		}
	}), onResponse(toList, func(x *exchange) {
		if tag := x.Header.Get("ETag"); tag != "" {
			x.Header.Set("ETag", own(tag))
		}
	}))
}

// ownSessions knows the sessions that it opened.
func ownSessions(int) middleware {
	opened := newSet()
	foreign := func(r *http.Request) bool {
		id := r.Header.Get("Mcp-Session-Id")
		return toMCP(r) && id != "" && !opened.has(id)
	}
	return chain(refuseStatus(http.StatusNotFound, foreign), onResponse(toMCP, func(x *exchange) { opened.add(x.Header.Get("Mcp-Session-Id")) }))
}

// lendStoredSessions uses the credentials of the caller who opened a session at another replica.
func lendStoredSessions() func(int) middleware {
	owners := newMemory[string]() // Authorization by session id
	return func(n int) middleware {
		if n == 0 {
			return onResponse(toMCP, func(x *exchange) {
				if id := x.Header.Get("Mcp-Session-Id"); id != "" {
					owners.put(id, authorized(x.Request))
				}
			})
		}
		return beforeBridge(func(r *http.Request) {
			if owner, known := owners.get(r.Header.Get("Mcp-Session-Id")); known && toMCP(r) {
				r.Header.Set("Authorization", owner)
			}
		})
	}
}

// keepFirstPages shows a caller each page as it was first.
func keepFirstPages() middleware {
	first := newMemory[map[string]any]()
	return onList(func(p *page) {
		p.Object = first.keep(authorized(p.Request)+"\x00"+p.Cursor, p.Object)
		p.Tools, _ = p.Object["tools"].([]any)
	})
}

// silentStreams opens streams on which nothing comes.
var silentStreams = throughWhere(func(r *http.Request) bool { return toMCP(r) && isStream(r) }, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, ":\n\n")
	http.NewResponseController(w).Flush() //nolint:errcheck // the caller has gone
	<-r.Context().Done()
})

// takeCallsOver lets the first replica make the calls that another had when it died.
func takeCallsOver() func(int) middleware {
	var first http.Handler
	return func(n int) middleware {
		if n == 0 {
			return func(next http.Handler) http.Handler { first = next; return next }
		}
		return onInvoke(func(x *exchange) {
			if x.Request.Context().Err() != nil {
				record(first, x.Request.WithContext(context.Background()), x.Sent)
			}
		})
	}
}

// refuseAfterRestart returns a server that is started after the three replicas some responses without tools.
func refuseAfterRestart() func(*http.Server) {
	started := 0
	return func(s *http.Server) {
		if started++; started <= 3 {
			return
		}
		var served atomic.Int64
		next := s.Handler
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if served.Add(1) <= 2 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// endAlone keeps the end of a session from the other replicas.
func endAlone(int) middleware {
	ended := newSet()
	return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		id := r.Header.Get("Mcp-Session-Id")
		switch {
		case !toMCP(r), id == "", r.Header.Get("Origin") != "":
			return false
		case r.Method == http.MethodDelete:
			ended.add(id)
			w.WriteHeader(http.StatusNoContent)
		case ended.has(id):
			w.WriteHeader(http.StatusNotFound)
		default:
			return false
		}
		return true
	})
}

// countAlone limits the calls of a caller at one replica.
func countAlone(int) middleware { return limitCalls(testbed.RatePerSec, testbed.RateBurst) }

// limitCalls limits the calls of each caller.
func limitCalls(perSec rate.Limit, burst int) middleware {
	buckets := newMemory[*rate.Limiter]()
	return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !toInvoke(r) || buckets.keep(authorized(r), rate.NewLimiter(perSec, burst)).Allow() {
			return false
		}
		w.Header().Set("Retry-After", "1")
		return refuseAt(w, r, http.StatusTooManyRequests, "rate_limited", "Too many calls.")
	})
}
