package schema

import (
	lru "container/list"
	"encoding/json"
	"fmt"
	"regexp/syntax"
	"sync"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
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
	form      *Schema
	place     *lru.Element // nil: not compiled
}

// maxCompiled bounds what all compiled forms take together, in bytes as estimated by their weight.
const maxCompiled = 64 << 20

// compiled are the schemas that are compiled, the one used last in front.
var compiled struct {
	mu     sync.Mutex
	order  lru.List // of *Lazy
	weight int
}

// NewLazy makes a Lazy of a document, which must not be changed.
func NewLazy(doc json.RawMessage) *Lazy { return &Lazy{doc: doc} }

// Schema returns the compiled form.
func (l *Lazy) Schema() (*Schema, error) {
	if s := l.used(); s != nil {
		return s, nil
	}
	l.compiling.Lock()
	defer l.compiling.Unlock()
	if s := l.used(); s != nil || l.failed != nil {
		return s, l.failed
	}
	s, err := Compile(l.doc)
	if err != nil {
		l.failed = err
		return nil, err
	}
	l.keep(s)
	return s, nil
}

func (l *Lazy) used() *Schema {
	compiled.mu.Lock()
	defer compiled.mu.Unlock()
	if l.place != nil {
		compiled.order.MoveToFront(l.place)
	}
	return l.form
}

// keep has a form kept, and drops those used least recently that are too much beside it.
func (l *Lazy) keep(s *Schema) {
	compiled.mu.Lock()
	defer compiled.mu.Unlock()
	l.form, l.place = s, compiled.order.PushFront(l)
	for compiled.weight += s.weight; compiled.weight > maxCompiled && compiled.order.Len() > 1; {
		last := compiled.order.Remove(compiled.order.Back()).(*Lazy)
		compiled.weight -= last.form.weight
		last.form, last.place = nil, nil
	}
}
