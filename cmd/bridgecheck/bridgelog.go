package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
)

const logName = "bridge.log"

const (
	maxLog    = 8 << 20  // bytes of bridge.log
	tailBytes = 64 << 10 // bytes at its end that a failure to start looks at
	tailLines = 10       // lines of them that it shows
)

// bridgeLog is the file that holds what a bridge of --exec prints, without the secrets that the run knows. When it is
// full the older half is dropped. It is safe for use by many processes.
type bridgeLog struct {
	path    string // where a reader finds it
	secrets *redact.Redactor
	limit   int64 // in bytes

	mu      sync.Mutex
	file    *os.File
	size    int64 // of the file, in bytes
	note    int64 // bytes of the line at its beginning that says what was dropped
	dropped int64 // bytes
	lost    int64 // bytes that could not be written
	broken  error // why; nil: all were
}

// createLog makes an empty log in place of that of an earlier run.
func createLog(dir string, secrets *redact.Redactor) (*bridgeLog, error) {
	path := filepath.Join(dir, logName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, unwritable(dir, err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, unwritable(dir, err)
	}
	return &bridgeLog{path: path, secrets: secrets, limit: maxLog, file: file}, nil
}

// openLog is the log of all bridges that the plan starts.
func (p *plan) openLog(o engine.Options) (*bridgeLog, error) {
	if p.log != nil {
		return p.log, nil
	}
	if p.aside == nil {
		var err error
		p.log, err = createLog(p.reportDir, o.Redactor())
		return p.log, err
	}
	p.log = asideLog(p.reportDir, o.Redactor())
	p.aside(p.log)
	return p.log, nil
}

// asideLog is the log of a worker until it is a part of that in dir: a temporary file without a name, so that a run that is killed
// leaves none. Where none can be made it is incomplete.
func asideLog(dir string, secrets *redact.Redactor) *bridgeLog {
	l := &bridgeLog{path: filepath.Join(dir, logName), secrets: secrets, limit: maxLog}
	if l.file, l.broken = os.CreateTemp("", "bridgecheck-log-*"); l.broken == nil {
		_ = os.Remove(l.file.Name()) // not while it is open, on Windows
	}
	return l
}

// copyTo writes what the log holds to another, and hands on what it lacks.
func (l *bridgeLog) copyTo(all *bridgeLog) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.Copy(all, io.NewSectionReader(l.file, 0, l.size))
	all.mu.Lock()
	defer all.mu.Unlock()
	all.lost += l.lost
	all.broken = cmp.Or(all.broken, l.broken, err)
}

// closeLog closes that log, if there is one.
func (p *plan) closeLog() {
	if p.log == nil {
		return
	}
	if lacks := p.log.incomplete(); lacks != "" {
		fmt.Fprintf(p.warnings, "bridgecheck: %s\n", terminal.Escape(lacks))
	}
	p.log.Close()
}

// writer is for the output of one process. Close writes what is left of its last line.
func (l *bridgeLog) writer() io.WriteCloser { return l.secrets.Writer(l) }

// Write appends p, after the older half is dropped where it would not fit. It takes all of it whatever becomes of the file: a
// bridge whose output nobody reads ends.
func (l *bridgeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.append(p); err != nil {
		l.lost += int64(len(p))
		l.broken = cmp.Or(l.broken, err)
	}
	return len(p), nil
}

func (l *bridgeLog) append(p []byte) error {
	if l.size+int64(len(p)) > l.limit {
		if err := l.dropOlder(); err != nil {
			return err
		}
	}
	if room := l.limit - l.size; int64(len(p)) > room { // one write larger than half of the log
		p = p[int64(len(p))-room:]
	}
	n, err := l.file.WriteAt(p, l.size)
	l.size += int64(n)
	return err
}

// incomplete says what the file lacks; "": nothing.
func (l *bridgeLog) incomplete() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		return ""
	}
	return fmt.Sprintf("%s lacks %d bytes that the bridge wrote: %s", l.path, l.lost, reason(l.broken))
}

// dropOlder keeps the newer half, from the beginning of a line, below a line that says how much is missing.
func (l *bridgeLog) dropOlder() error {
	kept, err := l.end(min(l.limit/2, l.size-l.note))
	if err != nil {
		return err
	}
	if _, rest, ok := bytes.Cut(kept, []byte("\n")); ok {
		kept = rest
	}
	l.dropped += l.size - l.note - int64(len(kept))
	note := fmt.Sprintf("[bridgecheck dropped %d bytes here]\n", l.dropped)
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("shorten the log of the bridge: %w", err)
	}
	l.note, l.size = int64(len(note)), int64(len(note)+len(kept))
	if _, err := l.file.WriteAt(append([]byte(note), kept...), 0); err != nil {
		return fmt.Errorf("shorten the log of the bridge: %w", err)
	}
	return nil
}

// end reads at most so many bytes from the end.
func (l *bridgeLog) end(most int64) ([]byte, error) {
	data := make([]byte, min(l.size, most))
	if _, err := l.file.ReadAt(data, l.size-int64(len(data))); err != nil && len(data) > 0 {
		return nil, fmt.Errorf("read the log of the bridge: %w", err)
	}
	return data, nil
}

// text is all that is in the file; "" where it cannot be read.
func (l *bridgeLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	data, _ := l.end(l.size)
	return string(data)
}

// workerMark begins the line before what the bridges of a worker printed.
const workerMark = "[bridgecheck: the bridges of worker "

// tail shows the last lines, for a message about a bridge that failed. Of a stack trace it shows the error.
func (l *bridgeLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	data, err := l.end(tailBytes)
	lines := slices.DeleteFunc(terminal.Tail(string(data), tailLines), func(line string) bool { return strings.HasPrefix(line, workerMark) })
	if err != nil || len(lines) == 0 {
		return "; it wrote nothing to its log"
	}
	return fmt.Sprintf("; the end of %s:\n  %s", l.path, strings.Join(lines, "\n  "))
}

// lastLines is the last lines as a part of a sentence.
func (l *bridgeLog) lastLines() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	data, err := l.end(tailBytes)
	lines := terminal.Tail(string(data), 3)
	if err != nil || len(lines) == 0 {
		return "it wrote nothing to " + logName
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return "the last lines of " + logName + ": " + strings.Join(lines, " / ")
}

// Close closes the file. What is written afterwards is lost.
func (l *bridgeLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
