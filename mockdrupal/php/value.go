// Package php speaks JSON as PHP 8 does: json_decode into PHP's values, json_encode with the flags that Drupal sets,
// floats printed as serialize_precision -1 prints them. The mock site needs it because what surprises clients of a
// Drupal site (1.0 that is returned as 1, {} as [], `\/` and `\u003C` in every string) comes from these two functions. It
// reads a request's query as PHP does, too, and is no more of PHP than that.
//
// Its invariant: whatever Encode writes, Decode reads back as the same value. A request's bytes are decoded into a Value,
// the site computes with Values, and a response's Value is encoded.
package php

import (
	"slices"
	"strconv"
)

// Value is a PHP value that json_decode can return: nil, bool, int64, float64, string or *Array; and, for Encode only,
// an Object or a Literal.
type Value any

// Literal is a JSON document that Encode copies as it is: every digit and the order of members stay, only strings are
// escaped as PHP escapes them.
type Literal []byte

// Object is PHP's stdClass: it is encoded as {} even when it is empty.
type Object struct{ *Array }

// Key is an array key. PHP keeps canonical decimal integers as integers, "12" and 12 are the same key.
type Key struct {
	Str   string
	Int   int64
	IsInt bool
}

// KeyOf returns the key that PHP makes of a member name.
func KeyOf(name string) Key {
	if name == "" || name[0] > '9' { // by far the most names
		return Key{Str: name}
	}
	if n, err := strconv.ParseInt(name, 10, 64); err == nil && strconv.FormatInt(n, 10) == name {
		return Key{Int: n, IsInt: true}
	}
	return Key{Str: name}
}

// String returns the key as a member name.
func (k Key) String() string {
	if k.IsInt {
		return strconv.FormatInt(k.Int, 10)
	}
	return k.Str
}

// Array is PHP's array: an ordered map that is a list when its keys are 0, 1, 2, …
type Array struct {
	keys   []Key
	values []Value
	index  map[Key]int // nil while the array is small or a list
}

// smallArray is up to how many elements are searched one by one.
const smallArray = 16

// List returns an array of these values.
func List(values ...Value) *Array {
	a := &Array{}
	for _, v := range values {
		a.Append(v)
	}
	return a
}

// Pair is one member of a Map.
type Pair struct {
	Name  string
	Value Value
}

// Map returns an array with these members, in this order.
func Map(members ...Pair) *Array {
	a := &Array{}
	a.grow(len(members))
	for _, m := range members {
		a.Set(KeyOf(m.Name), m.Value)
	}
	return a
}

// grow makes room for n elements.
func (a *Array) grow(n int) {
	a.keys = slices.Grow(a.keys, n)
	a.values = slices.Grow(a.values, n)
}

// Len returns the number of elements.
func (a *Array) Len() int { return len(a.keys) }

// IsList reports whether the keys are 0, 1, 2, …; the empty array is a list.
func (a *Array) IsList() bool {
	for i, k := range a.keys {
		if !k.IsInt || k.Int != int64(i) {
			return false
		}
	}
	return true
}

// At returns the i-th element in order.
func (a *Array) At(i int) (Key, Value) { return a.keys[i], a.values[i] }

// Get returns the element with this key.
func (a *Array) Get(k Key) (Value, bool) {
	if i, ok := a.find(k); ok {
		return a.values[i], true
	}
	return nil, false
}

// Member returns the element with this name, nil when there is none: `$array[$name] ?? NULL`.
func (a *Array) Member(name string) Value {
	v, _ := a.Get(KeyOf(name))
	return v
}

// Set puts an element; one that is there already keeps its place, as in PHP.
func (a *Array) Set(k Key, v Value) {
	if i, ok := a.find(k); ok {
		a.values[i] = v
		return
	}
	a.keys = append(a.keys, k)
	a.values = append(a.values, v)
	switch {
	case a.index != nil:
		a.index[k] = len(a.keys) - 1
	case len(a.keys) > smallArray && !a.IsList():
		a.index = make(map[Key]int, 2*len(a.keys))
		for i, have := range a.keys {
			a.index[have] = i
		}
	}
}

// Append adds an element to a list.
func (a *Array) Append(v Value) { a.Set(Key{Int: int64(len(a.keys)), IsInt: true}, v) }

func (a *Array) find(k Key) (int, bool) {
	if a.index != nil {
		i, ok := a.index[k]
		return i, ok
	}
	if k.IsInt && k.Int >= 0 && k.Int < int64(len(a.keys)) && a.keys[k.Int] == k {
		return int(k.Int), true
	}
	if len(a.keys) > smallArray {
		return 0, false // a list: its keys are where they say
	}
	i := slices.Index(a.keys, k)
	return i, i >= 0
}

// TypeName returns what PHP's gettype() says.
func TypeName(v Value) string { name, _ := typeNames(v); return name }

// DebugType returns what PHP's get_debug_type() says.
func DebugType(v Value) string { _, name := typeNames(v); return name }

func typeNames(v Value) (gettype, debug string) {
	switch v.(type) {
	case nil:
		return "NULL", "null"
	case bool:
		return "boolean", "bool"
	case int64:
		return "integer", "int"
	case float64:
		return "double", "float"
	case string:
		return "string", "string"
	case Object:
		return "object", "stdClass"
	default:
		return "array", "array"
	}
}

// Truthy reports whether the value is true to PHP: 0, 0.0, "", "0", [] and null are false.
func Truthy(v Value) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != "" && v != "0"
	case *Array:
		return v.Len() > 0
	default:
		return true
	}
}

// precision is how many digits PHP shows of a float in a string, by its ini setting of this name.
const precision = 14

// ToString returns `(string) $v`.
func ToString(v Value) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "1"
		}
		return ""
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return formatFloat(v, precision, 'E')
	case string:
		return v
	case *Array:
		return "Array"
	default:
		return ""
	}
}
