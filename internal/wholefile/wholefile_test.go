package wholefile

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestWriteReplacesAFileWithItsPermissions(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	must.Do(t, os.WriteFile(path, []byte("earlier"), 0o666))
	must.Do(t, Write(path, []byte("later"), 0o600))
	data, err := os.ReadFile(path)
	must.Expect(t, err == nil && string(data) == "later", "%q, %v", data, err)
	info, err := os.Stat(path)
	must.Expect(t, err == nil && info.Mode().Perm() == 0o600, "%v, %v", info.Mode(), err)
}

func TestWriteReplacesALinkAndNotWhatItLeadsTo(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	must.Do(t, os.WriteFile(target, []byte("target"), 0o600))
	if err := os.Symlink(target, link); err != nil {
		t.Skip("links cannot be made here: ", err)
	}
	must.Do(t, Write(link, []byte("new"), 0o600))
	data, err := os.ReadFile(target)
	must.Expect(t, err == nil && string(data) == "target", "%q, %v", data, err)
}

func TestAWriteThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	must.Do(t, os.Mkdir(path, 0o700)) // which no file replaces
	must.Say(t, Write(path, []byte("data"), 0o600), "")
	entries, err := os.ReadDir(dir)
	must.Expect(t, err == nil && len(entries) == 1, "%v, %v", entries, err)
}

func TestALockIsOnesAlone(t *testing.T) {
	dir := t.TempDir()
	unlock := Lock(dir)
	second := make(chan struct{})
	go func() {
		Lock(dir)()
		close(second)
	}()
	select {
	case <-second:
		must.Expect(t, runtime.GOOS != "linux", "two have the lock")
	case <-time.After(50 * time.Millisecond):
	}
	unlock()
	<-second
}
