package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

const root = "../../.."

func TestTheNoticesAreUpToDate(t *testing.T) {
	want := must.Get(notices(root))(t)
	got := must.Get(os.ReadFile(root + "/THIRD_PARTY_NOTICES"))(t)
	must.Expect(t, bytes.Equal(got, want), "THIRD_PARTY_NOTICES is not what the binary links: run `make notices`")
	for _, name := range []string{"github.com/spf13/cobra v", "github.com/inconshreveable/mousetrap v", "golang.org/x/sys v", "the Go standard library"} {
		must.Expect(t, strings.Contains(string(want), "\n"+name), "%s is missing", name)
	}
	for _, name := range []string{"github.com/rogpeppe/go-internal", "bridgecheck/bridgecheck"} { // tests alone link it; our own
		must.Expect(t, !strings.Contains(string(want), name), "%s is not part of the binary from others", name)
	}
}

// What is shipped carries the notices.
func TestArchivesAndImageHoldTheNotices(t *testing.T) {
	for file, line := range map[string]string{
		"packaging/release/archive.go": `shipped = []string{"LICENSE", "THIRD_PARTY_NOTICES",`,
		"packaging/Dockerfile":         "COPY --from=build /src/LICENSE /src/THIRD_PARTY_NOTICES /",
	} {
		text := must.Get(os.ReadFile(root + "/" + file))(t)
		must.Expect(t, strings.Contains(string(text), line), "%s does not hold %q", file, line)
	}
}

func TestAModuleWithoutALicenceIsAnError(t *testing.T) {
	dir := t.TempDir()
	m := module{name: "example.org/x v1", dir: dir, folders: map[string]bool{dir: true}}
	files, err := m.licences()
	must.Expect(t, err != nil, "licences() = %v, expected an error", files)
	must.Do(t, os.WriteFile(dir+"/LICENCE.md", []byte("terms"), 0o600))
	files, err = m.licences()
	must.Expect(t, err == nil && len(files) == 1, "licences() = %v, %v, expected one file", files, err)
}
