package observe

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// Audit is a log of who ran which tool, when and with what outcome, as JSON lines. It never holds arguments, results or
// credentials. The nil Audit writes nothing. It is safe for use by many at once.
type Audit struct {
	now    func() time.Time
	failed *slog.Logger // receives that a line could not be written

	mu  sync.Mutex
	out io.WriteCloser
}

// line is one call.
type line struct {
	Time      time.Time `json:"time"` // when the call ended, in UTC
	RequestID string    `json:"request_id,omitempty"`
	User      string    `json:"user"`    // the account's name, or the token's subject; "" where the credential names none
	Caller    string    `json:"caller"`  // short digest of the credential and the language, as in the log
	Address   string    `json:"address"` // of the client; "" on stdio
	Tool      string    `json:"tool"`    // as the caller named it, cut to 128 bytes
	Outcome   string    `json:"outcome"` // ok, or the error's code
	Status    int       `json:"status"`  // HTTP status of the outcome
	Millis    float64   `json:"ms"`
}

// OpenAudit opens a file to append to, or gives nil for "". now is the clock of the lines.
func OpenAudit(path string, now func() time.Time, failed *slog.Logger) (*Audit, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit_log: %w", err)
	}
	return &Audit{now: now, failed: failed, out: file}, nil
}

// Close closes the file.
func (l *Audit) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.Close() //nolint:errcheck // every line is written already
}

// Record writes a call that ended: err is nil for a call that succeeded.
func (l *Audit) Record(who caller.Caller, tool string, took time.Duration, err error) {
	if l == nil {
		return
	}
	entry := line{
		Time: l.now().UTC(), RequestID: who.Trace.RequestID, User: who.User(), Caller: who.String(), Tool: fault.Brief(tool),
		Outcome: "ok", Status: 200, Millis: float64(took.Microseconds()) / 1000,
	}
	if who.Address.IsValid() {
		entry.Address = who.Address.String()
	}
	if err != nil {
		f := fault.From(err)
		entry.Outcome, entry.Status = string(f.Code), f.Status()
	}
	text, _ := json.Marshal(entry) // it holds nothing that cannot be encoded
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.out.Write(append(text, '\n')); err != nil {
		l.failed.Error("the audit log cannot be written", "error", err)
	}
}
