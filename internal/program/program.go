// Package program builds the bridgecheck program for tests that start it as people do, and starts servers that print where
// they listen. It is for tests alone.
//
// Its invariant: the packages of one `go test`, which run side by side, link the program once between them. It is in
// bin/tests of the repository, and go build leaves it alone while the sources stay as they are.
package program

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// Path returns the path of the program: what BRIDGECHECK in the environment names, or one that it builds.
func Path() (string, error) {
	if named := os.Getenv("BRIDGECHECK"); named != "" {
		return named, nil
	}
	return built()
}

// built is the program of this process's tests, which ask for it often.
var built = sync.OnceValues(build)

func build() (string, error) {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	dir := filepath.Join(root, "bin", "tests")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(dir, "lock")).Lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	file := filepath.Join(dir, "bridgecheck")
	link := exec.Command("go", "build", "-buildvcs=false", "-o", file, "./cmd/bridgecheck")
	link.Dir = root
	link.Env = append(os.Environ(), "CGO_ENABLED=0") // as releases are: each thread of the C library takes 64 MiB of addresses
	if out, err := link.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build bridgecheck: %w\n%s", err, out)
	}
	return file, nil
}

// Build returns the path of the program, and ends the test where it cannot be built.
func Build(t testing.TB) string {
	t.Helper()
	return must.Get(Path())(t)
}

// Listening starts a server and returns what it prints after "listening on ", which is its address. The
// caller ends the server, whose other output is dropped.
func Listening(t testing.TB, cmd *exec.Cmd) (address string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.Do(t, err)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if address, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			go io.Copy(io.Discard, out) //nolint:errcheck // it ends with the server
			return address
		}
	}
	cmd.Process.Kill() //nolint:errcheck // it has most likely ended
	cmd.Wait()         //nolint:errcheck // the test fails
	t.Fatalf("%s ended before it said where it listens: %v", cmd, cmd.Stderr)
	return ""
}

// Address is HOST:PORT of this machine for a server that the test starts and that cannot listen on port 0.
func Address(t testing.TB) string {
	t.Helper()
	address, release, err := freeport.Address()
	must.Do(t, err)
	t.Cleanup(release)
	return address
}
