package bridge

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// longestFile is the longest file of settings, secrets or certificates that is read, in bytes.
const longestFile = 1 << 20

// readRegular reads a regular file while the bridge serves. Opening a FIFO waits for a writer, perhaps forever: it is opened
// without waiting, and then refused, as devices and directories are.
func readRegular(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return readUpTo(file)
}

// readShort reads a file of settings or secrets, which a shell may give as a pipe.
func readShort(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readUpTo(file)
}

func readUpTo(file *os.File) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(file, longestFile+1))
	if err == nil && len(b) > longestFile {
		err = fmt.Errorf("%s is longer than %d bytes", file.Name(), longestFile)
	}
	return b, err
}

// exposed are the permissions that a file with secrets, or with the settings, must not give: reading and writing to others, and
// writing to the group. Orchestrators mount secrets readable by a group.
const exposed fs.FileMode = 0o026

// checkMode notes a warning about a file that others may read or write.
func (o *Options) checkMode(path string) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || runtime.GOOS == "windows" || info.Mode().Perm()&exposed == 0 {
		return
	}
	does := "may be read"
	if info.Mode().Perm()&0o022 != 0 {
		does = "may be changed"
	}
	o.warnings = append(o.warnings, fmt.Sprintf("%s %s by other users of this machine (mode %04o); run: chmod o-rwx,g-w %s",
		path, does, info.Mode().Perm(), quoted(path)))
}

// Warn logs what New warns of: files with secrets that others may read or change.
func (o Options) Warn(log *slog.Logger) {
	o.checkMode(o.TLSKey)
	for _, text := range slices.Compact(slices.Sorted(slices.Values(o.warnings))) { // a file may hold two secrets
		log.Warn(text)
	}
}

// quoted writes a path for a shell.
func quoted(path string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"
	if strings.Trim(path, plain) == "" && !strings.HasPrefix(path, "-") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
