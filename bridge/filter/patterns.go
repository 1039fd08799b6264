// Package filter decides which of a site's methods are tools, and what these are called. It looks at ids alone, and is pure.
package filter

import (
	"fmt"
	"regexp"
	"strings"
)

// The patterns where nothing is configured: what reads content is in, what changes the site or signs people in is out.
var (
	DefaultInclude = []string{"content.*", "search.*", "taxonomy.*", "media.*"}
	DefaultExclude = []string{"system.cache_clear", "user.login", "node.delete", "*.admin.*"}
)

// Patterns picks method ids. `*` stands for any run of characters, dots as well; all else stands for itself, and
// exclude wins over include.
type Patterns struct {
	include, exclude *regexp.Regexp
}

// NewPatterns compiles patterns; without any include pattern nothing is in.
func NewPatterns(include, exclude []string) (Patterns, error) {
	in, err := compile(include)
	if err != nil {
		return Patterns{}, fmt.Errorf("include: %w", err)
	}
	out, err := compile(exclude)
	if err != nil {
		return Patterns{}, fmt.Errorf("exclude: %w", err)
	}
	return Patterns{in, out}, nil
}

// Match reports whether a method id is in.
func (p Patterns) Match(id string) bool {
	return p.include != nil && p.include.MatchString(id) && (p.exclude == nil || !p.exclude.MatchString(id))
}

// Includes reports whether an include pattern matches a method id, whatever exclude says.
func (p Patterns) Includes(id string) bool { return p.include != nil && p.include.MatchString(id) }

// compile makes one expression of all patterns; nil for none.
func compile(patterns []string) (*regexp.Regexp, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	parts := make([]string, len(patterns))
	for i, p := range patterns {
		if strings.TrimSpace(p) != p || p == "" {
			return nil, fmt.Errorf("the pattern %q is empty or has blanks around it", p)
		}
		parts[i] = strings.ReplaceAll(regexp.QuoteMeta(p), `\*`, `.*`)
	}
	return regexp.Compile(`(?s)^(?:` + strings.Join(parts, "|") + `)$`)
}
