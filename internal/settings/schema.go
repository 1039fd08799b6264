package settings

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// source is where each key is documented, once.
//
//go:embed config.go
var source string

// Schema is the JSON Schema of a configuration, for editors: its keys are those of File, with their comments as descriptions.
// Parse checks more.
func Schema() ([]byte, error) {
	comments, err := commentsIn(source)
	if err != nil {
		return nil, err
	}
	schema := schemaOf(reflect.TypeFor[File](), comments)
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "A configuration of bridgecheck run"
	data, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("the schema of the configuration: %w", err)
	}
	return append(data, '\n'), nil
}

// commentsIn are the comments behind the fields of a source's structs, by TYPE.FIELD.
func commentsIn(source string) (map[string]string, error) {
	file, err := parser.ParseFile(gotoken.NewFileSet(), "config.go", source, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("the comments of the configuration: %w", err)
	}
	comments := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if fields, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range fields.Fields.List {
				for _, name := range field.Names {
					comments[spec.Name.Name+"."+name.Name] = strings.TrimSpace(field.Comment.Text())
				}
			}
		}
		return true
	})
	return comments, nil
}

// schemaOf is the schema of a type as yaml reads it.
func schemaOf(t reflect.Type, comments map[string]string) map[string]any {
	switch t {
	case reflect.TypeFor[yaml.Node]():
		return map[string]any{}
	case reflect.TypeFor[Duration]():
		return map[string]any{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$`}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), comments)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), comments)}
	case reflect.Map:
		s := map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), comments)}
		if t.Elem() == reflect.TypeFor[Identity]() {
			s["propertyNames"] = map[string]any{"enum": slices.Sorted(slices.Values(roles))}
		}
		return s
	case reflect.Struct:
		properties := map[string]any{}
		for field := range t.Fields() {
			if name := field.Tag.Get("yaml"); name != "" {
				property := schemaOf(field.Type, comments)
				if comment := comments[t.Name()+"."+field.Name]; comment != "" {
					property["description"] = comment
				}
				properties[name] = property
			}
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "string"}
}
