package schema

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// The largest schema that is offered to a client (clause schema/bounded).
const (
	MaxSize  = 64 << 10 // bytes
	MaxDepth = 32       // levels of JSON
)

// maxWork is how many schemas may apply to one place of an instance: alternatives that refer to alternatives multiply, so
// that a small schema could keep a validator busy for hours.
const maxWork = 10_000

// fewWork is how many can never matter, whatever the value.
const fewWork = 32

// Check refuses a schema that a validator or a client must not be given: one that is too large or too deep, that needs
// another document to be understood, whose local references lead nowhere, or whose references go round without ever
// reaching into the instance (a validator would follow them until its stack is full).
func Check(root jsondoc.Value, size int) error {
	_, _, err := check(root, size)
	return err
}

// check is Check, and reports whether a value can make such a schema's validation expensive, and what its expressions compile
// to.
func check(root jsondoc.Value, size int) (heavy bool, program int, err error) {
	if size > MaxSize {
		return false, 0, fmt.Errorf("the schema is %d bytes long, more than %d", size, MaxSize)
	}
	if d := depth(root); d > MaxDepth {
		return false, 0, fmt.Errorf("the schema is %d levels deep, more than %d", d, MaxDepth)
	}
	g := guard{root: root, state: map[string]int{}, work: map[string]int{}}
	err = g.walk("", root)
	return g.referred || slices.ContainsFunc(slices.Collect(maps.Values(g.work)), func(n int) bool { return n > fewWork }), g.program, err
}

func depth(v jsondoc.Value) int {
	deepest := 0
	for _, m := range v.Members {
		deepest = max(deepest, depth(m.Value))
	}
	for _, item := range v.Items {
		deepest = max(deepest, depth(item))
	}
	return deepest + 1
}

// guard follows references. A schema is known by its JSON pointer from the root.
type guard struct {
	root  jsondoc.Value
	state map[string]int // visiting or done, by pointer
	work  map[string]int // schemas that apply where this one does, by pointer

	referred bool // there is a reference
	program  int  // instructions of all expressions
}

// references are the keywords that stand for another schema.
var references = []string{"$ref", "$dynamicRef", "$recursiveRef"}

const (
	visiting = iota + 1
	done
)

// walk looks at every schema once, whether a reference leads to it or not.
func (g *guard) walk(at string, v jsondoc.Value) error {
	if err := g.follow(at, v); err != nil {
		return err
	}
	n, err := expressions(v)
	if g.program += n; err == nil && g.program > maxProgram {
		err = fmt.Errorf("its patterns compile to more than %d instructions", maxProgram)
	}
	if err != nil {
		return err
	}
	for _, c := range children(v) {
		if err := g.walk(at+c.pointer, c.schema); err != nil {
			return err
		}
	}
	return nil
}

// follow goes from a schema to all that apply to the same instance, and finds the way back to where it is.
func (g *guard) follow(at string, v jsondoc.Value) error {
	switch g.state[at] {
	case visiting:
		return fmt.Errorf("its $ref go round in a circle at #%s", at)
	case done:
		return nil
	}
	g.state[at] = visiting
	work := 1
	for _, keyword := range references {
		ref, ok := v.Get(keyword)
		if !ok {
			continue
		}
		g.referred = true
		pointer, target, err := g.resolve(ref)
		if err != nil {
			return err
		}
		// A dynamic reference may be part of a recursion that ends by itself: only plain ones are followed.
		if keyword == "$ref" {
			if err := g.follow(pointer, target); err != nil {
				return err
			}
			work += g.work[pointer]
		}
	}
	for _, c := range children(v) {
		if c.within {
			continue
		}
		if err := g.follow(at+c.pointer, c.schema); err != nil {
			return err
		}
		work += g.work[at+c.pointer]
	}
	if work > maxWork {
		return fmt.Errorf("more than %d schemas apply at #%s at once", maxWork, at)
	}
	g.state[at], g.work[at] = done, work
	return nil
}

// resolve finds what a $ref points at, which must be within the document.
func (g *guard) resolve(ref jsondoc.Value) (string, jsondoc.Value, error) {
	text, ok := ref.Text()
	if !ok {
		return "", jsondoc.Value{}, fmt.Errorf("a $ref is no string")
	}
	fragment, local := strings.CutPrefix(text, "#")
	if !local {
		return "", jsondoc.Value{}, fmt.Errorf("its $ref %.80q needs another document", text)
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	if fragment != "" && fragment[0] != '/' {
		if pointer, v, ok := anchor(g.root, "", fragment); ok {
			return pointer, v, nil
		}
		return "", jsondoc.Value{}, fmt.Errorf("its $ref %.80q leads nowhere", text)
	}
	v, ok := lookup(g.root, fragment)
	if !ok || !isSchema(v) {
		return "", jsondoc.Value{}, fmt.Errorf("its $ref %.80q leads nowhere", text)
	}
	return fragment, v, nil
}

// lookup follows a JSON pointer.
func lookup(v jsondoc.Value, pointer string) (jsondoc.Value, bool) {
	for token := range jsontext.Pointer(pointer).Tokens() {
		found := false
		switch v.Kind {
		case jsondoc.Object:
			v, found = v.Get(token)
		case jsondoc.Array:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v.Items) {
				v, found = v.Items[i], true
			}
		}
		if !found {
			return jsondoc.Value{}, false
		}
	}
	return v, true
}

// anchor finds the schema with a plain-name fragment: $anchor, $dynamicAnchor, or an $id or id of "#name".
func anchor(v jsondoc.Value, at, name string) (string, jsondoc.Value, bool) {
	for keyword, want := range map[string]string{"$anchor": name, "$dynamicAnchor": name, "$id": "#" + name, "id": "#" + name} {
		if got, ok := v.Get(keyword); ok {
			if text, _ := got.Text(); text == want {
				return at, v, true
			}
		}
	}
	for _, c := range children(v) {
		if pointer, found, ok := anchor(c.schema, at+c.pointer, name); ok {
			return pointer, found, true
		}
	}
	return "", jsondoc.Value{}, false
}

// withoutForeignPatterns drops the patterns that Go's regular expressions cannot express (look-ahead, back
// references): they are valid JSON Schema, and the site checks them. The listed schema keeps them.
func withoutForeignPatterns(root jsondoc.Value) jsondoc.Value {
	return Rewrite(root, func(v jsondoc.Value) jsondoc.Value {
		if p, ok := v.Get("pattern"); ok && !compiles(p) {
			v = v.Without("pattern")
		}
		if pp, ok := v.Get("patternProperties"); ok {
			for _, m := range pp.Members {
				if !compiles(jsondoc.NewString(m.Name)) {
					// Which properties it would cover is unknown, so nothing may be said of "all others" either.
					v = v.Without("patternProperties").Without("additionalProperties").Without("unevaluatedProperties")
					break
				}
			}
		}
		return v
	})
}

func compiles(pattern jsondoc.Value) bool {
	text, ok := pattern.Text()
	if !ok {
		return true // not a pattern at all: the compiler says so
	}
	_, err := syntax.Parse(text, syntax.Perl)
	return err == nil
}

// Broken reports whether a pattern is no regular expression in any dialect, as far as Go's parser can find out: syntax that
// Go does not have (look-ahead, back references) may be valid in another dialect.
func Broken(pattern string) bool {
	if len(pattern) > longestPattern {
		return false // which Check says
	}
	_, err := syntax.Parse(pattern, syntax.Perl)
	var known *syntax.Error
	return errors.As(err, &known) && known.Code != syntax.ErrInvalidPerlOp && known.Code != syntax.ErrInvalidEscape
}
