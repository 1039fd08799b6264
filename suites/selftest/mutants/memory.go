package mutants

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// memory is what a mutant stores between requests. It is safe for concurrent use.
type memory[V any] struct {
	mu   sync.Mutex
	rows map[string]V
}

func newMemory[V any]() *memory[V] { return &memory[V]{rows: map[string]V{}} }

func (t *memory[V]) get(key string) (V, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.rows[key]
	return v, ok
}

func (t *memory[V]) put(key string, v V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[key] = v
}

// keep stores a value unless there is one, and returns the stored one.
func (t *memory[V]) keep(key string, v V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.rows[key]; ok {
		return old
	}
	t.rows[key] = v
	return v
}

func (t *memory[V]) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.rows)
}

// set is a memory of names.
type set struct{ memory[bool] }

func newSet() *set { return &set{memory[bool]{rows: map[string]bool{}}} }

// add adds a name and reports whether it is new.
func (s *set) add(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.rows[name]
	s.rows[name] = true
	return !seen
}

// runOnceAllowed runs what a caller was once allowed to run, even if the site denies it now.
func runOnceAllowed() func(*siteClient) middleware {
	allowed := newSet()
	return func(site *siteClient) middleware {
		return onInvoke(func(x *exchange) {
			key := caller(x.Request) + "\x00" + x.invoked()
			switch x.Status {
			case http.StatusOK:
				allowed.add(key)
			case http.StatusForbidden, http.StatusNotFound:
				if _, ok := allowed.get(key); ok && x.lists() && caller(x.Request) != "" {
					site.run(x, basicAuth("service"))
				}
			}
		})
	}
}

// useFirstToken handles all tokens of a user like the first one received.
func useFirstToken(matches func(*http.Request) bool) func(*siteClient) middleware {
	tokens := newMemory[string]()
	return func(site *siteClient) middleware {
		return onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			token := r.Header.Get("Authorization")
			if !strings.HasPrefix(token, "Bearer ") {
				return false
			}
			if user, ok := site.call(token, "whoami", map[string]any{})["result"].(map[string]any); ok {
				if first := tokens.keep(fmt.Sprint(user["name"]), token); matches(r) {
					r.Header.Set("Authorization", first)
				}
			}
			return false
		})
	}
}

// sharedClient sends a call with the credentials of another call that is under way, if there is one.
func sharedClient() transport {
	var (
		mu    sync.Mutex
		under []string
	)
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !isCall(r) {
			return next.RoundTrip(r)
		}
		own := r.Header.Get("Authorization")
		r = r.Clone(r.Context())
		mu.Lock()
		if len(under) > 0 {
			r.Header.Set("Authorization", under[0])
		}
		under = append(under, own)
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			under = slices.Delete(under, slices.Index(under, own), slices.Index(under, own)+1)
		}()
		return next.RoundTrip(r)
	})
}

// shareFirstResponse sends every caller the first good response to a request.
func shareFirstResponse(matches func(*http.Request) bool, key func(*http.Request) string) middleware {
	responses := newMemory[*exchange]()
	return onResponse(matches, func(x *exchange) {
		if x.Method != http.MethodGet {
			return
		}
		if first, ok := responses.get(key(x.Request)); ok {
			x.Status, x.Header, x.Body = first.Status, first.Header.Clone(), first.Body
			return
		}
		if x.Status == http.StatusOK {
			kept := *x
			kept.Header = x.Header.Clone()
			responses.put(key(x.Request), &kept)
		}
	})
}

// swapUnderLoad sends a caller the last response to another caller while at least busy requests are under way.
func swapUnderLoad(matches func(*http.Request) bool, busy int64, concerns func(x *exchange) bool) middleware {
	var (
		under atomic.Int64
		mu    sync.Mutex
		last  *exchange
	)
	return func(next http.Handler) http.Handler {
		changed := onResponse(matches, func(x *exchange) {
			if !concerns(x) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			mine := *x
			if last != nil && under.Load() >= busy && caller(last.Request) != caller(x.Request) {
				x.Status, x.Body = last.Status, last.Body
			}
			last = &mine
		})(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			under.Add(1)
			defer under.Add(-1)
			changed.ServeHTTP(w, r)
		})
	}
}

// shareByUserName repeats the responses to a user for every caller with the same user name, whatever the password.
func shareByUserName() middleware {
	responses := newMemory[[]byte]()
	return onResponse(toDescribe, func(x *exchange) {
		who := caller(x.Request)
		key := who + "?" + x.described()
		switch known, seen := responses.get(key); {
		case who == "":
		case x.Status == http.StatusOK:
			responses.put(key, x.Body)
		case seen && (x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden):
			x.Status, x.Body = http.StatusOK, known
			x.Header.Del("WWW-Authenticate")
		}
	})
}

// connectionKey is the context key of a connection's firstCaller.
type connectionKey struct{}

// firstCaller holds the Authorization header of the first request of a connection.
type firstCaller struct {
	once  sync.Once
	value string
}

func storeFirstCaller(s *http.Server) {
	s.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, &firstCaller{})
	}
}

// useFirstCaller handles a request as one of the first caller of the connection while at least busy requests are under way.
func useFirstCaller(busy int64) middleware {
	var under atomic.Int64
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer under.Add(-1)
			crowded := under.Add(1) >= busy
			if first, ok := r.Context().Value(connectionKey{}).(*firstCaller); ok {
				first.once.Do(func() { first.value = r.Header.Get("Authorization") })
				if crowded {
					r.Header.Set("Authorization", first.value)
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// actAsSessionOwner handles requests of a session that concerns selects with the credentials of the caller that opened the session.
func actAsSessionOwner(concerns func(*http.Request) bool) middleware {
	var owners sync.Map // Authorization by session id
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := r.Header.Get("Mcp-Session-Id")
			if owner, known := owners.Load(id); toMCP(r) && known && concerns(r) {
				r.Header.Set("Authorization", owner.(string))
			}
			if !toMCP(r) || id != "" || isStream(r) {
				next.ServeHTTP(w, r)
				return
			}
			x := record(next, r, readBody(r))
			if opened := x.Header.Get("Mcp-Session-Id"); opened != "" {
				owners.Store(opened, r.Header.Get("Authorization"))
			}
			x.writeTo(w)
		})
	}
}
