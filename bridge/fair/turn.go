package fair

import "runtime"

// TurnBytes is how much of a document is read in one turn: some 0.1 ms.
const TurnBytes = 16 << 10

// last is held by the one goroutine with long work that waits for the processor.
var last = make(chan struct{}, 1)

// EndTurn yields the processor to every goroutine that waits for it: Go's scheduler by itself takes the processor away only
// after 10 to 20 ms. Of all long work one goroutine at a time waits beside short work, so that a short request waits for one
// turn of each processor, however much long work there is.
func EndTurn() {
	last <- struct{}{}
	runtime.Gosched()
	<-last
}

// Yield is EndTurn for work that is short by itself and comes often.
func Yield() { runtime.Gosched() }
