package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"bridgecheck/suites/ledger"
)

// valueError is a value that is wrong, and where.
type valueError struct {
	line int
	text string
}

func (e *valueError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.text) }

// decode reads YAML into a struct and refuses what the struct does not know. Every mistake is told, each with file and
// line. It returns the line of each key, by its path such as settings.page_size, and of each item, as invocations[0].
func decode(name string, data []byte, into any) (lines map[string]int, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if doc.Kind == 0 {
		return nil, fmt.Errorf("%s: the file is empty", name)
	}
	w := &walker{name: name, lines: map[string]int{}}
	w.check(doc.Content[0], reflect.TypeOf(into).Elem(), "")
	if len(w.wrong) > 0 {
		return nil, errors.Join(w.wrong...)
	}
	if err := doc.Content[0].Decode(into); err != nil {
		return nil, fmt.Errorf("%s: %s", name, plain(err))
	}
	return w.lines, nil
}

// plain takes Go's vocabulary out of the decoder's errors.
func plain(err error) string {
	var typed *yaml.TypeError
	if errors.As(err, &typed) {
		return strings.NewReplacer("cannot unmarshal !!", "a ", " into ", " stands where there should be a ").Replace(strings.Join(typed.Errors, "; "))
	}
	return strings.TrimPrefix(err.Error(), "yaml: ")
}

// walker compares a document's keys with those of a struct.
type walker struct {
	name  string
	wrong []error
	lines map[string]int
}

var nodeType = reflect.TypeFor[yaml.Node]()

func (w *walker) check(node *yaml.Node, t reflect.Type, at string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nodeType || node.Tag == "!!null" {
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		w.members(node, t, at)
	case reflect.Map:
		for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
			w.lines[join(at, node.Content[i].Value)] = node.Content[i].Line
			w.check(node.Content[i+1], t.Elem(), join(at, node.Content[i].Value))
		}
	case reflect.Slice:
		for i, item := range node.Content {
			w.lines[fmt.Sprintf("%s[%d]", at, i)] = item.Line
			w.check(item, t.Elem(), at)
		}
	}
}

func (w *walker) members(node *yaml.Node, t reflect.Type, at string) {
	if node.Kind != yaml.MappingNode {
		return // the decoder says that it is no mapping
	}
	fields := map[string]reflect.Type{}
	var names []string
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("yaml"); key != "" {
			fields[key] = t.Field(i).Type
			names = append(names, key)
		}
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if line, twice := seen[key.Value]; twice {
			w.fault(key.Line, "the key %s stands here and on line %d", join(at, key.Value), line)
		}
		seen[key.Value] = key.Line
		w.lines[join(at, key.Value)] = key.Line
		field, known := fields[key.Value]
		if !known {
			w.fault(key.Line, "there is no key %s; the nearest is %s, and allowed are %s", join(at, key.Value), ledger.Nearest(key.Value, names), strings.Join(names, ", "))
			continue
		}
		w.check(node.Content[i+1], field, join(at, key.Value))
	}
}

func (w *walker) fault(line int, format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Errorf("%s:%d: %s", w.name, line, fmt.Sprintf(format, args...)))
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}
