// Package wholefile writes files that appear whole or not at all, and reads files up to a bound.
package wholefile

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Read reads a file up to one byte more than most, so that its reader sees that it is too large; a device has no size.
func Read(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most+1))
}

// Write writes data beside path and moves it there, with the mode alone, less the umask. A file or a link at path is replaced,
// with its permissions. Where it fails, path is as it was.
func Write(path string, data []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(filepath.Join(filepath.Dir(path), ".bridgecheck-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
			err = &fs.PathError{Op: failed.Op, Path: path, Err: failed.Err} // nobody knows the other name
		}
		if removed := os.Remove(file.Name()); removed != nil {
			err = errors.Join(err, removed)
		}
		return err
	}
	return nil
}
