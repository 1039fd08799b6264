package selftest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

var accessMutants = []Mutant{
	{Name: "list-open-to-outsiders", Breaks: Clauses("access/list-403"), Origin: Imagined, Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if caller(r) == "outsider" && toList(r) {
			r.Header.Set("Authorization", signedAs("agent"))
		}
		return false
	})},
	{Name: "list-empty-for-outsiders", Breaks: Clauses("access/list-403"), Origin: Peer, Front: onDenied(toList, func(x *exchange) {
		x.Set(http.StatusOK, map[string]any{"tools": []any{}})
	})},
	{Name: "list-404-for-outsiders", Breaks: Clauses("access/list-403"), Origin: Imagined, Front: onDenied(toList, func(x *exchange) {
		x.Refuse(http.StatusNotFound, "not_found", "There is nothing here.")
	})},
	{Name: "page-two-open-to-outsiders", Breaks: Clauses("access/list-403"), Origin: Imagined, Why: "the permission is asked for on the first page",
		Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if toList(r) && r.URL.Query().Get("cursor") != "" && caller(r) == "outsider" {
				r.Header.Set("Authorization", signedAs("agent"))
			}
			return false
		})},
	{Name: "list-403-names-tools", Breaks: Clauses("access/list-403"), Origin: Imagined, Front: onDenied(toList, func(x *exchange) {
		x.Refuse(http.StatusForbidden, "access_denied", "You may not see "+strings.Join(x.as("admin").names(), ", ")+".")
	})},

	{Name: "describe-open-to-outsiders", Breaks: Clauses("access/describe-403"), Origin: Imagined, Why: "only list asks for the permission", Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if caller(r) == "outsider" && toDescribe(r) {
			r.Header.Set("Authorization", signedAs("agent"))
		}
		return false
	})},
	{Name: "describe-404-for-outsiders", Breaks: Clauses("access/describe-403"), Origin: Imagined, Front: onDenied(toDescribe, func(x *exchange) {
		x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.described()))
	})},
	{Name: "describe-unknown-404-for-outsiders", Breaks: Clauses("access/describe-403", "errors/precedence"), Origin: Imagined, Why: "403 for tools that exist, 404 for others", Front: onDenied(toDescribe, func(x *exchange) {
		if _, known := x.as("admin").tool(x.described()); !known && x.described() != "" {
			x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.described()))
		}
	})},

	{Name: "anonymous-lists", Breaks: Clauses("access/anonymous"), Origin: Peer, Why: "who is nobody gets the agent's list", Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Header.Get("Authorization") == "" && toList(r) {
			r.Header.Set("Authorization", signedAs("discoverer"))
		}
		return false
	})},
	{Name: "anonymous-discovers-what-it-may-run", Breaks: Clauses("access/anonymous"), Origin: Imagined, Why: "the permission is asked of accounts alone", Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			return next.RoundTrip(r)
		}
		return onDiscovery(func(index map[string]any) { index["meta"] = map[string]any{"mcp": map[string]any{"discovery": true}} })(next).RoundTrip(r)
	})},
	{Name: "anonymous-empty-list", Breaks: Clauses("access/anonymous"), Origin: Imagined, Front: onRefusal(func(x *exchange) {
		if x.anonymous() && toList(x.Request) && x.Status < 404 {
			x.Set(http.StatusOK, map[string]any{"tools": []any{}})
		}
	})},
	{Name: "anonymous-401-without-challenge", Breaks: Clauses("access/anonymous"), Origin: Peer, Front: onRefusal(func(x *exchange) {
		if x.anonymous() && (x.Status == http.StatusForbidden || x.Status == http.StatusUnauthorized) {
			x.Refuse(http.StatusUnauthorized, "authentication_required", "Sign in first.")
			x.Header.Del("WWW-Authenticate")
		}
	})},
	{Name: "anonymous-describe-404", Breaks: Clauses("access/anonymous"), Origin: Imagined, Front: onRefusal(func(x *exchange) {
		if x.anonymous() && toDescribe(x.Request) && x.Status < 404 {
			x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.described()))
		}
	})},

	{Name: "password-unchecked", Breaks: Clauses("access/bad-credentials"), Origin: Imagined, Why: "the user's name is enough", Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if name, _, ok := r.BasicAuth(); ok && name != "" {
			r.Header.Set("Authorization", signedAs(name))
		}
		return false
	})},
	{Name: "password-cut-at-its-length", Breaks: Clauses("access/bad-credentials"), Origin: Imagined, Why: "what follows the right password is not compared", Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if name, password, ok := r.BasicAuth(); ok && strings.HasPrefix(password, name+"-pass") {
			r.SetBasicAuth(name, name+"-pass")
		}
		return false
	})},
	{Name: "password-remembered-by-name", Breaks: Clauses("access/bad-credentials"), Origin: Peer, Why: "the session cache's key is the user's name alone", Front: lastGoodPassword()},
	{Name: "descriptions-remembered-by-name", Breaks: Clauses("access/bad-credentials"), Origin: Imagined, Why: "a cache whose key is the user's name", Front: rememberedByName()},
	{Name: "bad-credentials-500", Breaks: Clauses("access/bad-credentials"), Origin: Imagined, Front: onRefusal(func(x *exchange) {
		if _, _, ok := x.Request.BasicAuth(); !ok && !x.anonymous() && !strings.HasPrefix(x.Request.Header.Get("Authorization"), "Bearer ") {
			x.Refuse(http.StatusInternalServerError, "internal_error", "The credentials cannot be read.")
		}
	})},
	{Name: "bad-credentials-act-as-service", Breaks: Clauses("access/bad-credentials"), Origin: Peer, Why: "who cannot be signed in gets the bridge's own account", Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if _, _, ok := r.BasicAuth(); !ok && r.Header.Get("Authorization") != "" && !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
			r.Header.Set("Authorization", signedAs("service"))
		}
		return false
	})},

	{Name: "token-by-its-beginning", Breaks: Clauses("access/bad-credentials"), Origin: Imagined, Why: "tokens are compared as far as the shorter one goes",
		Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if name, _, cut := strings.Cut(r.Header.Get("Authorization"), "-toke"); cut && strings.HasPrefix(name, "Bearer ") {
				r.Header.Set("Authorization", name+"-token")
			}
			return false
		})},
	{Name: "list-kept-for-the-revoked", Breaks: Clauses("access/bad-credentials"), Origin: Imagined, Why: "a 401 of the site is taken for a failure, and the last good list is served for good", Front: keptForTheRefused()},

	{Name: "every-tool-for-everyone", Breaks: Clauses("access/filtered-by-method", "describe/answers-tool"), Origin: Imagined, Why: "list asks with the bridge's own account", Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if caller(r) == "discoverer" && toList(r) {
			r.Header.Set("Authorization", signedAs("admin"))
		}
		return false
	})},

	{Name: "invoke-needs-discovery", Breaks: Clauses("access/discovery-not-execution"), Origin: Peer, Front: onInvoke(func(x *exchange) {
		if r := x.Ask(http.MethodGet, sibling(x.Request, "list"), nil); r.Status == http.StatusForbidden && x.Status != http.StatusUnauthorized {
			x.Refuse(http.StatusForbidden, "access_denied", "You may not discover tools.")
		}
	})},
	{Name: "discovery-means-execution", Breaks: Clauses("access/discovery-not-execution", "invoke/denied", "access/credentials-forwarded", "access/no-oracle"), Origin: Imagined, Wired: elevated("discoverer", "agent")},
	{Name: "denied-runs-then-403", Breaks: Clauses("invoke/denied", "access/discovery-not-execution", "access/credentials-forwarded"), Origin: Imagined, Wired: func(site *wire) front {
		return onInvoke(func(x *exchange) {
			if caller(x.Request) == "discoverer" && (x.Status == http.StatusForbidden || x.Status == http.StatusNotFound) {
				site.call(signedAs("agent"), x.invoked(), decode(x.Sent)["arguments"])
			}
		})
	}},
	{Name: "denied-500", Breaks: Clauses("invoke/denied", "access/no-oracle"), Origin: Peer, Front: onInvoke(func(x *exchange) {
		if x.Status != http.StatusForbidden && x.Status != http.StatusNotFound {
			return
		}
		if _, ok := x.as("admin").tool(x.invoked()); ok && caller(x.Request) == "discoverer" {
			x.Refuse(http.StatusInternalServerError, "execution_error", "Invalid Request")
		}
	})},
	{Name: "sites-denial-500", Breaks: Clauses("invoke/denied", "access/permission-revoked"), Origin: Module, Why: "-32600 is a failure like any other", Upstream: onReplyError(func(e map[string]any) {
		if fmt.Sprint(e["code"]) == "-32600" {
			e["code"] = -32603
		}
	})},
	{Name: "no-rpc-permission-runs", Breaks: Clauses("access/route-permission", "access/no-oracle"), Origin: Imagined, Wired: elevated("norpc", "agent")},
	{Name: "no-rpc-permission-500", Breaks: Clauses("access/route-permission"), Origin: Imagined, Front: onInvoke(func(x *exchange) {
		if caller(x.Request) == "norpc" && x.Status >= 400 {
			x.Refuse(http.StatusInternalServerError, "execution_error", "The site refused.")
		}
	})},

	{Name: "list-shared-by-all", Breaks: Clauses("access/no-cross-talk", "access/filtered-by-method", "access/list-403", "access/anonymous", "access/per-credential", "http/head", "upstream/timeout"), Origin: Peer,
		Why: "the first list is everybody's", Front: shared(toList, func(r *http.Request) string { return r.URL.RawQuery })},
	{Name: "describe-shared-by-all", Breaks: Clauses("describe/inaccessible-404", "access/describe-403", "access/anonymous", "access/no-oracle", "access/per-credential", "fresh/schema-change", "fresh/schema-mismatch"), Origin: Peer,
		Front: shared(toDescribe, func(r *http.Request) string { return r.URL.RawQuery })},
	{Name: "result-of-another-under-load", Breaks: Clauses("access/no-cross-talk"), Origin: Imagined, Why: "when many invoke at once, now and then the last caller's result", Front: crossed(toInvoke, 8, func(x *exchange) bool { return x.Status == http.StatusOK })},
	{Name: "list-of-another-under-load", Breaks: Clauses("access/no-cross-talk"), Origin: Imagined, Front: crossed(toList, 8, func(x *exchange) bool { return x.Status == http.StatusOK })},
	{Name: "error-of-another-under-load", Breaks: Clauses("access/no-cross-talk"), Origin: Imagined, Front: crossed(toInvoke, 3, func(x *exchange) bool { return x.Status == http.StatusNotFound })},
	{Name: "identity-of-the-connection", Breaks: Clauses("access/no-cross-talk"), Origin: Peer, Why: "under load a connection's first caller is its caller", Front: firstOfConnection(8), Server: rememberConnection},

	{Name: "revoked-permission-runs", Breaks: Clauses("access/permission-revoked", "invoke/denied", "fresh/removed-tool", "upstream/auth-error"), Origin: Imagined, Why: "what was allowed once is run with the bridge's own account", Wired: remembered()},
	{Name: "revoked-permission-500", Breaks: Clauses("access/permission-revoked", "invoke/denied", "upstream/auth-error"), Origin: Peer, Front: onInvoke(func(x *exchange) {
		if x.Status == http.StatusForbidden && x.lists() {
			x.Refuse(http.StatusInternalServerError, "execution_error", "Access Denied")
		}
	})},

	{Name: "runs-as-service", Breaks: Clauses("access/credentials-forwarded"), Origin: Peer, Why: "the tool is the caller's, the call is the bridge's", Upstream: onCall(func(r *http.Request, _ map[string]any) {
		if name := caller(r); name == "agent" || name == "agent2" {
			r.Header.Set("Authorization", signedAs("service"))
		}
	})},
	{Name: "discovers-as-service-too", Breaks: Clauses("access/credentials-forwarded", "fresh/single-flight"), Origin: Imagined, Upstream: onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !isCall(r) {
			stronger := r.Clone(r.Context())
			stronger.Header.Set("Authorization", signedAs("service"))
			if resp, err := next.RoundTrip(stronger); err == nil {
				resp.Body.Close()
			}
		}
		return next.RoundTrip(r)
	})},
	{Name: "calls-under-load-share-a-client", Breaks: Clauses("access/no-cross-talk"), Origin: Imagined, Why: "a call takes the credentials of one that is under way", Upstream: sharedClient()},

	{Name: "credentials-in-header", Breaks: Clauses("access/credentials-kept-secret"), Origin: Imagined, Front: onAnswer(everything, func(x *exchange) {
		if a := x.Request.Header.Get("Authorization"); a != "" {
			x.Header.Set("X-Forwarded-Authorization", a)
		}
	})},
	{Name: "credentials-in-error", Breaks: Clauses("access/credentials-kept-secret"), Origin: Imagined, Front: onError(func(x *exchange, e map[string]any) {
		if name, password, ok := x.Request.BasicAuth(); ok && x.Status == http.StatusNotFound && toInvoke(x.Request) {
			e["message"] = fmt.Sprintf("%v (asked http://%s:%s@drupal/jsonrpc)", e["message"], name, password)
		}
	})},
	{Name: "credentials-in-upstream-failure", Breaks: Clauses("access/credentials-kept-secret"), Origin: Imagined, Why: "only when the site fails", Front: onError(func(x *exchange, e map[string]any) {
		if name, password, ok := x.Request.BasicAuth(); ok && x.Status > http.StatusInternalServerError {
			e["data"] = map[string]any{"upstream": fmt.Sprintf("http://%s:%s@drupal/jsonrpc", name, password)}
		}
	})},

	{Name: "wrong-token-in-challenge", Breaks: Clauses("access/credentials-kept-secret"), Origin: Peer, Front: onRefusal(func(x *exchange) {
		if token, ok := strings.CutPrefix(x.Request.Header.Get("Authorization"), "Bearer "); ok && x.Status == http.StatusUnauthorized {
			x.Header.Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="invalid_token", error_description="%s is not valid"`, token))
		}
	})},
	{Name: "denied-403-by-head", Breaks: Clauses("access/no-oracle"), Origin: Imagined, Front: onHead(func(x *exchange) {
		if _, known := x.as("admin").tool(x.named()); known && x.Status == http.StatusNotFound {
			x.Status = http.StatusForbidden
		}
	})},
	{Name: "denied-tool-other-words", Breaks: Clauses("access/no-oracle"), Origin: Imagined, Front: onDeniedName(toInvoke, func(x *exchange, _ tool) {
		x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("The tool %q is not available to you.", x.invoked()))
	})},
	{Name: "hidden-tool-header", Breaks: Clauses("access/no-oracle", "invoke/hidden-404"), Origin: Imagined, Wired: onKnown(toInvoke, signedAs("admin"), func(x *exchange) {
		x.Header.Set("X-Method-Provider", "jsonrpc")
	})},

	{Name: "tokens-of-a-user-share-a-list", Breaks: Clauses("access/per-credential"), Origin: Peer, Why: "the cache's key is the user, not the token", Claims: "auth-bearer", Wired: firstTokenOfUser(toList)},
	{Name: "tokens-of-a-user-share-rights", Breaks: Clauses("access/per-credential"), Origin: Imagined, Claims: "auth-bearer", Wired: firstTokenOfUser(toInvoke)},

	{Name: "anonymous-always-401", Breaks: Clauses("access/anonymous-granted"), Origin: Peer, Front: onAnswer(everything, func(x *exchange) {
		if x.anonymous() {
			x.Refuse(http.StatusUnauthorized, "authentication_required", "Sign in first.")
			x.Header.Set("WWW-Authenticate", `Basic realm="bridge"`)
		}
	})},
	{Name: "anonymous-cannot-invoke", Breaks: Clauses("access/anonymous-granted"), Origin: Imagined, Front: onInvoke(func(x *exchange) {
		if x.anonymous() && x.Status == http.StatusOK {
			x.Refuse(http.StatusForbidden, "access_denied", "Sign in first.")
		}
	})},
	{Name: "anonymous-runs-as-service", Breaks: Clauses("access/anonymous-granted"), Origin: Imagined, Upstream: onCall(func(r *http.Request, _ map[string]any) {
		if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", signedAs("service"))
		}
	})},
}

func (x *exchange) anonymous() bool {
	return x.Request.Header.Get("Authorization") == "" && x.Request.Header.Get("Cookie") == ""
}

// lists tells whether the caller may still list tools.
func (x *exchange) lists() bool {
	return x.Ask(http.MethodGet, sibling(x.Request, "list"), nil).Status == http.StatusOK
}

// keptForTheRefused gives a caller whom the site refuses the last good list.
func keptForTheRefused() front {
	good := newTable[[]byte]()
	return onAnswer(toList, func(x *exchange) {
		key := x.Request.Header.Get("Authorization") + "?" + x.Request.URL.RawQuery
		switch kept, known := good.get(key); {
		case x.Status == http.StatusOK:
			good.put(key, x.Body)
		case known && (x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden):
			x.Status, x.Body = http.StatusOK, kept
		}
	})
}

// onDenied changes the refusals for a signed-in caller who may not do this at all.
func onDenied(matches func(*http.Request) bool, change func(x *exchange)) front {
	return onAnswer(matches, func(x *exchange) {
		if x.Status == http.StatusForbidden && caller(x.Request) == "outsider" {
			change(x)
		}
	})
}

// elevated runs what a caller was refused as another account.
func elevated(user, as string) func(*wire) front {
	return func(site *wire) front {
		return onInvoke(func(x *exchange) {
			refused := x.Status == http.StatusForbidden || x.Status == http.StatusNotFound || x.Status == http.StatusUnauthorized
			if !refused || caller(x.Request) != user {
				return
			}
			if _, ok := x.as(as).tool(x.invoked()); ok {
				site.run(x, signedAs(as))
			}
		})
	}
}

// remembered runs what a caller was allowed once, whatever the site says now.
func remembered() func(*wire) front {
	allowed := newSet()
	return func(site *wire) front {
		return onInvoke(func(x *exchange) {
			key := caller(x.Request) + "\x00" + x.invoked()
			switch x.Status {
			case http.StatusOK:
				allowed.add(key)
			case http.StatusForbidden, http.StatusNotFound:
				if _, ok := allowed.get(key); ok && x.lists() && caller(x.Request) != "" {
					site.run(x, signedAs("service"))
				}
			}
		})
	}
}

// firstTokenOfUser serves all tokens of a user as the first one that came.
func firstTokenOfUser(matches func(*http.Request) bool) func(*wire) front {
	tokens := newTable[string]()
	return func(site *wire) front {
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

// sharedClient sends a call with the credentials of another one that is under way, if there is one.
func sharedClient() upstream {
	var (
		mu    sync.Mutex
		under []string
	)
	return onUpstream(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
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

// shared gives everybody the first good answer to a request.
func shared(matches func(*http.Request) bool, key func(*http.Request) string) front {
	answers := newTable[*exchange]()
	return onAnswer(matches, func(x *exchange) {
		if x.Method != http.MethodGet {
			return
		}
		if first, ok := answers.get(key(x.Request)); ok {
			x.Status, x.Header, x.Body = first.Status, first.Header.Clone(), first.Body
			return
		}
		if x.Status == http.StatusOK {
			kept := *x
			kept.Header = x.Header.Clone()
			answers.put(key(x.Request), &kept)
		}
	})
}

// crossed gives the last answer of its sort to another caller while at least so many requests are under way.
func crossed(matches func(*http.Request) bool, busy int64, concerns func(x *exchange) bool) front {
	var (
		under atomic.Int64
		mu    sync.Mutex
		last  *exchange
	)
	return func(next http.Handler) http.Handler {
		changed := onAnswer(matches, func(x *exchange) {
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

// rememberedByName gives what a user was told of a tool to whoever signs in by the same name, with whatever password.
func rememberedByName() front {
	told := newTable[[]byte]()
	return onAnswer(toDescribe, func(x *exchange) {
		who := caller(x.Request)
		key := who + "?" + x.described()
		switch known, seen := told.get(key); {
		case who == "":
		case x.Status == http.StatusOK:
			told.put(key, x.Body)
		case seen && (x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden):
			x.Status, x.Body = http.StatusOK, known
			x.Header.Del("WWW-Authenticate")
		}
	})
}

// lastGoodPassword lets anybody in under a name that signed in before.
func lastGoodPassword() front {
	good := newTable[string]()
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name, _, ok := r.BasicAuth()
			if known, seen := good.get(name); ok && seen {
				r.Header.Set("Authorization", known)
			} else if ok {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				probe := answer(next, listing(r), nil)
				if probe.Status == http.StatusOK {
					good.put(name, r.Header.Get("Authorization"))
				}
				fill(r, body)
			}
			next.ServeHTTP(w, r)
		})
	}
}

// listing is a list request of the same caller.
func listing(r *http.Request) *http.Request {
	other := r.Clone(r.Context())
	other.Method, other.URL.Path, other.URL.RawQuery = http.MethodGet, sibling(r, "list"), ""
	return other
}

// connectionKey is where rememberConnection keeps what belongs to a connection.
type connectionKey struct{}

// firstCaller is the Authorization that a connection began with.
type firstCaller struct {
	once  sync.Once
	value string
}

func rememberConnection(s *http.Server) {
	s.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, &firstCaller{})
	}
}

// firstOfConnection serves a request as the caller of the connection's first one, while so many are under way.
func firstOfConnection(busy int64) front {
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
