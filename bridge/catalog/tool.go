// Package catalog holds what a caller may see: tools, in the site's order, with their pages encoded once and a version
// that is a hash of the content. It does not know where tools come from (discovery) nor how they are run (invoke).
// A Catalog and a Tool never change; callers who see the same tools share the same Catalog.
package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
)

// Definition is a tool as translation gives it. Name, Method, Description and InputSchema are never empty.
type Definition struct {
	Name         string // as listed
	Method       string // the JSON-RPC method's id
	Title        string
	Description  string
	InputSchema  json.RawMessage // a JSON Schema of type object
	OutputSchema json.RawMessage // nil: none declared
	Annotations  json.RawMessage // a JSON object; nil: none
	Required     []string        // parameters that must be there; all others may be null
	Positional   []string        // for a method whose parameters go by position: their names, in that order
}

// Tool is a definition in its listed form, with schemas that are compiled when first needed.
type Tool struct {
	Definition
	described []byte // {"tool": …}, with the listed form within it
	input     *schema.Lazy
	output    *schema.Lazy // nil: none declared
	scopes    []string
}

// NewTool makes a tool of a definition. compile gives the compiled form of a schema, so that tools may share it;
// schema.NewLazy does where they need not.
func NewTool(d Definition, compile func(json.RawMessage) *schema.Lazy) *Tool {
	t := &Tool{described: encode(&d), input: compile(d.InputSchema), scopes: scopesOf(d.Annotations)}
	if t.Definition = d; d.OutputSchema != nil {
		t.output = compile(d.OutputSchema)
	}
	return t
}

// envelope is what describe puts around a tool.
const envelope = `{"tool":`

// Encoded is the tool as list and describe give it: one JSON object. The bytes must not be changed.
func (t *Tool) Encoded() []byte { return t.described[len(envelope) : len(t.described)-1] }

// Described is the whole response of describe. The bytes must not be changed.
func (t *Tool) Described() []byte { return t.described }

// Input is the compiled input schema.
func (t *Tool) Input() (*schema.Schema, error) { return t.input.Schema() }

// Output is the compiled output schema; nil where none is declared.
func (t *Tool) Output() (*schema.Schema, error) {
	if t.output == nil {
		return nil, nil
	}
	return t.output.Schema()
}

// Scopes are those that a caller's token must have, by the annotation auth. The slice must not be changed.
func (t *Tool) Scopes() []string { return t.scopes }

// scopesOf reads {"auth": {"scopes": […], "level": …}}. At the levels none and optional a tool can do without.
func scopesOf(annotations json.RawMessage) []string {
	if !bytes.Contains(annotations, []byte(`"auth"`)) {
		return nil
	}
	var read struct{ Auth struct{ Level, Scopes any } }
	if json.Unmarshal(annotations, &read) != nil || read.Auth.Level == "none" || read.Auth.Level == "optional" {
		return nil
	}
	var scopes []string
	switch given := read.Auth.Scopes.(type) {
	case string:
		scopes = strings.Fields(given)
	case []any:
		for _, scope := range given {
			scopes = append(scopes, fmt.Sprint(scope)) // a scope that is no text is a scope that no token has
		}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// encode writes the described form. Members that a tool lacks are left out: clients refuse null and [] there. The
// definition's schemas become parts of it, so that a large catalog holds them once.
func encode(d *Definition) []byte {
	b := make([]byte, 0, 128+len(d.Name)+len(d.Title)+len(d.Description)+len(d.InputSchema)+len(d.OutputSchema)+len(d.Annotations))
	b = jsondoc.AppendString(append(b, envelope+`{"name":`...), d.Name)
	if d.Title != "" {
		b = jsondoc.AppendString(append(b, `,"title":`...), d.Title)
	}
	b = jsondoc.AppendString(append(b, `,"description":`...), d.Description)
	for _, part := range []struct {
		name string
		doc  *json.RawMessage
	}{{"inputSchema", &d.InputSchema}, {"outputSchema", &d.OutputSchema}, {"annotations", &d.Annotations}} {
		if *part.doc == nil {
			continue
		}
		b = append(append(append(b, `,"`...), part.name...), `":`...)
		from := len(b)
		b = append(b, *part.doc...)
		*part.doc = json.RawMessage(b[from:len(b):len(b)])
	}
	return append(b, '}', '}')
}
