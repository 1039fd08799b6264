package schema

import (
	"errors"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// index is a document taken apart without decoding it: 16 bytes for each value and each member's name, in the order in
// which they stand. Maps and slices of decoded values would cost up to 60 times the document.
type index struct {
	doc   []byte
	nodes []node
}

// node is a value, or the name of a member, which stands before the member's value.
type node struct {
	from, to uint32 // its bytes; of a string, what stands between the quotes
	next     uint32 // the node after it and all that is within it
	kind     kindOf
	escaped  bool // a string with escapes
	absent   bool // a member that counts as not there
}

// kindOf is the type of a value, as a bit.
type kindOf uint8

const (
	isNull kindOf = 1 << iota
	isBoolean
	isNumber
	isString
	isArray
	isObject
	isInteger // only in a set of types: a number without a fraction
)

// kindBits gives the bit of each type's name.
var kindBits = map[string]kindOf{
	"null": isNull, "boolean": isBoolean, "number": isNumber, "string": isString, "array": isArray, "object": isObject, "integer": isInteger,
}

// name is the type's name.
func (k kindOf) name() string {
	for name, bit := range kindBits {
		if bit == k {
			return name
		}
	}
	return ""
}

var errNotJSON = errors.New("the document is not JSON")

// newIndex takes a document apart. It trusts that a parser has checked it; one that is broken is an error or a wrong
// index, and never a panic.
func newIndex(doc []byte) (*index, error) {
	ix := &index{}
	return ix, ix.read(doc)
}

// read makes it the index of another document, in the nodes that it has where they suffice.
func (ix *index) read(doc []byte) error {
	ix.doc = doc
	if count := countNodes(doc); count > cap(ix.nodes) {
		ix.nodes = make([]node, 0, count)
	}
	ix.nodes = ix.nodes[:0]
	type container struct {
		at    uint32
		parts int // names and values directly within it
	}
	open := make([]container, 0, 16)
	add := func(n node) uint32 {
		at := uint32(len(ix.nodes))
		n.next = at + 1
		ix.nodes = append(ix.nodes, n)
		if len(open) > 0 {
			open[len(open)-1].parts++
		}
		return at
	}
	for i, began := 0, 0; i < len(doc); {
		if i-began >= fair.TurnBytes {
			began = i
			fair.EndTurn()
		}
		switch c := doc[i]; c {
		case ' ', '\t', '\r', '\n', ':', ',':
			i++
		case '{', '[':
			kind := isObject
			if c == '[' {
				kind = isArray
			}
			open = append(open, container{at: add(node{from: uint32(i), kind: kind})})
			i++
		case '}', ']':
			if len(open) == 0 {
				return errNotJSON
			}
			i++
			last := open[len(open)-1]
			closed := &ix.nodes[last.at]
			closed.to, closed.next = uint32(i), uint32(len(ix.nodes))
			if open = open[:len(open)-1]; closed.kind == isObject && last.parts%2 != 0 {
				return errNotJSON
			}
		case '"':
			end, escaped := endOfString(doc, i+1)
			if end < 0 {
				return errNotJSON
			}
			add(node{from: uint32(i + 1), to: uint32(end), kind: isString, escaped: escaped})
			i = end + 1
		default:
			end := i + 1
			for end < len(doc) && !strings.ContainsRune(" \t\r\n,]}", rune(doc[end])) {
				end++
			}
			kind := isNumber
			switch c {
			case 't', 'f':
				kind = isBoolean
			case 'n':
				kind = isNull
			}
			add(node{from: uint32(i), to: uint32(end), kind: kind})
			i = end
		}
	}
	if len(open) > 0 || len(ix.nodes) == 0 {
		return errNotJSON
	}
	return nil
}

// countNodes counts the values and names of a document, or a few more.
func countNodes(doc []byte) int {
	n := 1
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case ',', ':', '{', '[':
			n++
		case '"':
			if i, _ = endOfString(doc, i+1); i < 0 {
				return n
			}
		}
	}
	return n
}

// endOfString finds the closing quote, -1 where there is none.
func endOfString(doc []byte, from int) (end int, escaped bool) {
	for i := from; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			return i, escaped
		case '\\':
			escaped = true
			i++
		}
	}
	return -1, escaped
}

// raw is how a value was written.
func (ix *index) raw(at uint32) []byte {
	n := ix.nodes[at]
	return ix.doc[n.from:n.to]
}

// text is a string's decoded text; it aliases the document where nothing was escaped.
func (ix *index) text(at uint32) []byte {
	if ix.nodes[at].escaped {
		n := ix.nodes[at]
		return jsondoc.Unquote(ix.doc[n.from-1 : n.to+1])
	}
	return ix.raw(at)
}

// member finds a member of an object, 0 where there is none.
func (ix *index) member(object uint32, name string) uint32 {
	for at := object + 1; at < ix.nodes[object].next; at = ix.nodes[at+1].next {
		if !ix.nodes[at].absent && string(ix.text(at)) == name {
			return at + 1
		}
	}
	return 0
}

// withoutNulls has the root's members count as not there that are null and not required, as Drupal takes them.
func (ix *index) withoutNulls(required []string) {
	if ix.nodes[0].kind != isObject {
		return
	}
next:
	for at := uint32(1); at < ix.nodes[0].next; at = ix.nodes[at+1].next {
		if ix.nodes[at+1].kind != isNull {
			continue
		}
		for _, name := range required {
			if string(ix.text(at)) == name {
				continue next
			}
		}
		ix.nodes[at].absent = true
	}
}
