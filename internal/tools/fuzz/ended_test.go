package main

import "testing"

func TestATimeThatIsUpIsNoFailure(t *testing.T) {
	const ended = "fuzz: elapsed: 20s, execs: 4096 (204/sec), new interesting: 3 (total: 9)\n--- FAIL: FuzzX (20.01s)\n    context deadline exceeded\nFAIL\n"
	for text, want := range map[string]bool{
		ended: true,
		ended + "    Failing input written to testdata/fuzz/FuzzX/1\n":            false,
		ended + "panic: index out of range\n":                                     false,
		"--- FAIL: FuzzX (20.01s)\n    context deadline exceeded\nFAIL\n":         false, // it got no input
		"fuzz: elapsed: 1s, execs: 4 (4/sec)\n--- FAIL: FuzzX\n    got 1\nFAIL\n": false,
	} {
		if got := onlyEnded(text); got != want {
			t.Errorf("%v of\n%s", got, text)
		}
	}
}
