package mockdrupal

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/authkind"
	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// address is one address of the site and what responds there.
type address struct {
	name    string   // of the route, as faults and the journal use it
	path    string   // a mux template; matched in any letter case, as Drupal does
	verbs   []string // those that Drupal declares, in its order
	schemes func(*fixtures.Site) []string

	protocol *Protocol                                     // spoken there, beside that of the site; may be nil
	exists   func(x *request, vars map[string]string) bool // nil: always
	handle   func(x *request, vars map[string]string) *Response
}

// discoverySchemes are those of /jsonrpc/methods, which the configuration of /jsonrpc does not restrict: whatever the site has. A
// kind that no route names is of a module that is not installed; sessions are Drupal's own.
func discoverySchemes(s *fixtures.Site) []string {
	return slices.Concat([]string{authkind.Cookie}, s.Auth.JSONRPC, s.Auth.MCP)
}

// jsonrpcSchemes are those of /jsonrpc: on line 3 configuration, on line 2 fixed by the route, without the session cookie.
func (d *Drupal) jsonrpcSchemes(s *fixtures.Site) []string {
	if d.options.JSONRPC == Line2 {
		return slices.DeleteFunc(slices.Clone(s.Auth.JSONRPC), func(scheme string) bool { return scheme == authkind.Cookie })
	}
	return s.Auth.JSONRPC
}

// globalSchemes are those of routes that name none: the session cookie, and OAuth where there is any.
func globalSchemes(s *fixtures.Site) []string {
	if slices.Contains(slices.Concat(s.Auth.JSONRPC, s.Auth.MCP), authkind.Bearer) {
		return []string{authkind.Cookie, authkind.Bearer}
	}
	return []string{authkind.Cookie}
}

// allAddresses are those of Drupal and of the extensions. Drupal's have the names that package route gives them.
func (d *Drupal) allAddresses() []address {
	all := slices.Concat(loginAddresses(), oauthAddresses(), d.extensionAddresses(), []address{
		{path: "/jsonrpc", verbs: []string{"POST", "GET", "OPTIONS"}, schemes: d.jsonrpcSchemes, handle: (*request).jsonrpc},
		{path: "/jsonrpc/methods", verbs: []string{"GET"}, schemes: discoverySchemes, handle: (*request).methods},
		{path: "/jsonrpc/methods/{id}", verbs: []string{"GET"}, schemes: discoverySchemes, handle: (*request).method},
	})
	for _, r := range route.Drupal() {
		i := slices.IndexFunc(all, func(a address) bool { return a.path == r.Path })
		all[i].name = r.Name
	}
	return all
}

func routeTable(addresses []address) *route.Table {
	routes := make([]route.Route, len(addresses))
	for i, a := range addresses {
		routes[i] = route.Route{Name: a.name, Path: a.path}
	}
	return route.NewTable(routes)
}

// find returns the address that Drupal reads in the request's path; nil when there is none.
func (d *Drupal) find(x *request) (*address, map[string]string) {
	i, vars := d.routes.Find(x.Path)
	if i < 0 {
		return nil, nil
	}
	return &d.addresses[i], vars
}

// dispatch responds as a well-behaved site.
func (x *request) dispatch(rt *address, vars map[string]string) *Response {
	if !isKnownVerb(x.Request.Method) {
		return notImplemented()
	}
	if _, ok := x.format(); !ok {
		return crashed()
	}
	if a := x.before(); a != nil {
		return a
	}
	if strings.HasPrefix(x.PathInfo, "//") {
		return x.redirectSlashes()
	}
	exists := rt != nil && (rt.exists == nil || rt.exists(x, vars))
	if exists && x.Verb == http.MethodOptions && !slices.Contains(rt.verbs, x.Verb) && !x.isPreflight() {
		return exchange.NewResponse(http.StatusOK, exchange.HTMLType, nil).With("Allow", strings.Join(rt.verbs, ", "))
	}
	if x.refused != nil {
		return x.refused
	}
	if !exists {
		return x.noRoute()
	}
	verb := x.Verb
	if verb == http.MethodHead {
		verb = http.MethodGet
	}
	if !slices.Contains(rt.verbs, verb) { // OPTIONS of a preflight included, which Drupal leaves to CORS
		return x.wrongVerb(rt)
	}
	return rt.handle(x, vars)
}

// noRoute is the response of Symfony's RouterListener to an address that the site does not have.
func (x *request) noRoute() *Response {
	message := fmt.Sprintf(`No route found for "%s %s"`, x.Verb, x.base()+x.PathInfo)
	if referer := x.Request.Header.Get("Referer"); referer != "" {
		message += fmt.Sprintf(` (from "%s")`, referer)
	}
	return x.notFound(message)
}

func (x *request) wrongVerb(rt *address) *Response {
	allowed := slices.Clone(rt.verbs)
	if slices.Contains(allowed, "GET") {
		allowed = append(allowed, "HEAD")
	}
	allow := strings.Join(allowed, ", ")
	a := x.refuse(refusal{http.StatusMethodNotAllowed, "Client error",
		fmt.Sprintf(`No route found for "%s %s": Method Not Allowed (Allow: %s)`, x.Verb, x.base()+x.PathInfo, allow)})
	a.Header.Set("Allow", allow)
	return a
}

// notImplemented is the response of the web server before Drupal.
func notImplemented() *Response {
	a := exchange.Page(http.StatusNotImplemented, "501 Not Implemented")
	a.Header = http.Header{"Content-Type": {exchange.HTMLType}}
	return a
}

func (x *request) redirectSlashes() *Response {
	to := x.base() + "/" + strings.TrimLeft(x.PathInfo, "/")
	if q := normalQuery(x.Request.URL.RawQuery); q != "" {
		to += "?" + q
	}
	return redirectTo(to)
}

// normalQuery is Symfony's normalizeQueryString for arguments that are no lists: sorted by name, each once.
func normalQuery(raw string) string {
	arguments := url.Values{}
	for _, pair := range strings.FieldsFunc(raw, func(c rune) bool { return c == '&' }) {
		name, value, _ := strings.Cut(pair, "=")
		arguments.Set(php.URLDecode(name), php.URLDecode(value))
	}
	return strings.ReplaceAll(arguments.Encode(), "+", "%20")
}

func redirectTo(to string) *Response {
	a := exchange.Page(http.StatusFound, "Redirecting to "+to)
	a.Header.Set("Content-Type", "text/html; charset=utf-8")
	a.Header.Set("Location", to)
	return a
}
