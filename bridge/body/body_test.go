package body

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

type grow func(bytes int64) error

func (g grow) Grow(bytes int64) error { return g(bytes) }

// A body is read whole, however it arrives and whatever it announces.
func TestAllReadsAllOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := bytes.Repeat([]byte("x"), rapid.IntRange(0, 5*Free).Draw(t, "length"))
		announced := int64(-1)
		if rapid.Bool().Draw(t, "announced") {
			announced = int64(len(sent)) + int64(rapid.SampledFrom([]int{0, 0, 7}).Draw(t, "more than comes"))
		}
		var r io.Reader = bytes.NewReader(sent)
		if rapid.Bool().Draw(t, "in halves") {
			r = iotest.HalfReader(r)
		}
		asked := int64(0)
		read, err := All(r, announced, grow(func(n int64) error { asked += n; return nil }))
		short := announced > int64(len(sent))
		if !bytes.Equal(read, sent) || (err != nil) != short || short && len(sent) > 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes of %d, announced %d: %v", len(read), len(sent), announced, err)
		}
		must.Expect(t, (len(sent) > Free/2 || asked <= 0 || announced > Free) && int64(cap(read)) <= Free+asked,
			"%d bytes are held of %d, after asking for %d", cap(read), len(sent), asked)
	})
}

// What is announced and never comes costs nothing, and what is refused is not held.
func TestMemoryIsTakenAsBytesArrive(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := All(strings.NewReader("{"), 1<<30, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error = %v", err)
	}
	runtime.ReadMemStats(&after)
	took := after.TotalAlloc - before.TotalAlloc
	must.Expect(t, took <= 4*Free, "%d bytes for one byte that came", took)
	none := errors.New("there is none")
	read, err := All(strings.NewReader(strings.Repeat("x", 10*Free)), -1, grow(func(int64) error { return none }))
	must.Expect(t, errors.Is(err, none) && len(read) <= Free, "%d bytes, error %v", len(read), err)
}
