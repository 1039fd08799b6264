package mutants

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/invoke"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// upstreamMutants handle a broken, slow or hostile site wrongly.
func upstreamMutants() []Mutant {
	return []Mutant{
		{Name: "calls-as-text", Breaks: Clauses("upstream/valid-jsonrpc"), Origin: Imagined,
			Transport: onCall(func(r *http.Request, _ map[string]any) { r.Header.Set("Content-Type", "text/plain") })},
		{Name: "calls-without-id", Breaks: Clauses("upstream/valid-jsonrpc", "invoke/answers-result", "invoke/empty-arguments"), Origin: Peer,
			MayFail:   Clauses("errors/envelope", "errors/code-stable", "errors/status-agrees", "translate/entity-reference", "upstream/id-mismatch", "upstream/http-error", "upstream/error-any-status"), // their positive controls have no result
			Why:       "the site takes the call for a notification and sends no result",
			Transport: onCall(func(_ *http.Request, call map[string]any) { delete(call, "id") })},
		{Name: "site-asked-before-validation", Breaks: Clauses("upstream/eager-validation", "invoke/invalid-arguments-400", "invoke/runs-once"), Origin: Module,
			SiteMiddleware: withSite(toInvoke, func(site *siteClient, x *exchange) {
				if x.Status == http.StatusBadRequest && strings.Contains(string(x.Body), "invalid_params") {
					site.call(authorized(x.Request), x.invoked(), decode(x.Sent)["arguments"])
				}
			})},
		{Name: "a-connection-for-each-call", Breaks: Clauses("upstream/pooled"), Origin: Peer,
			Transport: func(http.RoundTripper) http.RoundTripper { return &http.Transport{DisableKeepAlives: true} }},
		{Name: "a-connection-for-each-failure", Breaks: Clauses("upstream/pooled"), Origin: Peer,
			Why: "the connection goes back to the pool where a result is read, and an error is thrown before",
			Transport: func(next http.RoundTripper) http.RoundTripper {
				return onReply(func(reply map[string]any) {
					if reply["error"] != nil {
						next.(*http.Transport).CloseIdleConnections()
					}
				})(next)
			}},
		{Name: "any-id-will-do", Breaks: Clauses("upstream/id-mismatch"), Origin: Peer, Transport: onReplyTo(func(call, reply map[string]any) {
			if _, ok := reply["result"]; ok {
				reply["id"] = call["id"]
			}
		})},
		{Name: "ids-compared-loosely", Breaks: Clauses("upstream/id-mismatch"), Origin: Peer, Why: "`$response['id'] == $id`: true equals any number",
			Transport: onReplyTo(func(call, reply map[string]any) {
				if reply["id"] == true {
					reply["id"] = call["id"]
				}
			})},
		{Name: "result-beside-the-error-null", Breaks: Clauses("upstream/id-mismatch"), Origin: Peer, Why: "the error is looked for by its value, as in JSON-RPC 1",
			Transport: onReply(func(reply map[string]any) {
				if reply["error"] == nil {
					delete(reply, "error")
				}
			})},
		{Name: "result-beside-an-error", Breaks: Clauses("upstream/id-mismatch"), Origin: Imagined, Transport: onReply(func(reply map[string]any) {
			if _, ok := reply["result"]; ok {
				delete(reply, "error")
			}
		})},
		{Name: "errors-need-an-id", Breaks: Clauses("upstream/id-mismatch", "upstream/error-any-status"), Origin: Peer, Transport: onReply(func(reply map[string]any) {
			if _, has := reply["id"]; reply["error"] != nil && !has {
				delete(reply, "error")
			}
		})},
		{Name: "errors-with-null-id-unread", Breaks: Clauses("upstream/id-mismatch", "invoke/denied", "invoke/execution-error-500", "invoke/semantic-invalid-400", "access/permission-revoked"), Origin: Peer,
			Why: "the id is compared before the response is looked at: Drupal's errors have none", Transport: onReply(func(reply map[string]any) {
				if id, has := reply["id"]; reply["error"] != nil && (!has || id == nil) {
					delete(reply, "error")
				}
			})},
		{Name: "json-and-more-as-result", Breaks: Clauses("upstream/http-error"), Origin: Peer, Why: "the decoder reads one value and stops", Transport: onCallResponse(firstJSONValue)},
		{Name: "notice-before-json-cut-off", Breaks: Clauses("upstream/http-error"), Origin: Peer, Why: "the decoder looks for the first brace", Transport: onCallResponse(fromFirstBrace)},
		{Name: "response-in-a-list-accepted", Breaks: Clauses("upstream/id-mismatch"), Origin: Peer, Why: "a client for batches reads single responses, too", Transport: onCallResponse(firstOfList)},
		{Name: "nan-taken-for-null", Breaks: Clauses("upstream/http-error"), Origin: Peer, Why: "Python's json reads NaN and Infinity", Transport: onCallResponse(func(resp *http.Response) {
			if resp.ContentLength < maxBuffered {
				replaceBody(resp, strings.NewReplacer(":NaN", ":null", ":-Infinity", ":null").Replace(peek(resp)))
			}
		})},
		{Name: "chunks-cut-short-as-whole", Breaks: Clauses("upstream/http-error"), Origin: Peer,
			Why: "PHP's streams read to the end of the connection, and miss no last chunk",
			Transport: onCallResponse(func(resp *http.Response) {
				if resp.ContentLength < 0 {
					body, _ := io.ReadAll(io.LimitReader(resp.Body, maxBuffered))
					replaceBody(resp, string(body))
				}
			})},
		{Name: "result-under-404", Breaks: Clauses("upstream/result-status"), Origin: Peer, Why: "only the body is read",
			Transport: resultsUnder(http.StatusNotFound)},
		overlooks("empty-text-unchecked", "an empty text is taken for none, which has neither pattern nor format", func(v violation) bool {
			return v.Received == `string ""` && (v.Keyword == "pattern" || v.Keyword == "format")
		}),
		overlooks("one-text-taken-for-a-list", "what is no list is made a list of one, as query strings are read", func(v violation) bool {
			return v.Keyword == "type" && strings.HasPrefix(v.Received, `string "w`) && strings.Contains(v.Expected, "array")
		}),
		overlooks("list-of-one-taken-for-its-text", "query strings of frameworks give lists", func(v violation) bool {
			return v.Keyword == "type" && v.Received == "array" && strings.Contains(v.Expected, "string")
		}),
		overlooks("blanks-at-an-end-not-counted", "texts are trimmed before they are measured", func(v violation) bool {
			return v.Keyword == "maxLength" && strings.HasSuffix(v.Received, ` "`)
		}),
		overlooks("uri-without-scheme", "a parser of references takes a path", func(v violation) bool {
			return v.Keyword == "format" && v.Received == `string "/path/alone"`
		}),
		{Name: "circuit-opens-silently", Breaks: Clauses("upstream/down-and-up"), MayFail: Clauses("upstream/timeout"), Origin: Peer,
			Why:       "a breaker of a library opens after five failures, and nobody is told until when",
			Transport: openSilently(5, 2*time.Second, func(_ *http.Response, err error) bool { return errors.Is(err, syscall.ECONNREFUSED) })},
		{Name: "bytes-left-for-the-next", Breaks: Clauses("upstream/excess-bytes", "upstream/idle-closed"), MayFail: Clauses("upstream/cancel"), Origin: Peer, Why: "the client reads as many bytes as were announced, and uses the connection again", Transport: keepConnection(leftBytes)},
		{Name: "kept-connections-unchecked", Breaks: Clauses("upstream/idle-closed"), MayFail: Clauses("upstream/cancel"), Origin: Peer, Why: "a kept socket is written to without a look at it", Transport: keepConnection(endUnseen)},
		{Name: "late-response-for-the-next", Breaks: Clauses("upstream/timeout"),
			MayFail: Clauses("upstream/cancel", "upstream/excess-bytes", "upstream/idle-closed"), Origin: Imagined,
			Why: "a connection goes back to the pool though its call has timed out, and every call has the same id",
			Transport: func(next http.RoundTripper) http.RoundTripper {
				return onReplyTo(func(call, reply map[string]any) {
					if fmt.Sprint(reply["id"]) == "1" {
						reply["id"] = call["id"]
					}
				})(onCall(func(_ *http.Request, call map[string]any) { call["id"] = 1 })(keepConnection(timedOut)(next)))
			}},
		{Name: "headers-passed-on", Breaks: Clauses("upstream/headers-chosen"), MayFail: Clauses("upstream/no-ssrf"), Origin: Peer, Why: "the request is forwarded as a reverse proxy does",
			Middleware: rememberHeaders,
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				received, _ := r.Context().Value(headersKey{}).(http.Header)
				for _, name := range []string{"Range", "Referer", "X-Forwarded-Host", "Cookie"} {
					if values := received.Values(name); len(values) > 0 {
						r.Header[name] = values
					}
				}
				return next.RoundTrip(r)
			})},
		{Name: "host-passed-on", Breaks: Clauses("upstream/headers-chosen", "upstream/no-ssrf"), Origin: Peer, Why: "all of the caller's request but its path is copied",
			Middleware: rememberHeaders,
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if received, ok := r.Context().Value(headersKey{}).(http.Header); ok {
					r.Host = received.Get("Host")
				}
				return next.RoundTrip(r)
			})},
		{Name: "cookies-of-the-site-passed-on", Breaks: Clauses("upstream/headers-chosen"), Origin: Peer, Why: "the headers of the site's response are copied",
			Middleware: func(next http.Handler) http.Handler {
				passed := onResponse(allRequests, func(x *exchange) {
					for cookies := x.Request.Context().Value(cookiesKey{}).(chan string); len(cookies) > 0; {
						x.Header.Add("Set-Cookie", <-cookies)
					}
				})(next)
				return beforeBridge(func(r *http.Request) {
					*r = *r.WithContext(context.WithValue(r.Context(), cookiesKey{}, make(chan string, 8)))
				})(passed)
			},
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				resp, err := next.RoundTrip(r)
				if cookies, ok := r.Context().Value(cookiesKey{}).(chan string); err == nil && ok {
					for _, c := range resp.Header.Values("Set-Cookie") {
						select {
						case cookies <- c:
						default:
						}
					}
				}
				return resp, err
			})},
		{Name: "methods-in-lower-case", Breaks: Clauses("upstream/valid-jsonrpc", "invoke/answers-result", "invoke/result-exact"), Origin: Imagined,
			Transport: onCall(func(_ *http.Request, call map[string]any) {
				if method, ok := call["method"].(string); ok {
					call["method"] = strings.ToLower(method)
				}
			})},
		{Name: "page-as-result", Breaks: Clauses("upstream/http-error"), Origin: Peer, Transport: onSiteCall(pageAsResult)},
		{Name: "failed-discovery-as-empty-site", Breaks: Clauses("upstream/http-error"), MayFail: Clauses("fresh/stale-on-error"), Origin: Peer, Why: "what is no list of methods is read as none",
			Transport: emptySiteWhere(func(resp *http.Response) bool { return resp.StatusCode >= http.StatusInternalServerError })},
		{Name: "methods-in-any-encoding", Breaks: Clauses("upstream/http-error"), Origin: Peer, Why: "what is no UTF-8 is replaced before it is parsed",
			Transport: onHTTPResponse(isDiscovery, func(resp *http.Response) {
				if resp.ContentLength < maxBuffered {
					replaceBody(resp, strings.ToValidUTF8(peek(resp), "?"))
				}
			})},
		{Name: "missing-page-as-unknown-tool", Breaks: Clauses("upstream/http-error"), Origin: Peer, Why: "a 404 of the site is taken for that of a method",
			Transport: onCallResponse(func(resp *http.Response) {
				if resp.StatusCode == http.StatusNotFound && strings.Contains(resp.Header.Get("Content-Type"), "html") {
					replaceBody(resp, `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`)
				}
			})},
		{Name: "result-under-500", Breaks: Clauses("upstream/http-error"), Origin: Imagined,
			Transport: resultsUnder(http.StatusInternalServerError)},
		{Name: "site-401-as-500", Breaks: Clauses("upstream/auth-error"), MayFail: Clauses("access/bad-credentials"), Origin: Peer, Transport: replaceCallStatus(http.StatusUnauthorized, http.StatusInternalServerError)},
		{Name: "mcp-site-401-as-result", MCP: true, Breaks: Clauses("upstream/auth-error"), MayFail: Clauses("access/bad-credentials"), Origin: Peer,
			Why: "what a tool says is a result, and a refusal is said by the tool",
			Middleware: onRPC("tools/call", func(m *rpc) {
				if m.Status == http.StatusUnauthorized {
					m.Status = http.StatusOK
					m.Succeed(map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": "Unauthorized"}}})
				}
			})},
		{Name: "site-403-as-500", Breaks: Clauses("upstream/auth-error", "access/bad-credentials", "access/permission-revoked"), Origin: Imagined, Transport: replaceCallStatus(http.StatusForbidden, http.StatusInternalServerError)},
		{Name: "site-403-read-for-its-error", Breaks: Clauses("upstream/auth-error"), Origin: Peer, Why: "a JSON-RPC error is looked for before the status",
			Transport: onCallResponse(func(resp *http.Response) {
				if resp.StatusCode == http.StatusForbidden && strings.Contains(peek(resp), `"code":-32000`) {
					resp.StatusCode = http.StatusOK
				}
			})},
		{Name: "challenge-of-its-own", Breaks: Clauses("upstream/auth-error"), Origin: Peer, Why: "the bridge names itself as the realm, and a client that knows the site's asks for other credentials",
			Middleware: onInvoke(func(x *exchange) {
				if x.Header.Get("WWW-Authenticate") != "" {
					x.Header.Set("WWW-Authenticate", `Basic realm="Bridge"`)
				}
			})},
		{Name: "time-out-shows-the-request", Breaks: Clauses("upstream/timeout"), Origin: Peer, Why: "the error of the client has the request in it",
			Middleware: onInvoke(atStatus(http.StatusGatewayTimeout, showRequest))},
		{Name: "time-out-names-the-site", Breaks: Clauses("upstream/timeout"), Origin: Peer, Why: "the error of the client has the address in it",
			SiteMiddleware: func(site *siteClient) middleware {
				return onError(func(x *exchange, e map[string]any) {
					if x.Status == http.StatusGatewayTimeout {
						e["message"] = fmt.Sprint(e["message"], " POST ", site.site, "/jsonrpc")
					}
				})
			}},
		{Name: "outage-shows-the-request", Breaks: Clauses("upstream/down-and-up"), MayFail: Clauses("upstream/timeout", "access/credentials-kept-secret"), Origin: Peer,
			Why:        "the error of the client has the request in it",
			Middleware: onInvoke(atStatus(http.StatusServiceUnavailable, showRequest))},
		{Name: "works-for-those-who-left-a-body", Breaks: Clauses("upstream/cancel"), Origin: Peer, Why: "what the caller waits for ends with the headers",
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				lasting, end := context.WithCancel(context.WithoutCancel(r.Context()))
				time.AfterFunc(testbed.UpstreamTimeout, end)
				stop := context.AfterFunc(r.Context(), end)
				defer stop()
				return next.RoundTrip(r.WithContext(lasting))
			})},
		{Name: "discovery-timed-by-each-read", Breaks: Clauses("upstream/timeout"), Origin: Peer, Why: "a long list may take long, as long as something comes",
			Options: func(o *bridge.Options) { o.UpstreamTimeout = time.Minute },
			Transport: func(site http.RoundTripper) http.RoundTripper {
				patient := timeoutOfEachRead(site)
				return timedUnless(isDiscovery)(roundTripper(func(r *http.Request) (*http.Response, error) {
					if isDiscovery(r) {
						return patient.RoundTrip(r)
					}
					return site.RoundTrip(r)
				}))
			}},
		{Name: "mcp-works-for-those-who-left", MCP: true, Breaks: Clauses("upstream/cancel"), Origin: Peer, Why: "a call over MCP does not end with its connection",
			Middleware: beforeBridge(func(r *http.Request) {
				if toMCP(r) && !isStream(r) {
					*r = *outlasting(r)
				}
			})},
		{Name: "mcp-session-calls-end-with-their-client", MCP: true, Breaks: Clauses("upstream/cancel"), Origin: Peer,
			Why: "the context of the request is that of the call, in every revision",
			Middleware: beforeBridge(func(r *http.Request) {
				if r.Header.Get("Mcp-Session-Id") != "" {
					*r = *r.WithContext(context.WithValue(r.Context(), clientKey{}, r.Context()))
				}
			}),
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if client, ok := r.Context().Value(clientKey{}).(context.Context); ok {
					tied, end := context.WithCancel(r.Context())
					context.AfterFunc(client, end)
					r = r.WithContext(tied)
				}
				return next.RoundTrip(r)
			})},
		{Name: "code-of-a-time-out-unknown", Breaks: Clauses("upstream/timeout"), Origin: Peer, Why: "the code is made of the words of the status",
			Middleware: onError(func(x *exchange, e map[string]any) {
				if x.Status == http.StatusGatewayTimeout {
					e["code"] = "gateway_timeout"
				}
			})},
		{Name: "waits-too-long", Breaks: Clauses("upstream/timeout"), Origin: Peer,
			Options: func(o *bridge.Options) { o.UpstreamTimeout = 2500 * time.Millisecond }},
		{Name: "waits-for-a-connection", Breaks: Clauses("upstream/timeout"), Origin: Peer, Why: "the time-out starts when the connection is open", Transport: timeoutFromConnection},
		{Name: "time-out-of-each-read", Breaks: Clauses("upstream/timeout"), Origin: Peer, Why: "a site that sends a byte now and then never times out",
			Options: func(o *bridge.Options) { o.UpstreamTimeout = time.Minute }, Transport: timeoutOfEachRead},
		{Name: "mcp-waits-for-good", MCP: true, Breaks: Clauses("upstream/timeout"), Origin: Peer,
			Why:     "the server of the SDK has a client of its own, without a time-out",
			Options: func(o *bridge.Options) { o.UpstreamTimeout = time.Minute }, Middleware: markMCP,
			Transport: timedUnless(fromMCP)},
		{Name: "lists-timed-to-their-headers", Breaks: Clauses("upstream/timeout"), Origin: Peer,
			Why:       "the timer of a fetch is cleared when it resolves, which is before the body comes",
			Options:   func(o *bridge.Options) { o.UpstreamTimeout = time.Minute },
			Transport: timedToHeaders(func(r *http.Request, _ int) bool { return !isCall(r) })},
		{Name: "failures-timed-to-their-headers", Breaks: Clauses("upstream/timeout"), Origin: Peer,
			Why:       "the text of a failure is read for the log, by another path than results",
			Options:   func(o *bridge.Options) { o.UpstreamTimeout = time.Minute },
			Transport: timedToHeaders(func(_ *http.Request, status int) bool { return status >= http.StatusBadRequest })},
		{Name: "challenge-of-its-own-to-lists", Breaks: Clauses("upstream/auth-error"), Origin: Peer, Why: "the guard of the list has a realm of its own",
			Middleware: onResponse(toList, func(x *exchange) {
				if x.Header.Get("WWW-Authenticate") != "" {
					x.Header.Set("WWW-Authenticate", `Basic realm="Bridge"`)
				}
			})},
		{Name: "lists-behind-one-lock", Breaks: Clauses("upstream/timeout"), Origin: Peer, Why: "the cache is locked while a list is discovered",
			Middleware: func() middleware {
				var mu sync.Mutex
				return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
					if toToolViews(r) {
						mu.Lock()
						defer mu.Unlock()
					}
					next.ServeHTTP(w, r)
				})
			}()},
		{Name: "discoveries-behind-one-lock", Breaks: Clauses("upstream/timeout"), Origin: Peer,
			Why:       "one lock keeps every caller's first list from asking the site twice",
			Transport: oneAtATime(isDiscovery)},
		{Name: "no-tool-while-down", Breaks: Clauses("upstream/down-and-up"), Origin: Peer, Why: "a discovery that failed is an empty list", Middleware: onInvoke(func(x *exchange) {
			if x.Status >= http.StatusBadGateway && x.Send(http.MethodGet, siblingPath(x.Request, "list"), nil).Status >= http.StatusBadGateway {
				x.Refuse(http.StatusNotFound, "tool_not_found", fmt.Sprintf("There is no tool named %q.", x.invoked()))
			}
		})},
		{Name: "breaker-never-closes", Breaks: Clauses("upstream/down-and-up"), Origin: Peer,
			MayFail: Clauses("invoke/answers-result", "invoke/arguments-forwarded", "invoke/empty-arguments", "invoke/error-data-kept", "invoke/result-exact", "invoke/null-result",
				"invoke/undeclared-argument", "invoke/unknown-404", "invoke/output-matches-schema", "translate/entity-reference", "translate/unknown-type"), // whatever calls the site after the first fault
			Why: "one connection that failed opens the circuit breaker, and nothing closes it", Transport: failAfterFault()},
		{Name: "works-for-those-who-left-after-discovery", Breaks: Clauses("upstream/cancel"), Origin: Peer, Why: "nothing is cached: a discovery, which ends, precedes each call",
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if isCall(r) {
					discover(r, next)
				}
				return next.RoundTrip(outlasting(r))
			})},
		{Name: "answers-of-any-size", Breaks: Clauses("upstream/huge-answer", "upstream/timeout"), Origin: Peer,
			Options: func(o *bridge.Options) {
				o.MaxAnswer, o.UpstreamTimeout, o.Output = 1<<30, 6*time.Second, invoke.OutputPass
			}, Claims: "-output-validation"},
		{Name: "answers-read-to-the-end", Breaks: Clauses("upstream/huge-answer"), Origin: Peer, Why: "the size is compared when the whole response has been read",
			Options: func(o *bridge.Options) { o.UpstreamTimeout = 3 * time.Second }, MayFail: Clauses("upstream/timeout"),
			Transport: onCallResponse(func(resp *http.Response) {
				start, err := io.ReadAll(io.LimitReader(resp.Body, testbed.MaxResponse+1))
				if err == nil && len(start) > testbed.MaxResponse {
					_, err = io.Copy(io.Discard, resp.Body)
				}
				resp.Body = resumed{io.MultiReader(bytes.NewReader(start), failing{err}), resp.Body}
			})},
		{Name: "redirects-followed", Breaks: Clauses("upstream/no-ssrf", "upstream/http-error"), Origin: Peer,
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				return followRedirects(r, next)
			})},
		{Name: "redirects-of-discovery-followed", Breaks: Clauses("upstream/no-ssrf"), Origin: Peer, Why: "calls and discovery use separate clients",
			Transport: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if isCall(r) {
					return next.RoundTrip(r)
				}
				return followRedirects(r, next)
			})},
		calledHost("host-chooses-the-site", toList, func(r *http.Request) string { return r.Host }),
		calledHost("absolute-target-chooses-the-site", toInvoke, func(r *http.Request) string {
			if !r.URL.IsAbs() {
				return ""
			}
			return r.URL.Host
		}),
		calledHost("forwarded-host-chooses-the-site", toInvoke, fromHeader("X-Forwarded-Host")),
		calledHost("forwarded-host-and-port-choose-the-site", toList, func(r *http.Request) string {
			if r.Header.Get("X-Forwarded-Port") == "" {
				return ""
			}
			return net.JoinHostPort(r.Header.Get("X-Forwarded-Host"), r.Header.Get("X-Forwarded-Port"))
		}),
		calledHost("forwarded-chooses-the-site", toDescribe, func(r *http.Request) string {
			_, host, _ := strings.Cut(r.Header.Get("Forwarded"), "host=")
			host, _, _ = strings.Cut(host, ";")
			return strings.Trim(host, `"`)
		}),
		calledHost("original-host-chooses-the-site", toMCP, fromHeader("X-Original-Host")),
		calledHost("host-override-chooses-the-site", toList, fromHeader("X-HTTP-Host-Override")),
		calledHost("rewrite-url-chooses-the-site", toInvoke, func(r *http.Request) string {
			u, err := url.Parse(r.Header.Get("X-Rewrite-URL"))
			if err != nil {
				return ""
			}
			return u.Host
		}),
		{Name: "calls-by-get", Breaks: Clauses("upstream/post-only", "invoke/runs-once", "upstream/valid-jsonrpc"), Origin: Peer,
			Transport: byGetWhere(isCall)},
		{Name: "errors-under-500-lost", Breaks: Clauses("upstream/error-any-status"), Origin: Peer,
			Transport: onCallResponse(func(resp *http.Response) {
				if resp.StatusCode >= 500 {
					replaceBody(resp, "")
				}
			})},
		{Name: "errors-under-500-open-the-circuit", Breaks: Clauses("upstream/error-any-status"), Origin: Peer,
			Why: "a breaker counts each 500 as a failure of the site, whatever its body says",
			Transport: openSilently(10, time.Second, func(resp *http.Response, err error) bool {
				return err == nil && resp.StatusCode == http.StatusInternalServerError
			})},
		{Name: "silence-as-null", Breaks: Clauses("upstream/error-any-status", "upstream/id-mismatch", "upstream/http-error", "upstream/huge-answer"), Origin: Module,
			MayFail: Clauses("upstream/down-and-up"), // 502 where a kept connection broke, 503 where none could be made
			Middleware: onInvoke(func(x *exchange) {
				if x.Status == http.StatusBadGateway && len(x.Body) > 0 {
					x.Set(http.StatusOK, map[string]any{"result": nil})
				}
			})},
		{Name: "mcp-calls-as-text", MCP: true, Breaks: Clauses("upstream/valid-jsonrpc"), Origin: Imagined, Middleware: markMCP,
			Transport: onCall(func(r *http.Request, _ map[string]any) {
				if fromMCP(r) {
					r.Header.Set("Content-Type", "text/plain")
				}
			})},
		{Name: "mcp-calls-by-get", MCP: true, Breaks: Clauses("upstream/post-only", "invoke/runs-once"), Origin: Imagined,
			Middleware: markMCP, Transport: byGetWhere(fromMCP)},
		{Name: "long-lists-validated-at-their-beginning", Breaks: Clauses("upstream/eager-validation"), Origin: Peer, Why: "a hundred elements show what a list holds",
			SiteMiddleware: withSite(toInvoke, func(site *siteClient, x *exchange) {
				if elements, _ := objectIn(decode(x.Sent), "arguments")["objects"].([]any); len(elements) > 100 && x.Status == http.StatusBadRequest {
					site.call(authorized(x.Request), x.invoked(), decode(x.Sent)["arguments"])
				}
			})},
		{Name: "mcp-arguments-validated-by-the-site", MCP: true, Breaks: Clauses("upstream/eager-validation"), Origin: Peer,
			Why:            "the SDK's server has the schemas for its list alone",
			SiteMiddleware: leaveToTheSite(func(string) bool { return true })},
		{Name: "mcp-formats-validated-by-the-site", MCP: true, Breaks: Clauses("upstream/eager-validation"), Origin: Peer,
			Why:            "the SDK's validator reads no formats",
			SiteMiddleware: leaveToTheSite(func(tool string) bool { return tool == "shape.format" })},
		{Name: "denials-under-200-alone", Breaks: Clauses("upstream/error-any-status"), Origin: Peer, Why: "a status that is no 200 is a failure of the site, whatever its body says",
			Transport: onCallResponse(func(resp *http.Response) {
				if body, err := readAhead(resp); err == nil && resp.StatusCode != http.StatusOK {
					replaceBody(resp, strings.ReplaceAll(string(body), "Access Denied", "Denied"))
				}
			})},
		{Name: "results-of-redirects", Breaks: Clauses("upstream/http-error"), Origin: Peer,
			Why: "a client that follows no redirect gives its body, and the status is not looked at",
			Transport: onCallResponse(func(resp *http.Response) {
				if resp.StatusCode == http.StatusFound {
					resp.StatusCode = http.StatusOK
				}
			})},
		{Name: "mcp-failures-of-the-site-as-results", MCP: true, Breaks: Clauses("upstream/http-error"), Origin: Peer,
			Why: "what the site sends is the text of the result, JSON or not",
			Middleware: onRPC("tools/call", func(m *rpc) {
				if m.Result()["isError"] == true && strings.Contains(string(m.Body), "no usable response") {
					delete(m.Result(), "isError")
				}
			})},
		{Name: "missing-discovery-as-empty-site", Breaks: Clauses("upstream/http-error"), Origin: Peer,
			Why:       "404 for the methods is taken for none",
			Transport: emptySiteWhere(func(resp *http.Response) bool { return resp.StatusCode == http.StatusNotFound })},
		{Name: "redirected-discovery-as-empty-site", Breaks: Clauses("upstream/http-error"), Origin: Imagined,
			Transport: emptySiteWhere(func(resp *http.Response) bool { return resp.StatusCode/100 == 3 })},
		{Name: "methods-before-a-break-as-the-list", Breaks: Clauses("upstream/http-error", "upstream/timeout"), Origin: Peer,
			Why: "the methods are read one after the other, and the end of the stream ends the list", Transport: partOfTheList},
		{Name: "broken-compression-as-null", Breaks: Clauses("upstream/http-error"), Origin: Peer,
			Why: "an error of the decompressor ends the body", Transport: brokenAsNull},
		{Name: "lists-of-any-size", Breaks: Clauses("upstream/huge-answer"), Origin: Peer,
			Why: "the bound is set where results are read", Transport: readDiscoveryToTheEnd},
		{Name: "schemas-dialect-fetched", Breaks: Clauses("upstream/no-ssrf"), Origin: Peer,
			Why: "the library fetches the meta-schema that `$schema` names", Transport: fetchFound(`"\$schema":\s*"(http[^"]+)"`)},
		{Name: "references-relative-to-an-id-fetched", Breaks: Clauses("upstream/no-ssrf"), Origin: Peer,
			Why: "only references that begin with a scheme are left out", Transport: fetchFound(`"\$id":\s*"(http[^"]+)"`)},
		{Name: "further-pages-of-methods-followed", Breaks: Clauses("upstream/no-ssrf"), Origin: Peer,
			Why: "a client of JSON:API follows links.next", Transport: fetchFound(`"next":\s*(?:\{"href":\s*)?"(http[^"]+)"`)},
	}
}

// upstreamVariants report failures of the site by other allowed statuses, or connect to it in another way.
func upstreamVariants() []Mutant {
	return []Mutant{
		{Name: "spare-connections", Why: "connections to the site are opened before they are needed", Transport: withSpareConnections},
		{Name: "failures-of-the-site-500", Why: "500, 502, 503 and 504 are allowed", Middleware: onInvoke(func(x *exchange) {
			if x.Status == http.StatusBadGateway || x.Status == http.StatusGatewayTimeout {
				x.Refuse(http.StatusInternalServerError, "internal_error", "The response of the site cannot be read.")
			}
		})},
		{Name: "failures-of-the-site-503", Why: "500, 502 and 503 are allowed",
			Middleware: onResponse(allRequests, atStatus(http.StatusBadGateway, func(x *exchange) {
				x.Refuse(http.StatusServiceUnavailable, "upstream_unavailable", "The response of the site cannot be read.")
			}))},
	}
}

// withSpareConnections opens a few connections to the site before they are needed, and checks that one is still open before
// it is used.
func withSpareConnections(next http.RoundTripper) http.RoundTripper {
	spares := make(chan net.Conn, 4)
	var dialer net.Dialer
	next.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		go func() {
			one, err := net.DialTimeout(network, address, testbed.UpstreamTimeout)
			if err != nil {
				return
			}
			select {
			case spares <- one:
			default:
				one.Close()
			}
		}()
		for {
			select {
			case spare := <-spares:
				if isOpen(spare) {
					return spare, nil
				}
				spare.Close()
			default:
				return dialer.DialContext(ctx, network, address)
			}
		}
	}
	return next
}

// isOpen reports whether an idle connection is still open.
func isOpen(conn net.Conn) bool {
	if conn.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	_, err := conn.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded) && conn.SetReadDeadline(time.Time{}) == nil
}

// connectTime is the time-out for connecting in timedFromConnection: longer than any bridge may wait.
const connectTime = 4 * time.Second

// timeoutFromConnection starts the time-out of the bridge when the connection to the site is open.
func timeoutFromConnection(next http.RoundTripper) http.RoundTripper {
	next.(*http.Transport).DialContext = (&net.Dialer{Timeout: connectTime}).DialContext
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		lasting, end := context.WithCancel(context.WithoutCancel(r.Context()))
		connected := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { context.AfterFunc(r.Context(), end) }}
		resp, err := next.RoundTrip(r.WithContext(httptrace.WithClientTrace(lasting, connected)))
		if err != nil {
			end()
		}
		return resp, err
	})
}

// timedToHeaders ends a request after the time-out of the bridge, where a rule says so only until the headers are there.
func timedToHeaders(only func(r *http.Request, status int) bool) func(http.RoundTripper) http.RoundTripper {
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		limited, end := context.WithCancel(r.Context())
		timer := time.AfterFunc(testbed.UpstreamTimeout, end)
		resp, err := next.RoundTrip(r.WithContext(limited))
		if err != nil {
			end()
			return resp, err
		}
		if only(r, resp.StatusCode) {
			timer.Stop()
		}
		resp.Body = closeHook{resp.Body, end}
		return resp, nil
	})
}

// timeoutOfEachRead ends a request when the site sends nothing for the time-out of the bridge.
func timeoutOfEachRead(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		patient, end := context.WithCancel(r.Context())
		timer := time.AfterFunc(testbed.UpstreamTimeout, end)
		resp, err := next.RoundTrip(r.WithContext(patient))
		if err == nil {
			resp.Body = timedBody{resp.Body, timer}
		}
		return resp, err
	})
}

// timedBody gives each read of a body the whole time-out.
type timedBody struct {
	io.ReadCloser
	timer *time.Timer
}

func (b timedBody) Read(p []byte) (int, error) {
	b.timer.Reset(testbed.UpstreamTimeout)
	return b.ReadCloser.Read(p)
}

// onReplyTo changes the JSON-RPC response to a call, given the call.
func onReplyTo(change func(call, reply map[string]any)) transport {
	return onSiteCall(func(r *http.Request, sent []byte, next http.RoundTripper) (*http.Response, error) {
		return onReply(func(reply map[string]any) { change(decode(sent), reply) })(next).RoundTrip(r)
	})
}

// peek reads the body of a response and puts it back.
func peek(resp *http.Response) string {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBuffered))
	if err != nil {
		body = nil
	}
	resp.Body = resumed{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
	return string(body)
}

// pageAsResult makes an HTML page the result of the method.
func pageAsResult(r *http.Request, sent []byte, next http.RoundTripper) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err != nil || !strings.Contains(resp.Header.Get("Content-Type"), "html") || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	replaceBody(resp, string(encode(map[string]any{"jsonrpc": "2.0", "id": decode(sent)["id"], "result": peek(resp)})))
	resp.Header.Set("Content-Type", "application/json")
	return resp, nil
}

// firstJSONValue drops what follows the first JSON value of a response.
func firstJSONValue(resp *http.Response) {
	var value json.RawMessage
	if body := peek(resp); json.NewDecoder(strings.NewReader(body)).Decode(&value) == nil && len(value) < len(body) && len(body) < maxBuffered {
		replaceBody(resp, string(value))
	}
}

// closeHook is a body that calls a function when it is closed.
type closeHook struct {
	io.ReadCloser
	end func()
}

func (e closeHook) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

// replaceCallStatus replaces a status of the site's responses to calls.
func replaceCallStatus(is, becomes int) transport {
	return onCallResponse(func(resp *http.Response) {
		if resp.StatusCode == is {
			resp.StatusCode = becomes
		}
	})
}

// resultsUnder takes a result under a status that is no success.
func resultsUnder(status int) transport {
	return onCallResponse(func(resp *http.Response) {
		if resp.StatusCode == status && strings.Contains(peek(resp), `"result"`) {
			resp.StatusCode = http.StatusOK
		}
	})
}

// fromFirstBrace drops what stands before a JSON object.
func fromFirstBrace(resp *http.Response) {
	body := peek(resp)
	if at := strings.Index(body, `{"jsonrpc"`); at > 0 && strings.Contains(body[:at], "<b>Notice</b>") {
		replaceBody(resp, body[at:])
	}
}

// firstOfList takes the only item of a list for the response.
func firstOfList(resp *http.Response) {
	var list []json.RawMessage
	if json.Unmarshal([]byte(peek(resp)), &list) == nil && len(list) == 1 {
		replaceBody(resp, string(list[0]))
	}
}

// What keepConnection does not look at before it sends again.
const (
	leftBytes = iota // that the site has sent more than it announced, and the connection's end
	endUnseen        // the connection's end
	timedOut         // the connection's end, and that a call before has not got its response yet
)

// keepConnection makes calls one after the other on a connection of its own.
func keepConnection(unseen int) transport {
	var (
		mu     sync.Mutex
		conn   net.Conn
		reader *bufio.Reader
	)
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !isCall(r) || !mu.TryLock() {
			return next.RoundTrip(r)
		}
		defer mu.Unlock()
		send := func() (resp *http.Response, body []byte, err error) {
			if conn != nil && unseen != leftBytes && conn.SetReadDeadline(time.Now().Add(time.Millisecond)) == nil {
				if n, _ := conn.Read(make([]byte, 1)); n > 0 || reader.Buffered() > 0 {
					conn.Close()
					conn = nil
				}
			}
			if conn == nil {
				if conn, err = net.Dial("tcp", r.URL.Host); err != nil {
					conn = nil
					return nil, nil, err
				}
				reader = bufio.NewReader(conn)
			}
			_ = conn.SetDeadline(time.Now().Add(testbed.UpstreamTimeout))
			if err = r.Write(conn); err != nil {
				return nil, nil, err
			}
			if resp, err = http.ReadResponse(reader, r); err != nil {
				return nil, nil, err
			}
			body, err = io.ReadAll(io.LimitReader(resp.Body, maxBuffered))
			return resp, body, err
		}
		resp, body, err := send()
		if unseen == timedOut && resp == nil && errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, err
		}
		if err != nil || resp.Close || len(body) == maxBuffered {
			if conn != nil {
				conn.Close()
			}
			conn = nil
		}
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return resp, nil
	})
}

// failAfterFault fails every call after one to which the site sent no response at all.
func failAfterFault() transport {
	var open atomic.Bool
	return onSiteCall(func(r *http.Request, _ []byte, next http.RoundTripper) (*http.Response, error) {
		if open.Load() {
			return nil, fmt.Errorf("the circuit breaker is open")
		}
		resp, err := next.RoundTrip(r)
		if err != nil && r.Context().Err() == nil {
			open.Store(true)
		}
		return resp, err
	})
}

// calledHost is a mutant that sends a request with the caller's credentials to a host that it reads from the requests
// that match, unless it is its own.
func calledHost(name string, matches func(*http.Request) bool, host func(*http.Request) string) Mutant {
	return Mutant{Name: name, Breaks: Clauses("upstream/no-ssrf"), Origin: Peer, MCP: true, Why: "the URL of the site is made from the request",
		SiteMiddleware: func(site *siteClient) middleware {
			return beforeBridge(func(r *http.Request) {
				own, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
				if there := host(r); matches(r) && there != "" && own != nil && there != own.String() {
					site.visit(r.Context(), "http://"+there+"/jsonrpc", authorized(r))
				}
			})
		}}
}

// headersKey is the key of a caller's headers in the context of what is sent to the site for it.
type headersKey struct{}

// cookiesKey is the key of the cookies that the site sets while it responds for a caller.
type cookiesKey struct{}

// rememberHeaders gives what is sent to the site for a caller the caller's headers.
var rememberHeaders = beforeBridge(func(r *http.Request) {
	headers := r.Header.Clone()
	headers.Set("Host", r.Host)
	*r = *r.WithContext(context.WithValue(r.Context(), headersKey{}, headers))
})

func fromHeader(name string) func(*http.Request) string {
	return func(r *http.Request) string { return r.Header.Get(name) }
}

// showRequest adds the headers of the request to an error.
func showRequest(x *exchange) {
	object := x.Object()
	if e, ok := object["error"].(map[string]any); ok {
		e["data"] = map[string]any{"request": map[string]any{"headers": map[string]any{"Authorization": authorized(x.Request)}}}
		x.Body = encode(object)
	}
}

func followRedirects(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.RequestURI = ""
	return (&http.Client{Transport: next}).Do(r)
}

// clientKey is the key of a request's context in what the bridge does for it.
type clientKey struct{}

// outlasting returns the request so that it goes on when its caller has disconnected.
func outlasting(r *http.Request) *http.Request {
	lasting, end := context.WithCancel(context.WithoutCancel(r.Context()))
	time.AfterFunc(testbed.UpstreamTimeout, end)
	return r.WithContext(lasting)
}

// discover sends a discovery request with the credentials of a call, and drops the response.
func discover(call *http.Request, next http.RoundTripper) {
	r := call.Clone(call.Context())
	r.Method, r.URL.Path, r.Body, r.ContentLength = http.MethodGet, call.URL.Path+"/methods", nil, 0
	if resp, err := next.RoundTrip(r); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

// mcpKey marks the context of a request to MCP.
type mcpKey struct{}

// markMCP lets fromMCP tell whether a request to the site was caused by one to MCP.
var markMCP = beforeBridge(func(r *http.Request) {
	if toMCP(r) {
		*r = *r.WithContext(context.WithValue(r.Context(), mcpKey{}, true))
	}
})

func fromMCP(r *http.Request) bool { return r.Context().Value(mcpKey{}) != nil }

// byGetWhere sends some calls by GET.
func byGetWhere(chosen func(*http.Request) bool) transport {
	return onSiteCall(func(r *http.Request, sent []byte, next http.RoundTripper) (*http.Response, error) {
		if chosen(r) {
			r.Method, r.Body, r.ContentLength = http.MethodGet, nil, 0
			r.URL.RawQuery = "query=" + url.QueryEscape(string(sent))
		}
		return next.RoundTrip(r)
	})
}

// emptySiteWhere reads some responses to discovery as those of a site without methods.
func emptySiteWhere(taken func(*http.Response) bool) transport {
	return onHTTPResponse(func(r *http.Request) bool { return r.URL.Path == "/jsonrpc/methods" }, func(resp *http.Response) {
		if taken(resp) {
			replaceBody(resp, `{"data":[],"meta":{"mcp":{"discovery":true}}}`)
			resp.StatusCode = http.StatusOK
			resp.Header.Set("Content-Type", "application/json")
		}
	})
}

// partOfTheList takes the methods that came before the body of discovery broke off.
var partOfTheList = onHTTPResponse(isDiscovery, func(resp *http.Response) {
	body, broken := io.ReadAll(io.LimitReader(resp.Body, maxBuffered))
	text := string(body)
	if at := strings.LastIndex(text, `,{"type":"JsonRpcMethod"`); broken != nil && at > 0 {
		text = text[:at] + `],"meta":{"mcp":{"discovery":true}}}`
	}
	replaceBody(resp, text)
})

// brokenAsNull takes null for the result of a response whose compression is broken.
var brokenAsNull = onSiteCall(func(r *http.Request, sent []byte, next http.RoundTripper) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err != nil || !resp.Uncompressed {
		return resp, err
	}
	body, broken := io.ReadAll(io.LimitReader(resp.Body, maxBuffered))
	if len(body) == maxBuffered { // a large one
		resp.Body = resumed{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
		return resp, nil
	}
	if broken != nil {
		body = encode(map[string]any{"jsonrpc": "2.0", "id": decode(sent)["id"], "result": nil})
	}
	replaceBody(resp, string(body))
	return resp, nil
})

// readDiscoveryToTheEnd reads all of what comes for a list, and drops what is too much.
var readDiscoveryToTheEnd = onHTTPResponse(isDiscovery, func(resp *http.Response) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBuffered))
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	resp.Body = resumed{io.MultiReader(bytes.NewReader(body), failing{err}), resp.Body}
})

// fetchFound requests what an expression finds in discovery.
func fetchFound(expression string) transport {
	address := regexp.MustCompile(expression)
	return onHTTPResponse(isDiscovery, func(resp *http.Response) {
		if resp.ContentLength >= maxBuffered {
			return
		}
		for _, found := range address.FindAllStringSubmatch(strings.ReplaceAll(peek(resp), `\/`, "/"), -1) {
			if u, err := url.Parse(found[1]); err == nil && u.Hostname() == "127.0.0.1" && u.Host != resp.Request.URL.Host {
				if there, err := http.Get(found[1]); err == nil { //nolint:noctx // as such a library does
					there.Body.Close()
				}
			}
		}
	})
}

// timedUnless sends requests to the site with the time-out of the testbed, body included, and some without any.
func timedUnless(untimed func(*http.Request) bool) transport {
	return onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if untimed(r) {
			return next.RoundTrip(r)
		}
		limited, end := context.WithTimeout(r.Context(), testbed.UpstreamTimeout)
		resp, err := next.RoundTrip(r.WithContext(limited))
		if err != nil {
			end()
			return resp, err
		}
		resp.Body = closeHook{resp.Body, end}
		return resp, nil
	})
}

// leaveToTheSite calls the methods of some tools with the arguments that the bridge refuses over MCP.
func leaveToTheSite(concerns func(tool string) bool) func(*siteClient) middleware {
	return withSite(toMCP, func(site *siteClient, x *exchange) {
		message := decode(x.Sent)
		params := objectIn(message, "params")
		if name := fmt.Sprint(params["name"]); message["method"] == "tools/call" && concerns(name) && strings.Contains(string(x.Body), "are not valid") {
			site.call(authorized(x.Request), name, params["arguments"])
		}
	})
}

// overlooks returns a mutant that leaves some violations to the site.
func overlooks(name, why string, some func(violation) bool) Mutant {
	return Mutant{Name: name, Breaks: Clauses("upstream/eager-validation", "invoke/invalid-arguments-400"), Origin: Peer, Why: why, SiteMiddleware: skipValidation(eachViolation(some))}
}
