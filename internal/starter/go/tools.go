package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Method is a method of the site.
type Method struct {
	ID         string
	Attributes struct {
		Usage   string
		Params  json.RawMessage
		Output  json.RawMessage
		MCPTool json.RawMessage // nil: the method is no tool
	}
	broken error // it could not be read
}

// Tool is a method as callers see it.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description"`
	InputSchema  InputSchema     `json:"inputSchema"`
	OutputSchema any             `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// InputSchema is the schema of the arguments.
type InputSchema struct {
	Type       string         `json:"type"`
	Properties map[string]any `json:"properties"`
	Required   []string       `json:"required,omitempty"` // mapping/required-exact
}

var reported sync.Map // ids of methods that were left out

// toolsOf returns the tools among the methods, in their order. One that cannot be translated does not cost the others
// (translate/one-bad-tool).
func toolsOf(methods []Method) []*Tool {
	tools := []*Tool{} // not nil: that would be null (list/has-tools-array)
	for _, m := range methods {
		if m.Attributes.MCPTool == nil && m.broken == nil { // list/only-marked-methods
			continue
		}
		tool, err := toolOf(m)
		if err == nil {
			tools = append(tools, tool)
		} else if _, known := reported.LoadOrStore(m.ID, true); !known {
			log.Printf("%s is left out: %v", m.ID, err)
		}
	}
	return tools
}

// find returns the tool of a name, which has to match exactly (describe/name-exact), or nil.
func find(tools []*Tool, name string) *Tool {
	if i := slices.IndexFunc(tools, func(t *Tool) bool { return t.Name == name }); i >= 0 {
		return tools[i]
	}
	return nil
}

func toolOf(m Method) (*Tool, error) {
	if m.broken != nil {
		return nil, m.broken
	}
	var marked struct {
		Title       string
		Annotations json.RawMessage
	}
	if err := object(m.Attributes.MCPTool, &marked); err != nil {
		return nil, err
	}
	tool := &Tool{Name: m.ID, Title: marked.Title, Description: m.Attributes.Usage}
	for _, text := range []string{marked.Title, m.ID} {
		if tool.Description == "" {
			tool.Description = text
		}
	}
	if bytes.HasPrefix(marked.Annotations, []byte("{")) { // PHP writes [] for none (list/tool-optional-members)
		tool.Annotations = marked.Annotations
	}
	var err error
	if m.Attributes.Output != nil {
		if tool.OutputSchema, err = usable(m.Attributes.Output); err != nil {
			return nil, err
		}
	}
	tool.InputSchema, err = inputSchema(m.Attributes.Params)
	return tool, err
}

func inputSchema(data json.RawMessage) (InputSchema, error) {
	schema := InputSchema{Type: "object", Properties: map[string]any{}}
	var params map[string]struct {
		Schema     json.RawMessage
		Attributes json.RawMessage
	}
	if err := object(data, &params); err != nil {
		return schema, fmt.Errorf("the parameters have no names: %w", err) // mapping/by-position
	}
	for _, name := range slices.Sorted(maps.Keys(params)) { // a map has no order, a list must have one (list/order-stable)
		var attributes struct {
			Description string
			Required    bool
		}
		if err := object(params[name].Attributes, &attributes); err != nil {
			return schema, err
		}
		property, err := usable(params[name].Schema)
		if err != nil {
			return schema, err
		}
		if attributes.Description != "" {
			described, ok := property.(map[string]any)
			if !ok { // true takes any value
				described = map[string]any{}
			}
			described["description"] = attributes.Description
			property = described
		}
		schema.Properties[name] = property
		if attributes.Required {
			schema.Required = append(schema.Required, name)
		}
	}
	return schema, nil
}

// object reads an object; PHP writes [] for an empty one, and leaves it out.
func object(data json.RawMessage, v any) error {
	if data == nil || string(data) == "[]" {
		return nil
	}
	return json.Unmarshal(data, v)
}

var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// Which keywords hold schemas: by name, as a list, or one.
var (
	inMaps  = []string{"properties", "patternProperties", "dependencies"}
	inLists = []string{"allOf", "anyOf", "oneOf", "items"}
	single  = []string{"items", "additionalItems", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"}
)

// usable returns a schema as every client can use it: references replaced by what they refer to, and PHP's [] by {} where a
// schema or a map stands. It fails where that cannot be had: a schema that is null, cyclic, or refers to elsewhere.
func usable(data json.RawMessage) (any, error) {
	var root any
	if data == nil || decode(data, &root) != nil {
		return nil, errors.New("a schema is missing, or too deep")
	}
	size := 0
	var walk func(schema any, depth int) (any, error)
	walk = func(schema any, depth int) (any, error) {
		if list, ok := schema.([]any); ok && len(list) == 0 {
			return map[string]any{}, nil
		}
		if _, ok := schema.(bool); ok {
			return schema, nil
		}
		from, ok := schema.(map[string]any)
		if size++; !ok {
			return nil, errors.New("a schema is no object")
		}
		if depth > 30 || size > 2000 { // schema/bounded
			return nil, errors.New("a schema is cyclic or too large")
		}
		if ref, ok := from["$ref"]; ok {
			to, err := target(root, fmt.Sprint(ref))
			if err != nil {
				return nil, err
			}
			return walk(to, depth+1)
		}
		for key, value := range from {
			if valid := values[key]; valid != nil && !valid(value) {
				return nil, fmt.Errorf("a schema has a wrong %s", key)
			}
		}
		made := maps.Clone(from)
		delete(made, "definitions") // nothing refers to them now
		delete(made, "$defs")
		var failed error
		replace := func(value any) any {
			if failed == nil {
				value, failed = walk(value, depth+1)
			}
			return value
		}
		for _, key := range inMaps {
			if value, ok := made[key]; ok {
				members, _ := value.(map[string]any) // [] is {}
				named := map[string]any{}
				for name, value := range members {
					if list, ok := value.([]any); key != "dependencies" || !ok || len(list) == 0 {
						value = replace(value)
					}
					named[name] = value
				}
				made[key] = named
			}
		}
		for _, key := range inLists {
			if list, ok := made[key].([]any); ok && len(list) > 0 {
				list = slices.Clone(list)
				for i := range list {
					list[i] = replace(list[i])
				}
				made[key] = list
			}
		}
		for _, key := range single {
			if list, ok := made[key].([]any); made[key] != nil && (!ok || len(list) == 0) {
				made[key] = replace(made[key])
			}
		}
		if made["type"] == "array" && made["items"] == nil { // profile/array-items
			made["items"] = map[string]any{}
		}
		return made, failed
	}
	return walk(root, 0)
}

// values says what the value of a keyword has to be (schema/input-valid).
var values = map[string]func(value any) bool{
	"type":        isType,
	"enum":        func(value any) bool { list, _ := value.([]any); return len(list) > 0 },
	"required":    func(value any) bool { return isList(value, isText) },
	"uniqueItems": func(value any) bool { _, ok := value.(bool); return ok },
	"title":       isText, "description": isText, "format": isText, "pattern": isText,
	"minimum": isNumber, "maximum": isNumber, "exclusiveMinimum": isNumber, "exclusiveMaximum": isNumber, "multipleOf": isNumber,
	"minLength": isCount, "maxLength": isCount, "minItems": isCount, "maxItems": isCount, "minProperties": isCount, "maxProperties": isCount,
}

func isText(value any) bool   { _, ok := value.(string); return ok }
func isNumber(value any) bool { _, ok := value.(json.Number); return ok }

func isCount(value any) bool {
	n, _ := value.(json.Number)
	_, err := strconv.ParseUint(n.String(), 10, 64)
	return err == nil
}

func isType(value any) bool {
	name, _ := value.(string)
	return slices.Contains(types, name) || isList(value, func(v any) bool { return isText(v) && slices.Contains(types, v.(string)) })
}

func isList(value any, of func(any) bool) bool {
	list, ok := value.([]any)
	return ok && !slices.ContainsFunc(list, func(v any) bool { return !of(v) })
}

// target returns what a reference within root refers to; another one is refused (schema/no-remote-ref).
func target(root any, ref string) (any, error) {
	path, err := url.PathUnescape(ref)
	if err != nil || path != "#" && !strings.HasPrefix(path, "#/") {
		return nil, fmt.Errorf("a schema refers to %s", ref)
	}
	for _, part := range strings.Split(path, "/")[1:] {
		members, _ := root.(map[string]any)
		list, _ := root.([]any)
		var ok bool
		if n, err := strconv.Atoi(part); err == nil && n >= 0 && n < len(list) {
			root = list[n]
		} else if root, ok = members[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]; !ok {
			return nil, fmt.Errorf("nothing is at %s", ref)
		}
	}
	return root, nil
}
