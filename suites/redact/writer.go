package redact

import (
	"bytes"
	"io"
)

// longestLine is how much of a line Writer holds back before it goes on without its end, in bytes.
const longestLine = 64 << 10

// Writer takes the secrets out of what is written, line by line, before it reaches an output. Close writes the rest of
// a line that has no end; it does not close the output.
type Writer struct {
	redactor *Redactor
	out      io.Writer
	line     []byte
}

// Writer puts r before an output.
func (r *Redactor) Writer(out io.Writer) *Writer { return &Writer{redactor: r, out: out} }

func (w *Writer) Write(p []byte) (int, error) {
	w.line = append(w.line, p...)
	end := bytes.LastIndexByte(w.line, '\n') + 1
	if end == 0 && len(w.line) > longestLine {
		end = len(w.line)
	}
	if end == 0 {
		return len(p), nil
	}
	_, err := io.WriteString(w.out, w.redactor.Text(string(w.line[:end])))
	w.line = append(w.line[:0], w.line[end:]...)
	return len(p), err
}

// Close writes what is left.
func (w *Writer) Close() error {
	_, err := io.WriteString(w.out, w.redactor.Text(string(w.line)))
	w.line = nil
	return err
}
