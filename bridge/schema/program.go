package schema

import (
	"encoding/json"
	"fmt"
	"regexp/syntax"
	"sync"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/bridge/recent"
)

// A regular expression of 2 KB can compile to 55 MB, in seconds, and a schema is compiled to three forms. So expressions are
// priced before any of them is compiled.
const (
	longestPattern = 4 << 10 // bytes of one that is parsed
	maxProgram     = 10_000  // instructions of all expressions of a schema
)

// programSize is how many instructions an expression compiles to, without compiling it; 0 for one that is no expression to
// Go. A class of characters counts by its ranges.
func programSize(pattern string) (int, error) {
	if len(pattern) > longestPattern {
		return 0, fmt.Errorf("a pattern is %d bytes long, more than %d", len(pattern), longestPattern)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, nil //nolint:nilerr // the site checks what Go cannot express
	}
	n := instructions(parsed)
	if n > maxProgram {
		return 0, fmt.Errorf("the pattern %.80q compiles to more than %d instructions", pattern, maxProgram)
	}
	return n, nil
}

// instructions stops counting beyond maxProgram.
func instructions(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/8
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		if n += instructions(sub); n > maxProgram {
			return maxProgram + 1
		}
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1) // 1000 at most
	}
	return min(n, maxProgram+1)
}

// expressions adds up what the expressions directly within a schema compile to.
func expressions(v jsondoc.Value) (int, error) {
	var patterns []string
	if p, ok := v.Get("pattern"); ok && p.Kind == jsondoc.String {
		text, _ := p.Text()
		patterns = append(patterns, text)
	}
	if named, ok := v.Get("patternProperties"); ok {
		for _, m := range named.Members {
			patterns = append(patterns, m.Name)
		}
	}
	total := 0
	for _, p := range patterns {
		n, err := programSize(p)
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

// Lazy is a schema that is compiled when it is needed. Of all that are, those used last stay compiled.
type Lazy struct {
	doc []byte

	compiling sync.Mutex
	failed    error // of the first attempt, which every other would repeat
}

// maxCompiled bounds what all compiled forms take together, in bytes as estimated by their weight.
const maxCompiled = 64 << 20

var compiled = recent.New[*Lazy](maxCompiled, func(s *Schema) int { return s.weight })

// NewLazy makes a Lazy of a document, which must not be changed.
func NewLazy(doc json.RawMessage) *Lazy { return &Lazy{doc: doc} }

// Schema returns the compiled form.
func (l *Lazy) Schema() (*Schema, error) {
	if s, ok := compiled.Get(l); ok {
		return s, nil
	}
	l.compiling.Lock()
	defer l.compiling.Unlock()
	if s, ok := compiled.Get(l); ok || l.failed != nil {
		return s, l.failed
	}
	s, err := Compile(l.doc)
	if err != nil {
		l.failed = err
		return nil, err
	}
	compiled.Set(l, s)
	return s, nil
}
