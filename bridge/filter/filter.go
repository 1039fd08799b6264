// Package filter decides which of a site's methods are tools, what they are called, and how often they may be called.
// It looks at ids and annotations only, and is pure but for the rate limits' buckets.
package filter

import (
	"crypto/sha256"
	"encoding/hex"
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

// readVerbs end the ids of methods that only read, as in content.list or user.get.
var readVerbs = map[string]bool{
	"list": true, "get": true, "read": true, "search": true, "find": true, "view": true, "count": true, "show": true,
	"load": true, "describe": true, "info": true, "status": true, "isEnabled": true, "export": true, "preview": true,
}

// ReadsByName reports whether a method's id says that it only reads.
func ReadsByName(id string) bool { return readVerbs[id[strings.LastIndexByte(id, '.')+1:]] }

// Naming is how tools are named after method ids.
type Naming string

// The two ways: the id unchanged, or with every character outside [A-Za-z0-9_-] turned into an underscore.
const (
	NamingID         Naming = "id"
	NamingUnderscore Naming = "underscore"
)

// maxName is the longest underscored name; longer ones are cut and end with a hash of the id.
const maxName = 64

// Names returns the name of each method id, in order. Names are distinct. An id that would share its name with another
// one takes a hash of itself as a suffix, unless it is that name literally, so that its name does not depend on order.
func (n Naming) Names(ids []string) []string {
	names := make([]string, len(ids))
	if n != NamingUnderscore {
		copy(names, ids)
		return names
	}
	taken := map[string]int{}
	for i, id := range ids {
		names[i] = underscored(id)
		taken[names[i]]++
	}
	for i, id := range ids {
		if taken[names[i]] > 1 && names[i] != id {
			names[i] = hashed(names[i], id)
		}
	}
	return names
}

func underscored(id string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, id)
	if len(name) > maxName {
		return hashed(name, id)
	}
	return name
}

// hashed cuts a name so that a suffix fits, which distinguishes ids.
func hashed(name, id string) string {
	sum := sha256.Sum256([]byte(id))
	suffix := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxName-len(suffix))] + suffix
}
