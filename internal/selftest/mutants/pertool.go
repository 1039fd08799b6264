package mutants

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// perToolMutants break the endpoint that each tool has of its own.
func perToolMutants() []Mutant {
	return []Mutant{
		perTool("per-tool-id-of-its-own", endpoints{foreignID: true}, "per-tool/answers"),
		perTool("per-tool-post-only", endpoints{postOnly: true}, "per-tool/answers", "per-tool/scopes", "per-tool/unknown-404"),
		perTool("per-tool-any-method", endpoints{anyMethod: true}, "per-tool/name-binds"),
		perTool("per-tool-scopes-ignored", endpoints{unscoped: true}, "per-tool/scopes"),
		perTool("per-tool-scopes-unnamed", endpoints{silentScopes: true}, "per-tool/scopes"),
		perTool("per-tool-not-found-page", endpoints{pageNotFound: true}, "per-tool/unknown-404"),
		perTool("per-tool-denied-200", endpoints{deniedAsError: true}, "per-tool/unknown-404"),
		perTool("per-tool-any-method-by-get", endpoints{getUnbound: true}, "per-tool/name-binds"),
		perTool("per-tool-scopes-ignored-by-get", endpoints{getUnscoped: true}, "per-tool/scopes"),
	}
}

// perToolVariants have an endpoint for each tool beside the three.
func perToolVariants() []Mutant {
	return []Mutant{
		{Name: "one-endpoint-a-tool", Why: "the endpoints of the later module beside the three; unknown paths below them get JSON-RPC errors", Claims: "per-tool", SiteMiddleware: endpoints{}.middleware},
	}
}

// endpoints adds an endpoint for each tool, POST|GET /mcp/tools/{name}. Each field is a fault.
type endpoints struct {
	anyMethod     bool // the method in the body may differ from the tool in the path
	unscoped      bool // scopes are not required
	silentScopes  bool // the refusal does not name the missing scopes
	pageNotFound  bool // an unknown tool gives an HTML page
	foreignID     bool // the response has another id than the request
	postOnly      bool // GET ?query= is refused
	deniedAsError bool // a tool that the caller may not run gives 200 with an error
	getUnbound    bool // the method in the body is compared with the path for POST only
	getUnscoped   bool // scopes are required for POST only
}

// tokenScopes are the scopes by Authorization header of the tokens that the check of scopes adds to the site.
var tokenScopes = map[string][]string{"Bearer scoped-all": {"content:read", "content:write"}, "Bearer scoped-some": {"content:read"}}

func perTool(name string, e endpoints, breaks ...string) Mutant {
	return Mutant{Name: name, Breaks: breaks, Origin: Module, Claims: "per-tool", SiteMiddleware: e.middleware}
}

// middleware responds to paths below /mcp/tools/ other than the three endpoints.
func (e endpoints) middleware(site *siteClient) middleware {
	return onResponse(allRequests, func(x *exchange) {
		name, below := strings.CutPrefix(x.Request.URL.Path, "/mcp/tools/")
		if !below || slices.Contains([]string{"", "list", "describe", "invoke"}, name) {
			return
		}
		call := decode(x.Sent)
		switch {
		case x.Request.Method == http.MethodGet && !e.postOnly:
			call = decode([]byte(x.Request.URL.Query().Get("query")))
		case x.Request.Method != http.MethodPost:
			return
		}
		e.respond(x, site, name, call)
	})
}

func (e endpoints) respond(x *exchange, site *siteClient, name string, call map[string]any) {
	authorization := authorized(x.Request)
	described := x.Send(http.MethodGet, "/mcp/tools/describe?name="+url.QueryEscape(name), nil)
	if described.Status == http.StatusUnauthorized && !e.unscoped {
		x.Set(http.StatusUnauthorized, rpcError(nil, -32600, "Authentication is required."))
		x.Header.Set("WWW-Authenticate", `Bearer realm="MCP Tools"`)
		return
	}
	get := x.Request.Method == http.MethodGet
	if described.Status != http.StatusOK {
		e.notFound(x)
		return
	}
	if missing := missingScopes(described, authorization); len(missing) > 0 && !e.unscoped && !(e.getUnscoped && get) {
		x.Set(http.StatusForbidden, rpcError(nil, -32600, "Too few scopes"))
		if !e.silentScopes {
			x.Header.Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q`, strings.Join(missing, " ")))
		}
		return
	}
	if call["method"] != name && !e.anyMethod && !(e.getUnbound && get) {
		x.Set(http.StatusBadRequest, rpcError(call["id"], -32600, "The method is not the tool of this address"))
		return
	}
	reply := site.call(authorization, fmt.Sprint(call["method"]), call["params"])
	reply["id"] = call["id"]
	if e.foreignID {
		reply["id"] = "mine"
	}
	x.Set(http.StatusOK, reply)
}

func (e endpoints) notFound(x *exchange) {
	switch {
	case e.pageNotFound:
		x.Status, x.Body = http.StatusNotFound, []byte("<!DOCTYPE html><title>Page not found</title>")
		x.Header.Set("Content-Type", "text/html")
	case e.deniedAsError:
		x.Set(http.StatusOK, rpcError(nil, -32601, "Method not found"))
	default:
		x.Set(http.StatusNotFound, rpcError(nil, -32601, "Method not found"))
	}
}

// missingScopes returns the scopes that the described tool requires and the caller's token lacks.
func missingScopes(described *exchange, authorization string) []string {
	annotations := objectIn(objectIn(described.Object(), "tool"), "annotations")
	scopes, _ := objectIn(annotations, "auth")["scopes"].([]any)
	var missing []string
	for _, scope := range scopes {
		if scope := fmt.Sprint(scope); !slices.Contains(tokenScopes[authorization], scope) {
			missing = append(missing, scope)
		}
	}
	return missing
}

func rpcError(id any, code int, message string) map[string]any {
	return map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": message}}
}
