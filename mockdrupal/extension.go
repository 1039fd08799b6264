package mockdrupal

import (
	"net/http"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// Extension is a further part of the site on the same address, as a Drupal module adds one: it shares the site's
// authentication, permissions, journal and faults.
type Extension struct {
	Routes []ExtensionRoute
	// Before sees every request before Drupal does, as a middleware; a non-nil response ends it. May be nil.
	Before func(*Visit) *Response
}

// ExtensionRoute is one address of an extension.
type ExtensionRoute struct {
	Name   string            // for faults and the journal
	Path   string            // a mux template, matched in any letter case
	Verbs  []string          // as Drupal declares them
	Exists func(*Visit) bool // whether the site has this address for the path's variables; nil: always
	Handle func(*Visit) *Response

	Schemes  []string  // the kinds of credentials that it accepts; nil: those of auth.mcp
	Protocol *Protocol // what is spoken there; nil: nothing that the mock has to read
}

// Visit is a request to an extension.
type Visit struct {
	x    *request
	vars map[string]string
	call *rpcCall // of a protocol, whose method runs
}

// extensionAddresses are the routes of the extensions in the options.
func (d *Drupal) extensionAddresses() []address {
	var table []address
	for _, e := range d.options.Extensions {
		for _, r := range e.Routes {
			r.Protocol.begin()
			schemes := mcpSchemes
			if r.Schemes != nil {
				schemes = func(*fixtures.Site) []string { return r.Schemes }
			}
			table = append(table, address{name: r.Name, path: r.Path, verbs: r.Verbs, schemes: schemes, protocol: r.Protocol,
				exists: func(x *request, vars map[string]string) bool {
					return r.Exists == nil || r.Exists(&Visit{x: x, vars: vars})
				},
				handle: func(x *request, vars map[string]string) *Response {
					if x.rejected != nil {
						return x.rejected
					}
					return r.Handle(&Visit{x: x, vars: vars})
				}})
		}
	}
	return table
}

func mcpSchemes(s *fixtures.Site) []string { return s.Auth.MCP }

// before lets the extensions' middleware see the request.
func (x *request) before() *Response {
	for _, e := range x.d.options.Extensions {
		if e.Before == nil {
			continue
		}
		if a := e.Before(&Visit{x: x}); a != nil {
			return a
		}
	}
	return nil
}

// Site returns the site that responds to this request: read only.
func (v *Visit) Site() *fixtures.Site { return v.x.state.site }

// Var returns a variable of the route's path.
func (v *Visit) Var(name string) string { return v.vars[name] }

// PathInfo returns the path as it was sent, without the front controller.
func (v *Visit) PathInfo() string { return v.x.PathInfo }

// Header returns a header of the request.
func (v *Visit) Header(name string) string { return v.x.Request.Header.Get(name) }

// Body returns the request's body.
func (v *Visit) Body() []byte { return v.x.Body }

// Query returns an argument as PHP's $_GET has it; isList when it was sent as name[].
func (v *Visit) Query(name string) (value string, isList bool) {
	value, isList, _ = v.x.Query(name)
	return value, isList
}

// Scheme returns how the caller authenticated: basic, bearer, cookie, or "" for the anonymous one.
func (v *Visit) Scheme() string { return v.x.caller.scheme }

// HasScope reports whether the caller's bearer token names this scope.
func (v *Visit) HasScope(scope string) bool { return slices.Contains(v.x.caller.scopes, scope) }

// Holds reports whether the caller holds a permission.
func (v *Visit) Holds(permission string) bool { return v.x.state.holds(v.x.caller, permission) }

// Require ends a request of a caller who lacks the permission; nil when it may go on.
func (v *Visit) Require(permission string) *Response {
	if v.Holds(permission) {
		return nil
	}
	return v.x.denied(permissionRequired(permission))
}

// Tools returns the methods with the McpTool attribute that the caller may run, in site order.
func (v *Visit) Tools() []*fixtures.Method {
	visible := v.x.state.visible(v.x.caller)
	var tools []*fixtures.Method
	for _, m := range v.x.state.order {
		if m.MCP != nil && visible[m.class] == '1' {
			tools = append(tools, m.Method)
		}
	}
	return tools
}

// Exposed returns the id of the method with the McpTool attribute that an address names: the same name, or else the first
// that differs in letter case only. ok is false when there is none.
func (v *Visit) Exposed(name string) (id string, ok bool) {
	if m, has := v.x.state.methods[name]; has && m.MCP != nil {
		return name, true
	}
	for _, m := range v.x.state.order {
		if m.MCP != nil && strings.EqualFold(m.ID, name) {
			return m.ID, true
		}
	}
	return "", false
}

// Tool returns the method with the McpTool attribute and this id, unless the caller may not run it.
func (v *Visit) Tool(id string) (*fixtures.Method, bool) {
	m, ok := v.x.state.methods[id]
	if !ok || m.MCP == nil || v.x.state.lacks(v.x.caller, m) != "" {
		return nil, false
	}
	return m.Method, true
}

// Run runs a method with unchecked arguments, as the module's v1.3 does. When the method fails, ok is false and
// message is the JSON-RPC error's.
func (v *Visit) Run(id string, arguments *php.Array) (result php.Value, message string, ok bool) {
	m := v.x.state.methods[id]
	raw, err := php.Encode(php.Object{Array: arguments})
	if err != nil {
		raw = nil
	}
	v.x.NoteCalls([]journal.Call{{Method: id, Params: raw}})
	r := v.x.execute(&rpcCall{method: m, id: "module", arguments: arguments, raw: raw, unchecked: true})
	if r.err != nil {
		return nil, r.err.message, false
	}
	return r.result, "", true
}

// Sticky responds to a GET from the site's page cache where the quirk sticky-get-cache is on and the cache has a response;
// otherwise it calls create, and caches what is not a 200.
func (v *Visit) Sticky(create func() *Response) *Response {
	if a, ok := v.x.d.cache.get(v.x); ok {
		return a
	}
	a := create()
	if a.Status != http.StatusOK {
		v.x.d.cache.put(v.x, a)
	}
	return a
}

// JSON responds with a PHP value. One that json_encode refuses is an uncaught exception.
func (v *Visit) JSON(status int, value php.Value) *Response {
	if _, err := php.Encode(value); err != nil {
		return v.x.unexpected()
	}
	return exchange.JSON(status, value)
}

// BadRequest responds as Drupal does to an argument that Symfony refuses: there is no page for that, only the other formats.
func (v *Visit) BadRequest(message string) *Response {
	if format, _ := v.x.format(); format == formatHTML {
		return v.x.plain(http.StatusBadRequest, message)
	}
	return v.x.bad(message)
}

// Unexpected responds as Drupal does to an uncaught exception.
func (v *Visit) Unexpected() *Response { return v.x.unexpected() }

// Crashed responds as PHP does when Drupal has not started.
func (v *Visit) Crashed() *Response { return crashed() }

// Empty responds with a status, HTML's content type and no body.
func (v *Visit) Empty(status int) *Response {
	return exchange.NewResponse(status, exchange.HTMLType, nil)
}
