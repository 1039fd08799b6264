// Package turn divides long work into turns on a processor, so that short requests need not wait for it: Go's scheduler by
// itself takes the processor away from a goroutine only after 10 to 20 ms. It knows nothing of what the work is.
package turn

import "runtime"

// Bytes is how much of a document is read in one turn: some 0.1 ms.
const Bytes = 16 << 10

// End lets all go first who wait for the processor.
func End() { runtime.Gosched() }
