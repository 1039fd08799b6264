package program

import (
	"os"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// Packages that run side by side ask for the program at the same time, and must not link it again.
func TestTheProgramIsLinkedOnce(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: the program is not built")
	first := must.Get(os.Stat(must.Get(build())(t)))(t)
	done := make(chan string)
	for range 3 {
		go func() {
			file, err := build()
			must.Expect(t, err == nil, "%v", err)
			done <- file
		}()
	}
	for range 3 {
		if again, err := os.Stat(<-done); err != nil || !os.SameFile(first, again) { // go build touches what is up to date, and replaces what is not
			t.Errorf("the program was linked again: %v", err)
		}
	}
}

func TestANamedProgramIsTaken(t *testing.T) {
	t.Setenv("BRIDGECHECK", "/opt/bridgecheck")
	must.Equal(t, Build(t), "/opt/bridgecheck", "the program")
}
