// Package turn divides long work into turns on a processor, so that short requests need not wait for it: Go's scheduler by
// itself takes the processor away from a goroutine only after 10 to 20 ms. It knows nothing of what the work is.
package turn

import "runtime"

// Bytes is how much of a document is read in one turn: some 0.1 ms.
const Bytes = 16 << 10

// last is the place at the end of the line of all who wait for the processor.
var last = make(chan struct{}, 1)

// End lets all go first who wait for the processor. Of long work one at a time stands in line with short work: a short
// request waits for one turn of each processor, however many do long work.
func End() {
	last <- struct{}{}
	runtime.Gosched()
	<-last
}

// Yield is End for work that is short by itself and comes often.
func Yield() { runtime.Gosched() }
