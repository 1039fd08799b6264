package callpage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// field is a part of the form. Its kind says how the page makes JSON of what is typed: string, number, choice (an option is JSON
// already), object (of the fields in it) or json.
type field struct {
	ID       string
	Name     string
	Title    string
	About    string
	Kind     string
	Required bool
	Choices  []string
	Fields   []field
}

// deepest is how many objects the form shows in one another. What is deeper is JSON text.
const deepest = 8

// most is how many fields the form shows. An object that would pass it is JSON text.
const most = 300

// formOf is the form for the inputSchema of a tool. What it cannot show is JSON text.
func formOf(schema any) field { return nested("", schema, true, new(int), 0) }

func nested(name string, schema any, required bool, count *int, depth int) field {
	*count++
	f := field{ID: fmt.Sprintf("f%d", *count), Name: name, Kind: "json", Required: required}
	s, ok := schema.(map[string]any)
	if !ok {
		return f
	}
	f.Title, _ = s["title"].(string)
	f.About = about(s)
	kind, _ := s["type"].(string)
	properties, _ := s["properties"].(map[string]any)
	choices, closed := s["enum"].([]any)
	constant, one := s["const"]
	switch {
	case s["$ref"] != nil || s["oneOf"] != nil || s["anyOf"] != nil || s["allOf"] != nil:
	case one:
		choices, closed = []any{constant}, true
	case kind == "boolean" && !closed:
		choices, closed = []any{true, false}, true
	}
	switch {
	case closed:
		f.Kind = "choice"
		for _, c := range choices {
			if t, err := text(c); err == nil {
				f.Choices = append(f.Choices, t)
			}
		}
	case kind == "string":
		f.Kind = "string"
	case kind == "integer" || kind == "number":
		f.Kind = "number"
	case *count+len(properties) > most:
	case name == "" && depth == 0 || kind == "object" && len(properties) > 0 && depth < deepest:
		f.Kind = "object"
		needs := map[string]bool{}
		list, _ := s["required"].([]any)
		for _, member := range list {
			if text, ok := member.(string); ok {
				needs[text] = true
			}
		}
		names := slices.SortedFunc(maps.Keys(properties), func(a, b string) int {
			switch {
			case needs[a] == needs[b]:
				return strings.Compare(a, b)
			case needs[a]:
				return -1
			}
			return 1
		})
		for _, member := range names {
			f.Fields = append(f.Fields, nested(member, properties[member], needs[member], count, depth+1))
		}
	}
	return f
}

// about is the description of a schema, its type, and what else it says of one value.
func about(s map[string]any) string {
	var parts []string
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		switch keyword {
		case "title", "description", "type", "properties", "required", "enum", "additionalProperties", "$schema":
			continue
		}
		if value, err := text(s[keyword]); err == nil {
			parts = append(parts, keyword+" "+value)
		}
	}
	if kind, err := text(s["type"]); err == nil && s["type"] != nil {
		parts = slices.Insert(parts, 0, strings.Trim(kind, `"`))
	}
	if description, ok := s["description"].(string); ok && description != "" {
		parts = slices.Insert(parts, 0, strings.TrimSuffix(description, ".")+".")
	}
	return strings.Join(parts, " · ")
}
