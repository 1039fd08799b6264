package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"weak"

	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
)

// annotationsKey holds, in a tool's _meta, the annotations that MCP has no place for.
const annotationsKey = "org.drupal/annotations"

// draft7 is what a schema without $schema means on a Drupal site.
const draft7 = "http://json-schema.org/draft-07/schema#"

// form is a tool as MCP shows it, the same in all revisions: what the strictest of them takes.
type form struct {
	listed  []byte   // the Tool object, on one line; nil: no strict client would read it
	wrapped bool     // the result goes as {"result": …}: the output schema is for no object
	content content  // what the result is made into
	headers []header // arguments that the stateless revision repeats in HTTP headers
}

// newForm makes the MCP form of a tool.
func newForm(t *catalog.Tool) *form {
	f := &form{}
	listed, err := f.encode(t)
	if err == nil {
		var line bytes.Buffer
		if err = json.Compact(&line, listed); err == nil {
			f.listed = line.Bytes()
		}
	}
	return f
}

func (f *form) encode(t *catalog.Tool) ([]byte, error) {
	b := jsondoc.AppendString([]byte(`{"name":`), t.Name)
	if t.Title != "" {
		b = jsondoc.AppendString(append(b, `,"title":`...), t.Title)
	}
	b = jsondoc.AppendString(append(b, `,"description":`...), t.Description)
	input, err := jsondoc.Parse(t.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	input, f.headers = headersOf(input)
	b = objectProperties(declared(input)).Append(append(b, `,"inputSchema":`...))
	if t.OutputSchema != nil {
		output, err := jsondoc.Parse(t.OutputSchema)
		if err != nil {
			return nil, fmt.Errorf("output schema: %w", err)
		}
		output = declared(output)
		if root, _ := output.Get("type"); !isText(root, "object") {
			output, f.wrapped = wrapped(output), true
		}
		b = objectProperties(output).Append(append(b, `,"outputSchema":`...))
	}
	if t.Annotations != nil {
		a, err := jsondoc.Parse(t.Annotations)
		if err != nil {
			return nil, fmt.Errorf("annotations: %w", err)
		}
		hints, rest := sorted(a)
		f.content = contentOf(a)
		if len(hints.Members) > 0 {
			b = hints.Append(append(b, `,"annotations":`...))
		}
		if len(rest.Members) > 0 {
			b = append(rest.Append(append(b, `,"_meta":{"`+annotationsKey+`":`...)), '}')
		}
	}
	return append(b, '}'), nil
}

// hintKinds are the five annotations that MCP knows, with their types.
var hintKinds = map[string]jsondoc.Kind{
	"title": jsondoc.String, "readOnlyHint": jsondoc.Boolean, "destructiveHint": jsondoc.Boolean,
	"idempotentHint": jsondoc.Boolean, "openWorldHint": jsondoc.Boolean,
}

// sorted parts annotations into those that MCP knows, where they have the right type, and the rest. A hint of another
// type is in neither: a client would drop the whole list for it.
func sorted(annotations jsondoc.Value) (hints, rest jsondoc.Value) {
	hints, rest = jsondoc.NewObject(), jsondoc.NewObject()
	for _, m := range annotations.Members {
		switch kind, known := hintKinds[m.Name]; {
		case !known:
			rest.Members = append(rest.Members, m)
		case m.Value.Kind == kind:
			hints.Members = append(hints.Members, m)
		}
	}
	return hints, rest
}

// wrapped is the schema of {"result": v}.
func wrapped(v jsondoc.Value) jsondoc.Value {
	outer := jsondoc.NewObject()
	if dialect, ok := v.Get("$schema"); ok {
		outer, v = outer.With("$schema", dialect), v.Without("$schema")
	}
	const result = "result"
	return outer.With("type", jsondoc.NewString("object")).
		With("properties", jsondoc.NewObject(jsondoc.Member{Name: result, Value: schema.Rebase(v, "#/properties/"+result)})).
		With("required", jsondoc.NewArray(jsondoc.NewString(result)))
}

// objectProperties writes a root property that is true or false as an object: 2025-06-18 knows no other.
func objectProperties(v jsondoc.Value) jsondoc.Value {
	properties, ok := v.Get("properties")
	if !ok {
		return v
	}
	changed := false
	members := make([]jsondoc.Member, len(properties.Members))
	for i, m := range properties.Members {
		if m.Value.Kind == jsondoc.Boolean {
			always := m.Value.IsTrue()
			m.Value, changed = jsondoc.NewObject(), true
			if !always {
				m.Value = m.Value.With("not", jsondoc.NewObject())
			}
		}
		members[i] = m
	}
	if !changed {
		return v
	}
	return v.With("properties", jsondoc.NewObject(members...))
}

// declared says that a schema without $schema is Draft 7, where MCP, which takes it for 2020-12, would read it
// otherwise.
func declared(v jsondoc.Value) jsondoc.Value {
	if _, ok := v.Get("$schema"); ok {
		return v
	}
	differs := false
	schema.Rewrite(v, func(v jsondoc.Value) jsondoc.Value {
		differs = differs || readsOtherwise(v)
		return v
	})
	if !differs {
		return v
	}
	members := append([]jsondoc.Member{{Name: "$schema", Value: jsondoc.NewString(draft7)}}, v.Members...)
	return jsondoc.NewObject(members...)
}

// onlyOneDialect are keywords that Draft 7 or 2020-12 knows and the other ignores.
var onlyOneDialect = map[string]bool{
	"additionalItems": true, "dependencies": true, "contentEncoding": true, "contentMediaType": true,
	"prefixItems": true, "dependentRequired": true, "dependentSchemas": true, "minContains": true, "maxContains": true,
	"unevaluatedProperties": true, "unevaluatedItems": true,
	"$anchor": true, "$dynamicAnchor": true, "$dynamicRef": true, "$vocabulary": true,
}

// beside are the keywords that change nothing for standing beside a $ref, which Draft 7 reads alone.
var beside = map[string]bool{"$ref": true, "$comment": true, "title": true, "description": true, "default": true, "examples": true,
	"definitions": true, "$defs": true, "readOnly": true, "writeOnly": true, "deprecated": true}

// readsOtherwise reports whether Draft 7 and 2020-12 read this level of a schema differently.
func readsOtherwise(v jsondoc.Value) bool {
	_, refers := v.Get("$ref")
	for _, m := range v.Members {
		switch {
		case onlyOneDialect[m.Name], refers && !beside[m.Name]:
			return true
		case m.Name == "items" && m.Value.Kind == jsondoc.Array, m.Name == "format":
			return true
		case m.Name == "$id":
			if id, _ := m.Value.Text(); len(id) > 0 && id[0] == '#' {
				return true
			}
		}
	}
	return false
}

func isText(v jsondoc.Value, want string) bool {
	text, ok := v.Text()
	return ok && text == want
}

// forms keeps the form of each tool for as long as the tool lives.
type forms struct{ m *sync.Map } // *form by weak.Pointer[catalog.Tool]

func newForms() forms { return forms{&sync.Map{}} }

func (f forms) of(t *catalog.Tool) *form {
	key, m := weak.Make(t), f.m
	if known, ok := m.Load(key); ok {
		return known.(*form)
	}
	known, found := m.LoadOrStore(key, newForm(t))
	if !found {
		// It holds the map alone: through the server, which the tool is reachable from, it would keep both for ever.
		runtime.AddCleanup(t, func(gone weak.Pointer[catalog.Tool]) { m.Delete(gone) }, key)
	}
	return known.(*form)
}
