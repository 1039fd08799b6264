package mutants

import (
	"net/http"
	"net/url"
	"strings"
)

// sessionMutants are wrong about calls with a session cookie, which a browser sends unasked.
func sessionMutants() []Mutant {
	return []Mutant{
		{Name: "session-calls-of-any-type", Breaks: Clauses("access/csrf"), Origin: Module, Why: "a form of another site runs a tool",
			Middleware: onSessionCall(func(r *http.Request) { r.Header.Set("Content-Type", "application/json") })},
		{Name: "session-calls-as-text-that-speaks-of-json", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "the type is searched for the word, and a form of another site may have it among its parameters",
			Middleware: onSessionCall(func(r *http.Request) {
				if strings.Contains(r.Header.Get("Content-Type"), "application/json") {
					r.Header.Set("Content-Type", "application/json")
				}
			})},
		{Name: "session-calls-without-a-type", Breaks: Clauses("access/csrf"), Origin: Module, Why: "a Blob of another site's script has none",
			Middleware: onSessionCall(func(r *http.Request) {
				if r.Header.Get("Content-Type") == "" {
					r.Header.Set("Content-Type", "application/json")
				}
			})},
		{Name: "session-calls-from-anywhere", Breaks: Clauses("access/csrf"), Origin: Imagined, Why: "Origin is not looked at",
			Middleware: onSessionCall(func(r *http.Request) { r.Header.Del("Origin") })},
		{Name: "session-calls-from-a-sandbox", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "null is taken for no origin",
			Middleware: onSessionCall(func(r *http.Request) {
				if r.Header.Get("Origin") == "null" {
					r.Header.Del("Origin")
				}
			})},
		{Name: "session-origin-by-its-beginning", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "a host that begins like ours is taken for ours",
			Middleware: onSessionCall(func(r *http.Request) {
				host, _, _ := strings.Cut(r.Host, ":")
				if u, err := url.Parse(r.Header.Get("Origin")); err == nil && strings.HasPrefix(u.Host, host) {
					r.Header.Del("Origin")
				}
			})},
		{Name: "session-origin-by-its-end", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "a host that ends like ours is taken for ours",
			Middleware: onSessionCall(func(r *http.Request) {
				host, _, _ := strings.Cut(r.Host, ":")
				if u, err := url.Parse(r.Header.Get("Origin")); err == nil && strings.HasSuffix(u.Host, host) {
					r.Header.Del("Origin")
				}
			})},
		{Name: "sessions-share-a-list", Breaks: Clauses("access/no-cross-talk"), Origin: Imagined, Why: "what is cached is keyed by the Authorization header alone", Middleware: sharedBySessions()},
		{Name: "session-call-refused-too-late", Breaks: Clauses("access/csrf"), Origin: Imagined, Why: "the right status, and the tool ran", Middleware: refusedTooLate},
	}
}

// onSessionCall changes invokes that are signed in by a session cookie.
func onSessionCall(change func(r *http.Request)) middleware {
	return onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if toInvoke(r) && strings.HasPrefix(r.Header.Get("Cookie"), "SESS") {
			change(r)
		}
		return false
	})
}

// refusedTooLate runs what comes from another origin by a session before it is refused.
func refusedTooLate(next http.Handler) http.Handler {
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

// sharedBySessions gives every session the first list that one got.
func sharedBySessions() middleware {
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
