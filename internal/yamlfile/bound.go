package yamlfile

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Bounds of a file. The YAML library takes a time that grows with the square of the depth (39 s for 6,000 nested keys), and
// aliases of aliases can stand for more values than any memory holds.
const (
	maxDepth = 200
	maxNodes = 1 << 20 // with each alias counted as what it stands for
	maxMarks = 600_000 // lines, commas and brackets, between which values stand: each takes some 250 bytes
)

// Bounded refuses a document of too many values, or one that nests them deeper than maxDepth, and says on which line. It reads
// the bytes itself, before the library does, and knows just enough YAML for that: indentation, brackets, quotes, comments and
// block scalars.
func Bounded(data []byte) (line int, err error) {
	marks := 0
	for _, c := range data {
		if c == '\n' || c == ',' || c == '[' || c == '{' {
			marks++
		}
	}
	if marks > maxMarks {
		return 1, fmt.Errorf("the file has %d lines, commas and brackets, more than %d", marks, maxMarks)
	}
	var s nesting
	for i, line := range bytes.Split(data, []byte("\n")) {
		if column := s.read(bytes.TrimRight(line, "\r")); column > 0 {
			return i + 1, fmt.Errorf("column %d: values are nested more than %d deep: write them flatter", column, maxDepth)
		}
	}
	return 0, nil
}

// nesting is how deep a place of a document is nested.
type nesting struct {
	columns []int // of the block collections that are open
	flow    int   // brackets that are open
	quote   byte  // of the quoted text that is open; 0: none
	literal int   // the indentation from which lines belong to a block scalar; 0: there is none
}

// read goes through one line. It returns the column where the document gets too deep; 0: nowhere.
func (s *nesting) read(line []byte) int {
	indent := len(line) - len(bytes.TrimLeft(line, " "))
	switch {
	case indent == len(line):
		return 0
	case s.literal > 0 && indent >= s.literal:
		return 0
	}
	s.literal = 0
	at := indent
	if s.quote == 0 && s.flow == 0 {
		for len(s.columns) > 0 && s.columns[len(s.columns)-1] >= indent {
			s.columns = s.columns[:len(s.columns)-1]
		}
		at = s.open(line, indent)
	}
	for start := true; at < len(line); at++ {
		c := line[at]
		switch {
		case s.quote != 0:
			if c == '\\' && s.quote == '"' {
				at++
			} else if c == s.quote {
				s.quote, start = 0, false
			}
			continue
		case c == '#' && (at == 0 || line[at-1] == ' ' || line[at-1] == '\t'):
			return s.tooDeep(at)
		case (start || s.flow > 0) && (c == '[' || c == '{'):
			s.flow++
			if column := s.tooDeep(at); column > 0 {
				return column
			}
		case s.flow > 0 && (c == ']' || c == '}'):
			s.flow--
		case start && (c == '"' || c == '\''):
			s.quote = c
		case start && s.flow == 0 && (c == '|' || c == '>'):
			s.literal = s.columns[len(s.columns)-1] + 1
			return s.tooDeep(at)
		}
		start = start && (c == ' ' || c == '\t') || s.flow > 0 && bytes.IndexByte([]byte("[{,"), c) >= 0 ||
			c == ':' && (s.flow > 0 || at+1 == len(line) || line[at+1] == ' ')
	}
	return s.tooDeep(indent)
}

// open notes the collections that begin at the first words of a line, as in `- - key:`, and returns where the rest begins.
func (s *nesting) open(line []byte, at int) int {
	for {
		s.columns = append(s.columns, at)
		if at+1 >= len(line) || bytes.IndexByte([]byte("-?:"), line[at]) < 0 || line[at+1] != ' ' {
			return at
		}
		for at++; at < len(line) && line[at] == ' '; at++ {
		}
	}
}

// tooDeep returns a column, counted from one, if the document is too deep there, else 0.
func (s *nesting) tooDeep(at int) int {
	if len(s.columns)+s.flow > maxDepth {
		return at + 1
	}
	return 0
}

// expanded refuses a document whose aliases stand for too many values, and names the alias with which it does.
func expanded(name string, root *yaml.Node) error {
	sizes := map[*yaml.Node]int{}
	var count func(*yaml.Node) (int, *yaml.Node)
	count = func(n *yaml.Node) (int, *yaml.Node) {
		if size, known := sizes[n]; known {
			return size, nil
		}
		sizes[n] = 1 // an alias of a value within itself, which the decoder refuses, ends here
		size := 1
		if n.Alias != nil {
			more, at := count(n.Alias)
			if size += more; at != nil {
				return size, at
			}
		}
		for _, child := range n.Content {
			more, at := count(child)
			if size += more; at != nil {
				return size, at
			}
		}
		sizes[n] = size
		if size > maxNodes {
			return size, n
		}
		return size, nil
	}
	if _, at := count(root); at != nil {
		return fmt.Errorf("%s:%d: column %d: with its aliases this has more than %d values: write fewer aliases of aliases", name, at.Line, at.Column, maxNodes)
	}
	return nil
}
