package fair

import "context"

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
