package redact

import (
	"bytes"
	"io"
)

// longestSecret is how much of a line without an end Writer holds back, in bytes: as much as a secret may take with all
// its escapes.
const longestSecret = 64 << 10

// Writer takes the secrets out of what is written, line by line, before it reaches an output. Of a line that gets longer
// than twice longestSecret it writes all but its last part; so the secrets must not be longer than that, and hold no line
// end. Close writes the rest of a line that has no end; it does not close the output.
type Writer struct {
	redactor *Redactor
	out      io.Writer
	line     []byte
	held     int // longestSecret
}

// Writer puts r before an output.
func (r *Redactor) Writer(out io.Writer) *Writer {
	return &Writer{redactor: r, out: out, held: longestSecret}
}

func (w *Writer) Write(p []byte) (int, error) {
	w.line = append(w.line, p...)
	end := bytes.LastIndexByte(w.line, '\n') + 1
	if len(w.line)-end > 2*w.held {
		end = w.redactor.after(string(w.line), len(w.line)-w.held)
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
