package mcp

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// header is an argument whose schema says x-mcp-header: clients of the stateless revision repeat it in an HTTP header.
type header struct {
	path []string // of properties, from the root
	name string   // Mcp-Param-…
}

const headerKeyword = "x-mcp-header"

// headersOf finds the arguments that are repeated in headers. The keyword is taken off where it breaks the rules: for a
// value that is no string, integer or boolean, with a name that is no HTTP token or that stands there twice; strict
// clients drop a tool for it.
func headersOf(schema jsondoc.Value) (jsondoc.Value, []header) {
	var found []header
	taken := map[string]bool{}
	var walk func(v jsondoc.Value, path []string) jsondoc.Value
	walk = func(v jsondoc.Value, path []string) jsondoc.Value {
		if keyword, ok := v.Get(headerKeyword); ok {
			name, _ := keyword.Text()
			kind, _ := v.Get("type")
			plain := isText(kind, "string") || isText(kind, "integer") || isText(kind, "boolean")
			if plain && isToken(name) && !taken[strings.ToLower(name)] {
				taken[strings.ToLower(name)] = true
				found = append(found, header{path, "Mcp-Param-" + name})
			} else {
				v = v.Without(headerKeyword)
			}
		}
		properties, ok := v.Get("properties")
		if !ok || properties.Kind != jsondoc.Object {
			return v
		}
		before := len(found)
		members, changed := make([]jsondoc.Member, len(properties.Members)), false
		for i, m := range properties.Members {
			had := len(m.Value.Members)
			m.Value = walk(m.Value, append(path[:len(path):len(path)], m.Name))
			changed = changed || len(m.Value.Members) != had || m.Value.Raw == nil
			members[i] = m
		}
		if !changed && before == len(found) {
			return v
		}
		return v.With("properties", jsondoc.NewObject(members...))
	}
	return walk(schema, nil), found
}

// isToken reports whether s is a token of HTTP (RFC 9110 §5.6.2).
func isToken(s string) bool {
	for _, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// agree checks the headers of a request of the stateless revision against its body: a proxy on the way may have acted on
// the headers alone.
func agree(h http.Header, m message) *protocolError {
	if given := h.Get("Mcp-Method"); given != m.method {
		return mismatch("Mcp-Method", given, m.method)
	}
	if m.method != "tools/call" {
		return nil
	}
	given, ok := decoded(h.Get("Mcp-Name"))
	if name := m.param("name"); !ok || given != name {
		return mismatch("Mcp-Name", h.Get("Mcp-Name"), name)
	}
	return nil
}

// agreeOn checks the Mcp-Param headers against a tool's arguments.
func (f *form) agreeOn(h http.Header, arguments []byte) *protocolError {
	for _, expected := range f.headers {
		value, there := at(arguments, expected.path)
		argument := strings.Join(expected.path, ".")
		given, sent := h[http.CanonicalHeaderKey(expected.name)]
		switch {
		case !there && !sent:
			continue
		case !there:
			return protocolErrorf(codeHeaderMismatch, "The header %s is there, but not the argument %s.", expected.name, argument)
		case !sent:
			return protocolErrorf(codeHeaderMismatch, "The header %s is missing; the argument %s must be repeated in it.", expected.name, argument)
		}
		if text, ok := decoded(given[0]); !ok || len(given) > 1 || !sameText(text, value) {
			return mismatch(expected.name, given[0], string(value.Raw))
		}
	}
	return nil
}

// at follows a path of properties; null is as good as nothing. Only a string, a number or a boolean is found at its end.
func at(doc []byte, path []string) (jsondoc.Value, bool) {
	for _, name := range path {
		members, err := jsondoc.Members(doc, []string{name})
		if err != nil || members[name] == nil {
			return jsondoc.Value{}, false
		}
		doc = members[name]
	}
	v, err := jsondoc.Split(doc)
	return v, err == nil && v.Kind != jsondoc.Null
}

// sameText reports whether a header says what an argument holds; whole numbers are compared as numbers.
func sameText(text string, v jsondoc.Value) bool {
	switch v.Kind {
	case jsondoc.String:
		s, _ := v.Text()
		return s == text
	case jsondoc.Number:
		a, errA := strconv.ParseFloat(text, 64)
		b, errB := strconv.ParseFloat(string(v.Raw), 64)
		return errA == nil && errB == nil && a == b
	}
	return string(v.Raw) == text
}

// decoded reads a header's value, which is in base64 where it could not be sent otherwise: =?base64?…?=.
func decoded(value string) (string, bool) {
	inner, marked := strings.CutPrefix(value, "=?base64?")
	inner, closed := strings.CutSuffix(inner, "?=")
	if !marked || !closed {
		return value, true
	}
	text, err := base64.StdEncoding.DecodeString(inner)
	return string(text), err == nil
}

func mismatch(name, given, want string) *protocolError {
	if given == "" {
		return protocolErrorf(codeHeaderMismatch, "The header %s is missing; it must be %q, as in the body.", name, want)
	}
	return protocolErrorf(codeHeaderMismatch, "The header %s is %q, but the body says %q.", name, given, want)
}
