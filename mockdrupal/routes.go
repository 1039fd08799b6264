package mockdrupal

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gorilla/mux"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// route is one address of the site.
type route struct {
	name    string   // as faults and the journal call it
	path    string   // a mux template; matched whatever the case, as Drupal does
	verbs   []string // those that Drupal declares, in its order; none: all
	schemes func(*fixtures.Site) []string
	exists  func(x *exchange, vars map[string]string) bool // nil: always
	handle  func(x *exchange, vars map[string]string) *Answer
}

// Route names, for Fault.Route and Filter.Route.
const (
	RouteJSONRPC = "jsonrpc"
	RouteMethods = "methods"
	RouteMethod  = "method"
	RouteLogin   = "login"
	RouteLogout  = "logout"
	RouteSession = "session"
	RouteToken   = "token"
	RouteJWKS    = "jwks"
	RouteOAuth   = "oauth-metadata"
)

func jsonrpcSchemes(s *fixtures.Site) []string { return s.Auth.JSONRPC }

// globalSchemes are those of routes that name none: the session cookie, and OAuth where there is any.
func globalSchemes(s *fixtures.Site) []string {
	if slices.Contains(slices.Concat(s.Auth.JSONRPC, s.Auth.MCP), schemeBearer) {
		return []string{schemeCookie, schemeBearer}
	}
	return []string{schemeCookie}
}

func (d *Drupal) routeTable() []route {
	return slices.Concat(loginRoutes(), oauthRoutes(), d.faceRoutes(), []route{
		{name: RouteJSONRPC, path: "/jsonrpc", verbs: []string{"POST", "GET", "OPTIONS"}, schemes: jsonrpcSchemes, handle: (*exchange).jsonrpc},
		{name: RouteMethods, path: "/jsonrpc/methods", verbs: []string{"GET"}, schemes: jsonrpcSchemes, handle: (*exchange).methods},
		{name: RouteMethod, path: "/jsonrpc/methods/{id}", verbs: []string{"GET"}, schemes: jsonrpcSchemes, handle: (*exchange).method},
	})
}

// routes builds the router; a route's name is its index in the table.
func (d *Drupal) routes() *mux.Router {
	router := mux.NewRouter().SkipClean(true)
	for i, rt := range d.table {
		router.Path(anyCase(rt.path)).Name(strconv.Itoa(i))
	}
	return router
}

// anyCase turns the fixed segments of a template into patterns that match in any case.
func anyCase(template string) string {
	segments := strings.Split(strings.TrimPrefix(template, "/"), "/")
	for i, s := range segments {
		if !strings.HasPrefix(s, "{") {
			segments[i] = fmt.Sprintf("{_%d:(?i:%s)}", i, s)
		}
	}
	return "/" + strings.Join(segments, "/")
}

// find routes the exchange by Drupal's reading of its path; nil when there is no such route, as for what is not UTF-8.
func (d *Drupal) find(x *exchange) (*route, map[string]string) {
	if !utf8.ValidString(x.path) {
		return nil, nil
	}
	var match mux.RouteMatch
	d.router.Match(&http.Request{Method: x.verb, URL: &url.URL{Path: x.path}, Host: x.r.Host}, &match)
	if match.Route == nil {
		return nil, nil
	}
	i, _ := strconv.Atoi(match.Route.GetName()) // always a number: routes names them so
	return &d.table[i], match.Vars
}

// dispatch answers the request as a well-behaved site.
func (x *exchange) dispatch(rt *route, vars map[string]string) *Answer {
	if x.d.behind != nil {
		return x.forward()
	}
	if !isKnownVerb(x.r.Method) {
		return notImplemented()
	}
	if _, ok := x.format(); !ok {
		return crashed()
	}
	if a := x.before(); a != nil {
		return a
	}
	if strings.HasPrefix(x.sent, "//") {
		return x.redirectSlashes()
	}
	exists := rt != nil && (rt.exists == nil || rt.exists(x, vars))
	if exists && x.verb == http.MethodOptions && !slices.Contains(rt.verbs, x.verb) {
		return newAnswer(http.StatusOK, typeHTML, nil).With("Allow", strings.Join(rt.verbs, ", "))
	}
	if x.refused != nil {
		return x.refused
	}
	if !exists {
		return x.noRoute()
	}
	verb := x.verb
	if verb == http.MethodHead {
		verb = http.MethodGet
	}
	if !slices.Contains(rt.verbs, verb) {
		return x.wrongVerb(rt)
	}
	return rt.handle(x, vars)
}

// noRoute is what Symfony's RouterListener says of an address that the site does not have.
func (x *exchange) noRoute() *Answer {
	message := fmt.Sprintf(`No route found for "%s %s"`, x.verb, x.base()+x.sent)
	if referer := x.r.Header.Get("Referer"); referer != "" {
		message += fmt.Sprintf(` (from "%s")`, referer)
	}
	return x.notFound(message)
}

func (x *exchange) wrongVerb(rt *route) *Answer {
	allowed := slices.Clone(rt.verbs)
	if slices.Contains(allowed, "GET") {
		allowed = append(allowed, "HEAD")
	}
	allow := strings.Join(allowed, ", ")
	a := x.refuse(refusal{http.StatusMethodNotAllowed, "Client error",
		fmt.Sprintf(`No route found for "%s %s": Method Not Allowed (Allow: %s)`, x.verb, x.base()+x.sent, allow)})
	a.header.Set("Allow", allow)
	return a
}

// notImplemented is the word of the web server before Drupal.
func notImplemented() *Answer {
	a := page(http.StatusNotImplemented, "501 Not Implemented")
	a.header = http.Header{"Content-Type": {typeHTML}}
	return a
}

func (x *exchange) redirectSlashes() *Answer {
	to := x.base() + "/" + strings.TrimLeft(x.sent, "/")
	if q := normalQuery(x.r.URL.RawQuery); q != "" {
		to += "?" + q
	}
	return redirectTo(to)
}

// normalQuery is Symfony's normalizeQueryString for arguments that are no lists: sorted by name, each once.
func normalQuery(raw string) string {
	arguments := url.Values{}
	for _, pair := range strings.FieldsFunc(raw, func(c rune) bool { return c == '&' }) {
		name, value, _ := strings.Cut(pair, "=")
		arguments.Set(phpUnescape(name), phpUnescape(value))
	}
	return strings.ReplaceAll(arguments.Encode(), "+", "%20")
}

func redirectTo(to string) *Answer {
	a := page(http.StatusFound, "Redirecting to "+to)
	a.header.Set("Content-Type", "text/html; charset=utf-8")
	a.header.Set("Location", to)
	return a
}
