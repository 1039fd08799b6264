package mutants

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// accessMutants show or run what the caller has no permission for, or mix callers up.
func accessMutants() []Mutant {
	return []Mutant{
		{Name: "mcp-cancels-by-id-alone", MCP: true, Breaks: Clauses("access/no-cross-talk"), MayFail: Clauses("mcp/initialize"), Origin: Peer,
			Why:        "the calls under way are in one map, by the request's id",
			Middleware: cancelByID()},
		{Name: "result-kept-after-describe", Breaks: Clauses("access/no-cross-talk"), Origin: Imagined,
			Why: "a result that follows a describe is cached for the next caller", Middleware: shareResultAfterDescribe()},
		{Name: "list-open-to-outsiders", Breaks: Clauses("access/list-403"), Origin: Imagined,
			Middleware: actAs("agent", func(r *http.Request) bool { return caller(r) == "outsider" && toList(r) })},
		{Name: "describe-open-to-outsiders", Breaks: Clauses("access/describe-403"), Origin: Imagined, Why: "only list checks the permission",
			Middleware: actAs("agent", func(r *http.Request) bool { return caller(r) == "outsider" && toDescribe(r) })},
		{Name: "describe-404-for-outsiders", Breaks: Clauses("access/describe-403"), Origin: Imagined, Middleware: onDenied(toDescribe, func(x *exchange) {
			x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.described()))
		})},
		{Name: "describe-unknown-404-for-outsiders", Breaks: Clauses("access/describe-403", "errors/precedence"), Origin: Imagined, Why: "403 for tools that exist, 404 for the rest", Middleware: onDenied(toDescribe, func(x *exchange) {
			if _, known := x.as("admin").tool(x.described()); !known && x.described() != "" {
				x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.described()))
			}
		})},
		{Name: "anonymous-lists", Breaks: Clauses("access/anonymous"), MayFail: Clauses("access/no-cross-talk"), Origin: Peer,
			Why:        "anonymous callers get the agent's list",
			Middleware: actAs("discoverer", func(r *http.Request) bool { return authorized(r) == "" && toList(r) })},
		{Name: "anonymous-discovers-what-it-may-run", Breaks: Clauses("access/anonymous"), Origin: Imagined, Why: "the permission is checked for accounts only, not for anonymous callers", Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if authorized(r) != "" || r.Header.Get("Cookie") != "" {
				return next.RoundTrip(r)
			}
			return onDiscovery(func(index map[string]any) { index["meta"] = map[string]any{"mcp": map[string]any{"discovery": true}} })(next).RoundTrip(r)
		})},
		{Name: "anonymous-401-without-challenge", Breaks: Clauses("access/anonymous"), MayFail: Clauses("upstream/auth-error"), Origin: Peer, Middleware: onRefusal(func(x *exchange) {
			if x.anonymous() && (x.Status == http.StatusForbidden || x.Status == http.StatusUnauthorized) {
				x.Refuse(http.StatusUnauthorized, "authentication_required", "Authentication is required.")
				x.Header.Del("WWW-Authenticate")
			}
		})},
		{Name: "password-unchecked", Breaks: Clauses("access/bad-credentials"), Origin: Imagined, Why: "only the user name is compared", Middleware: beforeBridge(func(r *http.Request) {
			if name, password, ok := r.BasicAuth(); ok && name != "" {
				right := name + "-pass"
				if strings.Contains(password, "-long") { // of an account that has more behind it
					right += strings.Repeat("-long", 30)
				}
				r.SetBasicAuth(name, right)
			}
		})},
		{Name: "password-trimmed", Breaks: Clauses("access/bad-credentials"), Origin: Peer, Why: "what was typed is trimmed before it is compared", Middleware: acceptLoosePassword(strings.TrimSpace)},
		{Name: "password-folded", Breaks: Clauses("access/bad-credentials"), Origin: Imagined, Why: "a column compares texts by a collation", Middleware: acceptLoosePassword(func(p string) string {
			return strings.ReplaceAll(p, "ſ", "s")
		})},
		{Name: "credentials-keyed-without-scheme", Breaks: Clauses("access/bad-credentials"), Origin: Peer,
			Why: "a cache is keyed by what stands behind the scheme",
			Middleware: acceptAlike(func(r *http.Request) string {
				if !toList(r) {
					return ""
				}
				_, credentials, _ := strings.Cut(authorized(r), " ")
				return credentials
			})},
		{Name: "credentials-keyed-without-case", Breaks: Clauses("access/bad-credentials"), Origin: Imagined, Why: "the keys of a cache are compared by a collation: base64 of other letters is the same",
			Middleware: acceptAlike(func(r *http.Request) string {
				header := authorized(r)
				if !strings.HasPrefix(header, "Basic ") {
					return ""
				}
				return strings.ToLower(header)
			})},
		{Name: "password-cut-at-72", Breaks: Clauses("access/bad-credentials"), Origin: Peer, Why: "bcrypt reads 72 bytes", Middleware: acceptLoosePassword(func(p string) string { return p[:min(len(p), 72)] })},
		{Name: "lists-with-a-slash-for-everyone", Breaks: Clauses("access/no-cross-talk"), Origin: Peer, Why: "a cache is keyed by the path as it came, and its guard by the route",
			Middleware: shareFirstListWithSlash()},
		{Name: "password-remembered-by-name", Breaks: Clauses("access/bad-credentials"), Origin: Peer, Why: "the session cache is keyed by the user name only", Middleware: acceptAnyPassword()},
		{Name: "descriptions-remembered-by-name", Breaks: Clauses("access/bad-credentials"), Origin: Imagined, Why: "a cache is keyed by the user name",
			Middleware: goodResponses(toDescribe, func(x *exchange) string {
				if caller(x.Request) == "" {
					return ""
				}
				return caller(x.Request) + "?" + x.described()
			}, http.StatusUnauthorized, http.StatusForbidden)},
		{Name: "bad-credentials-act-as-service", Breaks: Clauses("access/bad-credentials"), Origin: Peer,
			Why: "invalid credentials are replaced by the bridge's own account",
			Middleware: actAs("service", func(r *http.Request) bool {
				_, _, basic := r.BasicAuth()
				return !basic && authorized(r) != "" && !strings.HasPrefix(authorized(r), "Bearer ")
			})},
		{Name: "every-tool-for-everyone", Breaks: Clauses("access/filtered-by-method", "describe/answers-tool"), Origin: Imagined,
			Why:        "list discovers with the bridge's own account",
			Middleware: actAs("admin", func(r *http.Request) bool { return caller(r) == "discoverer" && toList(r) })},
		{Name: "invoke-needs-discovery", Breaks: Clauses("access/discovery-not-execution"), Origin: Peer, Middleware: onInvoke(func(x *exchange) {
			if r := x.Send(http.MethodGet, siblingPath(x.Request, "list"), nil); r.Status == http.StatusForbidden && x.Status != http.StatusUnauthorized {
				x.Refuse(http.StatusForbidden, "access_denied", "You may not discover tools.")
			}
		})},
		{Name: "discovery-means-execution", Breaks: Clauses("access/discovery-not-execution", "invoke/denied", "access/credentials-forwarded", "access/no-oracle"), Origin: Imagined, SiteMiddleware: retryAs("discoverer", "agent")},
		{Name: "no-rpc-permission-runs", Breaks: Clauses("access/route-permission", "access/no-oracle"), Origin: Imagined, SiteMiddleware: retryAs("norpc", "agent")},
		{Name: "no-rpc-permission-500", Breaks: Clauses("access/route-permission"), MayFail: Clauses("invoke/malformed-json"), Origin: Imagined, Middleware: onInvoke(func(x *exchange) {
			if caller(x.Request) == "norpc" && x.Status >= 400 {
				x.Refuse(http.StatusInternalServerError, "execution_error", "The site refused.")
			}
		})},
		{Name: "anonymous-views-public", Breaks: Clauses("access/anonymous-granted"), Origin: Peer,
			Why: "what needs no credentials is taken for the same for all, as by Drupal's page cache",
			Middleware: onResponse(toToolViews, func(x *exchange) {
				if x.anonymous() && x.Status == http.StatusOK {
					x.Header.Del("Vary")
					x.Header.Set("Cache-Control", "public, max-age=60")
				}
			})},
		{Name: "errors-name-the-last-call", Breaks: Clauses("access/no-cross-talk"), Origin: Peer, Why: "the name of the tool is a field of an object that all requests share",
			Middleware: nameLastCall()},
		{Name: "mcp-cache-public-for-anonymous", MCP: true, Breaks: Clauses("access/anonymous-granted"), Origin: Peer,
			Why: "what no credentials are needed for is taken for public",
			Middleware: onRPC("tools/list", func(m *rpc) {
				if r := m.Result(); m.anonymous() && r["cacheScope"] != nil {
					r["cacheScope"] = "public"
				}
			})},
		{Name: "mcp-demands-credentials", MCP: true, Breaks: Clauses("access/anonymous-granted"), Origin: Peer, Why: "the endpoint asks for credentials by itself",
			Middleware: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if !toMCP(r) || authorized(r)+r.Header.Get("Cookie") != "" {
					return false
				}
				w.Header().Set("WWW-Authenticate", `Basic realm="MCP"`)
				return refuseAt(w, r, http.StatusUnauthorized, "authentication_required", "Credentials are needed.")
			})},
		{Name: "tokens-trimmed-of-padding", Breaks: Clauses("access/bad-credentials"), Origin: Peer, Why: "the key of a caller is the decoded token",
			Middleware: acceptAlike(func(r *http.Request) string {
				if token, bearer := strings.CutPrefix(authorized(r), "Bearer "); bearer {
					return "Bearer " + strings.TrimRight(token, "=")
				}
				return ""
			})},
		{Name: "flights-shared-by-name", Breaks: Clauses("access/bad-credentials"), Origin: Peer,
			Why:        "who asks while a fetch for the same account runs waits for that one, whatever the password is",
			Middleware: shareFlightByName()},
		{Name: "list-shared-by-all", Breaks: Clauses("access/no-cross-talk", "access/filtered-by-method", "access/list-403", "access/anonymous", "access/per-credential", "http/head", "upstream/timeout"), Origin: Peer,
			Why: "every caller gets the first caller's list", Middleware: shareFirstResponse(toList, func(r *http.Request) string { return r.URL.RawQuery })},
		{Name: "result-of-another-under-load", Breaks: Clauses("access/no-cross-talk"), Origin: Imagined, Why: "when many invoke concurrently, some get the last caller's result", Middleware: swapUnderLoad(toInvoke, 8, func(x *exchange) bool { return x.Status == http.StatusOK })},
		{Name: "sessions-share-a-flight", Breaks: Clauses("access/no-cross-talk"), Origin: Peer, Why: "lists that are under way are found by a key without the cookie",
			Middleware: swapUnderLoad(toList, 8, func(x *exchange) bool { return x.Status == http.StatusOK && x.Request.Header.Get("Cookie") != "" })},
		{Name: "identity-of-the-connection", Breaks: Clauses("access/no-cross-talk"), Origin: Peer, Why: "under load all requests of a connection get the credentials of its first caller", Middleware: useFirstCaller(8), Server: storeFirstCaller},
		{Name: "revoked-permission-runs", Breaks: Clauses("access/permission-revoked", "invoke/denied", "fresh/removed-tool", "upstream/auth-error"),
			MayFail: Clauses("invoke/execution-error-500", "access/credentials-forwarded"), Origin: Imagined,
			Why:            "what was allowed once runs with the bridge's own account",
			SiteMiddleware: runOnceAllowed(func(x *exchange) string { return caller(x.Request) })},
		{Name: "revoked-permission-500", Breaks: Clauses("access/permission-revoked", "invoke/denied", "upstream/auth-error"), Origin: Peer, Middleware: onInvoke(func(x *exchange) {
			if x.Status == http.StatusForbidden && x.lists() {
				x.Refuse(http.StatusInternalServerError, "execution_error", "Access Denied")
			}
		})},
		{Name: "runs-as-service", Breaks: Clauses("access/credentials-forwarded"), Origin: Peer, Why: "the tool is checked for the caller, the call uses the bridge's account", Transport: onCall(func(r *http.Request, _ map[string]any) {
			if name := caller(r); name == "agent" || name == "agent2" {
				r.Header.Set("Authorization", basicAuth("service"))
			}
		})},
		{Name: "credentials-dropped", Breaks: Clauses("access/credentials-forwarded"),
			MayFail: Clauses("list/answers-json", "invoke/answers-result", "invoke/empty-arguments", "upstream/id-mismatch", "upstream/http-error"), Origin: Peer,
			Why: "a proxy or an HTTP client in the bridge takes the credentials off each request to the site",
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				r = r.Clone(r.Context())
				r.Header.Del("Authorization")
				r.Header.Del("Cookie")
				return next.RoundTrip(r)
			})},
		{Name: "discovers-as-service-too", Breaks: Clauses("access/credentials-forwarded", "fresh/single-flight"), Origin: Imagined, Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if !isCall(r) {
				stronger := r.Clone(r.Context())
				stronger.Header.Set("Authorization", basicAuth("service"))
				if resp, err := next.RoundTrip(stronger); err == nil {
					resp.Body.Close()
				}
			}
			return next.RoundTrip(r)
		})},
		{Name: "tokens-not-forwarded", Breaks: Clauses("access/credentials-forwarded", "access/no-cross-talk", "access/per-credential"), Origin: Imagined, Why: "only Basic credentials are copied to the call", Transport: onCall(func(r *http.Request, _ map[string]any) {
			if strings.HasPrefix(authorized(r), "Bearer ") {
				r.Header.Del("Authorization")
			}
		})},
		{Name: "list-cursor-before-permission", Breaks: Clauses("access/list-403"), MayFail: Clauses("errors/precedence"), Origin: Peer,
			Why: "parameters are read before the caller is asked for",
			Middleware: onResponse(toList, atStatus(http.StatusForbidden, func(x *exchange) {
				if strings.HasPrefix(x.Request.URL.Query().Get("cursor"), "!") {
					x.Refuse(http.StatusBadRequest, "invalid_cursor", "The cursor is none of this list.")
				}
			}))},
		{Name: "refused-call-sent-anonymously", Breaks: Clauses("access/credentials-forwarded"), Origin: Peer, Why: "what anybody may do needs no credentials",
			Transport: onSiteCall(func(r *http.Request, sent []byte, next http.RoundTripper) (*http.Response, error) {
				resp, err := next.RoundTrip(r)
				if err != nil || resp.StatusCode != http.StatusUnauthorized || r.Header.Get("Authorization") == "" {
					return resp, err
				}
				resp.Body.Close()
				again := withBody(r, sent)
				again.Header.Del("Authorization")
				return next.RoundTrip(again)
			})},
		{Name: "denied-call-sent-as-service", Breaks: Clauses("access/credentials-forwarded", "access/permission-revoked", "invoke/denied"), Origin: Peer, Why: "a call that the site denies is sent again with the bridge's own account",
			Transport: sendAgainAsService(func(_ int, e map[string]any) bool { return fmt.Sprint(e["code"]) == "-32600" })},
		{Name: "denied-call-tried-as-service", Breaks: Clauses("access/credentials-forwarded", "access/permission-revoked", "invoke/denied"), Origin: Imagined, Why: "the bridge asks the site whether its own account could run the tool, and still sends the denial",
			Transport: probeAsService(func(_ int, e map[string]any) bool { return fmt.Sprint(e["code"]) == "-32600" })},
		{Name: "failed-call-sent-as-service", Breaks: Clauses("access/credentials-forwarded", "invoke/runs-once"), Origin: Imagined, Why: "a call whose method fails is sent again with the bridge's own account",
			Transport: sendAgainAsService(func(_ int, e map[string]any) bool { return fmt.Sprint(e["code"]) == "-32000" })},
		{Name: "forbidden-call-sent-as-service", Breaks: Clauses("access/credentials-forwarded", "access/bad-credentials", "access/permission-revoked"), Origin: Imagined, Why: "an HTTP 403 of the site makes the bridge send the call again with its own account",
			Transport: sendAgainAsService(func(status int, _ map[string]any) bool { return status == http.StatusForbidden })},
		{Name: "compressed-lists-shared", Breaks: Clauses("access/no-cross-talk", "http/content-negotiation"), Origin: Peer,
			Why: "what was compressed is cached by its URL",
			Middleware: shareFirstResponse(func(r *http.Request) bool { return toList(r) && r.URL.RawQuery == "" && takesGzip(r) },
				func(*http.Request) string { return fmt.Sprint(time.Now().Unix()) })},
		{Name: "cookies-shared-by-all", Breaks: Clauses("access/credentials-forwarded"), Origin: Peer, Why: "one HTTP client with a cookie jar sends the calls of all callers", Transport: shareCookies()},
		{Name: "wrong-password-before-the-first-right-one", Breaks: Clauses("access/bad-credentials"), Origin: Peer,
			Why: "a refusal is kept by account where nothing better is known of it", Middleware: refuseNewcomers()},
		{Name: "lists-by-the-beginning-of-a-token", Breaks: Clauses("access/per-credential"), Origin: Peer,
			MayFail: Clauses("access/no-cross-talk", "access/bad-credentials", "fresh/per-user-ttl", "access/permission-revoked"),
			Why:     "the key of the cache has room for 64 bytes",
			Middleware: shareFirstResponse(func(r *http.Request) bool {
				return toList(r) && strings.HasPrefix(authorized(r), "Bearer with-the-same-")
			}, func(r *http.Request) string {
				return r.URL.RequestURI() + authorized(r)[:64]
			})},
		{Name: "wrong-password-throttles-account", Breaks: Clauses("access/bad-credentials"), Origin: Peer, Why: "the first refused password counts as an attack", Middleware: lockAfterRefusal(func(x *exchange) {
			x.Refuse(http.StatusTooManyRequests, "rate_limited", "Too many failed authentications.")
			x.Header.Set("Retry-After", "3600")
		})},
		{Name: "loopback-by-its-headers-acts-as-service", Breaks: Clauses("access/bad-credentials"), Origin: Peer,
			Why: "who calls from the machine itself is trusted, and X-Forwarded-For says who does",
			Middleware: actAs("service", func(r *http.Request) bool {
				return r.Header.Get("X-Forwarded-For") == "127.0.0.1" && authorized(r) == ""
			})},
		{Name: "paths-normalized-after-the-check", Breaks: Clauses("access/no-cross-talk"), Origin: Peer,
			Why: "who may call is decided by the path as it came, and what is called by another",
			Middleware: beforeBridge(func(r *http.Request) {
				if path := r.URL.EscapedPath(); strings.HasPrefix(path, "//") || strings.Contains(path, "%2F") || strings.Contains(path, ";") {
					r.URL.Path, r.URL.RawPath, r.RequestURI = "/mcp/tools/list", "", "/mcp/tools/list"
					r.Header.Set("Authorization", basicAuth("admin"))
				}
			})},
		{Name: "described-name-in-a-variable", Breaks: Clauses("access/no-cross-talk"), Origin: Peer,
			Why: "the query of a describe is kept in a variable of the bridge", Middleware: shareDescribedName()},
		{Name: "caller-of-the-last-request", Breaks: Clauses("access/no-cross-talk"), Origin: Peer, Why: "the caller is kept in a variable of the bridge while a call waits for discovery", Middleware: keepCallerDuringDiscovery()},
		{Name: "caller-kept-while-a-body-arrives", Breaks: Clauses("access/no-cross-talk"), Origin: Peer, Why: "the caller is a variable of the module that is read after the body", Middleware: keepCallerDuringBody()},
		{Name: "problems-in-a-variable", Breaks: Clauses("access/no-cross-talk"), Origin: Peer, Why: "a validator keeps the problems of the call that it validates in a variable of its own", Middleware: shareProblems()},
		{Name: "calls-under-load-share-a-client", Breaks: Clauses("access/no-cross-talk"), Origin: Imagined, Why: "a call gets the credentials of another call that is under way", Transport: sharedClient()},
		{Name: "credentials-in-header", Breaks: Clauses("access/credentials-kept-secret"), Origin: Imagined, Middleware: onResponse(allRequests, func(x *exchange) {
			if a := authorized(x.Request); a != "" {
				x.Header.Set("X-Forwarded-Authorization", a)
			}
		})},
		{Name: "trace-answered", Breaks: Clauses("access/credentials-kept-secret"), Origin: Peer, Why: "a server answers TRACE with the request, as RFC 9110 has it, before anything else sees it",
			Middleware: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if r.Method == http.MethodTrace {
					w.Header().Set("Content-Type", "message/http")
					_ = r.Header.Write(w)
				}
				return r.Method == http.MethodTrace
			})},
		{Name: "credentials-in-error", Breaks: Clauses("access/credentials-kept-secret"), Origin: Imagined, Middleware: onError(func(x *exchange, e map[string]any) {
			if name, password, ok := x.Request.BasicAuth(); ok && x.Status == http.StatusNotFound && toInvoke(x.Request) {
				e["message"] = fmt.Sprintf("%v (requested http://%s:%s@drupal/jsonrpc)", e["message"], name, password)
			}
		})},
		{Name: "malformed-credentials-in-error", Breaks: Clauses("access/credentials-kept-secret"), Origin: Peer, Why: "the error quotes what it could not read",
			Middleware: onError(func(x *exchange, e map[string]any) {
				basic, is := strings.CutPrefix(authorized(x.Request), "Basic ")
				if _, err := base64.StdEncoding.DecodeString(basic); is && err != nil {
					e["message"] = "Malformed credentials: " + basic
				}
			})},
		{Name: "denied-tokens-in-error", Breaks: Clauses("access/credentials-kept-secret"), Origin: Peer,
			Why: "the log has what is denied to whom, and the response the same text",
			Middleware: onError(func(x *exchange, e map[string]any) {
				if token, is := strings.CutPrefix(authorized(x.Request), "Bearer "); is && x.Status == http.StatusForbidden {
					e["message"] = fmt.Sprintf("%v (token %s)", e["message"], token)
				}
			})},
		{Name: "credentials-without-colon-in-error", Breaks: Clauses("access/credentials-kept-secret"), Origin: Peer, Why: "the error quotes what it could not split",
			Middleware: onError(func(x *exchange, e map[string]any) {
				basic, is := strings.CutPrefix(authorized(x.Request), "Basic ")
				if pair, err := base64.StdEncoding.DecodeString(basic); is && err == nil && !bytes.Contains(pair, []byte(":")) {
					e["message"] = fmt.Sprintf("No colon in %q.", pair)
				}
			})},
		{Name: "mcp-takes-no-cookies", MCP: true, Breaks: Clauses("access/credentials-forwarded"), Origin: Peer, Why: "the server of the SDK hands on the Authorization alone",
			Middleware: beforeBridge(func(r *http.Request) {
				if toMCP(r) {
					r.Header.Del("Cookie")
				}
			})},
		{Name: "wrong-token-in-challenge", Breaks: Clauses("access/credentials-kept-secret"), Origin: Peer, Middleware: onRefusal(func(x *exchange) {
			if token, ok := strings.CutPrefix(authorized(x.Request), "Bearer "); ok && x.Status == http.StatusUnauthorized {
				x.Header.Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="invalid_token", error_description="%s is not valid"`, token))
			}
		})},
		{Name: "denied-403-by-head", Breaks: Clauses("access/no-oracle"), Origin: Imagined, Middleware: onHead(func(x *exchange) {
			if _, known := x.as("admin").tool(x.named()); known && x.Status == http.StatusNotFound {
				x.Status = http.StatusForbidden
			}
		})},
		{Name: "denied-tool-other-words", Breaks: Clauses("access/no-oracle"), Origin: Imagined, Middleware: onDeniedName(toInvoke, func(x *exchange, _ tool) {
			x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("The tool %q is not available to you.", x.invoked()))
		})},
		{Name: "hidden-tool-header", Breaks: Clauses("access/no-oracle", "invoke/hidden-404"), Origin: Imagined,
			SiteMiddleware: onExistingMethod(toInvoke, basicAuth("admin"), setHeader("X-Method-Provider", "jsonrpc"))},
		{Name: "tokens-of-a-user-share-a-list", Breaks: Clauses("access/per-credential"), MayFail: Clauses("access/permission-revoked"), Origin: Peer, Why: "the cache is keyed by the user, not by the token", Claims: "auth-bearer", SiteMiddleware: useFirstToken(toList)},
		{Name: "tokens-of-a-user-share-rights", Breaks: Clauses("access/per-credential"), MayFail: Clauses("access/permission-revoked"), Origin: Imagined, Claims: "auth-bearer", SiteMiddleware: useFirstToken(toInvoke)},
		{Name: "anonymous-list-lacks-one", Breaks: Clauses("access/anonymous-granted"), Origin: Imagined, Middleware: onList(func(p *page) {
			if p.anonymous() && len(p.Tools) > 0 {
				p.Tools = p.Tools[1:]
			}
		})},
		{Name: "anonymous-tools-without-output", Breaks: Clauses("access/anonymous-granted"), Origin: Imagined, Why: "what anonymous callers see is built by itself",
			Middleware: onList(func(p *page) {
				for _, shown := range p.Tools {
					if p.anonymous() {
						delete(shown.(tool), "outputSchema")
					}
				}
			})},
		{Name: "anonymous-always-401", Breaks: Clauses("access/anonymous-granted"), Origin: Peer, Middleware: onResponse(allRequests, func(x *exchange) {
			if x.anonymous() {
				x.Refuse(http.StatusUnauthorized, "authentication_required", "Authentication is required.")
				x.Header.Set("WWW-Authenticate", `Basic realm="bridge"`)
			}
		})},
		{Name: "anonymous-cannot-invoke", Breaks: Clauses("access/anonymous-granted"), Origin: Imagined, Middleware: onInvoke(func(x *exchange) {
			if x.anonymous() && x.Status == http.StatusOK {
				x.Refuse(http.StatusForbidden, "access_denied", "Authentication is required.")
			}
		})},
		{Name: "anonymous-runs-as-service", Breaks: Clauses("access/anonymous-granted"), Origin: Imagined, Transport: onCall(func(r *http.Request, _ map[string]any) {
			if authorized(r) == "" {
				r.Header.Set("Authorization", basicAuth("service"))
			}
		})},
		{Name: "broad-list-filtered", Profile: testbed.Broad, Breaks: Clauses("access/discovery-broad", "list/pages-cover-all-once"), Origin: Imagined, Options: func(o *bridge.Options) {
			o.Visibility, o.ServiceUser, o.ServicePassword = bridge.VisibilityFiltered, "", ""
		}},
		{Name: "broad-describe-filtered", Profile: testbed.Broad, Breaks: Clauses("access/discovery-broad", "describe/answers-tool"), Origin: Imagined, SiteMiddleware: withSite(toDescribe, func(site *siteClient, x *exchange) {
			if _, own := site.method(authorized(x.Request), x.described()); x.Status == http.StatusOK && !own {
				x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.described()))
			}
		})},
		{Name: "broad-runs-as-service", Profile: testbed.Broad, Breaks: Clauses("access/credentials-forwarded", "access/discovery-broad", "access/discovery-not-execution", "invoke/denied"), Origin: Peer,
			Why: "the discovery account makes the calls as well", Transport: onCall(func(r *http.Request, _ map[string]any) { r.Header.Set("Authorization", basicAuth("service")) })},
		{Name: "broad-to-everybody", Profile: testbed.Broad, Breaks: Clauses("access/list-403", "access/describe-403", "access/anonymous"), Origin: Imagined,
			Why: "the discovery permission is checked for the service account, not for the caller", Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if !isCall(r) {
					r = r.Clone(r.Context())
					r.Header.Set("Authorization", basicAuth("service"))
				}
				return next.RoundTrip(r)
			})},
		{Name: "mcp-denied-tool-other-words", MCP: true, Breaks: Clauses("access/no-oracle"), Origin: Imagined,
			SiteMiddleware: func(site *siteClient) middleware {
				return onRPC("tools/call", func(m *rpc) {
					name := fmt.Sprint(m.Params["name"])
					if attributes, shown := site.method(basicAuth("admin"), name); m.Code() == "-32602" && shown && attributes["mcpTool"] != nil {
						m.Fail(-32602, "Access denied to "+name)
					}
				})
			},
			MayFail: Clauses("fresh/single-flight")},
		{Name: "mcp-failures-tell-credentials", MCP: true, Breaks: Clauses("access/credentials-kept-secret"), Origin: Imagined, Why: "the error message contains the request with its credentials",
			Middleware: onToolError("", func(m *rpc) {
				content, _ := m.Result()["content"].([]any)
				m.Result()["content"] = append(content, map[string]any{"type": "text", "text": "Authorization: " + authorized(m.Request)})
			})},
		{Name: "mcp-sessions-by-user-name", MCP: true, Breaks: Clauses("access/bad-credentials"), Origin: Peer,
			Why: "a session belongs to who opened it, and the name is compared alone",
			Middleware: actAsSessionOwner(func(r *http.Request, owner string) bool {
				name, _, ok := (&http.Request{Header: http.Header{"Authorization": {owner}}}).BasicAuth()
				return ok && caller(r) == name
			})},
		{Name: "mcp-passwords-remembered-by-name", MCP: true, Breaks: Clauses("access/bad-credentials"), Origin: Peer,
			Why: "the server of a caller is kept by the user name",
			Middleware: acceptAlike(func(r *http.Request) string {
				if !toMCP(r) {
					return ""
				}
				return caller(r)
			})},
		{Name: "descriptions-outlive-credentials", Breaks: Clauses("access/bad-credentials"), Origin: Imagined,
			Why:        "what is described is kept by the credentials, for good",
			Middleware: goodResponses(toDescribe, ofQuery, http.StatusUnauthorized, http.StatusForbidden)},
		{Name: "mcp-caller-in-a-variable", MCP: true, Breaks: Clauses("access/no-cross-talk"), Origin: Peer,
			Why:        "the handler of a tool reads the request from the server that the last caller was connected to",
			Middleware: markMCP, Transport: lastCallerOfMCP()},
		{Name: "mcp-tokens-not-forwarded", MCP: true, Breaks: Clauses("access/credentials-forwarded"), Origin: Peer,
			Why: "the handler of a tool is given the Basic credentials alone",
			Middleware: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if toMCP(r) && strings.HasPrefix(authorized(r), "Bearer ") && r.Header.Get("Mcp-Session-Id") != "" {
					r.Header.Del("Authorization")
				}
				return false
			})},
		{Name: "last-permission-is-enough", Breaks: Clauses("access/filtered-by-method"), Origin: Imagined,
			Why: "each permission of a method replaces the result of the one before", Middleware: showsByLastPermission()},
		{Name: "cors-origin-by-its-end", Breaks: Clauses("access/cors"), Origin: Peer, Why: "an expression for the hosts below the own one is not anchored",
			Middleware: permitting(func(origin, host string) bool { return strings.HasSuffix(origin, host) })},
		{Name: "authorization-repeated-in-errors", Breaks: Clauses("access/credentials-kept-secret"), Origin: Peer,
			Why: "an unknown scheme is named with what follows it",
			Middleware: onError(func(x *exchange, e map[string]any) {
				if a := authorized(x.Request); a != "" && !strings.HasPrefix(a, "Basic ") && !strings.HasPrefix(a, "Bearer ") {
					e["message"] = "The Authorization " + a + " is not supported."
				}
			})},
		{Name: "list-by-the-language-alone", Breaks: Clauses("access/no-cross-talk"), Origin: Peer, Why: "what is translated is cached apart, by the language",
			Middleware: shareFirstResponse(func(r *http.Request) bool { return toList(r) && r.Header.Get("Accept-Language") != "" },
				func(r *http.Request) string {
					return r.Header.Get("Accept-Language") + r.URL.RawQuery
				})},
	}
}

// accessVariants refuse in the ways that the contract lets a bridge choose from.
func accessVariants() []Mutant {
	return []Mutant{
		{Name: "one-account-for-all", MCP: true, Claims: "auth-service,-tools", Why: "a gateway before a bridge on stdio acts as one account of the site whoever calls",
			Middleware: beforeBridge(func(r *http.Request) {
				if toMCP(r) {
					r.Header.Del("Cookie")
					r.SetBasicAuth("service", "service-pass")
				}
			})},
		{Name: "cors-for-everyone", Why: "any page may read what it asks for without credentials",
			Middleware: onResponse(allRequests, setHeader("Access-Control-Allow-Origin", "*"))},
		{Name: "cors-of-one-page", Why: "the bridge's own page, at another host, may read with credentials", Middleware: onResponse(allRequests, func(x *exchange) {
			x.Header.Set("Access-Control-Allow-Origin", "https://console.example")
			x.Header.Set("Access-Control-Allow-Credentials", "true")
			x.Header.Add("Vary", "Origin")
		})},
		{Name: "broad-with-permission-ttl", Profile: testbed.Broad, Claims: "permission-ttl", Why: "what a caller may run can be cached where every caller sees all tools"},
		{Name: "broad-unclaimed", Profile: testbed.Broad, Claims: "-visibility-broad,permission-ttl", Why: "a bridge need not claim how it shows tools: it may show all to every caller"},
		{Name: "limits-wrong-passwords", Why: "a bridge may refuse new callers for an hour after 50 wrong passwords, so that the site does not lock its accounts", Options: func(o *bridge.Options) {
			o.AddressFailures, o.TotalFailures = 50, 50
		}},
		{Name: "denied-invoke-403", Why: "403 or 404 for a tool that the caller may not run", Middleware: onDeniedName(toInvoke, func(x *exchange, _ tool) {
			x.Refuse(http.StatusForbidden, "access_denied", fmt.Sprintf("You may not run %q.", x.invoked()))
		})},
		{Name: "denied-invoke-404", Why: "403 or 404 for a tool that the caller may not run", Middleware: onInvoke(func(x *exchange) {
			if x.Status == http.StatusForbidden && strings.Contains(x.errorMessage(), "does not let this caller run") {
				x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.invoked()))
			}
		})},
		{Name: "anonymous-401", Why: "401 with a challenge, or 403", Middleware: onRefusal(func(x *exchange) {
			if x.anonymous() && x.Status == http.StatusForbidden {
				x.Refuse(http.StatusUnauthorized, "authentication_required", "Authentication is required.")
				x.Header.Set("WWW-Authenticate", `Basic realm="Other", charset="UTF-8"`)
			}
		})},
		{Name: "anonymous-403", Why: "401 with a challenge, or 403", Middleware: onRefusal(func(x *exchange) {
			if x.anonymous() && x.Status == http.StatusUnauthorized {
				x.Refuse(http.StatusForbidden, "access_denied", "Anonymous callers may not use this.")
				x.Header.Del("WWW-Authenticate")
			}
		})},
		{Name: "bad-credentials-403", Why: "401, 403, or the response to anonymous callers", Middleware: onResponse(toToolViews, func(x *exchange) {
			if !x.anonymous() && x.Status == http.StatusUnauthorized {
				x.Refuse(http.StatusForbidden, "access_denied", "The credentials are not valid.")
				x.Header.Del("WWW-Authenticate")
			}
		})},
		{Name: "no-rpc-permission-empty-list", Why: "a caller without the JSON-RPC permission gets an empty list, 403 or the list", Middleware: onResponse(toList, func(x *exchange) {
			if caller(x.Request) == "norpc" {
				x.Set(http.StatusOK, map[string]any{"tools": []any{}})
			}
		})},
		{Name: "broad", Profile: testbed.Broad, Why: "list and describe show every tool; the site still decides who runs it", MCP: true},
		{Name: "broad-denied-other-words", Profile: testbed.Broad, Why: "the contract leaves messages open, as long as they say what is wrong", Middleware: onShownAndDenied(func(x *exchange) {
			x.Refuse(http.StatusForbidden, "access_denied", fmt.Sprintf("You may not run %q.", x.invoked()))
		})},
		{Name: "no-discovery-permission", Why: "a bridge that has no discovery permission", Claims: "-discovery-permission", Transport: onDiscovery(func(index map[string]any) {
			index["meta"] = map[string]any{"mcp": map[string]any{"discovery": true}}
		})},
		{Name: "sessions-alone", Why: "callers authenticate by session cookies only", Claims: "-auth-basic,-auth-bearer"},
	}
}

// sendAgainAsService sends a call again with the service account if the site's response is as wanted, and returns the
// second response.
func sendAgainAsService(wanted func(status int, e map[string]any) bool) transport {
	return onSiteCall(func(r *http.Request, sent []byte, next http.RoundTripper) (*http.Response, error) {
		first, second, err := callTwice(r, sent, next, wanted)
		if second != nil {
			first.Body.Close()
			return second, err
		}
		return first, err
	})
}

// probeAsService is sendAgainAsService, but returns the first response.
func probeAsService(wanted func(status int, e map[string]any) bool) transport {
	return onSiteCall(func(r *http.Request, sent []byte, next http.RoundTripper) (*http.Response, error) {
		first, second, err := callTwice(r, sent, next, wanted)
		if second != nil {
			second.Body.Close()
		}
		return first, err
	})
}

// callTwice sends a call, and sends it again as the service account if the first response is as wanted. The second
// response is nil if there is none.
func callTwice(r *http.Request, sent []byte, next http.RoundTripper, wanted func(status int, e map[string]any) bool) (first, second *http.Response, err error) {
	if first, err = next.RoundTrip(r); err != nil {
		return nil, nil, err
	}
	reply, _ := readAhead(first)
	if e, _ := decode(reply)["error"].(map[string]any); !wanted(first.StatusCode, e) {
		return first, nil, nil
	}
	stronger := withBody(r, sent)
	stronger.Header.Del("Cookie")
	stronger.Header.Set("Authorization", basicAuth("service"))
	if second, err = next.RoundTrip(stronger); err != nil {
		return first, nil, nil
	}
	return first, second, nil
}

// shareFirstListWithSlash sends the first list to every caller who asks for it with a slash behind the path.
func shareFirstListWithSlash() middleware {
	first := newMemory[[]byte]()
	withSlash := func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/mcp/tools/list/") && r.Method == http.MethodGet
	}
	return onResponse(withSlash, func(x *exchange) {
		if own := x.Send(http.MethodGet, strings.TrimSuffix(x.Request.URL.Path, "/"), nil); own.Status == http.StatusOK {
			first.keep("", own.Body)
		}
		if body, ok := first.get(""); ok {
			x.Status, x.Body = http.StatusOK, body
			x.Header.Set("Content-Type", "application/json")
		}
	})
}

// shareCookies adds the cookies of all responses of the site to the requests that follow.
func shareCookies() transport {
	jar := newMemory[string]()
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		r = r.Clone(r.Context())
		if cookie, ok := jar.get("last"); ok {
			r.Header.Add("Cookie", cookie)
		}
		resp, err := next.RoundTrip(r)
		if err != nil {
			return resp, err
		}
		for _, cookie := range resp.Cookies() {
			jar.put("last", cookie.Name+"="+cookie.Value)
		}
		return resp, nil
	})
}

// lockAfterRefusal refuses every request of an account of a check after a list was refused to it.
func lockAfterRefusal(refuse func(x *exchange)) middleware {
	locked := newSet()
	return onResponse(allRequests, func(x *exchange) {
		who := caller(x.Request)
		if locked.has(who) {
			refuse(x)
		} else if (x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden) && toList(x.Request) && strings.HasPrefix(who, "check") {
			locked.add(who)
		}
	})
}

// onDenied changes the refusals for an authenticated caller who lacks the permission.
func onDenied(matches func(*http.Request) bool, change func(x *exchange)) middleware {
	return onResponse(matches, func(x *exchange) {
		if x.Status == http.StatusForbidden && caller(x.Request) == "outsider" {
			change(x)
		}
	})
}

// retryAs repeats a refused call with the credentials of another account.
func retryAs(user, as string) func(*siteClient) middleware {
	return withSite(toInvoke, func(site *siteClient, x *exchange) {
		refused := x.Status == http.StatusForbidden || x.Status == http.StatusNotFound || x.Status == http.StatusUnauthorized
		if !refused || caller(x.Request) != user {
			return
		}
		if _, ok := x.as(as).tool(x.invoked()); ok {
			site.run(x, basicAuth(as))
		}
	})
}

// acceptAnyPassword accepts any password for a user that authenticated before.
func acceptAnyPassword() middleware { return acceptLoosePassword(func(string) string { return "" }) }

// acceptLoosePassword takes a password for the one that was right before where both are the same to loosely.
func acceptLoosePassword(loosely func(string) string) middleware {
	return acceptAlike(func(r *http.Request) string {
		name, password, ok := r.BasicAuth()
		if !ok {
			return ""
		}
		return name + ":" + loosely(password)
	})
}

// acceptAlike takes credentials for those that were right before where both have the same key.
func acceptAlike(key func(*http.Request) string) middleware {
	good := newMemory[string]()
	return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		key := key(r)
		if known, seen := good.get(key); key != "" && seen {
			r.Header.Set("Authorization", known)
		} else if key != "" {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			probe := record(next, listing(r), nil)
			if probe.Status == http.StatusOK {
				good.put(key, authorized(r))
			}
			setBody(r, body)
		}
		next.ServeHTTP(w, r)
	})
}

// listing returns a list request of the same caller.
func listing(r *http.Request) *http.Request {
	other := r.Clone(r.Context())
	other.Method, other.URL.Path, other.URL.RawQuery = http.MethodGet, siblingPath(r, "list"), ""
	if toMCP(r) {
		other.URL.Path = "/mcp/tools/list"
	}
	return other
}

// shareResultAfterDescribe responds to an invoke with the result of another caller's, if that followed a describe of the tool
// and no list was requested since.
func shareResultAfterDescribe() middleware {
	var mu sync.Mutex
	var described string
	kept := map[string][]byte{}
	return onResponse(allRequests, func(x *exchange) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case toList(x.Request):
			clear(kept)
		case toDescribe(x.Request):
			described = x.described()
		case toInvoke(x.Request) && x.Status == http.StatusOK:
			if body, ok := kept[x.invoked()]; ok {
				x.Body = body
				delete(kept, x.invoked())
			} else if described == x.invoked() {
				kept[described] = x.Body
			}
			described = ""
		}
	})
}

// nameLastCall gives an error of a call the name of the tool whose call began last.
func nameLastCall() middleware {
	var last atomic.Value
	return chain(onInvoke(func(x *exchange) {
		if name, _ := last.Load().(string); x.Status == http.StatusInternalServerError {
			x.Body = bytes.ReplaceAll(x.Body, []byte(x.invoked()), []byte(name))
		}
	}), beforeBridge(func(r *http.Request) {
		if toInvoke(r) {
			name, _ := decode(peekBody(r))["name"].(string)
			last.Store(name)
		}
	}))
}

// lastCallerOfMCP sends each tools/call to the site as the last caller of one.
func lastCallerOfMCP() transport {
	var last atomic.Value
	return onCall(func(r *http.Request, _ map[string]any) {
		if own := authorized(r); own != "" && fromMCP(r) {
			last.Store(own)
			time.Sleep(time.Millisecond)
			r.Header.Set("Authorization", last.Load().(string))
		}
	})
}

// showsByLastPermission lists what requires two permissions to who has the second.
func showsByLastPermission() middleware {
	all := newMemory[tool]()
	return onList(func(p *page) {
		has := func(name string) bool {
			return slices.ContainsFunc(p.Tools, func(t any) bool { return t.(tool)["name"] == name })
		}
		for _, t := range p.Tools {
			all.put(t.(tool)["name"].(string), t.(tool))
		}
		if t, known := all.get("access.both"); known && has("access.fixture") && !has("access.both") {
			p.Tools = append(p.Tools, t)
		}
	})
}

// refuseNewcomers refuses for good who was refused with another password before the first good list.
func refuseNewcomers() middleware {
	known, refused := newSet(), newMemory[string]()
	return onResponse(toList, func(x *exchange) {
		who := caller(x.Request)
		with, before := refused.get(who)
		switch {
		case who == "" || known.has(who):
		case x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden:
			refused.put(who, authorized(x.Request))
		case before && with != authorized(x.Request):
			x.Refuse(http.StatusUnauthorized, "authentication_required", "The credentials are wrong.")
		default:
			known.add(who)
		}
	})
}
