package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// What --shard takes is one shard of those that there can be, and anything else is refused as wrong usage.
func FuzzParseShard(f *testing.F) {
	for _, text := range []string{"1/1", "2/3", "0/3", "4/3", "1/101", "1", "/", "1/3/3", "-1/3", "01/3", "１/3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		index, of, err := parseShard(text)
		var usage *engine.UsageError
		switch {
		case err != nil && !errors.As(err, &usage):
			t.Errorf("%q is refused by %v", text, err)
		case err == nil && (index < 1 || index > of || of > engine.MaxShards):
			t.Errorf("%q is shard %d of %d", text, index, of)
		case err != nil:
			return
		}
		i, n, err := parseShard(fmt.Sprintf("%d/%d", index, of))
		must.Expect(t, i == index && n == of && err == nil,
			"%q is shard %d of %d, which is read as %d of %d: %v", text, index, of, i, n, err)
	})
}
