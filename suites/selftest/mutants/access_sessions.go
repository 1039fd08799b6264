package mutants

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// sessionMutants mishandle calls with a session cookie, which a browser sends without being asked to.
func sessionMutants() []Mutant {
	return []Mutant{
		{Name: "session-calls-of-any-type", Breaks: Clauses("access/csrf"), Origin: Module, Why: "a form on another site runs a tool",
			Middleware: onSessionCall(func(r *http.Request) { r.Header.Set("Content-Type", "application/json") })},
		{Name: "session-calls-as-text-that-speaks-of-json", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "the header is searched for application/json, which a form on another site can put into a parameter of the media type",
			Middleware: onSessionCall(func(r *http.Request) {
				if strings.Contains(r.Header.Get("Content-Type"), "application/json") {
					r.Header.Set("Content-Type", "application/json")
				}
			})},
		{Name: "session-calls-without-a-type", Breaks: Clauses("access/csrf"), Origin: Module, Why: "a Blob sent by a script on another site has no type",
			Middleware: onSessionCall(func(r *http.Request) {
				if r.Header.Get("Content-Type") == "" {
					r.Header.Set("Content-Type", "application/json")
				}
			})},
		{Name: "session-calls-from-anywhere", Breaks: Clauses("access/csrf"), Origin: Imagined, Why: "Origin is not checked",
			Middleware: onSessionCall(func(r *http.Request) { r.Header.Del("Origin") })},
		{Name: "session-calls-from-a-sandbox", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "null is handled as no Origin",
			Middleware: onSessionCall(func(r *http.Request) {
				if r.Header.Get("Origin") == "null" {
					r.Header.Del("Origin")
				}
			})},
		{Name: "session-origin-by-its-beginning", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "a host that starts with the bridge's host name is accepted",
			Middleware: onSessionCall(func(r *http.Request) {
				host, _, _ := strings.Cut(r.Host, ":")
				if u, err := url.Parse(r.Header.Get("Origin")); err == nil && strings.HasPrefix(u.Host, host) {
					r.Header.Del("Origin")
				}
			})},
		{Name: "session-origin-by-its-end", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "a host that ends with the bridge's host name is accepted",
			Middleware: onSessionCall(func(r *http.Request) {
				host, _, _ := strings.Cut(r.Host, ":")
				if u, err := url.Parse(r.Header.Get("Origin")); err == nil && strings.HasSuffix(u.Host, host) {
					r.Header.Del("Origin")
				}
			})},
		{Name: "session-origin-by-its-end-and-port", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "an Origin that contains the Host is accepted: str_contains()",
			Middleware: onSessionCall(func(r *http.Request) {
				if strings.Contains(r.Header.Get("Origin"), r.Host) {
					r.Header.Del("Origin")
				}
			})},
		{Name: "sessions-share-a-list", Breaks: Clauses("access/no-cross-talk"), Origin: Imagined, Why: "the cache is keyed by the Authorization header only", Middleware: shareListBySession()},
		{Name: "sessions-not-forwarded", Breaks: Clauses("access/credentials-forwarded"), Origin: Peer, Why: "only the Authorization header is copied to the call, so that a session runs as anonymous",
			Transport: onCall(func(r *http.Request, _ map[string]any) { r.Header.Del("Cookie") })},
		{Name: "session-by-its-beginning", Breaks: Clauses("access/bad-credentials"), Origin: Imagined, Why: "session ids are compared up to the length of the shorter one",
			Middleware: acceptLongerSession()},
		{Name: "revoked-sessions-run", Breaks: Clauses("access/permission-revoked", "access/credentials-forwarded"), Origin: Imagined, Why: "what a session was allowed to run once stays allowed", SiteMiddleware: runOnceAllowedBySession},
		{Name: "session-call-refused-too-late", Breaks: Clauses("access/csrf"), Origin: Imagined, Why: "the status is right, but the tool ran", Middleware: refuseAfterRun},
	}
}

// onSessionCall changes invokes that authenticate by a session cookie.
func onSessionCall(change func(r *http.Request)) middleware {
	return onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if toInvoke(r) && strings.HasPrefix(r.Header.Get("Cookie"), "SESS") {
			change(r)
		}
		return false
	})
}

// refuseAfterRun runs a session's call from another origin, then refuses it.
func refuseAfterRun(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !toInvoke(r) || !isSmall(r) || r.Header.Get("Origin") == "" || !strings.HasPrefix(r.Header.Get("Cookie"), "SESS") {
			next.ServeHTTP(w, r)
			return
		}
		body := readBody(r)
		r.Header.Del("Origin")
		r.Header.Set("Content-Type", "application/json")
		x := record(next, r, body)
		x.Refuse(http.StatusForbidden, "access_denied", "A call from another origin needs a token.")
		x.writeTo(w)
	})
}

// acceptLongerSession accepts a session cookie with more characters after those of a session that worked.
func acceptLongerSession() middleware {
	known := newMemory[string]()
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			cookie := r.Header.Get("Cookie")
			if right, ok := known.get(cookie[:max(len(cookie)-1, 0)]); ok {
				r.Header.Set("Cookie", right)
			}
			onResponse(allRequests, func(x *exchange) {
				if cookie != "" && x.Status == http.StatusOK {
					known.put(cookie, cookie)
				}
			})(next).ServeHTTP(w, r)
		})
	}
}

// runOnceAllowedBySession runs what a session was once allowed to run as the service account.
func runOnceAllowedBySession(site *siteClient) middleware {
	allowed := newSet()
	return onInvoke(func(x *exchange) {
		key := x.Request.Header.Get("Cookie") + "\x00" + x.invoked()
		switch x.Status {
		case http.StatusOK:
			allowed.add(key)
		case http.StatusForbidden, http.StatusNotFound:
			if _, ok := allowed.get(key); ok && x.Request.Header.Get("Cookie") != "" && x.Request.Header.Get("Origin") == "" && x.Request.Header.Get("Content-Type") == "application/json" {
				site.run(x, basicAuth("service"))
			}
		}
	})
}

// shareListBySession gives every session the first list that any session received.
func shareListBySession() middleware {
	known := newMemory[[]byte]()
	return onResponse(toList, func(x *exchange) {
		if x.Status != http.StatusOK || x.Request.Header.Get("Authorization") != "" || x.Request.Header.Get("Cookie") == "" {
			return
		}
		if body, ok := known.get(x.Request.URL.RawQuery); ok {
			x.Body = body
			return
		}
		known.put(x.Request.URL.RawQuery, x.Body)
	})
}

// keepCallerDuringDiscovery sends a call with the credentials of the last call that came while its caller was discovered.
func keepCallerDuringDiscovery() middleware {
	var last atomic.Value
	var seen sync.Map
	return onRequest(func(_ http.ResponseWriter, r *http.Request, next http.Handler) bool {
		credentials := r.Header.Get("Authorization")
		if !toInvoke(r) || credentials == "" {
			return false
		}
		last.Store(credentials)
		if _, known := seen.LoadOrStore(credentials, true); !known {
			list := r.Clone(r.Context())
			list.Method, list.URL.Path, list.Body = http.MethodGet, "/mcp/tools/list", http.NoBody
			next.ServeHTTP(httptest.NewRecorder(), list)
			r.Header.Set("Authorization", last.Load().(string))
		}
		return false
	})
}
