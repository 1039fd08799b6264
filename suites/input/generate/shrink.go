package generate

import "github.com/bridgecheck/bridgecheck/internal/exact"

// Smallest looks for the smallest value that still shows what a value showed: it takes members and items away, inner
// ones too, and shortens texts, as long as holds says so. It asks at most limit times.
func Smallest(value any, limit int, holds func(any) bool) any {
	for {
		smaller, found := any(nil), false
		for _, candidate := range reductions(value) {
			if limit--; limit < 0 {
				return value
			}
			if holds(candidate) {
				smaller, found = candidate, true
				break
			}
		}
		if !found {
			return value
		}
		value = smaller
	}
}

// reductions are all values that are a little smaller, the smallest first.
func reductions(value any) []any {
	var all []any
	switch v := value.(type) {
	case map[string]any:
		for _, name := range sorted(v) {
			all = append(all, exact.Without(v, name))
		}
		for _, name := range sorted(v) {
			for _, inner := range reductions(v[name]) {
				all = append(all, exact.With(v, name, inner))
			}
		}
	case []any:
		for i := range v {
			all = append(all, append(append([]any{}, v[:i]...), v[i+1:]...))
		}
		for i := range v {
			for _, inner := range reductions(v[i]) {
				all = append(all, replaced(v, i, inner))
			}
		}
	case string:
		if letters := []rune(v); len(letters) > 1 {
			half := len(letters) / 2
			all = append(all, string(letters[:half]), string(letters[half:]), string(letters[:len(letters)-1]))
		}
	}
	return all
}
