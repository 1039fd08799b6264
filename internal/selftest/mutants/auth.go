package mutants

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants/tokens"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// inOAuth places entries in the profile with an authorization server, unless they name another.
func inOAuth(all []Mutant) []Mutant {
	for i := range all {
		all[i].Profile, all[i].MCP = cmp.Or(all[i].Profile, testbed.OAuth), true
	}
	return all
}

const resourceMetadata = "/.well-known/oauth-protected-resource"

func toMetadata(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, resourceMetadata) }

func toPathMetadata(r *http.Request) bool { return r.URL.Path == resourceMetadata+"/mcp" }

func toRootMetadata(r *http.Request) bool { return r.URL.Path == resourceMetadata }

// onMetadata changes the metadata document at the paths that match.
func onMetadata(matches func(*http.Request) bool, change func(x *exchange, document map[string]any)) middleware {
	return onResponse(matches, func(x *exchange) {
		if document := x.Object(); document != nil && x.Status == http.StatusOK {
			change(x, document)
			x.Body = encode(document)
		}
	})
}

// onChallenge changes the challenge of every 401.
func onChallenge(change func(x *exchange, challenge string) string) middleware {
	return onResponse(allRequests, atStatus(http.StatusUnauthorized, func(x *exchange) {
		x.Header.Set("WWW-Authenticate", change(x, x.Header.Get("WWW-Authenticate")))
	}))
}

// onParameters changes the parameters of the Bearer challenge of every 401.
func onParameters(change func(x *exchange, params []string) []string) middleware {
	return onChallenge(func(x *exchange, challenge string) string {
		return "Bearer " + strings.Join(change(x, strings.Split(strings.TrimPrefix(challenge, "Bearer "), ", ")), ", ")
	})
}

// named reports whether a parameter of a challenge has the name.
func named(name string) func(param string) bool {
	return func(param string) bool { return strings.HasPrefix(param, name+"=") }
}

// authMutants break what stands around a token: metadata, challenges, where a token is looked for.
func authMutants() []Mutant {
	return inOAuth([]Mutant{
		{Name: "auth-metadata-guarded", Breaks: Clauses("auth/metadata"), Origin: Peer, Why: "the guard stands before every path",
			Middleware: onResponse(toMetadata, func(x *exchange) {
				if authorized(x.Request) == "" {
					x.Refuse(http.StatusUnauthorized, "authentication_required", "A token is required.")
				}
			})},
		{Name: "auth-metadata-of-the-host", Breaks: Clauses("auth/metadata"), Origin: Peer, Why: "the resource is built from the host of the request",
			Middleware: onMetadata(toMetadata, func(x *exchange, document map[string]any) { document["resource"] = "http://" + x.Request.Host })},
		{Name: "auth-metadata-without-servers", Breaks: Clauses("auth/metadata"), Origin: Peer,
			Middleware: onMetadata(toMetadata, func(_ *exchange, document map[string]any) { document["authorization_servers"] = []any{} })},
		{Name: "auth-metadata-as-text", Breaks: Clauses("auth/metadata"), Origin: Imagined,
			Middleware: onMetadata(toMetadata, func(x *exchange, _ map[string]any) { x.Header.Set("Content-Type", "text/plain") })},
		{Name: "auth-metadata-at-the-root-alone", Breaks: Clauses("auth/metadata"), MayFail: Clauses("auth/challenge-metadata"), Origin: Peer, Why: "the path of the endpoint is forgotten",
			Middleware: onResponse(toPathMetadata, func(x *exchange) { x.Refuse(http.StatusNotFound, "not_found", "There is nothing at this path.") })},
		{Name: "auth-root-names-the-host", Breaks: Clauses("auth/metadata-root"), Origin: Peer,
			Middleware: onMetadata(toRootMetadata, func(x *exchange, document map[string]any) { document["resource"] = "http://" + x.Request.Host + "/" })},
		{Name: "auth-root-is-a-page", Breaks: Clauses("auth/metadata-root"), Origin: Imagined, Why: "a single-page application responds to every path",
			Middleware: onResponse(toRootMetadata, func(x *exchange) { x.page(http.StatusOK, "Welcome") })},
		{Name: "auth-challenge-missing", Breaks: Clauses("auth/challenge", "auth/insufficient-scope"), MayFail: Clauses("auth/invalid-token"), Origin: Peer,
			Middleware: onResponse(allRequests, func(x *exchange) { x.Header.Del("WWW-Authenticate") })},
		{Name: "auth-challenge-to-post-alone", Breaks: Clauses("auth/challenge"), Origin: Peer, Why: "the challenge is added where messages are read",
			Middleware: onRequest(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
				if !toMCP(r) || r.Method == http.MethodPost || tokens.Bearer(r) != "" {
					return false
				}
				x := record(next, r, nil)
				x.Header.Del("WWW-Authenticate")
				x.writeTo(w)
				return true
			})},
		{Name: "auth-challenge-basic", Breaks: Clauses("auth/challenge"), MayFail: Clauses("auth/invalid-token"), Origin: Imagined, Why: "the site's challenge is passed on",
			Middleware: onChallenge(func(*exchange, string) string { return `Basic realm="Drupal"` })},
		{Name: "auth-403-without-a-token", Breaks: Clauses("auth/challenge", "auth/every-request", "auth/query-token"), Origin: Peer,
			Middleware: onResponse(toMCP, func(x *exchange) {
				if x.Status == http.StatusUnauthorized && tokens.Bearer(x.Request) == "" {
					x.Status = http.StatusForbidden
				}
			})},
		{Name: "auth-challenge-relative", Breaks: Clauses("auth/challenge-metadata"), Origin: Imagined,
			Middleware: onChallenge(func(x *exchange, c string) string { return strings.ReplaceAll(c, "http://"+x.Request.Host, "") })},
		{Name: "auth-challenge-names-nothing", Breaks: Clauses("auth/challenge-metadata"), Origin: Peer, Why: "a prefix of the server is forgotten in the URL",
			Middleware: onChallenge(func(_ *exchange, c string) string {
				return strings.ReplaceAll(c, resourceMetadata, "/prefix"+resourceMetadata)
			})},
		{Name: "auth-error-without-a-token", Breaks: Clauses("auth/challenge-no-error"), Origin: Peer,
			Middleware: onParameters(func(_ *exchange, params []string) []string {
				return append([]string{`error="invalid_token"`}, slices.DeleteFunc(params, named("error"))...)
			})},
		{Name: "auth-error-invalid-request", Breaks: Clauses("auth/invalid-token"), Origin: Imagined,
			Middleware: onChallenge(func(_ *exchange, c string) string {
				return strings.ReplaceAll(c, `"invalid_token"`, `"invalid_request"`)
			})},
		{Name: "auth-scheme-in-one-case", Breaks: Clauses("auth/scheme-case"), Origin: Peer, Why: "the header is compared with `Bearer `",
			Middleware: readHeader(toMCP, "Authorization", "Bearer refused", func(given string) bool { return given != "" && !strings.HasPrefix(given, "Bearer ") })},
		{Name: "auth-session-is-enough", Breaks: Clauses("auth/every-request", "auth/query-token", "mcp/session"), Origin: Peer, Why: "the token is checked when a session opens",
			AuthMiddleware: sessionToken(func(*http.Request) bool { return true })},
		{Name: "auth-post-alone", Breaks: Clauses("auth/every-request"), Origin: Imagined, Why: "the guard is on the route of POST",
			AuthMiddleware: sessionToken(func(r *http.Request) bool { return r.Method != http.MethodPost })},
		{Name: "auth-body-before-token", Breaks: Clauses("auth/every-request"), Origin: Imagined,
			Middleware: onResponse(toMCP, func(x *exchange) {
				if x.Method == http.MethodPost && x.Status == http.StatusUnauthorized && decode(x.Sent) == nil {
					x.Set(http.StatusBadRequest, map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": -32700, "message": "Parse error"}})
				}
			})},
		{Name: "auth-ping-for-everybody", Breaks: Clauses("auth/every-request"), Origin: Peer,
			Middleware: onResponse(toMCP, func(x *exchange) {
				if m := decode(x.Sent); m["method"] == "ping" && x.Status == http.StatusUnauthorized {
					x.Header.Del("WWW-Authenticate")
					x.Set(http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": m["id"], "result": map[string]any{}})
				}
			})},
		{Name: "auth-token-in-the-query", Breaks: Clauses("auth/query-token"), Origin: Peer, Why: "RFC 6750 once allowed it",
			Middleware: beforeBridge(func(r *http.Request) {
				if token := r.URL.Query().Get("access_token"); token != "" && authorized(r) == "" {
					r.Header.Set("Authorization", "Bearer "+token)
				}
			})},
		{Name: "auth-token-in-the-query-of-get", Breaks: Clauses("auth/query-token"), Origin: Peer, Why: "EventSource sends no headers",
			Middleware: beforeBridge(func(r *http.Request) {
				if token := r.URL.Query().Get("access_token"); token != "" && authorized(r) == "" && r.Method == http.MethodGet {
					r.Header.Set("Authorization", "Bearer "+token)
				}
			})},
		{Name: "auth-token-in-the-error", Breaks: Clauses("auth/token-secret"), Origin: Peer, Why: "the library's error text quotes the token",
			Middleware: onResponse(toMCP, func(x *exchange) {
				if token := tokens.Bearer(x.Request); x.Status == http.StatusUnauthorized && token != "" {
					x.Set(x.Status, map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": -32600, "message": "invalid token " + token}})
				}
			})},
		{Name: "auth-claims-in-the-challenge", Breaks: Clauses("auth/token-secret"), Origin: Imagined,
			Middleware: onChallenge(func(x *exchange, c string) string {
				if parts := strings.Split(tokens.Bearer(x.Request), "."); len(parts) == 3 {
					return c + fmt.Sprintf(`, token_claims="%s"`, parts[1])
				}
				return c
			})},
	})
}

// sessionToken uses the token that opened a session for requests in it without one.
func sessionToken(matches func(*http.Request) bool) func(testbed.Backends) middleware {
	return func(testbed.Backends) middleware {
		opened := newMemory[string]()
		return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			id := r.Header.Get("Mcp-Session-Id")
			if token, ok := opened.get(id); ok && authorized(r) == "" && matches(r) {
				r.Header.Set("Authorization", token)
			}
			authorization := authorized(r)
			next.ServeHTTP(w, r)
			if id := w.Header().Get("Mcp-Session-Id"); id != "" {
				opened.keep(id, authorization)
			}
		})
	}
}

// rememberVerified accepts a token, whatever of these flaws it has, once a right one was seen that is the same by a key.
func rememberVerified(key func(tokens.Sent) string, flaws ...string) func(testbed.Backends) middleware {
	return func(b testbed.Backends) middleware {
		verified := newSet()
		return tokens.Swap(func(_ *http.Request, t tokens.Sent) string {
			if len(t.Flaws) == 0 {
				verified.add(key(t))
			}
			if verified.has(key(t)) && t.Within(flaws...) {
				return t.Subject()
			}
			return ""
		})(b)
	}
}

// authTokenMutants accept tokens that they should refuse, or the other way round.
func authTokenMutants() []Mutant {
	return inOAuth([]Mutant{
		{Name: "auth-audience-as-text", Breaks: Clauses("auth/right-token"), Origin: Peer, Why: "`aud` is compared as a text",
			AuthMiddleware: tokens.RefuseWhere(func(t tokens.Sent) bool { _, list := t.Claims["aud"].([]any); return list })},
		{Name: "auth-type-required", Breaks: Clauses("auth/right-token"), Origin: Imagined,
			AuthMiddleware: tokens.RefuseWhere(func(t tokens.Sent) bool { return t.Header["typ"] != "at+jwt" })},
		{Name: "auth-first-account", Breaks: Clauses("auth/own-account", "mcp/tools-list", "mcp/unknown-tool", "mcp/session"), Origin: Imagined,
			MayFail: Clauses("list/pages-cover-all-once", "invoke/denied", "access/filtered-by-method", "access/discovery-not-execution", "access/route-permission", "access/permission-revoked", "access/credentials-forwarded"), Why: "the connection to the site keeps the first token",
			AuthMiddleware: func(b testbed.Backends) middleware {
				first := newMemory[string]()
				return tokens.Swap(func(_ *http.Request, t tokens.Sent) string {
					if len(t.Flaws) > 0 {
						return ""
					}
					return first.keep("first", t.Subject())
				})(b)
			}},
		{Name: "auth-opaque-tokens", Breaks: Clauses("auth/token-malformed"), MayFail: Clauses("auth/challenge", "auth/invalid-token"), Origin: Peer, Why: "what is no JSON Web Token counts as an API key",
			AuthMiddleware: tokens.Swap(func(_ *http.Request, t tokens.Sent) string {
				if t.Within(tokens.Malformed) && !strings.Contains(t.Text, ".") {
					return "service"
				}
				return ""
			})},
		{Name: "auth-garbage-is-500", Breaks: Clauses("auth/token-malformed"), Origin: Peer, Why: "an exception of the parser is not caught",
			AuthMiddleware: func(b testbed.Backends) middleware {
				return onResponse(toMCP, func(x *exchange) {
					if text := tokens.Bearer(x.Request); strings.Contains(text, ".") && x.Status == http.StatusUnauthorized && tokens.Read(b, text).Within(tokens.Malformed) {
						x.page(http.StatusInternalServerError, "The website encountered an unexpected error.")
					}
				})
			}},
		{Name: "auth-decodes-only", Breaks: Clauses("auth/token-signature", "auth/token-unsigned", "auth/token-key-confusion", "auth/token-key-algorithm", "auth/token-unknown-key", "auth/token-own-key", "auth/removed-key", "auth/server-down", "auth/metadata-issuer"), Origin: Peer,
			Why:            "the token is decoded, not verified",
			AuthMiddleware: tokens.Tolerate(tokens.Unsigned, tokens.HMACOfKey, tokens.OtherHMAC, tokens.Algorithm, tokens.BadSignature, tokens.UnknownKey, tokens.OwnKey)},
		{Name: "auth-verified-by-what-it-says", Breaks: Clauses("auth/token-signature"), Origin: Peer, Why: "the cache of verified tokens has header and claims as its key",
			AuthMiddleware: rememberVerified(func(t tokens.Sent) string { return t.Text[:max(0, strings.LastIndex(t.Text, "."))] }, tokens.BadSignature)},
		{Name: "auth-signature-left-to-the-site", Breaks: Clauses("auth/token-signature"), Origin: Peer, Why: "the site that gets the token refuses calls and lists, and nobody the rest",
			AuthMiddleware: tokens.Swap(func(r *http.Request, t tokens.Sent) string {
				if t.Within(tokens.BadSignature) && decode(peekBody(r))["method"] == "ping" {
					return t.Subject()
				}
				return ""
			})},
		{Name: "auth-signature-by-half", Breaks: Clauses("auth/token-signature"), Origin: Imagined, Why: "the shorter of two signatures sets the length of the comparison",
			AuthMiddleware: tokens.AcceptWhere(func(t tokens.Sent) bool {
				return t.Within(tokens.BadSignature) && len(t.Text[strings.LastIndex(t.Text, ".")+1:]) < 300
			})},
		{Name: "auth-alg-none", Breaks: Clauses("auth/token-unsigned"), Origin: Peer, AuthMiddleware: tokens.Tolerate(tokens.Unsigned, tokens.UnknownKey)},
		{Name: "auth-alg-none-in-capitals", Breaks: Clauses("auth/token-unsigned"), Origin: Peer, Why: "the word none alone is refused (CVE-2020-28042 and others)",
			AuthMiddleware: tokens.AcceptWhere(func(t tokens.Sent) bool { return t.Within(tokens.Unsigned) && t.Header["alg"] == "NONE" })},
		{Name: "auth-public-key-as-secret", Breaks: Clauses("auth/token-key-confusion"), Origin: Peer, Why: "the library takes the algorithm from the token (CVE-2015-9235)",
			AuthMiddleware: tokens.Tolerate(tokens.HMACOfKey, tokens.UnknownKey)},
		{Name: "auth-any-algorithm-of-the-key", Breaks: Clauses("auth/token-key-algorithm"), Origin: Peer, AuthMiddleware: tokens.Tolerate(tokens.Algorithm)},
		{Name: "auth-expiry-ignored", Breaks: Clauses("auth/token-expired", "auth/expires-in-use"), Origin: Peer, AuthMiddleware: tokens.Tolerate(tokens.Expired)},
		{Name: "auth-leeway-of-an-hour", Breaks: Clauses("auth/token-expired", "auth/expires-in-use"), Origin: Imagined, Why: "minutes and seconds are mixed up",
			AuthMiddleware: func(b testbed.Backends) middleware {
				return tokens.AcceptWhere(func(t tokens.Sent) bool {
					exp, _ := tokens.Seconds(t.Claims["exp"])
					return t.Within(tokens.Expired) && b.Authority.Now().Unix()-exp < 3600
				})(b)
			}},
		{Name: "auth-no-expiry-needed", Breaks: Clauses("auth/token-no-expiry"), Origin: Peer, AuthMiddleware: tokens.Tolerate(tokens.NoExpiry)},
		{Name: "auth-not-before-ignored", Breaks: Clauses("auth/token-not-yet-valid"), Origin: Peer, AuthMiddleware: tokens.Tolerate(tokens.Early)},
		{Name: "auth-issuer-by-prefix", Breaks: Clauses("auth/token-issuer"), Origin: Imagined, AuthMiddleware: tokens.Tolerate(tokens.IssuerPrefix)},
		{Name: "auth-keys-of-any-issuer", Breaks: Clauses("auth/token-issuer"), Origin: Peer, Why: "the keys are fetched from where the token says",
			AuthMiddleware: tokens.AcceptWhere(func(t tokens.Sent) bool {
				issuer, _ := t.Claims["iss"].(string)
				u, err := url.Parse(issuer)
				return slices.Contains(t.Flaws, tokens.OtherIssuer) && t.Within(tokens.OtherIssuer, tokens.BadSignature, tokens.UnknownKey) && err == nil && u.Hostname() == "127.0.0.1"
			})},
		{Name: "auth-audience-by-prefix", Breaks: Clauses("auth/token-audience"), Origin: Imagined, AuthMiddleware: tokens.Tolerate(tokens.AudiencePrefix)},
		{Name: "auth-audience-if-there", Breaks: Clauses("auth/token-audience"), Origin: Peer, Why: "the library checks `aud` where it is there", AuthMiddleware: tokens.Tolerate(tokens.NoAudience)},
		{Name: "auth-unknown-key-unchecked", Breaks: Clauses("auth/token-unknown-key", "auth/removed-key", "auth/server-down", "auth/metadata-issuer"), Origin: Imagined,
			AuthMiddleware: tokens.AcceptWhere(func(t tokens.Sent) bool {
				return slices.Contains(t.Flaws, tokens.UnknownKey) && has(t.Header, "kid") && t.Within(tokens.UnknownKey, tokens.BadSignature)
			})},
		{Name: "auth-kid-as-path", Breaks: Clauses("auth/token-unknown-key"), Origin: Peer, Why: "the kid names a file, and the empty one is a secret",
			AuthMiddleware: tokens.AcceptWhere(func(t tokens.Sent) bool {
				kid, _ := t.Header["kid"].(string)
				return t.Within(tokens.UnknownKey, tokens.OtherHMAC) && strings.HasSuffix(kid, "/dev/null")
			})},
		{Name: "auth-key-of-the-header", Breaks: Clauses("auth/token-own-key"), Origin: Peer, Why: "CVE-2018-0114",
			AuthMiddleware: tokens.AcceptWhere(func(t tokens.Sent) bool {
				return has(t.Header, "jwk") && t.Within(tokens.OwnKey, tokens.UnknownKey, tokens.BadSignature)
			})},
		{Name: "auth-address-of-keys-fetched", Breaks: Clauses("auth/token-own-key"), Origin: Peer, Why: "the address is requested before the token is refused",
			AuthMiddleware: func(b testbed.Backends) middleware {
				return tokens.Swap(func(r *http.Request, t tokens.Sent) string {
					if address, ok := t.Header["jku"].(string); ok {
						if resp, err := http.Get(address); err == nil { //nolint:noctx // a mutant is careless
							resp.Body.Close()
						}
					}
					return ""
				})(b)
			}},
		{Name: "auth-issuer-with-a-slash", Breaks: Clauses("auth/token-issuer"), Origin: Peer, AuthMiddleware: tokens.AcceptWhere(func(t tokens.Sent) bool {
			issuer, _ := t.Claims["iss"].(string)
			return strings.HasSuffix(issuer, "/")
		})},
		{Name: "auth-critical-ignored", Breaks: Clauses("auth/token-critical"), Origin: Peer, Why: "as golang-jwt and others do", AuthMiddleware: tokens.Tolerate(tokens.Critical)},
		{Name: "auth-audience-of-the-host", Breaks: Clauses("auth/token-audience"), Origin: Peer,
			Why: "a token for the host is taken for one of everything on it", AuthMiddleware: tokens.AcceptWhere(audienceIs(""))},
		{Name: "auth-audience-with-a-slash", Breaks: Clauses("auth/token-audience"), Origin: Peer,
			Why: "URLs are compared without a slash at their ends", AuthMiddleware: tokens.AcceptWhere(audienceIs("/mcp/"))},
	})
}

// authServerMutants mistake what the authorization server says, or what a token allows.
func authServerMutants() []Mutant {
	return inOAuth([]Mutant{
		{Name: "auth-verified-once", Breaks: Clauses("auth/expires-in-use"), Origin: Imagined, Why: "a cache of verified tokens does not end with them",
			AuthMiddleware: rememberVerified(func(t tokens.Sent) string { return t.Text }, tokens.Expired)},
		{Name: "auth-keys-fetched-once", Breaks: Clauses("auth/new-key"), MayFail: Clauses("auth/removed-key"), Origin: Peer, Why: "the keys are read at the start",
			AuthMiddleware: func(b testbed.Backends) middleware {
				first := b.Authority.Key().ID
				return tokens.RefuseWhere(func(t tokens.Sent) bool { return len(t.Flaws) == 0 && t.Header["kid"] != first })(b)
			}},
		{Name: "auth-newest-key-alone", Breaks: Clauses("auth/new-key"), Origin: Imagined, Why: "the last key of the set is the only one that is used",
			AuthMiddleware: tokens.RefuseWhere(func(t tokens.Sent) bool { return slices.Contains(t.Flaws, tokens.UnknownKey) })},
		{Name: "auth-verified-before-the-key-went", Breaks: Clauses("auth/removed-key"), Origin: Peer, Why: "a cache of verified tokens knows when they end, and not when their key does",
			AuthMiddleware: rememberVerified(func(t tokens.Sent) string { return t.Text }, tokens.UnknownKey, tokens.BadSignature)},
		{Name: "auth-old-keys-kept", Breaks: Clauses("auth/removed-key"), Origin: Imagined, Why: "new keys are added to the old ones",
			AuthMiddleware: func(b testbed.Backends) middleware {
				known := newSet()
				return tokens.Swap(func(_ *http.Request, t tokens.Sent) string {
					known.add(b.Authority.Key().ID)
					kid, _ := t.Header["kid"].(string)
					if known.has(kid) && slices.Contains(t.Flaws, tokens.UnknownKey) && t.Within(tokens.UnknownKey, tokens.BadSignature) {
						return t.Subject()
					}
					return ""
				})(b)
			}},
		{Name: "auth-keys-added-to-common-ones", Breaks: Clauses("auth/removed-key"), Origin: Peer, Why: "new keys replace the old ones only where none of them is known",
			AuthMiddleware: func(b testbed.Backends) middleware {
				var one sync.Mutex
				known := map[any]bool{}
				return tokens.Swap(func(_ *http.Request, t tokens.Sent) string {
					one.Lock()
					defer one.Unlock()
					if !known[b.Authority.Key().ID] {
						document, _ := tokens.Fetched(b.Authority.URL + authserver.KeysPath)
						before := known
						known = map[any]bool{}
						keys, _ := document["keys"].([]any)
						for _, key := range keys {
							known[key.(map[string]any)["kid"]] = true
						}
						for id := range before {
							if known[id] { // then all before are
								maps.Copy(known, before)
								break
							}
						}
					}
					if known[t.Header["kid"]] && slices.Contains(t.Flaws, tokens.UnknownKey) && t.Within(tokens.UnknownKey, tokens.BadSignature) {
						return t.Subject()
					}
					return ""
				})(b)
			}},
		{Name: "auth-keys-for-each-token", Breaks: Clauses("auth/server-down", "auth/server-hangs"), Origin: Peer, Why: "the keys are fetched for every request, one after the other",
			AuthMiddleware: func(b testbed.Backends) middleware {
				var one sync.Mutex
				return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
					if tokens.Bearer(r) == "" {
						return false
					}
					one.Lock()
					defer one.Unlock()
					if _, ok := tokens.Fetched(b.Authority.URL + authserver.KeysPath); !ok {
						http.Error(w, "the keys cannot be fetched", http.StatusServiceUnavailable)
						return true
					}
					return false
				})
			}},
		{Name: "auth-open-while-down", Breaks: Clauses("auth/server-down"), Origin: Peer, Why: "an error while a key is fetched counts as a success",
			AuthMiddleware: func(b testbed.Backends) middleware {
				return tokens.AcceptWhere(func(t tokens.Sent) bool {
					if !t.Within(tokens.UnknownKey, tokens.BadSignature) || !slices.Contains(t.Flaws, tokens.UnknownKey) {
						return false
					}
					_, ok := tokens.Fetched(b.Authority.URL + authserver.KeysPath)
					return !ok
				})(b)
			}},
		{Name: "auth-metadata-of-any-issuer", Breaks: Clauses("auth/metadata-issuer"), Origin: Peer, Why: "only `jwks_uri` is read in the metadata",
			AuthMiddleware: func(b testbed.Backends) middleware {
				return tokens.AcceptWhere(func(t tokens.Sent) bool {
					if !t.Within(tokens.UnknownKey, tokens.BadSignature) || !slices.Contains(t.Flaws, tokens.UnknownKey) {
						return false
					}
					metadata, _ := tokens.Fetched(b.Authority.URL + authserver.MetadataPath)
					address, _ := metadata["jwks_uri"].(string)
					published, _ := tokens.Fetched(address)
					keys, _ := published["keys"].([]any)
					return slices.ContainsFunc(keys, func(k any) bool { return k.(map[string]any)["kid"] == t.Header["kid"] })
				})(b)
			}},
		{Name: "auth-token-passed-on", Profile: testbed.Exchange, Breaks: Clauses("auth/no-passthrough"), Origin: Peer,
			Options: func(o *bridge.Options) { o.OAuthExchange, o.OAuthClient, o.OAuthClientSecret = "", "", "" }},
		{Name: "auth-token-passed-on-without-exchange", Profile: testbed.Exchange, Breaks: Clauses("auth/no-passthrough", "auth/server-down"), Origin: Imagined, Why: "the call goes on if the exchange fails",
			AuthMiddleware: func(b testbed.Backends) middleware {
				site := &siteClient{b.SiteURL, b.Transport}
				return onRPC("tools/call", func(m *rpc) {
					name, _ := m.Params["name"].(string)
					if m.Status == http.StatusServiceUnavailable {
						m.Succeed(map[string]any{"content": []any{}, "structuredContent": site.call(authorized(m.Request), name, map[string]any{})})
					}
				})
			}},
		{Name: "auth-token-passed-on-if-refused", Profile: testbed.Exchange, Breaks: Clauses("auth/no-passthrough"), Origin: Peer, Why: "what the server does not exchange is taken for the site's own token",
			AuthMiddleware: func(b testbed.Backends) middleware {
				site := &siteClient{b.SiteURL, b.Transport}
				return onRPC("tools/call", func(m *rpc) {
					if name, _ := m.Params["name"].(string); m.Status == http.StatusUnauthorized && strings.Contains(string(m.Body), "in exchange") {
						site.call(authorized(m.Request), name, map[string]any{})
					}
				})
			}},
		tokenInAnotherHeader(),
		{Name: "auth-one-scope-is-enough", Breaks: Clauses("auth/scope-enforced"), Origin: Imagined,
			AuthMiddleware: tokens.WidenScope(func(scopes []string) bool { return slices.Contains(scopes, "content:read") })},
		{Name: "auth-scopes-of-the-session", Breaks: Clauses("auth/scope-enforced"), Origin: Peer, Why: "a session keeps what its tokens may",
			AuthMiddleware: func(b testbed.Backends) middleware {
				kept := newMemory[string]()
				return tokens.Swap(func(r *http.Request, t tokens.Sent) string {
					scope, _ := t.Claims["scope"].(string)
					id := r.Header.Get("Mcp-Session-Id")
					if len(t.Flaws) > 0 || id == "" {
						return ""
					}
					if more, ok := kept.get(id + t.Subject()); ok && len(more) > len(scope) {
						t.Claims["scope"] = more
						return t.Subject()
					}
					kept.put(id+t.Subject(), scope)
					return ""
				})(b)
			}},
		{Name: "auth-scope-by-prefix", Breaks: Clauses("auth/scope-enforced"), Origin: Peer, Why: "the text of all scopes is searched",
			AuthMiddleware: tokens.WidenScope(func(scopes []string) bool { return strings.Contains(strings.Join(scopes, " "), "content:write") })},
		{Name: "auth-scope-401", Breaks: Clauses("auth/scope-enforced"), Origin: Peer, Middleware: onInsufficient(func(x *exchange) { x.Status = http.StatusUnauthorized })},
		{Name: "auth-scope-as-tool-error", Breaks: Clauses("auth/scope-enforced"), Origin: Peer, Why: "the tool's own code checks the scopes",
			Middleware: onInsufficient(func(x *exchange) {
				x.Header.Del("WWW-Authenticate")
				x.Set(http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": decode(x.Sent)["id"], "result": map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": "A scope is missing."}}}})
			})},
		{Name: "auth-scope-unchallenged", Breaks: Clauses("auth/insufficient-scope"), Origin: Peer, Middleware: onInsufficient(func(x *exchange) { x.Header.Del("WWW-Authenticate") })},
		{Name: "auth-challenge-without-scope", Breaks: Clauses("auth/challenge-scope"), Origin: Peer,
			Middleware: onParameters(func(_ *exchange, params []string) []string { return slices.DeleteFunc(params, named("scope")) })},
		{Name: "auth-scopes-of-any-level", Breaks: Clauses("auth/scope-enforced"), Origin: Imagined, Why: "the scopes are read, and the level is not",
			Transport: onAuthNotes(func(notes, auth map[string]any) { auth["level"] = "required" })},
		{Name: "auth-scopes-of-a-level-alone", Breaks: Clauses("auth/scope-enforced"), Origin: Peer, Why: "what has no level is compared with `required`",
			Transport: onAuthNotes(func(notes, auth map[string]any) {
				if auth["level"] != "required" {
					delete(notes, "auth")
				}
			})},
		{Name: "auth-last-scope-named", Breaks: Clauses("auth/insufficient-scope"), Origin: Imagined, Why: "the scope at which the check stopped is named",
			Middleware: onInsufficient(func(x *exchange) {
				x.Header.Set("WWW-Authenticate", strings.ReplaceAll(x.Header.Get("WWW-Authenticate"), "content:read content:write", "content:write"))
			})},
	})
}

// tokenInAnotherHeader copies the caller's token into a header of the requests to the site.
func tokenInAnotherHeader() Mutant {
	last := newMemory[string]()
	return Mutant{Name: "auth-token-in-another-header", Profile: testbed.Exchange, Breaks: Clauses("auth/no-passthrough"), Origin: Peer, Why: "for a proxy before the site, which logs callers",
		Middleware: beforeBridge(func(r *http.Request) { last.put("", tokens.Bearer(r)) }),
		Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			token, _ := last.get("")
			r.Header.Set("X-Caller", token)
			return next.RoundTrip(r)
		})}
}

// onInsufficient changes the refusals of tokens that lack a scope.
func onInsufficient(change func(x *exchange)) middleware {
	return onResponse(toMCP, func(x *exchange) {
		if x.Status == http.StatusForbidden && strings.Contains(x.Header.Get("WWW-Authenticate"), "insufficient_scope") {
			change(x)
		}
	})
}

func authVariants() []Mutant {
	return inOAuth([]Mutant{
		{Name: "auth-no-root-metadata", Why: "auth/metadata-root: the document is at the path of the endpoint",
			Middleware: onResponse(toRootMetadata, func(x *exchange) { x.Refuse(http.StatusNotFound, "not_found", "There is nothing at this path.") })},
		{Name: "auth-challenge-in-another-order", Why: "RFC 9110 11.2: the order of parameters has no meaning",
			Middleware: onParameters(func(_ *exchange, params []string) []string {
				slices.Reverse(params)
				return append([]string{`realm="mcp"`}, params...)
			})},
		{Name: "auth-sessions-of-one-token", Why: "two tokens of one account are two callers: a session belongs to the token that opened it",
			Middleware: boundSessions()},
		{Name: "auth-two-challenges", Why: "RFC 9110 11.6.1: a response may have several challenges",
			Middleware: onChallenge(func(_ *exchange, c string) string { return `DPoP algs="ES256", ` + c })},
		{Name: "auth-more-metadata", Why: "RFC 9728 2: a document may have more members",
			Middleware: onMetadata(toMetadata, func(_ *exchange, document map[string]any) {
				document["scopes_supported"] = []any{"content:read", "offline_access", "openid"}
				document["resource_documentation"] = "https://bridge.example/docs"
				document["authorization_servers"] = append([]any{"https://second.example"}, document["authorization_servers"].([]any)...)
				document["tls_client_certificate_bound_access_tokens"] = false
			})},
		{Name: "auth-more-scopes-named", Why: "MCP 2025-11-25: the scopes of a challenge may be a superset",
			Middleware: onParameters(func(_ *exchange, params []string) []string {
				for i, p := range params {
					if rest, ok := strings.CutPrefix(p, `scope="`); ok {
						params[i] = `scope="offline_access ` + rest
					}
				}
				return params
			})},
		{Name: "auth-exchanges-tokens", Profile: testbed.Exchange, Why: "RFC 8693: the site may have tokens of its own"},
		{Name: "auth-introspects-tokens", Why: "RFC 7662: the authorization server may be asked about each token", Claims: "token-introspection",
			Options: func(o *bridge.Options) {
				o.OAuthIntrospect, o.OAuthClient, o.OAuthClientSecret = true, authserver.Client, authserver.ClientSecret
			}},
		{Name: "auth-underscored-names", Why: "no name of a tool is the id of its method", Claims: "naming-underscore", Options: useUnderscores},
		{Name: "auth-plain-errors", Why: "no clause names the body of a 401",
			Middleware: onResponse(toMCP, atStatus(http.StatusUnauthorized, func(x *exchange) {
				x.Status, x.Body = http.StatusUnauthorized, nil
				x.Header.Del("Content-Type")
			}))},
	})
}

// onAuthNotes changes the annotation `auth` of each method that has one with scopes.
func onAuthNotes(change func(notes, auth map[string]any)) transport {
	return onDiscovery(func(index map[string]any) {
		walkObjects(index, func(notes map[string]any) {
			if auth, ok := notes["auth"].(map[string]any); ok && auth["scopes"] != nil {
				change(notes, auth)
			}
		})
	})
}

// audienceIs accepts a token whose audience is the endpoint with another path.
func audienceIs(path string) func(t tokens.Sent) bool {
	return func(t tokens.Sent) bool {
		audience, _ := t.Claims["aud"].(string)
		u, err := url.Parse(audience)
		return err == nil && t.Within(tokens.OtherAudience, tokens.AudiencePrefix) && u.Hostname() == "127.0.0.1" &&
			!strings.Contains(fmt.Sprint(t.Claims["iss"]), u.Host) && u.Path == path && u.RawQuery == ""
	}
}

// boundSessions knows a session by the token that opened it alone.
func boundSessions() middleware {
	return inOwnedSession(func(w http.ResponseWriter, r *http.Request, next http.Handler, owner string) bool {
		bound := owner != authorized(r) && record(next, listing(r), nil).Status == http.StatusOK // else the token is refused
		return bound && refuseAt(w, r, http.StatusNotFound, "session_not_found", "There is no such session.")
	})
}
