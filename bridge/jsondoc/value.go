package jsondoc

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Get returns the member of an object by its exact name.
func (v Value) Get(name string) (Value, bool) {
	for _, m := range v.Members {
		if m.Name == name {
			return m.Value, true
		}
	}
	return Value{}, false
}

// Text returns a string's text; false when the value is no string.
func (v Value) Text() (string, bool) {
	if v.Kind != String {
		return "", false
	}
	if text := v.Raw[1 : len(v.Raw)-1]; leadingPlain(text) == len(text) {
		return string(text), true
	}
	var s string
	err := json.Unmarshal(v.Raw, &s)
	return s, err == nil
}

// Int returns a number that is written as an integer; false for all else.
func (v Value) Int() (int, bool) {
	if v.Kind != Number {
		return 0, false
	}
	n, err := strconv.Atoi(string(v.Raw))
	return n, err == nil
}

// IsTrue reports whether the value is the literal true.
func (v Value) IsTrue() bool { return v.Kind == Boolean && len(v.Raw) == len("true") }

// IsEmptyArray reports whether the value is [], which PHP writes for an empty object as well.
func (v Value) IsEmptyArray() bool { return v.Kind == Array && len(v.Items) == 0 }

// HoldsNothing reports whether the bytes of an object or array have no member and no item: {}, [], or blanks between.
func HoldsNothing(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) >= 2 && len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
}

// IsEmptyText reports whether the value is "".
func (v Value) IsEmptyText() bool { return v.Kind == String && len(v.Raw) == len(`""`) }

// NewString makes a string value.
func NewString(s string) Value { return Value{Kind: String, Raw: AppendString(nil, s)} }

// NewObject makes an object with these members.
func NewObject(members ...Member) Value { return Value{Kind: Object, Members: members} }

// NewArray makes an array of these items.
func NewArray(items ...Value) Value { return Value{Kind: Array, Items: items} }

// NewInt makes a number.
func NewInt(n int) Value { return Value{Kind: Number, Raw: strconv.AppendInt(nil, int64(n), 10)} }

// With returns a copy of an object with one member set, at its old place or at the end.
func (v Value) With(name string, value Value) Value {
	members := make([]Member, 0, len(v.Members)+1)
	found := false
	for _, m := range v.Members {
		if m.Name == name {
			m.Value, found = value, true
		}
		members = append(members, m)
	}
	if !found {
		members = append(members, Member{name, value})
	}
	return NewObject(members...)
}

// Without returns a copy of an object that lacks one member.
func (v Value) Without(name string) Value {
	members := make([]Member, 0, len(v.Members))
	for _, m := range v.Members {
		if m.Name != name {
			members = append(members, m)
		}
	}
	return NewObject(members...)
}

// Append writes the value: as it came where it was not changed, compactly where it was.
func (v Value) Append(dst []byte) []byte {
	if v.Raw != nil {
		return append(dst, v.Raw...)
	}
	switch v.Kind {
	case Object:
		dst = append(dst, '{')
		for i, m := range v.Members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendString(dst, m.Name), ':')
			dst = m.Value.Append(dst)
		}
		return append(dst, '}')
	case Array:
		dst = append(dst, '[')
		for i, item := range v.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.Append(dst)
		}
		return append(dst, ']')
	}
	return append(dst, "null"...)
}

// Bytes is the value as a document of its own.
func (v Value) Bytes() json.RawMessage { return v.Append(nil) }

// AppendString writes s as a JSON string. Nothing is escaped that need not be: markup stays readable.
func AppendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // its error is that of invalid UTF-8, which becomes U+FFFD
	return dst
}

// Unquote is the text of a string of a parsed document.
func Unquote(quoted []byte) []byte {
	text, _ := jsontext.AppendUnquote(nil, quoted)
	return text
}
