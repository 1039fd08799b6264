package mutants

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// siteRemedies are applied to credentials and permissions, and to what goes on between bridge and site.
func siteRemedies() []Remedy {
	return []Remedy{
		{Clause: "access/list-403", Mutant: "list-open-to-outsiders", Front: askWhoDiscovers(toList)},
		{Clause: "access/anonymous", Mutant: "anonymous-401-without-challenge", Front: front(onRefusal(func(x *exchange) {
			if x.Status == http.StatusUnauthorized && x.Header.Get("WWW-Authenticate") == "" {
				x.Header.Set("WWW-Authenticate", `Basic realm="MCP"`)
			}
		}))},
		{Clause: "access/filtered-by-method", Mutant: "every-tool-for-everyone", Front: func(site *siteClient) middleware {
			return onlyTools(site, func(map[string]any) bool { return true })
		}},
		{Clause: "access/credentials-forwarded", Mutant: "tokens-not-forwarded", Front: front(withCall(nil)), After: atTheSite(func(r *http.Request, c *call) {
			for _, name := range []string{"Authorization", "Cookie"} {
				if v := c.header.Get(name); v != "" {
					r.Header.Set(name, v)
				}
			}
		})},
		{Clause: "access/credentials-kept-secret", Mutant: "credentials-in-header", Front: front(onResponse(allRequests, func(x *exchange) {
			for name, values := range x.Header {
				if sent := authorized(x.Request); sent != "" && strings.Contains(strings.Join(values, " "), sent) {
					x.Header.Del(name)
				}
			}
		}))},
		{Clause: "access/cors", Mutant: "cors-origin-by-its-end", Front: front(onResponse(allRequests, func(x *exchange) {
			if x.Request.Header.Get("Origin") != "https://console.example" { // the list of origins
				x.Header.Del("Access-Control-Allow-Origin")
				x.Header.Del("Access-Control-Allow-Credentials")
			}
		}))},
		{Clause: "access/csrf", Mutant: "session-calls-of-types-that-begin-alike", Front: front(sameOrigin)},
		{Clause: "upstream/valid-jsonrpc", Mutant: "calls-as-text", After: onCall(func(r *http.Request, _ map[string]any) {
			r.Header.Set("Content-Type", "application/json")
		})},
		{Clause: "upstream/auth-error", Mutant: "site-401-as-500", Front: front(withCall(func(x *exchange, c *call) {
			switch c.status {
			case http.StatusUnauthorized:
				x.Refuse(c.status, "authentication_required", "The site refused these credentials.")
				x.Header.Set("WWW-Authenticate", c.challenge)
			case http.StatusForbidden:
				x.Refuse(c.status, "access_denied", "The site refused the call.")
			}
		})), After: atTheSite(nil)},
		{Clause: "upstream/id-mismatch", Mutant: "any-id-will-do", After: onReplyTo(func(call, reply map[string]any) {
			_, succeeded := reply["result"]
			_, text := reply["id"].(string) // the bridge's own are numbers
			if _, failed := reply["error"]; succeeded && (failed || text || numberText(reply["id"]) != numberText(call["id"])) {
				clear(reply) // no result, no error: the bridge behind reports the upstream
			}
		})},
		{Clause: "upstream/http-error", Mutant: "result-under-500", After: onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err != nil || !isCall(r) || resp.StatusCode < 300 {
				return resp, err
			}
			return onReply(func(reply map[string]any) { delete(reply, "result") })(roundTripper(func(*http.Request) (*http.Response, error) { return resp, nil })).RoundTrip(r)
		})},
		{Clause: "per-tool/scopes", Mutant: "per-tool-scopes-unnamed", Front: front(onRefusal(func(x *exchange) {
			if x.Status != http.StatusForbidden || x.Header.Get("WWW-Authenticate") != "" {
				return
			}
			if required := scopesOf(x); len(required) > 0 {
				x.Header.Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+strings.Join(required, " ")+`"`)
			}
		}))},
		{Clause: "per-tool/unknown-404", Mutant: "per-tool-not-found-page", Front: front(onResponse(toOneTool, atStatus(http.StatusNotFound, func(x *exchange) {
			x.Set(x.Status, rpcError(calledID(x), -32601, "Method not found"))
		})))},
		{Clause: "per-tool/answers", Mutant: "per-tool-id-of-its-own", Front: front(onResponse(toOneTool, func(x *exchange) {
			if object := x.Object(); x.Status == http.StatusOK && object["result"] != nil {
				object["id"] = calledID(x)
				x.Body = encode(object)
			}
		}))},
		{Clause: "per-tool/name-binds", Mutant: "per-tool-any-method", Front: front(onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !toOneTool(r) || !isSmall(r) {
				return false
			}
			call := string(peekBody(r))
			if r.Method == http.MethodGet {
				call = r.URL.Query().Get("query")
			}
			calls, _ := decode([]byte(`{"calls":[` + call + `]}`))["calls"].([]any)
			if batch, ok := decode([]byte(`{"calls":` + call + `}`))["calls"].([]any); ok {
				calls = batch
			}
			for _, c := range calls {
				if c, ok := c.(map[string]any); !ok || "/mcp/tools/"+fmt.Sprint(c["method"]) != r.URL.Path {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusBadRequest)
					w.Write(encode(rpcError(nil, -32600, "The method is not the tool of this path."))) //nolint:errcheck // the caller has gone
					return true
				}
			}
			return false
		}))},
	}
}

// askWhoDiscovers asks the site who may discover tools, whatever the query is: `meta.mcp.discovery` of /jsonrpc/methods.
func askWhoDiscovers(matches func(*http.Request) bool) func(*siteClient) middleware {
	return func(site *siteClient) middleware {
		return onResponse(matches, func(x *exchange) {
			if _, discovers := site.methods(x.Request); x.Status != http.StatusUnauthorized && !discovers {
				x.Refuse(http.StatusForbidden, "access_denied", "You may not discover tools.")
			}
		})
	}
}

// sameOrigin requires application/json of a call with a session cookie, and compares the Origin's host with Host.
func sameOrigin(next http.Handler) http.Handler {
	return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !toInvoke(r) || r.Header.Get("Cookie") == "" || r.Method != http.MethodPost {
			return false
		}
		kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
		if kind != "application/json" {
			return refuseAt(w, r, http.StatusUnsupportedMediaType, "unsupported_media_type", "Send application/json.")
		}
		origin, err := url.Parse(r.Header.Get("Origin"))
		if r.Header.Get("Origin") != "" && (err != nil || origin.Host != r.Host) && r.Header.Get("X-CSRF-Token") == "" {
			return refuseAt(w, r, http.StatusForbidden, "access_denied", "The call comes from another site.")
		}
		return false
	})(next)
}

// toOneTool matches the endpoint of a tool of its own.
func toOneTool(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/mcp/tools/") && !toToolViews(r) && !toInvoke(r)
}

// calledID is the id of a JSON-RPC request to the endpoint of a tool.
func calledID(x *exchange) any {
	if x.Request.Method == http.MethodGet {
		return decode([]byte(x.Request.URL.Query().Get("query")))["id"]
	}
	return decode(x.Sent)["id"]
}

// scopesOf is what the tool of the path requires by its annotations.
func scopesOf(x *exchange) []string {
	name := strings.TrimPrefix(x.Request.URL.Path, "/mcp/tools/")
	t, _ := x.as("admin").tool(name)
	auth := objectIn(objectIn(t, "annotations"), "auth")
	scopes, _ := auth["scopes"].([]any)
	var names []string
	for _, s := range scopes {
		names = append(names, s.(string))
	}
	return names
}
