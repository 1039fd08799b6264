package redact

// Hold makes a writer hold back fewer bytes.
func (w *Writer) Hold(bytes int) { w.held = bytes }
