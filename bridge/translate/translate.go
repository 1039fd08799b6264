package translate

import (
	"fmt"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
)

// Diagnostic says what was repaired in a method, or why it was left out.
type Diagnostic struct {
	Method      string `json:"method"` // empty: all of them
	Problem     string `json:"problem"`
	Quarantined bool   `json:"quarantined"` // the method is no tool
}

// Translator holds what translation needs beside the method. The zero value knows the built-in field types only.
type Translator struct {
	Types   map[string]FieldType // rules for custom field types; they win over the built-in ones
	Targets map[string][]string  // the values that references to an entity type may take, as the site has them
}

// Tool makes a definition of a method, named by its id. The diagnostics say what was repaired; an error says why the
// method cannot be a tool.
func (t Translator) Tool(m Method) (catalog.Definition, []Diagnostic, error) {
	notes := &notes{method: m.ID}
	d := catalog.Definition{Name: m.ID, Method: m.ID, Title: text(m.Attribute, "title"), Description: m.Usage}
	if d.Description == "" {
		// Some clients refuse a whole list for one empty description.
		if d.Description = d.Title; d.Description == "" {
			d.Description = m.ID
		}
	}
	if a, ok := m.Attribute.Get("annotations"); ok {
		switch {
		case a.Kind == jsondoc.Object && len(a.Members) > 0:
			d.Annotations = a.Bytes()
		case a.Kind == jsondoc.Object, a.IsEmptyArray(), a.Kind == jsondoc.Null:
		default:
			notes.add("its annotations are a JSON %s, not an object; they are left out", a.Kind)
		}
	}
	input := t.input(m, notes)
	d.InputSchema = input.Bytes()
	for _, p := range m.Params {
		if p.Required {
			d.Required = append(d.Required, p.Name)
		}
		if m.Positional {
			d.Positional = append(d.Positional, p.Name)
		}
	}
	err := verify(input, d.InputSchema, notes)
	if err != nil && schema.Recent(input) {
		// One parameter declares the dialect, and others may be of an older one, in which more is allowed.
		older := input.Without("$schema")
		if verify(older, older.Bytes(), notes) == nil {
			notes.add("it is no schema of the dialect that it declares (%v); it is read as Draft 7", err)
			d.InputSchema, err = older.Bytes(), nil
		}
	}
	if err != nil {
		return d, notes.found, fmt.Errorf("input: %w", err)
	}
	if m.Output.Kind != "" {
		output := t.repair(m.Output, notes)
		d.OutputSchema = output.Bytes()
		if err := verify(output, d.OutputSchema, notes); err != nil {
			// The method works without it.
			notes.add("its output schema is left out: %v", err)
			d.OutputSchema = nil
		}
	}
	return d, notes.found, nil
}

// verify makes sure that a schema compiles. Compiling costs more than all the rest, so that it is left to who
// needs it first where nothing had to be repaired: repair knows every keyword that could be wrong.
func verify(v jsondoc.Value, doc []byte, notes *notes) error {
	if len(notes.found) == 0 && !schema.Recent(v) {
		return schema.Check(v, len(doc))
	}
	_, err := schema.Compile(doc)
	return err
}

// input builds the object schema of a method's parameters. Parameters by position become properties named 0, 1, …
func (t Translator) input(m Method, notes *notes) jsondoc.Value {
	if m.Whole.Kind != "" {
		return t.repair(m.Whole, notes).With("type", jsondoc.NewString("object"))
	}
	var properties []jsondoc.Member
	var required []jsondoc.Value
	dialect := ""
	for i := range m.Params {
		p := &m.Params[i]
		s := p.Schema
		if s.Kind == "" {
			notes.add("the parameter %s has no schema; it takes anything", p.Name)
			s = jsondoc.NewObject()
		}
		if schema.Recent(s) {
			dialect = schema.Dialect(text(s, "$schema"))
		}
		if r, ok := s.Get("required"); ok && r.IsTrue() {
			p.Required = true // Draft 3, and Drupal: it belongs to the one above
		}
		s = schema.Rebase(t.repair(s, notes), "#/properties/"+pointerToken(p.Name))
		if _, declares := s.Get("$schema"); declares {
			s = s.Without("$schema") // it is the whole's to declare
		}
		if p.Description != "" {
			s = s.With("description", jsondoc.NewString(p.Description))
		}
		if _, ok := s.Get("default"); !ok && p.Default.Kind != "" {
			s = s.With("default", p.Default)
		}
		properties = append(properties, jsondoc.Member{Name: p.Name, Value: s})
		if p.Required {
			required = append(required, jsondoc.NewString(p.Name))
		}
	}
	var members []jsondoc.Member
	if dialect != "" {
		members = append(members, jsondoc.Member{Name: "$schema", Value: jsondoc.NewString(dialect)})
	}
	members = append(members,
		jsondoc.Member{Name: "type", Value: jsondoc.NewString("object")},
		jsondoc.Member{Name: "properties", Value: jsondoc.NewObject(properties...)})
	if required != nil {
		members = append(members, jsondoc.Member{Name: "required", Value: jsondoc.NewArray(required...)})
	}
	return jsondoc.NewObject(members...)
}

// pointerToken writes a name as a token of a JSON pointer in a URI fragment.
func pointerToken(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case c == '~':
			b.WriteString("~0")
		case c == '/':
			b.WriteString("~1")
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// notes collects diagnostics of one method.
type notes struct {
	method string
	found  []Diagnostic
}

func (n *notes) add(format string, args ...any) {
	const most = 20 // one wild method must not fill the list
	if len(n.found) < most {
		n.found = append(n.found, Diagnostic{Method: n.method, Problem: fmt.Sprintf(format, args...)})
	}
}
