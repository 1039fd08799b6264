package mcp

import (
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// header is an argument whose schema says x-mcp-header: clients of the stateless revision repeat it in an HTTP header.
type header struct {
	path []string // of properties, from the root
	name string   // Mcp-Param-…
}

const headerKeyword = "x-mcp-header"

// mostHeaders bounds the headers of one tool: every call looks for each of their arguments.
const mostHeaders = 32

// headersOf finds the arguments that are repeated in headers. The keyword is taken off where it breaks the rules: for a
// value that is no string, integer or boolean, with a name that is no HTTP token or that stands there twice (strict clients
// drop a tool for it), and after the first mostHeaders.
func headersOf(schema jsondoc.Value) (jsondoc.Value, []header) {
	var found []header
	taken := map[string]bool{}
	var walk func(v jsondoc.Value, path []string) jsondoc.Value
	walk = func(v jsondoc.Value, path []string) jsondoc.Value {
		if keyword, ok := v.Get(headerKeyword); ok {
			name, _ := keyword.Text()
			kind, _ := v.Get("type")
			plain := isText(kind, "string") || isText(kind, "integer") || isText(kind, "boolean")
			if plain && isToken(name) && len(found) < mostHeaders && !taken[strings.ToLower(name)] {
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

// agreeOn checks the Mcp-Param headers against a tool's arguments, as long as somebody waits for the response.
func (f *form) agreeOn(ctx context.Context, h http.Header, arguments []byte) *protocolError {
	values := map[string]jsondoc.Value{}
	repeated(ctx, arguments, f.headers, 0, values)
	if ctx.Err() != nil {
		return protocolErrorOf(fault.New(fault.UpstreamTimeout, "The caller went away before its arguments were read.").Because(ctx.Err()))
	}
	for _, expected := range f.headers {
		value, there := values[expected.name]
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

// repeated finds the arguments of headers, by the header's name; null is as good as nothing. It reads each object once for all
// headers whose paths lead through it: a body may have megabytes.
func repeated(ctx context.Context, doc []byte, headers []header, level int, found map[string]jsondoc.Value) {
	below := map[string][]header{}
	for _, h := range headers {
		if len(h.path) > level {
			below[h.path[level]] = append(below[h.path[level]], h)
		} else if v, err := jsondoc.Split(doc); err == nil && v.Kind != jsondoc.Null {
			found[h.name] = v
		}
	}
	if len(below) == 0 || ctx.Err() != nil {
		return
	}
	members, _ := jsondoc.Members(doc, slices.Collect(maps.Keys(below)))
	for name, value := range members {
		repeated(ctx, value, below[name], level+1, found)
	}
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
