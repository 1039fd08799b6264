package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/redact"
)

func TestTheLogKeepsItsNewestLinesWithinItsLimit(t *testing.T) {
	log := must.Get(createLog(t.TempDir(), &redact.Redactor{}))(t)
	defer log.Close()
	log.limit = 4 << 10
	written := 0
	for i := range 5000 {
		n := must.Get(fmt.Fprintf(log, "line %d\n", i))(t)
		written += n
		info, err := os.Stat(log.path)
		must.Assert(t, err == nil && info.Size() <= log.limit, "after line %d the file has %d bytes (%v), expected at most %d", i, info.Size(), err, log.limit)
	}
	data := must.Get(os.ReadFile(log.path))(t)
	note, kept, _ := strings.Cut(string(data), "\n")
	var dropped int
	_, err := fmt.Sscanf(note, "[bridgecheck dropped %d bytes here]", &dropped)
	must.Expect(t, err == nil && dropped+len(kept) == written, "%q, and %d bytes are kept of %d", note, len(kept), written)
	must.Expect(t, strings.HasSuffix(kept, "line 4998\nline 4999\n") && strings.HasPrefix(kept, "line "),
		"kept from %.20q to %q, expected whole lines and the newest", kept, kept[len(kept)-20:])
	if tail := log.tail(); !strings.HasSuffix(tail, "line 4999") || strings.Count(tail, "\n") != tailLines {
		t.Errorf("the tail is %q, expected the last %d lines", tail, tailLines)
	}
}

func TestTheLogTakesOneWriteLargerThanItself(t *testing.T) {
	log := must.Get(createLog(t.TempDir(), &redact.Redactor{}))(t)
	defer log.Close()
	log.limit = 1 << 10
	if n, err := log.Write([]byte(strings.Repeat("x", 5000) + "the end")); n != 5007 || err != nil {
		t.Fatalf("Write returned %d, %v", n, err)
	}
	data, err := os.ReadFile(log.path)
	must.Expect(t, err == nil && int64(len(data)) <= log.limit && strings.HasSuffix(string(data), "the end"),
		"%d bytes in the file (%v), ending in %q", len(data), err, data[max(0, len(data)-10):])
}

// A link that somebody put in the place of the log is not followed.
func TestTheLogReplacesALink(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	must.Do(t, os.WriteFile(victim, []byte("precious"), 0o600))
	if err := os.Symlink(victim, filepath.Join(dir, "bridge.log")); err != nil {
		t.Skipf("SKIPPED: no symbolic links here: %v", err)
	}
	log := must.Get(createLog(dir, &redact.Redactor{}))(t)
	defer log.Close()
	fmt.Fprintln(log, "output")
	data, err := os.ReadFile(victim)
	must.Expect(t, err == nil && string(data) == "precious", "the link's target holds %q (%v)", data, err)
}

// Each bundle of checks has a bridge of its own, and bridge.log has the output of all.
func TestTheBridgesOfARunShareTheLog(t *testing.T) {
	p := &plan{reportDir: t.TempDir()}
	defer p.closeLog()
	for _, said := range []string{"of the first\n", "of the second\n"} {
		log := must.Get(p.openLog(engine.Options{}))(t)
		w := log.writer()
		io.WriteString(w, said)
		w.Close()
	}
	kept, err := os.ReadFile(filepath.Join(p.reportDir, "bridge.log"))
	must.Expect(t, err == nil && string(kept) == "of the first\nof the second\n", "the log holds %q, %v", kept, err)
}

// A bridge whose output nobody takes ends by SIGPIPE: what cannot be written is taken all the same, and counted.
func TestALogThatCannotBeWrittenTakesEverything(t *testing.T) {
	log := must.Get(createLog(t.TempDir(), &redact.Redactor{}))(t)
	if n, err := log.Write([]byte("first\n")); n != 6 || err != nil || log.incomplete() != "" {
		t.Fatalf("%d, %v, %q", n, err, log.incomplete())
	}
	log.file.Close() // as a disk that is full
	n, err := log.Write([]byte("second\n"))
	must.Expect(t, n == 7 && err == nil, "%d, %v; want all of it taken", n, err)
	must.Has(t, log.incomplete(), "lacks 7 bytes that the bridge wrote", "what the log lacks")
}
