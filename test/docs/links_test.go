package docs

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	code    = regexp.MustCompile("`[^`]*`")
	heading = regexp.MustCompile(`^#{1,6} +(.*)$`)
	markup  = regexp.MustCompile("[`*]|\\[([^]]*)\\]\\([^)]*\\)")
)

// A reference is a link of a page, without its anchor and the anchor alone.
type reference struct {
	line           int
	target, anchor string
}

// links returns the links of a page to other places of the repository, and the anchors of its headings as GitHub makes
// them. What is in code is neither.
func links(text string) (found []reference, anchors []string) {
	inside := false
	for i, line := range strings.Split(text, "\n") {
		if fence.MatchString(line) {
			inside = !inside
		}
		if inside {
			continue
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			base := anchor(m[1])
			name := base
			for n := 1; slices.Contains(anchors, name); n++ {
				name = fmt.Sprintf("%s-%d", base, n)
			}
			anchors = append(anchors, name)
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
			if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") {
				target, anchor, _ := strings.Cut(m[1], "#")
				found = append(found, reference{i + 1, target, anchor})
			}
		}
	}
	return found, anchors
}

// anchor returns the anchor of a heading: small letters, digits, - and _, with - for a blank.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, markup.ReplaceAllString(strings.TrimSpace(heading), "$1"))
}

// start is the page that leads to every page of docs, and these to what stands below them.
const start = "docs/README.md"

// TestLinks follows every relative link of README.md and docs to a file and a heading. Each page is linked from another, README.md
// leads to the start page, and that to every page of docs.
func TestLinks(t *testing.T) {
	all := pages(t)
	anchors := map[string][]string{}
	for page, text := range all {
		_, anchors[page] = links(text)
	}
	linked, fromStart, toStart := map[string]bool{"README.md": true}, map[string]bool{start: true}, false
	for page, text := range all {
		found, _ := links(text)
		for _, l := range found {
			target := page
			if l.target != "" {
				target = path.Join(path.Dir(page), l.target)
			}
			if _, err := os.Stat(filepath.Join(repository, target)); err != nil {
				t.Errorf("%s:%d: %s does not exist", page, l.line, target)
				continue
			}
			must.Expect(t, l.anchor == "" || slices.Contains(anchors[target], l.anchor),
				"%s:%d: %s has no heading #%s, but %s", page, l.line, target, l.anchor, strings.Join(anchors[target], " "))
			linked[target] = linked[target] || target != page
			fromStart[target] = fromStart[target] || page == start
			toStart = toStart || page == "README.md" && target == start
		}
	}
	for page := range all {
		must.Expect(t, linked[page], "%s: no other page links to it", page)
		must.Expect(t, path.Dir(page) != "docs" || fromStart[page], "%s does not lead to %s: add a link for those who need it", start, page)
	}
	must.Expect(t, toStart, "README.md does not lead to %s", start)
}
