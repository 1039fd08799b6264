package jsondoc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
)

const (
	windowSize = 64 << 10 // bytes of a stream that are held
	maxOthers  = 100      // members beside the list
)

// ErrEnough says that the rest of a list need not be cut into items.
var ErrEnough = errors.New("the rest of the list is passed over")

// Stream reads an object of which one member, list, is an array that may be too long to hold. Items and members are cut out by
// their brackets and quotes, and are not parsed: parse each by itself, so that one that is broken costs itself
// only. item receives the bytes of each item, which it may keep, or nil for one of more than longest bytes; an error of item
// ends the reading, and ErrEnough that of the list alone. others are the members beside the list.
func Stream(r io.Reader, list string, longest int, item func(raw []byte) error) (others []Member, err error) {
	s := stream{bufio.NewReaderSize(r, windowSize)}
	if mark, _ := s.in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		s.in.Discard(3) //nolint:errcheck // they are there
	}
	if err := s.expect('{', "it is not an object"); err != nil {
		return nil, err
	}
	found := false
	err = s.parts('}', func() error {
		quoted, err := s.value(longest)
		if err == nil && (len(quoted) < 2 || quoted[0] != '"') {
			err = errors.New("a member's name must be a string")
		}
		if err == nil {
			err = s.expect(':', "a colon must follow a member's name")
		}
		if err != nil {
			return err
		}
		name := string(Unquote(quoted))
		c, err := s.next()
		if name == list && c == '[' && err == nil {
			if found {
				return fmt.Errorf("the member %.80q stands twice", name)
			}
			found = true
			s.in.Discard(1) //nolint:errcheck // it is there
			return s.parts(']', func() error {
				raw, err := s.value(longest)
				if err != nil {
					return err
				}
				if err = item(raw); err == ErrEnough { //nolint:errorlint // it is not wrapped
					if _, broken := s.scan(1, 0); broken != nil {
						err = broken
					}
				}
				return err
			})
		}
		raw, err := s.value(longest)
		switch {
		case err != nil:
			return err
		case name == list && found, slices.ContainsFunc(others, func(m Member) bool { return m.Name == name }):
			return fmt.Errorf("the member %.80q stands twice", name)
		case len(raw) == 0 || len(others) == maxOthers:
			return fmt.Errorf("its member %.80q is too long, or has too many beside it", name)
		}
		others = append(others, Member{name, Value{Kind: kinds[raw[0]], Raw: raw}})
		return nil
	})
	if err == nil {
		if _, end := s.next(); end == nil {
			err = errors.New("there is text after the end of the document")
		} else if !errors.Is(end, io.EOF) {
			err = end
		}
	}
	if err == nil && !found {
		err = fmt.Errorf("it has no %s array", list)
	}
	return others, err
}

// stream reads a document by its brackets and quotes.
type stream struct{ in *bufio.Reader }

// next skips blanks and gives the byte that follows.
func (s *stream) next() (byte, error) {
	for {
		c, err := s.in.Peek(1)
		if err != nil {
			return 0, err
		}
		if c[0] != ' ' && c[0] != '\t' && c[0] != '\r' && c[0] != '\n' {
			return c[0], nil
		}
		s.in.Discard(1) //nolint:errcheck // it is there
	}
}

func (s *stream) expect(want byte, otherwise string) error {
	c, err := s.next()
	switch {
	case err != nil:
		return early(err)
	case c != want:
		return errors.New(otherwise)
	}
	_, err = s.in.Discard(1)
	return err
}

// parts reads what stands between commas until the bracket closes.
func (s *stream) parts(closing byte, part func() error) error {
	c, err := s.next()
	if err == nil && c == closing {
		_, err = s.in.Discard(1)
		return err
	}
	for {
		if err := part(); err == ErrEnough { //nolint:errorlint // it is not wrapped
			return nil
		} else if err != nil {
			return err
		}
		c, err := s.next()
		switch {
		case err != nil:
			return early(err)
		case c != ',' && c != closing:
			return fmt.Errorf("a comma or %c must follow", closing)
		}
		s.in.Discard(1) //nolint:errcheck // it is there
		if c == closing {
			return nil
		}
	}
}

// value reads one value; nil where it is longer than longest.
func (s *stream) value(longest int) (raw []byte, err error) {
	first, err := s.next()
	if err != nil {
		return nil, early(err)
	}
	switch first {
	case ',':
		return []byte{}, nil // an item that is not there costs itself only
	case ']', '}', ':':
		return nil, errors.New("a value was expected")
	}
	return s.scan(0, longest)
}

// scan reads to the end of what is open at a depth, 0 for a value by itself.
func (s *stream) scan(depth, longest int) (raw []byte, err error) {
	quoted, escaped := false, false
	ends := func(c byte) (before, after bool) {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
			return false, !quoted && depth == 0
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
			return depth < 0, depth == 0
		case c == ',' || c == ':' || c <= ' ':
			return depth == 0, false
		}
		return false, false
	}
	long := false
	for {
		window, err := s.in.Peek(max(1, s.in.Buffered()))
		if err != nil {
			return nil, early(err)
		}
		n, done := 0, false
		for n < len(window) && !done {
			before, after := ends(window[n])
			if done = before || after; !before {
				n++
			}
		}
		if long = long || len(raw)+n > longest; long {
			raw = nil
		} else {
			raw = append(raw, window[:n]...)
		}
		s.in.Discard(n) //nolint:errcheck // they are there
		if done {
			return raw, nil
		}
		fair.EndTurn()
	}
}

func early(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("it ends too early")
	}
	return err
}
