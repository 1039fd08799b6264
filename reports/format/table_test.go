package format

import (
	"bytes"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

func TestTableSetsBridgesSideBySide(t *testing.T) {
	table := Tabulate([]*reports.Report{sample.Kept(), sample.Every()})
	markdown := string(sample.Written(t, func(b *bytes.Buffer) error { return table.WriteMarkdown(b) }))
	for _, want := range []string{
		"| Example bridge 2.3 | conformant: 2 clauses kept | 2 | 0 | 0 | 2026-11-21 |\n",
		"| mapping/no-params-object | MUST | | ❌ fail |\n",
	} {
		must.Expect(t, strings.Contains(markdown, want), "the table lacks %q:\n%s", want, markdown)
	}
	must.Expect(t, !strings.Contains(markdown, "list/answers-json"), "a clause that all pass has a row")
	page := string(sample.Written(t, func(b *bytes.Buffer) error { return table.WriteHTML(b) }))
	must.Equal(t, strings.Count(page, `<th scope="row"`), 11, "rows of the page")
}
