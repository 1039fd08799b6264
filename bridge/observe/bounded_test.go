package observe

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// What whoever logs has left out, and what the logger leaves out, is one number.
func TestUnloggedIsOneNumber(t *testing.T) {
	var out bytes.Buffer
	log := Bounded(slog.New(slog.NewTextHandler(&out, nil)))
	for range 3 * lineBurst {
		log.Warn("refused", "unlogged", 1000)
	}
	lines := strings.Count(out.String(), "\n")
	must.Assert(t, lines < 2*lineBurst, "%d lines are logged", lines)
	out.Reset()
	time.Sleep(2 * time.Second / lineRate)
	log.Warn("refused", "unlogged", 7)
	if line := out.String(); strings.Count(line, "unlogged=") != 1 || len(line[strings.Index(line, "unlogged="):]) < len("unlogged=200007\n") {
		t.Error(line)
	}
}
