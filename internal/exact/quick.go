package exact

import (
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

// quick reads what there is nothing to say against, many times as fast as tokens do. It gives up (ok is false) at the
// first thing that is wrong or rare: the reading by tokens finds the words for that. The text must be valid UTF-8.
type quick struct {
	text  string
	at    int
	names map[string]string // seen before: documents repeat them
}

func parseQuickly(data []byte) (v any, ok bool) {
	q := quick{text: string(data), names: map[string]string{}}
	if v, ok = q.value(0); !ok {
		return nil, false
	}
	q.blanks()
	return v, q.at == len(q.text)
}

// next is the character to be read after blanks; 0 at the end.
func (q *quick) next() byte {
	q.blanks()
	if q.at == len(q.text) {
		return 0
	}
	return q.text[q.at]
}

func (q *quick) blanks() {
	for q.at < len(q.text) {
		switch q.text[q.at] {
		case ' ', '\t', '\r', '\n':
			q.at++
		default:
			return
		}
	}
}

// take reads a character where it is the next one.
func (q *quick) take(c byte) bool {
	if q.next() != c {
		return false
	}
	q.at++
	return true
}

func (q *quick) word(w string, v any) (any, bool) {
	if len(q.text)-q.at < len(w) || q.text[q.at:q.at+len(w)] != w {
		return nil, false
	}
	q.at += len(w)
	return v, true
}

func (q *quick) value(depth int) (any, bool) {
	if depth > maxDepth {
		return nil, false
	}
	switch q.next() {
	case '{':
		return q.object(depth)
	case '[':
		return q.list(depth)
	case '"':
		return q.boxed()
	case 't':
		return q.word("true", true)
	case 'f':
		return q.word("false", false)
	case 'n':
		return q.word("null", nil)
	}
	return q.number()
}

func (q *quick) boxed() (any, bool) {
	s, ok := q.str()
	return s, ok
}

func (q *quick) object(depth int) (any, bool) {
	q.at++
	object := map[string]any{}
	if q.take('}') {
		return object, true
	}
	for {
		if q.next() != '"' {
			return nil, false
		}
		name, ok := q.str()
		if !ok || !q.take(':') {
			return nil, false
		}
		if known, seen := q.names[name]; seen {
			name = known
		} else {
			q.names[name] = name
		}
		if _, twice := object[name]; twice {
			return nil, false
		}
		if object[name], ok = q.value(depth + 1); !ok {
			return nil, false
		}
		if q.take('}') {
			return object, true
		}
		if !q.take(',') {
			return nil, false
		}
	}
}

func (q *quick) list(depth int) (any, bool) {
	q.at++
	list := []any{}
	if q.take(']') {
		return list, true
	}
	for {
		v, ok := q.value(depth + 1)
		if !ok {
			return nil, false
		}
		list = append(list, v)
		if q.take(']') {
			return list, true
		}
		if !q.take(',') {
			return nil, false
		}
	}
}

// str reads a string, whose text it shares with the document where nothing is escaped.
func (q *quick) str() (string, bool) {
	q.at++
	for i := q.at; i < len(q.text); i++ {
		switch c := q.text[i]; {
		case c == '"':
			s := q.text[q.at:i]
			q.at = i + 1
			return s, true
		case c == '\\':
			return q.escaped(i)
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

var escapes = ['u' + 1]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped reads the rest of a string whose first escape is at i.
func (q *quick) escaped(i int) (string, bool) {
	b := append([]byte(nil), q.text[q.at:i]...)
	for i < len(q.text) {
		c := q.text[i]
		i++
		switch {
		case c == '"':
			q.at = i
			return string(b), true
		case c < ' ':
			return "", false
		case c != '\\':
			b = append(b, c)
			continue
		}
		if i == len(q.text) || q.text[i] > 'u' {
			return "", false
		}
		if q.text[i] != 'u' {
			c := escapes[q.text[i]]
			if c == 0 {
				return "", false
			}
			b = append(b, c)
			i++
			continue
		}
		r, ok := hex4(q.text, i+1)
		i += 5
		if ok && utf16.IsSurrogate(r) {
			low, there := rune(0), i+1 < len(q.text) && q.text[i] == '\\' && q.text[i+1] == 'u'
			if there {
				low, there = hex4(q.text, i+2)
			}
			r = utf16.DecodeRune(r, low)
			ok = there && r != utf8.RuneError
			i += 6
		}
		if !ok {
			return "", false
		}
		b = utf8.AppendRune(b, r)
	}
	return "", false
}

func hex4(text string, at int) (r rune, ok bool) {
	if len(text) < at+4 {
		return 0, false
	}
	for _, c := range []byte(text[at : at+4]) {
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

func (q *quick) number() (any, bool) {
	start := q.at
	if q.at < len(q.text) && q.text[q.at] == '-' {
		q.at++
	}
	first := q.at
	if !q.digits() || q.text[first] == '0' && q.at > first+1 {
		return nil, false
	}
	if q.at < len(q.text) && q.text[q.at] == '.' {
		q.at++
		if !q.digits() {
			return nil, false
		}
	}
	if q.at < len(q.text) && q.text[q.at]|0x20 == 'e' {
		q.at++
		if q.at < len(q.text) && (q.text[q.at] == '+' || q.text[q.at] == '-') {
			q.at++
		}
		if !q.digits() {
			return nil, false
		}
	}
	return json.Number(q.text[start:q.at]), true
}

// digits reads at least one digit.
func (q *quick) digits() bool {
	start := q.at
	for q.at < len(q.text) && q.text[q.at] >= '0' && q.text[q.at] <= '9' {
		q.at++
	}
	return q.at > start
}
