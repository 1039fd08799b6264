package repo

import "testing"

// A reader should be able to look through a file and a package.
const (
	maxLines = 500
	maxFiles = 25 // without tests
)

// stillTooLong are files that are longer for now; it must become empty.
var stillTooLong = map[string]bool{"suites/upstream/upstream.go": true}

func TestFilesAndPackagesAreSmall(t *testing.T) {
	count := map[string]int{}
	for _, s := range sources(t) {
		switch long := s.Lines > maxLines; {
		case long && !stillTooLong[s.Name]:
			t.Errorf("%s has %d lines: split it, a file has %d at most", s.Name, s.Lines, maxLines)
		case !long && stillTooLong[s.Name]:
			t.Errorf("%s is short enough now: remove it from stillTooLong", s.Name)
		}
		if !s.Test {
			count[s.Package]++
		}
	}
	for name, n := range count {
		if n > maxFiles {
			t.Errorf("%s has %d files without tests: split it, a package has %d at most", name, n, maxFiles)
		}
	}
}
