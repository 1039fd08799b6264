package phpschema

import (
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// Where a schema lies that has no id of its own.
const provided = "internal://provided-schema/"

// dereferenced follows the references of a schema. Those that are being followed are in stack.
func (c *check) dereferenced(schema php.Value, stack []*php.Array) php.Value {
	s, ok := schema.(*php.Array)
	if !ok {
		return schema
	}
	ref, ok := s.Member("$ref").(string)
	if !ok {
		return schema
	}
	document, fragment, _ := strings.Cut(ref, "#")
	home := provided
	for _, name := range []string{"$id", "id"} {
		if id, ok := c.root.Member(name).(string); ok {
			home, _, _ = strings.Cut(id, "#")
			break
		}
	}
	steps := slices.DeleteFunc(strings.Split(strings.Trim(fragment, "/"), "/"), func(s string) bool { return s == "" })
	shown := home + "#"
	for _, step := range steps {
		shown += "/" + step
	}
	switch {
	case document != "" && document != home:
		if !strings.Contains(document, ":") {
			document = home + document
		}
		throw("", "file_get_contents("+document+"): Failed to open stream: No such file or directory")
	case slices.Contains(stack, s):
		throw("", "Dereferencing a pointer to "+shown+" results in an infinite loop")
	}
	stack = append(stack, s)
	var at php.Value = c.root
	for _, step := range steps {
		key := php.KeyOf(php.URLDecode(strings.NewReplacer("~1", "/", "~0", "~", "%25", "%").Replace(step)))
		a, _ := at.(*php.Array)
		var found bool
		if a != nil {
			at, found = a.Get(key)
		}
		if !found {
			throw("", "File: "+home+" is found, but could not resolve fragment: "+strings.TrimPrefix(shown, home))
		}
		at = c.dereferenced(at, stack)
	}
	if len(steps) == 0 {
		return c.dereferenced(at, stack)
	}
	return at
}
