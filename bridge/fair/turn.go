package fair

import (
	"context"
	"runtime"
)

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

// Long is the size, in bytes, above which work on a document waits for a place.
const Long = 16 << 10

// Work bounds how many long documents are worked on at one time. A nil Work bounds nothing.
type Work struct{ gate *Gate }

// NewWork lets so many long documents be worked on at one time and so many wait.
func NewWork(atOnce, waiting int) *Work { return &Work{NewGate(atOnce, waiting)} }

// Enter waits for a place to work on a document of so many bytes; leave gives it back. A document that is not long needs
// none. Errors: ErrFull, and what ended ctx.
func (w *Work) Enter(ctx context.Context, who Key, bytes int) (leave func(), err error) {
	if w == nil || bytes <= Long {
		return noPlace, nil
	}
	if err := w.gate.Enter(ctx, who); err != nil {
		return nil, err
	}
	return func() { w.gate.Leave(who) }, nil
}

// noPlace gives back the place of work that needs none.
func noPlace() {}
