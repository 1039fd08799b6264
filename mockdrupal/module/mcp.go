package module

import (
	"cmp"
	_ "embed" // of the interface
	"net/http"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/applicator"
	"github.com/bridgecheck/bridgecheck/internal/authkind"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// MCP is the Drupal module mcp, which speaks MCP at one address, for bridges that forward that. It is no version of the module of
// V13 and V14.
const MCP = "mcp"

//go:embed mcp.yaml
var mcpInterface []byte

// newMCP returns the module mcp with one plugin, whose tools are the site's methods with the McpTool attribute.
func newMCP() (mockdrupal.Extension, error) {
	methods, err := fixtures.Parse("mcp.yaml", mcpInterface)
	if err != nil {
		return mockdrupal.Extension{}, err
	}
	protocol := &mockdrupal.Protocol{Methods: methods.Methods, Means: meansOnTheSite,
		Run: map[string]func(*mockdrupal.Visit, *php.Array) (php.Value, *mockdrupal.Exception){"tools/list": listTools, "tools/call": callTool}}
	return mockdrupal.Extension{Routes: []mockdrupal.ExtensionRoute{{Name: route.MCPPost, Path: route.MCPPostPath, Verbs: []string{"POST"}, Protocol: protocol,
		Schemes: []string{authkind.Basic, authkind.Cookie, authkind.Bearer},
		Handle: func(v *mockdrupal.Visit) *mockdrupal.Response {
			if v.Holds(fixtures.UseJSONRPC) { // the module's own permission is `use mcp server`, which the sites do not have
				return v.JSONRPC()
			}
			message := "Access Denied"
			if v.Scheme() == "" && strings.HasPrefix(v.Header("Authorization"), "Basic") {
				message = "Authentication failed: Invalid credentials."
			}
			return v.JSON(http.StatusUnauthorized, php.Map(php.Pair{Name: "jsonrpc", Value: "2.0"},
				php.Pair{Name: "error", Value: php.Map(php.Pair{Name: "code", Value: int64(-32001)}, php.Pair{Name: "message", Value: message}, php.Pair{Name: "data", Value: nil})},
				php.Pair{Name: "id", Value: nil}))
		}}}}, nil
}

// ForMCP leaves in a site the methods that the module can offer: of several with one name the first.
func ForMCP(site *fixtures.Site) {
	seen := map[string]bool{}
	site.Methods = slices.DeleteFunc(site.Methods, func(m fixtures.Method) bool {
		name := route.MCPToolName(m.ID)
		again := seen[name]
		seen[name] = true
		return again
	})
}

// meansOnTheSite says what a call of the module is without it: tools/list reads the methods, tools/call calls one of them.
func meansOnTheSite(site *fixtures.Site, c journal.Call) (string, journal.Call) {
	switch c.Method {
	case "tools/list":
		return route.Methods, c
	case "tools/call":
		means := journal.Call{ID: c.ID, Notification: c.Notification}
		for _, m := range php.Members(c.Params) {
			switch m.Name {
			case "name":
				name, _ := php.Decode(m.Raw)
				means.Method, _ = name.(string)
			case "arguments":
				if string(m.Raw) != "null" { // else PHP has none
					means.Params = m.Raw
				}
			}
		}
		for i := range site.Methods {
			if m := &site.Methods[i]; m.MCP != nil && route.MCPToolName(m.ID) == means.Method {
				means.Method = m.ID
				break
			}
		}
		return route.JSONRPC, means
	}
	return "", c
}

// offered are the tools of the plugin that the caller sees, by their names.
func offered(v *mockdrupal.Visit) (names []string, tools map[string]*fixtures.Method) {
	tools = map[string]*fixtures.Method{}
	if v.Scheme() == "" { // a plugin is for authenticated users unless it says otherwise
		return nil, tools
	}
	for _, m := range v.Tools() {
		name := route.MCPToolName(m.ID)
		if tools[name] == nil && !m.ByPosition { // of two methods with one name the plugin offers the first
			names, tools[name] = append(names, name), m
		}
	}
	return names, tools
}

func listTools(v *mockdrupal.Visit, _ *php.Array) (php.Value, *mockdrupal.Exception) {
	list := php.List()
	names, tools := offered(v)
	for _, name := range names {
		if shown, ok := normalize(tools[name]); ok {
			list.Append(asMCP(name, shown))
		}
	}
	return php.Map(php.Pair{Name: "tools", Value: list}), nil
}

// hints are the annotations that the module knows, with the type of each.
var hints = []php.Pair{{Name: "title", Value: ""}, {Name: "readOnlyHint", Value: true}, {Name: "idempotentHint", Value: true}, {Name: "destructiveHint", Value: true},
	{Name: "openWorldHint", Value: true}}

// asMCP makes a tool of MCP of one as the attribute has it: properties that are an object, an output that is one, and hints alone.
func asMCP(name string, shown *php.Array) *php.Array {
	input := shown.Member("inputSchema").(*php.Array)
	properties, required := input.Member("properties").(*php.Array), &php.Array{}
	for i := range properties.Len() {
		key, schema := properties.At(i)
		properties.Set(key, rebased(schema, "#/properties/"+pointer.Replace(key.String()), false))
	}
	input.Set(php.KeyOf("properties"), php.Object{Array: properties})
	if names, ok := input.Member("required").(*php.Array); ok {
		for i := range names.Len() {
			_, name := names.At(i)
			required.Append(php.ToString(name))
		}
		input.Set(php.KeyOf("required"), required)
	}
	tool := php.Map(php.Pair{Name: "name", Value: name}, php.Pair{Name: "description", Value: shown.Member("description")}, php.Pair{Name: "inputSchema", Value: input})
	if title := shown.Member("title"); title != nil {
		tool.Set(php.KeyOf("title"), title)
	}
	if output := shown.Member("outputSchema"); isObject(output) {
		tool.Set(php.KeyOf("outputSchema"), output)
	} else if output != nil {
		tool.Set(php.KeyOf("outputSchema"), php.Map(php.Pair{Name: "type", Value: "object"},
			php.Pair{Name: "properties", Value: php.Map(php.Pair{Name: "result", Value: rebased(output, "#/properties/result", false)})},
			php.Pair{Name: "required", Value: php.List("result")}))
	}
	if notes, ok := shown.Member("annotations").(*php.Array); ok {
		known := &php.Array{}
		for _, hint := range hints {
			if v := notes.Member(hint.Name); php.DebugType(v) == php.DebugType(hint.Value) {
				known.Set(php.KeyOf(hint.Name), v)
			}
		}
		if known.Len() > 0 {
			tool.Set(php.KeyOf("annotations"), known)
		}
	}
	return tool
}

// pointer escapes a name in a JSON pointer of a reference.
var pointer = strings.NewReplacer("~", "~0", "/", "~1", "%", "%25", "\"", "%22", " ", "%20")

// rebased is a schema whose references within itself lead to the same from the place where it is put. v is a schema, a list of
// them, or, if named, an object of them.
func rebased(v php.Value, place string, named bool) php.Value {
	members, ok := v.(*php.Array)
	if !ok {
		return v
	}
	copied := &php.Array{}
	for i := range members.Len() {
		key, v := members.At(i)
		keyword, holds := applicator.Keywords[key.String()]
		switch ref, isText := v.(string); {
		case named, key.IsInt:
			v = rebased(v, place, false)
		case key.String() == "$ref" && isText && strings.HasPrefix(ref, "#"):
			v = place + ref[1:]
		case holds:
			v = rebased(v, place, keyword.Holds == applicator.Named || keyword.Holds == applicator.NamedOrNames)
		}
		copied.Set(key, v)
	}
	return copied
}

func isObject(schema php.Value) bool {
	members, ok := schema.(*php.Array)
	return ok && members.Member("type") == "object"
}

// callTool finds the plugin and its tool in the name, and has the plugin run it, which says what went wrong in its result.
func callTool(v *mockdrupal.Visit, params *php.Array) (php.Value, *mockdrupal.Exception) {
	name, _ := params.Member("name").(string)
	if plugin, _, _ := strings.Cut(name, "_"); plugin != route.MCPPlugin {
		return nil, &mockdrupal.Exception{Message: `The "` + plugin + `" plugin does not exist. Valid plugin IDs for Drupal\mcp\Plugin\McpPluginManager are: ` + route.MCPPlugin}
	}
	if v.Scheme() == "" {
		return nil, &mockdrupal.Exception{Message: "Access denied to plugin: " + route.MCPPlugin, JSONRPC: true}
	}
	_, tools := offered(v)
	m := tools[name]
	if m == nil {
		for i := range v.Site().Methods {
			if other := &v.Site().Methods[i]; other.MCP != nil && route.MCPToolName(other.ID) == name {
				return nil, &mockdrupal.Exception{Message: "Access denied to tool: " + other.ID, JSONRPC: true}
			}
		}
		return nil, &mockdrupal.Exception{Message: "Tool not found: " + name, JSONRPC: true}
	}
	arguments, _ := params.Member("arguments").(*php.Array)
	arguments = cmp.Or(arguments, &php.Array{})
	result, message, detail, ok := v.Call(m.ID, arguments)
	if !ok {
		if detail, _, _ = strings.Cut(detail, ". Adaptor "); detail != "" && message == "Invalid Params" {
			message += ": " + detail
		}
		return php.Map(php.Pair{Name: "content", Value: text(message)}, php.Pair{Name: "isError", Value: true}), nil
	}
	return contentOf(m, result), nil
}

func text(of string) *php.Array {
	return php.List(php.Map(php.Pair{Name: "type", Value: "text"}, php.Pair{Name: "text", Value: of}))
}

// contentOf is a method's result as text, and as structuredContent where the tool has an output schema.
func contentOf(m *fixtures.Method, result php.Value) php.Value {
	output, err := php.Decode(m.Output)
	structured := err == nil && output != nil
	if raw, ok := result.(php.Literal); ok && string(raw) == "[]" {
		result = &php.Array{}
	}
	if list, ok := result.(*php.Array); structured && !isObject(output) {
		result = php.Map(php.Pair{Name: "result", Value: result})
	} else if structured && ok {
		result = php.Object{Array: list} // as PHP's own [] is no object to MCP
	}
	said, err := php.Encode(result)
	if err != nil {
		return php.Map(php.Pair{Name: "content", Value: text(err.Error())}, php.Pair{Name: "isError", Value: true})
	}
	content := php.Map(php.Pair{Name: "content", Value: text(string(said))})
	if structured {
		content.Set(php.KeyOf("structuredContent"), result)
	}
	return content
}
