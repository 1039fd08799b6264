package repo

import (
	"regexp"
	"testing"
)

var forProcessor = regexp.MustCompile(`_(amd64|arm64|386|arm)(_test)?\.go$|//go:build .*\b(amd64|arm64|386|arm)\b`)

// `make platforms` runs vet once for each system and not for each processor, so no file may be for a processor.
func TestNoFileIsForAProcessor(t *testing.T) {
	for _, s := range sources(t) {
		if forProcessor.MatchString(s.Name) || s.Name != "test/repo/platforms_test.go" && forProcessor.MatchString(read(t, s.Name)) {
			t.Errorf("%s is built for some processors only: let `make platforms` run vet for each processor of a system", s.Name)
		}
	}
}
