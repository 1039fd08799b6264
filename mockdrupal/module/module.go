// Package module is the Drupal module that is itself a bridge, as an extension of the mock: /mcp/tools/* as its releases
// respond, errors included. v1.3 has list, describe and invoke; v1.4 and later have one endpoint per tool in place of
// invoke. It is no reference for how a bridge should behave: it is what clients of the real one receive.
// MCP is another module, of that name, whose messages bridges forward.
//
// Its invariant: it responds as the recordings of the real module do, MCP as its public source has it. Its handlers get a
// mockdrupal.Visit, with the site's authentication and permissions, and return a response.
package module

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// Versions that New knows.
const (
	V13 = "v1.3"
	V14 = "v1.4"
)

var bothVerbs = []string{"GET", "POST"}

// New returns a version of the module. It fails when the mock does not have that version.
func New(version string) (mockdrupal.Extension, error) {
	if version == MCP {
		return newMCP()
	}
	extension := mockdrupal.Extension{Before: scopeMiddleware, Routes: []mockdrupal.ExtensionRoute{
		{Name: route.MCPList, Path: "/mcp/tools/list", Verbs: bothVerbs, Handle: list},
		{Name: route.MCPDescribe, Path: "/mcp/tools/describe", Verbs: bothVerbs, Handle: describe},
	}}
	switch version {
	case V13:
		extension.Routes = append(extension.Routes, mockdrupal.ExtensionRoute{Name: route.MCPInvoke, Path: "/mcp/tools/invoke", Verbs: bothVerbs, Handle: invoke})
	case V14:
		exposed := func(v *mockdrupal.Visit) bool { _, ok := v.Exposed(v.Var("tool")); return ok }
		extension.Routes = append(extension.Routes, mockdrupal.ExtensionRoute{Name: route.MCPTool, Path: "/mcp/tools/{tool}", Verbs: bothVerbs, Exists: exposed, Handle: perTool})
	default:
		return extension, fmt.Errorf("there is no module version %q: the mock knows %s and %s, and %s, which is another module", version, V13, V14, MCP)
	}
	return extension, nil
}

// scopeMiddleware stands before Drupal in every version: it looks up the name in the body of an invoke, and fails when
// that name is a list or an object, which PHP accepts as no array key.
func scopeMiddleware(v *mockdrupal.Visit) *mockdrupal.Response {
	if v.PathInfo() != "/mcp/tools/invoke" {
		return nil
	}
	body, err := php.Decode(v.Body())
	if err != nil {
		return nil
	}
	if members, ok := body.(*php.Array); ok {
		if name, ok := members.Member("name").(*php.Array); ok && name.Len() > 0 {
			return v.Crashed()
		}
	}
	return nil
}

func failure(v *mockdrupal.Visit, status int, code, message string) *mockdrupal.Response {
	return v.JSON(status, php.Map(php.Pair{Name: "error", Value: php.Map(
		php.Pair{Name: "code", Value: code}, php.Pair{Name: "message", Value: message})}))
}

func notFound(v *mockdrupal.Visit, name string) *mockdrupal.Response {
	return failure(v, http.StatusNotFound, "tool_not_found", "Tool '"+name+"' not found or access denied")
}

// notScalar is what Symfony says of an argument that was sent as a list.
func notScalar(v *mockdrupal.Visit, argument string) *mockdrupal.Response {
	return v.BadRequest(`Input value "` + argument + `" contains a non-scalar value.`)
}

// pageSize is how many tools a page holds.
const pageSize = 50

// list is GET or POST /mcp/tools/list.
func list(v *mockdrupal.Visit) *mockdrupal.Response {
	if a := v.Require(fixtures.DiscoverTools); a != nil {
		return a
	}
	cursor, isList := v.Query("cursor")
	if isList {
		return notScalar(v, "cursor")
	}
	tools := v.Tools()
	offset := 0
	if php.Truthy(cursor) {
		offset = int(php.ToInt(php.Base64Decode(cursor)))
	}
	page := &php.Array{}
	for _, m := range slice(tools, offset, pageSize) {
		tool, ok := normalize(m)
		if !ok {
			return v.Unexpected()
		}
		page.Append(tool)
	}
	var next php.Value
	if len(tools) > offset+pageSize {
		next = base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(offset + pageSize)))
	}
	return v.JSON(http.StatusOK, php.Map(php.Pair{Name: "tools", Value: page}, php.Pair{Name: "nextCursor", Value: next}))
}

// describe is GET or POST /mcp/tools/describe?name=.
func describe(v *mockdrupal.Visit) *mockdrupal.Response {
	if a := v.Require(fixtures.DiscoverTools); a != nil {
		return a
	}
	return v.Sticky(func() *mockdrupal.Response {
		name, isList := v.Query("name")
		switch {
		case isList:
			return notScalar(v, "name")
		case !php.Truthy(name):
			return failure(v, http.StatusBadRequest, "missing_parameter", `Required parameter "name" is missing`)
		case !utf8.ValidString(name):
			return v.Unexpected() // json_encode cannot write the message
		}
		m, ok := v.Tool(name)
		if !ok {
			return notFound(v, name)
		}
		tool, ok := normalize(m)
		if !ok {
			return v.Unexpected()
		}
		return v.JSON(http.StatusOK, php.Map(php.Pair{Name: "tool", Value: tool}))
	})
}

// invoke is GET or POST /mcp/tools/invoke of v1.3: it reads a body whatever the verb, and checks no argument.
func invoke(v *mockdrupal.Visit) *mockdrupal.Response {
	if a := v.Require(fixtures.UseJSONRPC); a != nil {
		return a
	}
	body, err := php.Decode(v.Body())
	members, ok := body.(*php.Array)
	if err != nil || !ok {
		return failure(v, http.StatusBadRequest, "invalid_json", "Request body must be valid JSON")
	}
	missing := func(parameter string) *mockdrupal.Response {
		return failure(v, http.StatusBadRequest, "missing_parameter", `Required parameter "`+parameter+`" is missing or invalid`)
	}
	name, ok := members.Member("name").(string)
	if !ok {
		return missing("name")
	}
	arguments, ok := members.Member("arguments").(*php.Array)
	if !ok {
		return missing("arguments")
	}
	if _, ok := v.Tool(name); !ok {
		return notFound(v, name)
	}
	result, message, ok := v.Run(name, arguments)
	if !ok {
		return failure(v, http.StatusInternalServerError, "execution_error", message)
	}
	response := php.Map(php.Pair{Name: "result", Value: result})
	if _, err := php.Encode(response); err != nil {
		return failure(v, http.StatusInternalServerError, "execution_error", "Tool execution failed: "+err.Error())
	}
	return v.JSON(http.StatusOK, response)
}

// normalize returns the tool as the module shows it: empty properties are [], and so is all else that PHP cannot
// distinguish from a list. It fails on annotations that are a list, even an empty one: the module's attribute class throws
// for them.
func normalize(m *fixtures.Method) (*php.Array, bool) {
	properties, required := &php.Array{}, &php.Array{}
	for i := range m.Params {
		p := &m.Params[i]
		key := php.KeyOf(p.Name)
		schema, err := php.Decode(p.Resolved())
		if err != nil {
			schema = nil
		}
		if members, ok := schema.(*php.Array); p.Description != "" && (ok || schema == nil) {
			if !ok {
				members = &php.Array{}
			}
			members.Set(php.KeyOf("description"), p.Description)
			schema = members
		}
		properties.Set(key, schema)
		if p.Required {
			var name php.Value = p.Name
			if key.IsInt {
				name = key.Int
			}
			required.Append(name)
		}
	}
	input := php.Map(php.Pair{Name: "type", Value: "object"}, php.Pair{Name: "properties", Value: properties})
	if required.Len() > 0 {
		input.Set(php.KeyOf("required"), required)
	}
	tool := php.Map(php.Pair{Name: "name", Value: m.ID}, php.Pair{Name: "description", Value: m.Usage}, php.Pair{Name: "inputSchema", Value: input})
	if output, err := php.Decode(m.Output); err == nil && output != nil {
		tool.Set(php.KeyOf("outputSchema"), output)
	}
	if php.Truthy(m.MCP.Title) {
		tool.Set(php.KeyOf("title"), m.MCP.Title)
	}
	notes, err := php.Decode(m.MCP.Annotations)
	if members, ok := notes.(*php.Array); err == nil && ok {
		switch isObject := bytes.HasPrefix(bytes.TrimSpace(m.MCP.Annotations), []byte("{")); {
		case members.Len() == 0 && isObject: // PHP cannot write it: none at all
		case members.IsList():
			return nil, false
		default:
			tool.Set(php.KeyOf("annotations"), members)
		}
	}
	return tool, true
}

// slice is PHP's array_slice: a negative offset counts from the end.
func slice(tools []*fixtures.Method, offset, length int) []*fixtures.Method {
	n := len(tools)
	if offset < 0 {
		offset = max(0, n+offset)
	}
	offset = min(offset, n)
	return tools[offset:min(n, offset+length)]
}
