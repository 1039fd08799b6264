package docs

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// The start page leads to every page of docs, and these to what stands below them.
func TestStartPageLeadsToEveryPage(t *testing.T) {
	all := pages(t)
	const start = "docs/README.md"
	linked := map[string]bool{}
	for _, m := range regexp.MustCompile(`\]\(([\w./-]+)\)`).FindAllStringSubmatch(all[start], -1) {
		linked["docs/"+m[1]] = true
	}
	for page := range all {
		must.Expect(t, path.Dir(page) != "docs" || page == start || linked[page],
			"%s does not lead to %s: add a link for those who need it", start, page)
	}
	must.Expect(t, strings.Contains(all["README.md"], "](docs/README.md)"), "README.md does not lead to docs/README.md")
}
