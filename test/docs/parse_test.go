package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

const repository = "../.."

// pages returns the documents by their path in the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := []string{filepath.Join(repository, "README.md")}
	for _, glob := range []string{"*.md", "*/*.md"} {
		below, err := filepath.Glob(filepath.Join(repository, "docs", glob))
		must.Assert(t, err == nil && len(below) > 0, "docs/%s matches no page: %v", glob, err)
		found = append(found, below...)
	}
	all := map[string]string{}
	for _, path := range found {
		text := must.Get(os.ReadFile(path))(t)
		all[strings.TrimPrefix(filepath.ToSlash(path), repository+"/")] = string(text)
	}
	return all
}

// A step is one command of an `sh` block, or one line of a `text` block, which is output of the block before it.
type step struct {
	page   string
	line   int // where it begins
	text   string
	output bool
}

func (s step) String() string { return fmt.Sprintf("%s:%d: %s", s.page, s.line, s.text) }

var (
	fence   = regexp.MustCompile("^ *```([a-z]*)")
	command = regexp.MustCompile(`^(\$ |(\./)?(bin/)?bridgecheck |make |curl |go (run|test) )`)
)

// steps returns the steps of a page in their order. Commands in blocks without a language, or marked as another shell's,
// are errors: nothing would run them.
func steps(page, text string) ([]step, error) {
	var all []step
	language, inside, open := "", false, false // open: the last command goes on in the next line
	for i, line := range strings.Split(text, "\n") {
		if m := fence.FindStringSubmatch(line); m != nil {
			if open {
				return nil, fmt.Errorf("%s:%d: the block ends within a command", page, i+1)
			}
			inside, language = !inside, m[1]
			continue
		}
		line = strings.TrimSpace(line)
		if !inside || line == "" {
			continue
		}
		switch language {
		case "sh":
			body, more := strings.CutSuffix(line, `\`)
			switch {
			case open:
				all[len(all)-1].text += " " + strings.TrimSpace(body)
			case strings.HasPrefix(line, "#"):
				continue
			default:
				all = append(all, step{page: page, line: i + 1, text: strings.TrimSpace(body)})
			}
			open = more
		case "text":
			all = append(all, step{page, i + 1, line, true})
		case "", "bash", "console", "shell", "shellsession":
			if command.MatchString(line) {
				return nil, fmt.Errorf("%s:%d: mark the block of %q as sh, so that its commands are run", page, i+1, line)
			}
		}
	}
	return all, nil
}

var promise = regexp.MustCompile(`\s#.*\bexit code ([0-9])\b`)

// promised returns the exit code that a command's comment promises, else 0.
func promised(text string) int {
	if m := promise.FindStringSubmatch(text); m != nil {
		return int(m[1][0] - '0')
	}
	return 0
}
