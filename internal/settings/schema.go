package settings

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Schema is the JSON Schema of a configuration, for editors: its keys are those of File, described as in the table of settings.
// Parse checks more.
func Schema() ([]byte, error) {
	help := map[string]string{}
	for _, s := range Table() {
		if s.Key != "" {
			help[s.Key] = s.Help
			if s.Default != "" {
				help[s.Key] += " (default " + s.Default + ")"
			}
		}
	}
	schema := schemaOf(reflect.TypeFor[File](), "", help)
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "A configuration of bridgecheck run"
	data, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("the schema of the configuration: %w", err)
	}
	return append(data, '\n'), nil
}

// schemaOf is the schema of a type, at a key, as yaml reads it.
func schemaOf(t reflect.Type, at string, help map[string]string) map[string]any {
	switch t {
	case reflect.TypeFor[yaml.Node]():
		return map[string]any{}
	case reflect.TypeFor[Duration]():
		return map[string]any{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$`}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), at, help)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), at+"[]", help)}
	case reflect.Map:
		s := map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), at+".NAME", help)}
		if t.Elem() == reflect.TypeFor[Identity]() {
			s["propertyNames"] = map[string]any{"enum": slices.Sorted(slices.Values(roles))}
		}
		return s
	case reflect.Struct:
		properties := map[string]any{}
		for _, field := range reflect.VisibleFields(t) {
			if name := field.Tag.Get("yaml"); name != "" && !field.Anonymous {
				key := strings.TrimPrefix(at+"."+name, ".")
				property := schemaOf(field.Type, key, help)
				if text := help[key]; text != "" {
					property["description"] = strings.ReplaceAll(text, "`", "")
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
