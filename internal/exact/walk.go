package exact

import (
	"iter"
	"maps"
	"slices"
)

// Values are all values of a document: itself, then those in it, members by their names.
func Values(v any) iter.Seq[any] {
	return func(yield func(any) bool) { walk(v, yield) }
}

func walk(v any, yield func(any) bool) (goesOn bool) {
	if !yield(v) {
		return false
	}
	var inner []any
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inner = append(inner, v[name])
		}
	case []any:
		inner = v
	}
	return !slices.ContainsFunc(inner, func(v any) bool { return !walk(v, yield) })
}

// Mapped is a copy of a document in which every value is changed, those in it first.
func Mapped(v any, change func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = Mapped(member, change)
		}
		return change(out)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = Mapped(item, change)
		}
		return change(out)
	}
	return change(v)
}

// With is a copy of an object with a member.
func With(object map[string]any, name string, value any) map[string]any {
	more := maps.Clone(object)
	if more == nil {
		more = map[string]any{}
	}
	more[name] = value
	return more
}

// Without is a copy of an object without a member.
func Without(object map[string]any, name string) map[string]any {
	less := maps.Clone(object)
	delete(less, name)
	return less
}

// Depth is how many lists and objects of a document lie in each other; 0 for a scalar.
func Depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			deepest = max(deepest, Depth(member))
		}
	case []any:
		for _, item := range v {
			deepest = max(deepest, Depth(item))
		}
	default:
		return 0
	}
	return deepest + 1
}
