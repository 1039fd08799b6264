package check

import (
	"slices"
	"strings"
)

// Patterns say which method ids are tools where no attribute does: those that match an include pattern and no exclude
// pattern. `*` stands for any run of characters, dots as well.
type Patterns struct {
	Include, Exclude []string
}

// DefaultPatterns are those of clause filter/defaults-safe.
var DefaultPatterns = Patterns{
	Include: []string{"content.*", "search.*", "taxonomy.*", "media.*"},
	Exclude: []string{"system.*", "user.*", "node.delete", "*.admin.*"},
}

// Exposes reports whether the patterns make a tool of the method.
func (p Patterns) Exposes(id string) bool {
	matches := func(pattern string) bool { return matchesRun(pattern, id) }
	return slices.ContainsFunc(p.Include, matches) && !slices.ContainsFunc(p.Exclude, matches)
}

// matchesRun matches a pattern in which only `*` is special.
func matchesRun(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}
