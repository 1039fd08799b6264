package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/bridgecheck/bridgecheck/suites/redact"
)

// bridgeLog is the file that takes what a bridge of --exec prints, without the secrets that the run was told.
type bridgeLog struct {
	path    string
	secrets *redact.Redactor
}

// clear takes away the log of an earlier run.
func (l bridgeLog) clear() error {
	if err := os.Remove(l.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return unwritable(filepath.Dir(l.path), err)
	}
	return nil
}

// open opens the log for one process more. Where there is no secret to take out the process writes to the file itself.
func (l bridgeLog) open() (io.WriteCloser, error) {
	file, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, unwritable(filepath.Dir(l.path), err)
	}
	if l.secrets.Empty() {
		return file, nil
	}
	return &redactedLog{l.secrets.Writer(file), file}, nil
}

type redactedLog struct {
	*redact.Writer
	file *os.File
}

// Close writes the rest of the last line and closes the file.
func (l *redactedLog) Close() error { return errors.Join(l.Writer.Close(), l.file.Close()) }
