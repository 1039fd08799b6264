// Package jsondoc reads and writes JSON without losing anything: numbers keep every digit, objects keep their order,
// and a document that a careless reader would repair (a byte order mark, invalid UTF-8, a lone surrogate, a duplicate
// member, text after the end) is refused. It is not for decoding into Go types. A Value's Raw bytes are a slice of
// the document that was parsed: they are spliced into responses as they came, never decoded and encoded again.
//
// jsontext reads the same documents, but not in turns of the processor: value by value it yields only after the whole one,
// and token by token a list of 500 tools takes it twice as long.
package jsondoc

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
)

// Kind is the type of a JSON value, named as JSON Schema names it.
type Kind string

// The six kinds of JSON values.
const (
	Null    Kind = "null"
	Boolean Kind = "boolean"
	Number  Kind = "number"
	String  Kind = "string"
	Array   Kind = "array"
	Object  Kind = "object"
)

// kinds is the kind of a value by its first byte; whatever is not there is a number, or nothing.
var kinds = map[byte]Kind{'{': Object, '[': Array, '"': String, 't': Boolean, 'f': Boolean, 'n': Null}

// Value is one JSON value. Raw is how it was written; nil on a value that was changed since, whose Members or Items
// then say what it holds. The zero Value is impossible.
type Value struct {
	Kind    Kind
	Raw     []byte
	Members []Member
	Items   []Value
}

// Member is one member of an object.
type Member struct {
	Name  string
	Value Value
}

// Bounds that keep a hostile document cheap. Numbers are bounded because arithmetic on them is not linear: a
// validator that compares 1e1000000000 with a maximum would never end.
const (
	// MaxDepth is the deepest nesting that Parse follows.
	MaxDepth = 512
	// maxNumber is the longest number literal, in bytes.
	maxNumber = 1024
	// maxExponent is the largest exponent of a number, either way.
	maxExponent = 1000
	// maxSplit is how many members or items Split builds: an envelope has a handful.
	maxSplit = 1000
)

// Parse reads a whole document into a tree. The error says what is wrong and at which byte.
func Parse(doc []byte) (Value, error) { return parse(doc, MaxDepth, math.MaxInt) }

// Split reads a whole document as strictly as Parse does, but builds only its outermost value: members and items hold
// their Raw bytes and nothing else. It is the cheap way to take a request or a response apart. A document of more than
// 1,000 members or items is no envelope and is refused.
func Split(doc []byte) (Value, error) { return parse(doc, 1, maxSplit) }

// Members returns the bytes of an object's members of these names, as far as they are there, and keeps nothing of others.
func Members(object []byte, names []string) (map[string][]byte, error) {
	p := parser{doc: object, most: math.MaxInt, only: names}
	v, err := p.whole(1)
	if err == nil && v.Kind != Object {
		err = fmt.Errorf("it is a JSON %s, not an object", v.Kind)
	}
	if err != nil {
		return nil, err
	}
	found := make(map[string][]byte, len(v.Members))
	for _, m := range v.Members {
		found[m.Name] = m.Value.Raw
	}
	return found, nil
}

// SplitList is Split for a document that may have so many members or items.
func SplitList(doc []byte, most int) (Value, error) { return parse(doc, 1, most) }

func parse(doc []byte, build, most int) (Value, error) {
	p := parser{doc: doc, most: most}
	if bytes.HasPrefix(doc, []byte("\xef\xbb\xbf")) {
		return Value{}, fmt.Errorf("it starts with a byte order mark")
	}
	return p.whole(build)
}

type parser struct {
	doc   []byte
	at    int
	began int // where this turn on the processor began
	most  int // members or items of one value that are built

	only []string // names of the members that are built; nil: all

	names [][]byte // of the members of all objects that are open
	scrap Value    // takes what is not kept
}

// whole reads the one value of a document.
func (p *parser) whole(build int) (Value, error) {
	p.space()
	if p.at == len(p.doc) {
		return Value{}, fmt.Errorf("it is empty")
	}
	var v Value
	if err := p.value(&v, 1, build); err != nil {
		return Value{}, err
	}
	if p.space(); p.at != len(p.doc) {
		return Value{}, p.errorf("there is text after the end of the document")
	}
	return v, nil
}

// pause lets others have the processor when the turn is over.
func (p *parser) pause() {
	if p.at-p.began >= fair.TurnBytes {
		p.began = p.at
		fair.EndTurn()
	}
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf(format+" (byte %d)", append(args, p.at)...)
}

func (p *parser) space() {
	for p.at < len(p.doc) {
		switch p.doc[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

// next skips blanks and gives the byte that follows, 0 at the end.
func (p *parser) next() byte {
	if c := p.peek(); c > ' ' {
		return c
	}
	p.space()
	return p.peek()
}

// value reads one value at depth into v; it keeps members and items for the outermost build levels only.
func (p *parser) value(v *Value, depth, build int) (err error) {
	if depth > MaxDepth {
		return p.errorf("it is nested deeper than %d levels", MaxDepth)
	}
	p.pause()
	start := p.at
	switch c := p.peek(); {
	case c == '{':
		v.Kind = Object
		v.Members, err = p.members(depth, build)
	case c == '[':
		v.Kind = Array
		v.Items, err = p.items(depth, build)
	case c == '"':
		v.Kind = String
		_, _, err = p.scan()
	case c == '-' || c >= '0' && c <= '9':
		v.Kind, err = Number, p.number()
	case c == 't':
		v.Kind, err = Boolean, p.word("true")
	case c == 'f':
		v.Kind, err = Boolean, p.word("false")
	case c == 'n':
		v.Kind, err = Null, p.word("null")
	case p.at == len(p.doc):
		err = p.errorf("it ends too early")
	default:
		err = p.errorf("%q cannot start a value", c)
	}
	v.Raw = p.doc[start:p.at]
	return err
}

func (p *parser) members(depth, build int) ([]Member, error) {
	p.at++ // {
	if p.next() == '}' {
		p.at++
		return nil, nil
	}
	var kept []Member
	if depth == 1 {
		kept = make([]Member, 0, 3) // as many as a response has
	}
	seen := names{from: len(p.names)}
	for {
		if p.next() != '"' {
			return nil, p.errorf("a member's name must be a string")
		}
		name, err := p.str()
		if err != nil {
			return nil, err
		}
		if !p.add(&seen, name) {
			return nil, p.errorf("the member %s stands twice in one object", quoted(name))
		}
		if p.next() != ':' {
			return nil, p.errorf("a colon must follow a member's name")
		}
		p.at++
		p.space()
		into := &p.scrap
		if build > 0 && (p.only == nil || slices.Contains(p.only, string(name))) {
			if len(kept) == p.most {
				return nil, p.errorf("it has more than %d members", p.most)
			}
			kept = append(kept, Member{Name: string(name)})
			into = &kept[len(kept)-1].Value
		}
		if err := p.value(into, depth+1, build-1); err != nil {
			return nil, err
		}
		switch p.next() {
		case ',':
			p.at++
		case '}':
			p.at++
			p.names = p.names[:seen.from]
			return kept, nil
		default:
			return nil, p.errorf("a comma or } must follow a member")
		}
	}
}

func (p *parser) items(depth, build int) ([]Value, error) {
	p.at++ // [
	if p.next() == ']' {
		p.at++
		return nil, nil
	}
	var kept []Value
	for {
		p.space()
		into := &p.scrap
		if build > 0 {
			if len(kept) == p.most {
				return nil, p.errorf("it has more than %d items", p.most)
			}
			kept = append(kept, Value{})
			into = &kept[len(kept)-1]
		}
		if err := p.value(into, depth+1, build-1); err != nil {
			return nil, err
		}
		switch p.next() {
		case ',':
			p.at++
		case ']':
			p.at++
			return kept, nil
		default:
			return nil, p.errorf("a comma or ] must follow an item")
		}
	}
}

// str reads a string and gives its decoded text, which aliases the document where nothing was escaped.
func (p *parser) str() ([]byte, error) {
	start := p.at
	text, escaped, err := p.scan()
	if escaped && err == nil {
		text = Unquote(p.doc[start:p.at])
	}
	return text, err
}

// scan reads a string and gives what stands between its quotes.
func (p *parser) scan() (text []byte, escaped bool, err error) {
	p.at++ // the opening quote
	start := p.at
	for {
		p.pause()
		p.at += leadingPlain(p.doc[p.at:min(p.at+fair.TurnBytes, len(p.doc))])
		if p.at == len(p.doc) {
			return nil, false, p.errorf("a string is not closed")
		}
		switch c := p.doc[p.at]; {
		case c == '"':
			text := p.doc[start:p.at]
			p.at++
			return text, escaped, nil
		case c == '\\':
			escaped = true
			if err := p.escape(); err != nil {
				return nil, false, err
			}
		case c < ' ':
			return nil, false, p.errorf("a control character stands in a string")
		default:
			r, size := utf8.DecodeRune(p.doc[p.at:])
			if r == utf8.RuneError && size == 1 {
				return nil, false, p.errorf("a string is not valid UTF-8")
			}
			p.at += size
		}
	}
}

// leadingPlain counts the bytes before the first that is not plain.
func leadingPlain(text []byte) int {
	for i, c := range text {
		if !plain[c] {
			return i
		}
	}
	return len(text)
}

// plain are the bytes that stand for themselves in a string.
var plain = func() (is [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// escape checks one escape sequence; a surrogate must come with its other half.
func (p *parser) escape() error {
	if p.at+1 >= len(p.doc) {
		return p.errorf("a string is not closed")
	}
	switch p.doc[p.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.at += 2
		return nil
	case 'u':
		r, ok := hex4(p.doc[p.at:])
		if !ok {
			return p.errorf("\\u must be followed by four hexadecimal digits")
		}
		if utf16.IsSurrogate(r) {
			low, ok := hex4(p.doc[min(p.at+6, len(p.doc)):])
			if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
				return p.errorf("a surrogate lacks its other half")
			}
			p.at += 6
		}
		p.at += 6
		return nil
	}
	return p.errorf("\\%c is no escape", p.doc[p.at+1])
}

// hex4 reads a \u and its four hexadecimal digits at the start of s.
func hex4(s []byte) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range s[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

func (p *parser) number() error {
	start := p.at
	if p.peek() == '-' {
		p.at++
	}
	switch c := p.peek(); {
	case c == '0':
		p.at++
	case c >= '1' && c <= '9':
		p.digits()
	default:
		return p.errorf("a number needs a digit")
	}
	if p.peek() == '.' {
		p.at++
		if p.digits() == 0 {
			return p.errorf("a digit must follow the decimal point")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		from := p.at
		if p.digits() == 0 {
			return p.errorf("a digit must follow the exponent's e")
		}
		if digits := bytes.TrimLeft(p.doc[from:p.at], "0"); len(digits) > 4 || atoi(digits) > maxExponent {
			return p.errorf("a number's exponent is beyond %d", maxExponent)
		}
	}
	if p.at-start > maxNumber {
		return p.errorf("a number is longer than %d characters", maxNumber)
	}
	return nil
}

func (p *parser) peek() byte {
	if p.at < len(p.doc) {
		return p.doc[p.at]
	}
	return 0
}

func (p *parser) digits() int {
	start := p.at
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.at++
	}
	return p.at - start
}

func atoi(digits []byte) int {
	n := 0
	for _, c := range digits {
		n = n*10 + int(c-'0')
	}
	return n
}

func (p *parser) word(w string) error {
	if !bytes.HasPrefix(p.doc[p.at:], []byte(w)) {
		return p.errorf("%s was expected", w)
	}
	p.at += len(w)
	return nil
}

// quoted shortens a name for a message.
func quoted(name []byte) string {
	const longest = 64
	if len(name) > longest {
		return fmt.Sprintf("%q…", name[:longest])
	}
	return fmt.Sprintf("%q", name)
}
