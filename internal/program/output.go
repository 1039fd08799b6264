package program

import (
	"strings"
	"sync"
)

// Output keeps the start of what a process or a logger writes, for a test that reads it meanwhile.
type Output struct {
	mu   sync.Mutex
	kept strings.Builder
}

// Write implements io.Writer; what is beyond a megabyte is dropped.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kept.Len() < 1<<20 {
		o.kept.Write(b)
	}
	return len(b), nil
}

// Take returns what was written, and forgets it.
func (o *Output) Take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.kept.Reset()
	return o.kept.String()
}

// String is what was written.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kept.String()
}
