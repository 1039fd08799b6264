package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/reports/format"
)

// dirMode is the mode of the report directory: only its owner may put files there.
const dirMode = 0o755

// prepare makes the report directory and checks that it can be written. The report of an earlier run stays: this one may
// not start. It says on stderr when it takes permissions away.
func prepare(dir string, stderr io.Writer) error {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		if to, dangles := os.Readlink(dir); dangles == nil {
			err = fmt.Errorf("it is a link to %s, which is not there", to)
		}
		return unwritable(dir, err)
	}
	if err := narrow(dir, stderr); err != nil {
		return unwritable(dir, err)
	}
	if temp := os.TempDir(); !isDir(temp) {
		return usagef("the directory for temporary files %s is not there: make it, or set TMPDIR to another", temp)
	}
	probe, err := os.CreateTemp(dir, ".bridgecheck-*")
	if err != nil {
		return unwritable(dir, err)
	}
	probe.Close()
	return os.Remove(probe.Name())
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// removeReport removes the report of an earlier run, so that nobody reads it as that of this run when this one ends early.
func removeReport(dir string) error {
	files := []string{engine.ShardFile}
	for _, form := range format.All() {
		files = append(files, form.File)
	}
	for _, file := range files {
		if file == "" {
			continue
		}
		if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return unwritable(dir, err)
		}
	}
	return nil
}

// narrow takes away the permission of others to put files into a directory that was there before. One with the sticky
// bit, such as /tmp, stays as it is: nobody can replace the files of another there.
func narrow(dir string, stderr io.Writer) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	mode := info.Mode()
	if runtime.GOOS == "windows" || mode&fs.ModeSticky != 0 || mode.Perm()&^dirMode == 0 {
		return nil
	}
	if err := os.Chmod(dir, mode&^0o777|mode.Perm()&dirMode); err != nil {
		fmt.Fprintf(stderr, "bridgecheck: warning: others can change the files in %s: %s\n", dir, reason(err))
		return nil
	}
	fmt.Fprintf(stderr, "bridgecheck: others can no longer change the files in %s\n", dir)
	return nil
}

func unwritable(dir string, err error) error {
	return usagef("the report directory %s cannot be written: %s; give another by --report-dir", dir, reason(err))
}
