package yamlfile

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/internal/suggest"
)

// Explained is implemented by a type that says itself what to write instead of a value of the wrong kind.
type Explained interface{ WrongKind() string }

// Decode reads the one document of a file into a struct, whose fields have yaml tags, and refuses what the struct does
// not know: other keys, keys that stand twice, merged keys (<<), values of another kind, empty values. The error joins
// all mistakes, each with file, line and key; values below the keys in hidden are not shown in it. Decode returns the
// line of each key by its path, such as settings.page_size, and of each item, such as invocations[0].
func Decode(name string, data []byte, into any, hidden ...string) (lines map[string]int, err error) {
	root, err := Root(name, data)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return nil, fmt.Errorf("%s: the file is empty", name)
	}
	w := &walker{name: name, hidden: hidden, lines: map[string]int{}}
	w.check(root, reflect.TypeOf(into).Elem(), "")
	if len(w.wrong) > 0 {
		return nil, errors.Join(w.wrong...)
	}
	if err := root.Decode(into); err != nil {
		return nil, Malformed(name, data, err)
	}
	return w.lines, nil
}

// walker compares a document with a struct: its keys and the kinds of its values.
type walker struct {
	name   string
	hidden []string
	wrong  []error
	lines  map[string]int
}

var (
	nodeType      = reflect.TypeFor[yaml.Node]()
	explainedType = reflect.TypeFor[Explained]()
	leafType      = reflect.TypeFor[yaml.Unmarshaler]()
)

func (w *walker) check(node *yaml.Node, t reflect.Type, at string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if t == nodeType {
		return
	}
	wants := map[reflect.Kind]yaml.Kind{reflect.Struct: yaml.MappingNode, reflect.Map: yaml.MappingNode, reflect.Slice: yaml.SequenceNode}[t.Kind()]
	switch {
	case wants == 0:
		w.leaf(node, t, at)
	case node.Tag == "!!null": // nothing is given of it
	case node.Kind != wants && t.Implements(explainedType):
		w.fault(node.Line, "%s: %s", at, reflect.Zero(t).Interface().(Explained).WrongKind())
	case node.Kind != wants:
		w.fault(node.Line, "%s should be %s, and is %s", cmp.Or(at, "the file"), inWords(t), w.described(node, at))
	case t.Kind() == reflect.Struct:
		w.members(node, t, at)
	case t.Kind() == reflect.Map:
		w.entries(node, t.Elem(), at)
	default:
		for i, item := range node.Content {
			w.lines[fmt.Sprintf("%s[%d]", at, i)] = item.Line
			w.check(item, t.Elem(), fmt.Sprintf("%s[%d]", at, i))
		}
	}
}

// leaf checks a single value.
func (w *walker) leaf(node *yaml.Node, t reflect.Type, at string) {
	into := reflect.New(t)
	switch {
	case node.Tag == "!!null" || node.Kind == yaml.ScalarNode && strings.TrimSpace(node.Value) == "":
		w.fault(node.Line, "%s is empty: give a value, or leave the key out", at)
	case node.Kind != yaml.ScalarNode, t.Kind() == reflect.Int && node.Tag == "!!float": // which the decoder would cut
		w.fault(node.Line, "%s should be %s, and is %s", at, inWords(t), w.described(node, at))
	default:
		err := node.Decode(into.Interface())
		switch {
		case err != nil && into.Type().Implements(leafType):
			w.fault(node.Line, "%s: %v", at, err)
		case err != nil:
			w.fault(node.Line, "%s should be %s, and is %s", at, inWords(t), w.described(node, at))
		}
	}
}

// inWords is what a value of a type is called.
func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct:
		return "a mapping with some of the keys " + strings.Join(keysOf(t), ", ")
	case reflect.Map:
		return "a mapping"
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "a text"
}

// described says what stands there: its kind, or its text unless that is hidden.
func (w *walker) described(node *yaml.Node, at string) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if slices.ContainsFunc(w.hidden, func(key string) bool { return strings.HasPrefix(at, key) }) {
		return "a text"
	}
	return fmt.Sprintf("%q", node.Value)
}

// entries checks a mapping whose keys are free.
func (w *walker) entries(node *yaml.Node, t reflect.Type, at string) {
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		w.once(seen, key, at)
		w.check(node.Content[i+1], t, join(at, key.Value))
	}
}

// keyOf is the key of a field; "" where the file has none for it.
func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return key
}

func keysOf(t reflect.Type) []string {
	var keys []string
	for _, field := range reflect.VisibleFields(t) {
		if key := keyOf(field); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

func (w *walker) members(node *yaml.Node, t reflect.Type, at string) {
	names := keysOf(t)
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		w.once(seen, key, at)
		field, known := t.FieldByNameFunc(func(name string) bool {
			f, _ := t.FieldByName(name)
			return keyOf(f) == key.Value
		})
		switch {
		case key.Value == "<<":
			w.fault(key.Line, "%s: keys are not merged into a mapping (<<): write them out, or use an alias for the whole value", cmp.Or(at, "the file"))
		case !known || key.Value == "":
			w.fault(key.Line, "there is no key %s; %s", join(at, key.Value), suggest.Among(key.Value, names))
		default:
			w.check(node.Content[i+1], field.Type, join(at, key.Value))
		}
	}
}

// once notes where a key stands, and refuses it a second time.
func (w *walker) once(seen map[string]int, key *yaml.Node, at string) {
	if line, twice := seen[key.Value]; twice {
		w.fault(key.Line, "the key %s stands here and on line %d", join(at, key.Value), line)
	}
	seen[key.Value] = key.Line
	w.lines[join(at, key.Value)] = key.Line
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
