package repo

import "testing"

// A reader should be able to look through a file and a package.
const (
	maxLines = 500
	maxFiles = 25 // without tests
)

func TestFilesAndPackagesAreSmall(t *testing.T) {
	count := map[string]int{}
	for _, s := range sources(t) {
		if s.Lines > maxLines {
			t.Errorf("%s has %d lines: split it, a file has %d at most", s.Name, s.Lines, maxLines)
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
