package mutants

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants/tokens"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// mcpRemedies are applied to MCP messages.
func mcpRemedies() []Remedy {
	return []Remedy{
		{Clause: "mcp/initialize", Mutant: "mcp-prompts-undeclared", Front: front(onRPC("prompts/list", func(m *rpc) { m.Fail(-32601, "Method not found") }))},
		{Clause: "mcp/tools-list", Mutant: "mcp-cursor-null", Front: front(onRPCResult("tools/list", func(r map[string]any) {
			if r["nextCursor"] == nil {
				delete(r, "nextCursor")
			}
		}))},
		{Clause: "mcp/invalid-cursor", Mutant: "mcp-bad-cursor-is-first-page", Front: front(onRPC("tools/list", func(m *rpc) {
			cursor, given := m.Params["cursor"].(string)
			if raw, err := base64.StdEncoding.DecodeString(cursor); given && (err != nil || strings.Trim(string(raw), "0123456789") != "") {
				m.Status = http.StatusOK
				m.Fail(-32602, "The cursor is not one of this bridge.")
			}
		}))},
		{Clause: "mcp/structured-content", Mutant: "mcp-structured-without-text", Front: front(onCallResult(func(r map[string]any) {
			if content, there := r["structuredContent"]; there {
				r["content"] = textContent(string(encode(content)))
			}
		}))},
		{Clause: "mcp/empty-map", Mutant: "mcp-empty-list-for-object", Front: front(onCallResult(func(r map[string]any) {
			if list, ok := r["structuredContent"].([]any); ok && len(list) == 0 {
				r["structuredContent"] = map[string]any{}
			}
		}))},
		{Clause: "mcp/bad-version-header", Mutant: "mcp-version-header-by-year", Front: front(onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			version := r.Header.Get("Mcp-Protocol-Version")
			if !toMCP(r) || slices.Contains([]string{"", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}, version) {
				return false
			}
			refusal := rpcError(decode(readBody(r))["id"], -32022, "This revision is not supported.")
			refusal["error"].(map[string]any)["data"] = map[string]any{"supported": []any{"2025-06-18", "2025-11-25", "2026-07-28"}, "requested": version}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			w.Write(encode(refusal)) //nolint:errcheck // the caller has gone
			return true
		}))},
		{Clause: "mcp/origin", Mutant: "mcp-origin-by-its-beginning", Front: front(onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			origin := r.Header.Get("Origin")
			if !toMCP(r) || origin == "" || origin == "http://"+r.Host {
				return false
			}
			return refuseAt(w, r, http.StatusForbidden, "access_denied", "This origin is not allowed.")
		}))},
		{Clause: "mcp/notification-202", Mutant: "mcp-notification-answered", Front: front(onResponse(toMCP, func(x *exchange) {
			if sent := decode(x.Sent); sent["method"] != nil && !has(sent, "id") && x.Status < 300 {
				x.Status, x.Body = http.StatusAccepted, nil
				x.Header.Del("Content-Type")
			}
		}))},
		{Clause: "mcp/stateless-2026", Mutant: "mcp-cache-public", Front: front(onRPCResult("tools/list", func(r map[string]any) {
			if r["cacheScope"] != nil {
				r["cacheScope"] = "private"
			}
		}))},
		{Clause: "mcp/client-tolerance", Mutant: "mcp-description-null", Front: front(onMCPTool(func(t tool) {
			for name, value := range t {
				if value == nil {
					delete(t, name)
				}
			}
		}))},
	}
}

// authRemedies are applied to tokens, challenges and metadata.
func authRemedies() []Remedy {
	refuse := func(clause, mutant string, wrong func(t token) bool) Remedy {
		return Remedy{Clause: clause, Mutant: mutant, Auth: refuseTokens(wrong)}
	}
	minute := time.Minute.Seconds()
	return []Remedy{
		{Clause: "auth/metadata", Mutant: "auth-metadata-as-text", Front: front(onMetadata(toMetadata, func(x *exchange, _ map[string]any) {
			x.Header.Set("Content-Type", "application/json")
		}))},
		{Clause: "auth/metadata-root", Mutant: "auth-root-is-a-page", Front: front(onResponse(toRootMetadata, func(x *exchange) {
			*x = *x.Send(http.MethodGet, resourceMetadata+"/mcp", nil)
		}))},
		{Clause: "auth/challenge", Mutant: "auth-challenge-basic", Front: front(onChallenge(func(x *exchange, _ string) string { return bearerChallenge(x) }))},
		{Clause: "auth/challenge-metadata", Mutant: "auth-challenge-names-nothing", Front: front(onParameters(func(x *exchange, params []string) []string {
			return append([]string{fmt.Sprintf(`resource_metadata="http://%s%s/mcp"`, x.Request.Host, resourceMetadata)}, slices.DeleteFunc(params, named("resource_metadata"))...)
		}))},
		{Clause: "auth/challenge-no-error", Mutant: "auth-error-without-a-token", Front: front(onParameters(func(x *exchange, params []string) []string {
			if tokens.Bearer(x.Request) == "" {
				params = slices.DeleteFunc(params, named("error"))
			}
			return params
		}))},
		{Clause: "auth/invalid-token", Mutant: "auth-error-invalid-request", Front: front(onParameters(func(x *exchange, params []string) []string {
			if tokens.Bearer(x.Request) != "" {
				params = append([]string{`error="invalid_token"`}, slices.DeleteFunc(params, named("error"))...)
			}
			return params
		}))},
		{Clause: "auth/scheme-case", Mutant: "auth-scheme-in-one-case", Front: front(withHeader(func(h http.Header) {
			if scheme, value, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
				h.Set("Authorization", "Bearer "+value)
			}
		}))},
		{Clause: "auth/every-request", Mutant: "auth-ping-for-everybody", Front: front(onRequest(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			if !toMCP(r) || authorized(r) != "" && r.Method != http.MethodPost {
				return false
			}
			refused := record(next, r, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
			if refused.Status != http.StatusUnauthorized {
				return false
			}
			refused.writeTo(w)
			return true
		}))},
		{Clause: "auth/query-token", Mutant: "auth-token-in-the-query", Front: front(onQuery(toMCP, func(query url.Values) { query.Del("access_token") }))},
		{Clause: "auth/token-secret", Mutant: "auth-token-in-the-error", Front: front(onResponse(toMCP, func(x *exchange) {
			if token := tokens.Bearer(x.Request); token != "" && strings.Contains(string(x.Body), token) {
				x.Set(x.Status, map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": -32600, "message": "The token is refused."}})
			}
		}))},
		refuse("auth/token-unsigned", "auth-alg-none", func(t token) bool { return t.header["alg"] != "RS256" && t.header["alg"] != "ES256" }),
		refuse("auth/token-expired", "auth-leeway-of-an-hour", func(t token) bool { return t.number("exp") < t.now-minute }),
		refuse("auth/token-no-expiry", "auth-no-expiry-needed", func(t token) bool { return t.number("exp") == 0 }),
		refuse("auth/token-not-yet-valid", "auth-not-before-ignored", func(t token) bool { return t.number("nbf") > t.now+minute }),
		refuse("auth/token-critical", "auth-critical-ignored", func(t token) bool { return has(t.header, "crit") }),
		refuse("auth/token-issuer", "auth-issuer-by-prefix", func(t token) bool { return t.claims["iss"] != t.issuer }),
		refuse("auth/token-audience", "auth-audience-by-prefix", func(t token) bool { return !slices.Contains(tokens.Texts(t.claims["aud"]), t.resource) }),
		{Clause: "auth/insufficient-scope", Mutant: "auth-scope-unchallenged", Front: front(onResponse(toMCP, func(x *exchange) {
			if x.Status == http.StatusForbidden && tokens.Bearer(x.Request) != "" && x.Header.Get("WWW-Authenticate") == "" {
				x.Header.Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope="content:read content:write", resource_metadata="http://%s%s/mcp"`, x.Request.Host, resourceMetadata))
			}
		}))},
		{Clause: "auth/challenge-scope", Mutant: "auth-challenge-without-scope", Front: front(onParameters(func(_ *exchange, params []string) []string {
			return append(params, `scope="content:read content:write"`)
		}))},
	}
}

// bearerChallenge is the challenge to a request whose token is absent or not valid.
func bearerChallenge(x *exchange) string {
	challenge := fmt.Sprintf(`Bearer resource_metadata="http://%s%s/mcp", scope="content:read content:write"`, x.Request.Host, resourceMetadata)
	if tokens.Bearer(x.Request) != "" {
		challenge += `, error="invalid_token"`
	}
	return challenge
}

// token is a JSON Web Token, decoded and not verified.
type token struct {
	header, claims   map[string]any
	now              float64
	issuer, resource string // what the bridge is configured with
}

// number is a claim that is a time; 0 without it.
func (t token) number(claim string) float64 {
	n, ok := t.claims[claim].(interface{ Float64() (float64, error) })
	if !ok {
		return 0
	}
	f, _ := n.Float64()
	return f
}

// refuseTokens returns 401 to a token that is wrong, before anything else of a request.
func refuseTokens(wrong func(t token) bool) func(testbed.Backends) middleware {
	return func(b testbed.Backends) middleware {
		return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			parts := strings.Split(tokens.Bearer(r), ".")
			if !toMCP(r) || len(parts) != 3 {
				return false
			}
			header, _ := base64.RawURLEncoding.DecodeString(parts[0])
			claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
			t := token{decode(header), decode(claims), float64(b.Authority.Now().Unix()), b.Authority.URL, b.Resource}
			if t.header == nil || t.claims == nil || !wrong(t) {
				return false
			}
			w.Header().Set("WWW-Authenticate", bearerChallenge(&exchange{Request: r}))
			return refuseAt(w, r, http.StatusUnauthorized, "authentication_required", "The token is refused.")
		})
	}
}
