package terminal

import (
	"fmt"
	"regexp"
	"strings"
)

// frame matches a line of a stack trace: Go, JavaScript, Java, .NET, PHP, Ruby, Python.
var frame = regexp.MustCompile(`^\s+at |^\s+from \S+:\d+:in |^#\d+ |^\s+\S+\.go:\d+|^goroutine \d+ |^created by |` +
	`^\s+\.\.\. \d+ more$|^\s+File ".*", line \d+|^[\w./-]+\.[^\s(]*(\(\*?[\w.\[\]]+\)[^\s(]*)?\(.*\)$`)

// tailLine bounds one line of a tail, in bytes.
const tailLine = 1000

// Tail returns the last lines of a program's log, escaped, at most so many. Each stack trace is one line that says how
// long it is, so that the error above it is among them.
func Tail(log string, most int) []string {
	var lines []string
	frames, blanks := 0, 0
	trace := func() {
		switch {
		case frames == 1:
			lines = append(lines, "  … 1 line of a stack trace")
		case frames > 1:
			lines = append(lines, fmt.Sprintf("  … %d lines of a stack trace", frames))
		}
		frames, blanks = 0, 0
	}
	for line := range strings.SplitSeq(strings.TrimSpace(strings.ReplaceAll(log, "\r\n", "\n")), "\n") {
		switch {
		case frame.MatchString(line):
			frames += 1 + blanks
			blanks = 0
		case frames > 0 && strings.TrimSpace(line) == "":
			blanks++ // between two goroutines
		default:
			trace()
			lines = append(lines, Clip(Escape(strings.TrimRight(line, " \t")), tailLine))
		}
	}
	trace()
	lines = lines[max(0, len(lines)-most):]
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines
}
