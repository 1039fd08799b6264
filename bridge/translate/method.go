// Package translate turns what a site says about a JSON-RPC method into a tool: it reads the site's description, repairs
// what PHP and old JSON Schema dialects get wrong, puts Drupal field types into JSON Schema, and says what it repaired.
// It is pure: it sends nothing and remembers nothing. A tool that it gives has schemas that compile and that real
// clients take; a method that cannot be brought there is an error, which costs that method only.
package translate

import (
	"fmt"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// Method is a JSON-RPC method as the site describes it.
type Method struct {
	ID         string
	Usage      string
	Params     []Param
	Positional bool          // parameters go by position
	Output     jsondoc.Value // zero: none declared
	Attribute  jsondoc.Value // the McpTool attribute {title, annotations}; zero: the method does not carry it
	Whole      jsondoc.Value // the input schema as a whole, where the module says more than its properties; zero: it does not
}

// Marked reports whether the method carries the McpTool attribute.
func (m Method) Marked() bool { return m.Attribute.Kind != "" }

// Param is one parameter of a method.
type Param struct {
	Name        string
	Description string
	Required    bool
	Schema      jsondoc.Value // zero: none published
	Default     jsondoc.Value // zero: none
}

// ReadMethod reads one entry of GET /jsonrpc/methods.
func ReadMethod(v jsondoc.Value) (Method, error) {
	id, _ := v.Get("id")
	var m Method
	if m.ID, _ = id.Text(); m.ID == "" {
		return Method{}, fmt.Errorf("a method has no id")
	}
	attributes, _ := v.Get("attributes")
	m.Usage = text(attributes, "usage")
	if output, ok := attributes.Get("output"); ok && output.Kind != jsondoc.Null {
		m.Output = output
	}
	if attribute, ok := attributes.Get("mcpTool"); ok && attribute.Kind != jsondoc.Null {
		m.Attribute = attribute
	}
	params, _ := attributes.Get("params")
	switch params.Kind {
	case "", jsondoc.Null:
	case jsondoc.Object:
		for _, p := range params.Members {
			m.Params = append(m.Params, readParam(p.Name, p.Value))
		}
	case jsondoc.Array:
		m.Positional = len(params.Items) > 0
		for i, p := range params.Items {
			m.Params = append(m.Params, readParam(fmt.Sprint(i), p))
		}
	default:
		return m, fmt.Errorf("its params are a JSON %s", params.Kind)
	}
	return m, nil
}

// readParam reads a parameter. The schema beside the attributes is the one that a factory gave; the one among them is
// what the method's author wrote.
func readParam(name string, v jsondoc.Value) Param {
	attributes, _ := v.Get("attributes")
	p := Param{Name: name, Description: text(attributes, "description")}
	if r, ok := attributes.Get("required"); ok {
		p.Required = r.IsTrue()
	}
	for _, holder := range []jsondoc.Value{v, attributes} {
		if s, ok := holder.Get("schema"); ok && s.Kind != jsondoc.Null {
			p.Schema = s
			break
		}
	}
	if d, ok := attributes.Get("default"); ok {
		p.Default = d
	}
	return p
}

// text returns a member's string, "" when it is missing or something else.
func text(v jsondoc.Value, name string) string {
	m, _ := v.Get(name)
	s, _ := m.Text()
	return s
}

// Hint returns a boolean annotation; false for known when the method has none of that name.
func (m Method) Hint(name string) (value, known bool) {
	annotations, _ := m.Attribute.Get("annotations")
	hint, ok := annotations.Get(name)
	return hint.IsTrue(), ok && hint.Kind == jsondoc.Boolean
}

// ReadTool reads a tool of the MCP module's own list back into the method that it was made of.
func ReadTool(v jsondoc.Value) (Method, error) {
	m := Method{ID: text(v, "name"), Usage: text(v, "description")}
	if m.ID == "" {
		return Method{}, fmt.Errorf("a tool has no name")
	}
	if output, ok := v.Get("outputSchema"); ok && output.Kind != jsondoc.Null {
		m.Output = output
	}
	var attribute []jsondoc.Member
	for _, name := range []string{"title", "annotations"} {
		if member, ok := v.Get(name); ok {
			attribute = append(attribute, jsondoc.Member{Name: name, Value: member})
		}
	}
	m.Attribute = jsondoc.NewObject(attribute...)
	input, _ := v.Get("inputSchema")
	required := map[string]bool{}
	list, _ := input.Get("required")
	for _, name := range list.Items {
		if s, ok := name.Text(); ok {
			required[s] = true
		} else {
			required[string(name.Raw)] = true // the module lists positions as numbers
		}
	}
	properties, _ := input.Get("properties")
	for _, member := range input.Members {
		if member.Name != "type" && member.Name != "properties" && member.Name != "required" && properties.Kind == jsondoc.Object {
			m.Whole = input
		}
	}
	m.Positional = len(properties.Items) > 0
	for i, p := range properties.Items {
		name := fmt.Sprint(i)
		m.Params = append(m.Params, Param{Name: name, Required: required[name], Schema: p})
	}
	for _, p := range properties.Members {
		m.Params = append(m.Params, Param{Name: p.Name, Required: required[p.Name], Schema: p.Value})
	}
	return m, nil
}
