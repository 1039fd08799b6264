package client

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
)

// symptom is something that a proxy does to requests and responses by itself.
type symptom struct {
	does    string            // after the proxy's name
	set     string            // what to look for at a proxy without a line of its own
	lines   map[string]string // to add or remove, by proxy
	clauses []string          // that fail of it, as patterns, where the response does not show it
}

// symptoms are what the five do by default or by a usual line, and the lines that end it (docs/behind-a-proxy.md has them in
// place).
var (
	refusesBodies = symptom{does: "refuses bodies above a limit of its own", set: "raise its limit of a request's body above the bridge's",
		lines: map[string]string{nginx: "add client_max_body_size 64m;", apache: "add LimitRequestBody 67108864", caddy: "add request_body { max_size 64MB }"}}
	refusesHeaders = symptom{does: "refuses longer headers or addresses than the bridge", set: "raise its limit of headers",
		lines: map[string]string{nginx: "add large_client_header_buffers 4 64k;", apache: "add LimitRequestFieldSize 65536", haproxy: "add tune.bufsize 65536"}}
	cannotReach = symptom{does: "got no whole response from the bridge, or does not reach it", set: "see the log of the bridge, and after it that of the proxy",
		lines: map[string]string{apache: "add retry=0 on the line of ProxyPass, so that it does not keep away from the bridge for 60 s after one failure",
			nginx:   "add max_fails=0 on the line of the server, so that it does not keep away from the bridge for 10 s after one failure",
			haproxy: "add option httpchk GET /readyz, if its check of the bridge fails"}}
	limits = symptom{does: "refuses more requests in a time than a limit of its own", set: "raise it while the bridge is tested, or set `rate` in the configuration of the run",
		lines: map[string]string{nginx: "raise limit_req and limit_conn while the bridge is tested, or write limit_req_status 429; so that the run waits, or set its `rate`"}}
	givesUp = symptom{does: "gave up before the bridge had responded", set: "let it wait longer than the bridge does for its site",
		lines: map[string]string{nginx: "add proxy_read_timeout 1h;", apache: "add timeout=3600 on the line of ProxyPass", haproxy: "add timeout server 1h", varnish: "add .first_byte_timeout = 90s;",
			caddy: "add transport http { response_header_timeout 90s }"}}
	replacesErrors = symptom{does: "may put pages of its own in place of the bridge's errors", set: "let it pass errors on as they come",
		lines: map[string]string{nginx: "add proxy_intercept_errors off;", apache: "add ProxyErrorOverride Off", haproxy: "remove `http-response return` and `errorfiles` for statuses of the bridge",
			varnish: "remove `return (synth(…))` in vcl_backend_response", caddy: "remove `handle_response` and `handle_errors` for statuses of the bridge"}}
	buffers = symptom{does: "may collect a response before it passes it on, so that no event of a stream comes", set: "let it pass responses on as they come",
		lines: map[string]string{nginx: "add proxy_buffering off;", apache: "add flushpackets=on on the line of ProxyPass, and remove mod_deflate for text/event-stream", haproxy: "add option http-no-delay",
			varnish: "add set beresp.do_stream = true;"},
		clauses: []string{"fresh/notify", "replicas/list-changed", "mcp/stateless-2026"}}
	caches = symptom{does: "may give responses from a cache", set: "let it cache nothing of the bridge: its responses are private",
		lines:   map[string]string{nginx: "add proxy_cache off;", apache: `add CacheDisable "/"`, haproxy: "remove `http-request cache-use` for the bridge", varnish: "add sub vcl_recv { return (pass); }", caddy: "remove `cache` for the bridge"},
		clauses: []string{"access/no-cross-talk", "access/per-credential", "access/list-403", "access/describe-403", "access/anonymous", "access/filtered-by-method", "access/bad-credentials", "fresh/version"}}
	dropsCredentials = symptom{does: "may keep the header Authorization to itself", set: "let it pass Authorization on",
		lines: map[string]string{nginx: "add proxy_set_header Authorization $http_authorization;", apache: "remove `RequestHeader unset Authorization`; before FastCGI add CGIPassAuth On",
			haproxy: "remove `http-request del-header Authorization`", varnish: "remove `unset req.http.Authorization`", caddy: "remove `header_up -Authorization` and `basicauth`"},
		clauses: []string{"access/credentials-forwarded", "access/own-account", "auth/right-token"}}
	decodesPaths = symptom{does: "may decode or clean the path", set: "let it pass the path on as it came",
		lines: map[string]string{nginx: "write proxy_pass http://bridge; (without a path behind the name) and merge_slashes off;", apache: "add AllowEncodedSlashes NoDecode, and nocanon on the line of ProxyPass",
			haproxy: "remove `http-request normalize-uri`", varnish: "remove what changes req.url", caddy: "remove `uri` and `rewrite`"},
		clauses: []string{"per-tool/*", "http/trailing-and-case"}}
	cutsBodies = symptom{does: "may cut what it passes on", set: "look at its log: a temporary file that it cannot write or a limit of a response",
		lines: map[string]string{nginx: "add proxy_buffering off; (else the error log says why it cannot write to proxy_temp_path)"}}
	dropsSessions = symptom{does: "may keep the header Mcp-Session-Id to itself", set: "let it pass Mcp-Session-Id on, in both directions",
		lines: map[string]string{nginx: "remove `proxy_hide_header Mcp-Session-Id`", apache: "remove `Header unset Mcp-Session-Id`", haproxy: "remove `http-response del-header Mcp-Session-Id`",
			varnish: "remove `unset beresp.http.Mcp-Session-Id`", caddy: "remove `header_down -Mcp-Session-Id`"},
		clauses: []string{"mcp/session", "replicas/mcp-session*", "replicas/shared-session-end"}}
	repeats = symptom{does: "may send a request again that the bridge has responded to", set: "let it repeat only what never reached the bridge",
		lines: map[string]string{nginx: "remove non_idempotent from proxy_next_upstream", apache: "remove failonstatus= on the line of ProxyPass", haproxy: "write retry-on conn-failure",
			varnish: "remove `return (retry)`", caddy: "remove lb_retry_match for POST"},
		clauses: []string{"invoke/runs-once", "invoke/not-cached", "load/concurrent-exact"}}
	changesHeaders = symptom{does: "may add, change or drop headers", set: "let it pass headers on as they came",
		lines: map[string]string{nginx: "remove what names the header from add_header, proxy_hide_header and proxy_set_header", apache: "remove its lines of Header and RequestHeader",
			haproxy: "remove its lines of set-header and del-header", varnish: "remove what sets or unsets it in req.http and beresp.http", caddy: "remove its lines of header, header_up and header_down"},
		clauses: []string{"http/nosniff", "http/no-shared-cache", "auth/challenge*", "mapping/language", "mcp/trace-context", "mcp/origin", "mcp/bad-version-header", "access/csrf"}}
	keepsCalls = symptom{does: "may go on with a call whose caller has gone", set: "let it end the request to the bridge when the client goes",
		lines:   map[string]string{nginx: "remove proxy_ignore_client_abort on;", haproxy: "add option abortonclose", apache: "nothing helps: it notices when it writes", varnish: "write return (pipe); in place of return (pass); for POST", caddy: "remove flush_interval -1"},
		clauses: []string{"upstream/cancel"}}
	compresses = symptom{does: "may compress or decompress and keep the ETag", set: "let it pass bodies on as they came",
		lines: map[string]string{nginx: "add gzip off;", apache: "add SetEnv no-gzip 1", caddy: "add transport http { compression off }"}, clauses: []string{"http/head", "http/content-negotiation"}}

	// byClause are those that the response does not show.
	byClause = []*symptom{&buffers, &caches, &dropsCredentials, &decodesPaths, &dropsSessions, &repeats, &changesHeaders, &keepsCalls, &compresses}
)

// advice is what to change at a proxy.
func (s symptom) advice(p Proxy) string { return cmp.Or(s.lines[p.Name], s.set) }

// WhoMade says that a proxy made a response by itself, with the setting that ends it; "": the bridge made it, as far as anybody
// knows.
func (a *Response) WhoMade() string {
	p := a.MadeBy()
	if p == nil {
		return ""
	}
	s := cannotReach
	switch a.Status {
	case http.StatusRequestEntityTooLarge:
		s = refusesBodies
	case http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge, http.StatusBadRequest:
		s = refusesHeaders
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		s = givesUp
	case http.StatusTooManyRequests:
		s = limits
	case http.StatusServiceUnavailable:
		if p.Name == nginx { // it says 502 of a bridge that it does not reach
			s = limits
		}
	}
	if s.does == cannotReach.does { // the cause may be either's
		return fmt.Sprintf("the response is the proxy's, %s, which %s: %s", p, s.does, s.advice(*p))
	}
	return fmt.Sprintf("the proxy, not the bridge: %s %s: %s", p, s.does, s.advice(*p))
}

// Suspects says what a proxy that was seen may have to do with a failure of a clause, which a response shows; "": none was seen,
// or nothing points at it.
func (t *Target) Suspects(clause string, a *Response) string {
	p := t.Front()
	if p == nil {
		return ""
	}
	s := suspected(clause, a)
	if s == nil {
		return ""
	}
	shown := ""
	if a != nil {
		if cache := a.cached(); s == &caches && cache != "" {
			shown = " (" + cache + ")"
		}
	}
	return fmt.Sprintf("%s is in front and %s%s: if the bridge keeps this by itself, it is the proxy, not the bridge: %s", p, s.does, shown, s.advice(*p))
}

func suspected(clause string, a *Response) *symptom {
	if a != nil {
		switch {
		case a.cached() != "":
			return &caches
		case a.Status >= http.StatusBadRequest && !a.viewed && len(a.Body) > 0 && a.Object() == nil:
			return &replacesErrors
		case a.Status == 0 && a.sentBytes() > 16<<10: // refused while it was sent, so that its response was lost
			return &refusesBodies
		case !a.viewed && a.Object() != nil && !strings.Contains(a.Header.Get("Content-Type"), "json"),
			a.Status == http.StatusUnauthorized && a.Header.Get("WWW-Authenticate") == "":
			return &changesHeaders
		case errors.Is(a.Err, io.ErrUnexpectedEOF) || a.Err != nil && strings.Contains(a.Err.Error(), "cut off"),
			a.Asked != nil && a.Status == http.StatusOK && a.RPC() == nil && strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream"):
			return &cutsBodies
		case strings.HasSuffix(a.Path, MCPPath) && (a.Status == http.StatusBadRequest || a.Status == http.StatusNotFound):
			return &dropsSessions
		case a.Status == http.StatusUnauthorized && a.Sent.Get("Authorization") != "":
			return &dropsCredentials
		}
	}
	for _, s := range byClause {
		for _, pattern := range s.clauses {
			if ok, _ := path.Match(pattern, clause); ok {
				return s
			}
		}
	}
	if a != nil && a.Status == http.StatusOK && len(a.Body) > 0 && a.Object() == nil && a.Header.Get("Content-Type") == "application/json" {
		return &cutsBodies
	}
	return nil
}
