// Package route names the addresses of a Drupal site with the jsonrpc module and finds which of them a request means, as
// Drupal's router reads its path. It does not respond to anything: the mock attaches handlers, the proxy only names.
//
// Its invariant: a route has one name wherever it is mentioned, in faults, in the journal and in handlers.
package route

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gorilla/mux"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// Names of routes, as faults and the journal use them.
const (
	JSONRPC = "jsonrpc"
	Methods = "methods"
	Method  = "method"
	Login   = "login"
	Logout  = "logout"
	Session = "session"
	Token   = "token"
	JWKS    = "jwks"
	OAuth   = "oauth-metadata"
)

// Names of the routes of the Drupal module that is itself a bridge.
const (
	MCPList     = "mcp-list"
	MCPDescribe = "mcp-describe"
	MCPInvoke   = "mcp-invoke"
	MCPTool     = "mcp-tool"
)

// MCPPost is the address of the Drupal module mcp, whose tools/list and tools/call go by the names Methods and JSONRPC.
const (
	MCPPost     = "mcp-post"
	MCPPostPath = "/mcp/post"
)

// Route is an address of the site.
type Route struct {
	Name string
	Path string // a mux template; matched in any letter case, as Drupal does
}

// Drupal lists the routes that every site has.
func Drupal() []Route {
	return []Route{
		{JSONRPC, "/jsonrpc"},
		{Methods, "/jsonrpc/methods"},
		{Method, "/jsonrpc/methods/{id}"},
		{Login, "/user/login"},
		{Logout, "/user/logout"},
		{Session, "/session/token"},
		{Session, "/user/login_status"},
		{Token, "/oauth/token"},
		{Token, "/oauth/revoke"},
		{JWKS, "/oauth/jwks"},
		{OAuth, "/.well-known/oauth-authorization-server"},
	}
}

// ReceivesCredentials reports whether the bodies of requests to a route hold passwords or tokens.
func ReceivesCredentials(name string) bool { return name == Login || name == Token }

// Module lists the routes of the module that is itself a bridge, of all its releases.
func Module() []Route {
	return []Route{
		{MCPList, "/mcp/tools/list"},
		{MCPDescribe, "/mcp/tools/describe"},
		{MCPInvoke, "/mcp/tools/invoke"},
		{MCPTool, "/mcp/tools/{tool}"},
	}
}

// Verb is the request's method as Symfony sees it: a POST may name another one in a header.
func Verb(r *http.Request) string {
	if other := r.Header.Get("X-HTTP-Method-Override"); r.Method == http.MethodPost && other != "" {
		return strings.ToUpper(other)
	}
	return r.Method
}

// PathInfo is the request's path as it was sent, without /index.php: Symfony's path info.
func PathInfo(r *http.Request) string {
	p, _, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(p, "/") { // the absolute form, or a request that came over no connection
		p = r.URL.EscapedPath()
	}
	if rest, ok := strings.CutPrefix(p, "/index.php"); ok && (rest == "" || rest[0] == '/') {
		p = rest
	}
	return p
}

// Path is a path info as Drupal's router sees it: without slashes at the end, decoded as urldecode does by a path
// processor, then as rawurldecode does by the router.
func Path(pathInfo string) string {
	return php.RawURLDecode(php.URLDecode(strings.TrimRight(pathInfo, "/")))
}

// Table finds the route that a path means.
type Table struct {
	routes []Route
	router *mux.Router
}

// NewTable returns a table of routes. Of several that match a path the first is found.
func NewTable(routes []Route) *Table {
	router := mux.NewRouter().SkipClean(true)
	for i, r := range routes {
		router.Path(anyCase(r.Path)).Name(strconv.Itoa(i))
	}
	return &Table{routes, router}
}

// anyCase turns the fixed segments of a template into patterns that match in any letter case.
func anyCase(template string) string {
	segments := strings.Split(strings.TrimPrefix(template, "/"), "/")
	for i, s := range segments {
		if !strings.HasPrefix(s, "{") {
			segments[i] = fmt.Sprintf("{_%d:(?i:%s)}", i, s)
		}
	}
	return "/" + strings.Join(segments, "/")
}

// Find returns the index of the route that a path of Path means and the values of its variables; -1 when there is none,
// as for what is not UTF-8.
func (t *Table) Find(path string) (index int, vars map[string]string) {
	if !utf8.ValidString(path) {
		return -1, nil
	}
	var match mux.RouteMatch
	t.router.Match(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}}, &match)
	if match.Route == nil {
		return -1, nil
	}
	index, _ = strconv.Atoi(match.Route.GetName()) // always a number: NewTable names them so
	return index, match.Vars
}

// Names lists the names of the table's routes, sorted, each once.
func (t *Table) Names() []string {
	names := make([]string, len(t.routes))
	for i, r := range t.routes {
		names[i] = r.Name
	}
	slices.Sort(names)
	return slices.Compact(names)
}
