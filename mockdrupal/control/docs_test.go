package control_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/control"
)

// TestCommandsOfTheDocumentationWork sends the control plane every command of docs/mock.md, in order.
func TestCommandsOfTheDocumentationWork(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: no curl is started")
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skipf("SKIPPED: the commands need curl: %v", err)
	}
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "mock.md")))(t)
	site := must.Get(fixtures.Builtin("default"))(t)
	d := must.Get(mockdrupal.New(site, mockdrupal.Options{}))(t)
	server, addr, err := d.ListenControl("127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	dir := t.TempDir()
	yaml := must.Get(site.YAML())(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "my-site.yaml"), yaml, 0o600))
	base := "http://" + addr.String() + strings.TrimSuffix(control.Prefix, "/")
	sent := 0
	for line := range strings.Lines(string(text)) {
		command, ok := strings.CutPrefix(line, "curl ")
		if !ok || !strings.Contains(command, "$M/") {
			continue
		}
		sent++
		sh := exec.Command("sh", "-c", `M="$1"; "$2" -sS --fail-with-body -o out -D head `+command, "sh", base, curl)
		sh.Dir = dir
		if out, err := sh.CombinedOutput(); err != nil {
			body, _ := os.ReadFile(filepath.Join(dir, "out")) // there is none where the connection failed
			t.Errorf("curl %s%v: %s %s", command, err, out, body)
		}
	}
	if sent < 25 {
		t.Errorf("%d commands were found in the document, want at least 25", sent)
	}
}
