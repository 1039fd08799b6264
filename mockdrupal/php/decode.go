package php

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how deep json_encode goes by default; json_decode stops one level before.
const MaxDepth = 512

// ErrSyntax is returned for all that json_decode refuses: PHP's caller sees no more than NULL.
var ErrSyntax = errors.New("not a JSON document that PHP reads")

// Decode reads one document as json_decode($data, TRUE) does: objects become arrays, integers outside of int64 become
// floats, a repeated member takes its last value in its first place. It fails with ErrSyntax on anything else than
// RFC 8259, on invalid UTF-8, on a lone surrogate and from 512 levels on.
func Decode(data []byte) (Value, error) {
	d := decoder{data: data}
	d.space()
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if d.space(); d.at != len(d.data) {
		return nil, ErrSyntax
	}
	return v, nil
}

type decoder struct {
	data []byte
	at   int
}

func (d *decoder) space() {
	for d.at < len(d.data) {
		switch d.data[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return
		}
	}
}

// peek returns the next byte, 0 at the end (a NUL is no JSON either).
func (d *decoder) peek() byte {
	if d.at < len(d.data) {
		return d.data[d.at]
	}
	return 0
}

func (d *decoder) take(b byte) bool {
	if d.peek() != b {
		return false
	}
	d.at++
	return true
}

func (d *decoder) value(depth int) (Value, error) {
	switch c := d.peek(); {
	case c == '{':
		return d.object(depth + 1)
	case c == '[':
		return d.list(depth + 1)
	case c == '"':
		text, err := d.text()
		return text, err
	case c == '-' || c >= '0' && c <= '9':
		return d.number()
	default:
		return d.word()
	}
}

// words are the only ones; PHP takes them in lower case, as they are written here.
var words = []struct {
	text  string
	value Value
}{{"true", true}, {"false", false}, {"null", nil}}

func (d *decoder) word() (Value, error) {
	for _, w := range words {
		if bytes.HasPrefix(d.data[d.at:], []byte(w.text)) {
			d.at += len(w.text)
			return w.value, nil
		}
	}
	return nil, ErrSyntax
}

// usualMembers is how many members an object is made ready for.
const usualMembers = 4

func (d *decoder) object(depth int) (Value, error) {
	if depth >= MaxDepth {
		return nil, ErrSyntax
	}
	d.at++
	a := &Array{}
	if d.space(); d.take('}') {
		return a, nil
	}
	a.grow(usualMembers)
	for {
		d.space()
		if d.peek() != '"' {
			return nil, ErrSyntax
		}
		name, err := d.text()
		if err != nil {
			return nil, err
		}
		if d.space(); !d.take(':') {
			return nil, ErrSyntax
		}
		d.space()
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		a.Set(KeyOf(name), v)
		d.space()
		if d.take('}') {
			return a, nil
		}
		if !d.take(',') {
			return nil, ErrSyntax
		}
	}
}

func (d *decoder) list(depth int) (Value, error) {
	if depth >= MaxDepth {
		return nil, ErrSyntax
	}
	d.at++
	a := &Array{}
	if d.space(); d.take(']') {
		return a, nil
	}
	for {
		d.space()
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		a.Append(v)
		d.space()
		if d.take(']') {
			return a, nil
		}
		if !d.take(',') {
			return nil, ErrSyntax
		}
	}
}

func (d *decoder) number() (Value, error) {
	start := d.at
	d.take('-')
	if !d.take('0') && !d.digits() {
		return nil, ErrSyntax
	}
	whole := true
	if d.take('.') {
		if whole = false; !d.digits() {
			return nil, ErrSyntax
		}
	}
	if d.peek()|0x20 == 'e' {
		d.at++
		if !d.take('+') {
			d.take('-')
		}
		if whole = false; !d.digits() {
			return nil, ErrSyntax
		}
	}
	text := string(d.data[start:d.at])
	if whole {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, nil
		}
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range is ±Inf, in PHP too
	return f, nil
}

func (d *decoder) digits() bool {
	start := d.at
	for c := d.peek(); c >= '0' && c <= '9'; c = d.peek() {
		d.at++
	}
	return d.at > start
}

func (d *decoder) text() (string, error) {
	d.at++
	start := d.at
	for d.at < len(d.data) {
		switch c := d.data[d.at]; {
		case c == '"':
			s := d.data[start:d.at]
			if d.at++; !utf8.Valid(s) {
				return "", ErrSyntax
			}
			return string(s), nil
		case c == '\\':
			return d.escaped(d.data[start:d.at])
		case c < 0x20:
			return "", ErrSyntax
		default:
			d.at++
		}
	}
	return "", ErrSyntax
}

var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped reads on from the first backslash of a string.
func (d *decoder) escaped(head []byte) (string, error) {
	s := append(make([]byte, 0, len(head)+32), head...)
	for d.at < len(d.data) {
		c := d.data[d.at]
		d.at++
		switch {
		case c == '"':
			if !utf8.Valid(s) {
				return "", ErrSyntax
			}
			return string(s), nil
		case c < 0x20:
			return "", ErrSyntax
		case c != '\\':
			s = append(s, c)
		case d.take('u'):
			r, ok := d.unicode()
			if !ok {
				return "", ErrSyntax
			}
			s = utf8.AppendRune(s, r)
		default:
			e, ok := escapes[d.peek()]
			if !ok {
				return "", ErrSyntax
			}
			d.at++
			s = append(s, e)
		}
	}
	return "", ErrSyntax
}

func (d *decoder) unicode() (rune, bool) {
	hi, ok := d.hex()
	if !ok || !utf16.IsSurrogate(hi) {
		return hi, ok
	}
	if !d.take('\\') || !d.take('u') {
		return 0, false
	}
	lo, ok := d.hex()
	r := utf16.DecodeRune(hi, lo)
	return r, ok && r != utf8.RuneError
}

func (d *decoder) hex() (rune, bool) {
	if d.at+4 > len(d.data) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(d.data[d.at:d.at+4]), 16, 16)
	d.at += 4
	return rune(n), err == nil
}
