package repo

import (
	"go/build"
	"io"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// `make platforms` runs vet once for each system and not for each processor, so no file may be for a processor.
func TestNoFileIsForAProcessor(t *testing.T) {
	for _, s := range sources(t) {
		if differs(t, s.Name, read(t, s.Name)) {
			t.Errorf("%s is built for some processors only: let `make platforms` run vet for each processor of a system", s.Name)
		}
	}
	for name, text := range map[string]string{"a_arm64.go": "package a\n", "a.go": "//go:build !amd64\n\npackage a\n"} {
		if !differs(t, name, text) {
			t.Errorf("%s is not recognized as a file for some processors: this proves nothing", name)
		}
	}
}

// differs reports whether a file is built for one processor of a system and not for another.
func differs(t *testing.T, name, text string) bool {
	t.Helper()
	for _, system := range []string{"linux", "darwin", "windows"} {
		var built [2]bool
		for i, arch := range []string{"amd64", "arm64"} {
			c := build.Default
			c.GOOS, c.GOARCH, c.CgoEnabled = system, arch, false
			c.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
			built[i] = must.Get(c.MatchFile(filepath.Join(root, path.Dir(name)), path.Base(name)))(t)
		}
		if built[0] != built[1] {
			return true
		}
	}
	return false
}
