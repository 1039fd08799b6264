package schema

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// ErrTooMuch says that checking a value would take more steps than any check may.
var ErrTooMuch = errors.New("the value is too large or too deep for its schema to be checked")

const (
	// maxSteps is how much work one check may be: a step is a schema applied to a value, a member looked at, or a few
	// bytes compared. All of them take some 0.2 s.
	maxSteps = 4_000_000
	// stepsPerLook is how often the context is looked at, and others get the processor.
	stepsPerLook = 4096
	// longestFormat is the longest text that can be in a format other than a URI's, in bytes.
	longestFormat = 4096
)

// evaluation checks one document against a plan. It stops at the first of: 50 violations, too many steps, the end of the
// context.
type evaluation struct {
	ctx    context.Context
	schema *Schema
	ix     *index
	seed   maphash.Seed

	steps, look int // done; done when the context was looked at last
	most        int // steps at most
	stop        bool
	err         error

	quiet  int  // within a schema whose violations are not the document's: not, if, alternatives
	failed int  // violations so far, without those of quiet schemas that have ended
	noise  int  // violations so far, all of them
	final  bool // what was found must not be left to a library to find
	found  []Violation
	path   []pathStep
	whole  []uint32 // nodes of numbers that some schema takes for integers, and that are not spelled so

	number, scratch big.Rat
}

// pathStep is one step of the way from the root to a value.
type pathStep struct {
	name uint32 // node of the member's name; 0: an item
	item int
}

// spend counts steps; false says that the evaluation has ended.
func (e *evaluation) spend(n int) bool {
	if e.stop {
		return false
	}
	if e.steps += n; e.steps-e.look >= stepsPerLook {
		e.look = e.steps
		fair.EndTurn()
		if err := e.ctx.Err(); err != nil {
			e.err, e.stop = err, true
		}
	}
	if e.steps > e.most && e.err == nil {
		e.err, e.stop, e.steps = ErrTooMuch, true, e.most // what it would have taken is not done
	}
	return !e.stop
}

// fail takes a violation by the value at a node; below are names under it that the violation is about.
func (e *evaluation) fail(at uint32, keyword, expected string, below ...string) {
	e.failed++
	e.noise++
	if e.quiet > 0 || e.stop {
		return
	}
	path := make([]string, 0, len(e.path)+len(below))
	for _, step := range e.path {
		if step.name > 0 {
			path = append(path, fault.Brief(string(e.ix.text(step.name))))
		} else {
			path = append(path, strconv.Itoa(step.item))
		}
	}
	got := e.ix.received(at)
	if keyword == "required" {
		got = "nothing"
	}
	e.found = append(e.found, e.schema.violation(append(path, below...), keyword, expected, got))
	e.stop = len(e.found) == maxViolations
}

// received says what a value is: its type, and the value itself where that is short.
func (ix *index) received(at uint32) string {
	const longest = 80
	n := ix.nodes[at]
	switch {
	case n.kind == isNull:
		return "null"
	case n.kind == isArray || n.kind == isObject || n.to-n.from > longest:
		return n.kind.name()
	case n.kind == isString:
		return `string "` + string(ix.raw(at)) + `"`
	}
	return n.kind.name() + " " + string(ix.raw(at))
}

// silently applies a schema whose violations are not the document's.
func (e *evaluation) silently(p *plan, at uint32, marks []bool) bool {
	failed := e.failed
	e.quiet++
	defer func() { e.quiet--; e.failed = failed }()
	return e.apply(p, at, marks)
}

// within applies a schema in the same place as another; what it evaluates counts where it holds.
func (e *evaluation) within(p *plan, at uint32, marks []bool, quiet bool) bool {
	var own []bool
	if marks != nil {
		own = make([]bool, len(marks))
		e.spend(len(marks) / 8)
	}
	apply := e.apply
	if quiet {
		apply = e.silently
	}
	ok := apply(p, at, own)
	if ok {
		for i, marked := range own {
			marks[i] = marks[i] || marked
		}
	}
	return ok
}

// apply checks the value at a node against a schema. marks, where not nil, gets the members or items that it evaluates.
func (e *evaluation) apply(p *plan, at uint32, marks []bool) bool {
	if !e.spend(1) {
		return false
	}
	before := e.failed
	if p.never {
		e.fail(at, "false", "no such value")
		return false
	}
	n := e.ix.nodes[at]
	if p.restMembers != nil && n.kind == isObject || p.restItems != nil && n.kind == isArray {
		own := make([]bool, e.parts(at))
		defer func() {
			if marks != nil {
				copy(marks, own)
			}
		}()
		e.applyAll(p, at, n, own)
		e.applyRest(p, at, n, own)
		return e.failed == before && !e.stop
	}
	e.applyAll(p, at, n, marks)
	return e.failed == before && !e.stop
}

// parts counts an object's members or an array's items.
func (e *evaluation) parts(at uint32) int {
	n, count := e.ix.nodes[at], 0
	for i := at + 1; i < n.next; count++ {
		if n.kind == isObject {
			i++
		}
		i = e.ix.nodes[i].next
	}
	e.spend(count)
	return count
}

func (e *evaluation) applyAll(p *plan, at uint32, n node, marks []bool) {
	e.kinds(p, at, n)
	e.values(p, at)
	if e.stop {
		return
	}
	switch n.kind {
	case isString:
		e.text(p, at)
	case isNumber:
		e.numbers(p, at)
	case isObject:
		e.object(p, at, n, marks)
	case isArray:
		e.array(p, at, n, marks)
	}
	if !e.stop {
		e.combine(p, at, marks)
	}
}

func (e *evaluation) kinds(p *plan, at uint32, n node) {
	if p.kinds == 0 || p.kinds&n.kind != 0 {
		return
	}
	if p.kinds&isInteger != 0 && n.kind == isNumber {
		if e.spend(int(n.to-n.from) / 16); parseDecimal(e.ix.raw(at)).integer() {
			if last := len(e.whole) - 1; bytes.ContainsAny(e.ix.raw(at), ".eE") && (last < 0 || e.whole[last] != at) {
				e.whole = append(e.whole, at)
			}
			return
		}
	}
	e.fail(at, "type", p.kindsAs)
}

func (e *evaluation) values(p *plan, at uint32) {
	if p.values == nil && p.constant == nil {
		return
	}
	if !e.spend(e.size(at)) {
		return
	}
	hash := e.ix.hash(at, e.seed)
	if p.values != nil && !p.values[hash] {
		e.fail(at, "enum", "one of "+p.valuesAs)
	}
	if p.constant != nil && *p.constant != hash {
		e.fail(at, "const", p.constAs)
	}
}

// size is what it costs to look at all of a value.
func (e *evaluation) size(at uint32) int {
	n := e.ix.nodes[at]
	return 4*int(n.next-at) + int(n.to-n.from)/16
}

func (e *evaluation) text(p *plan, at uint32) {
	if p.minLength == nil && p.maxLength == nil && p.pattern == nil && p.isFormat == nil {
		return
	}
	n := e.ix.nodes[at]
	long := int(n.to - n.from)
	if !e.spend(long / 16) {
		return
	}
	text := e.ix.text(at)
	if p.minLength != nil || p.maxLength != nil {
		length := utf8.RuneCount(text)
		if p.minLength != nil && length < *p.minLength {
			e.fail(at, "minLength", fmt.Sprintf("at least %d characters", *p.minLength))
		}
		if p.maxLength != nil && length > *p.maxLength {
			e.fail(at, "maxLength", fmt.Sprintf("at most %d characters", *p.maxLength))
		}
	}
	if p.pattern != nil {
		if !e.spend(p.pattern.price(long)) {
			return
		}
		if !p.pattern.re.Match(text) {
			e.fail(at, "pattern", "a string that matches "+oneLine(p.pattern.text))
		}
	}
	if p.isFormat != nil {
		e.checkFormat(p, at, text)
	}
}

// price is how many steps an expression may take over a text.
func (p *pattern) price(length int) int { return 1 + length*p.cost/4 }

func (e *evaluation) checkFormat(p *plan, at uint32, text []byte) {
	price := len(text) / 4
	if p.format == "regex" {
		price = 1000 * len(text) // some repeat what is within them
	}
	if !e.spend(price) {
		return
	}
	if p.format == "regex" {
		if _, err := programSize(string(text)); err != nil {
			e.final = true // as below
			e.fail(at, "format", "a shorter regular expression")
			return
		}
	}
	ok := len(text) <= longestFormat || strings.HasPrefix(p.format, "uri") || strings.HasPrefix(p.format, "iri")
	if !ok {
		e.final = true // no library need look at it
	}
	if !ok || !p.isFormat(string(text)) {
		e.fail(at, "format", "a string in the format "+p.format)
	}
}

func (e *evaluation) numbers(p *plan, at uint32) {
	if len(p.bounds) == 0 && p.multipleOf == nil {
		return
	}
	raw := e.ix.raw(at)
	n, short := parseDecimal(raw).small(raw)
	if short {
		e.number.SetInt64(n)
	} else {
		if !e.spend(100) {
			return
		}
		if _, ok := e.number.SetString(string(raw)); !ok {
			e.fail(at, "type", "number")
			return
		}
		if p.multipleOf != nil && !e.spend(1000) {
			return
		}
	}
	for _, b := range p.bounds {
		order := 0
		if short && b.short {
			order = cmp.Compare(n, b.whole)
		} else {
			order = e.number.Cmp(b.rat)
		}
		if order == b.wrong || order == b.orWrong {
			e.fail(at, b.keyword, b.expected)
		}
	}
	if p.multipleOf != nil && p.multipleOf.Sign() != 0 && !e.scratch.Quo(&e.number, p.multipleOf).IsInt() {
		e.fail(at, "multipleOf", "a multiple of "+shown(p.multipleOf))
	}
}

// shown writes a bound of a schema.
func shown(r *big.Rat) string {
	if r.IsInt() {
		return oneLine(r.Num().String())
	}
	return oneLine(strings.TrimRight(r.FloatString(20), "0"))
}
