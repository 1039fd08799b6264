package format

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/reports"
)

// badge is the endpoint format of shields.io, version 1.
type badge struct {
	SchemaVersion int    `json:"schemaVersion"`
	Label         string `json:"label"`
	Message       string `json:"message"`
	Color         string `json:"color"`
	IsError       bool   `json:"isError,omitempty"`
}

// badgeOf says conformant only for a conformant run; every other badge counts the clauses that pass, of those that were tested.
func badgeOf(r *reports.Report) badge {
	s := r.Counted()
	b := badge{SchemaVersion: 1, Label: strings.TrimSpace("MCP tools contract " + r.Ledger.Version), Message: string(r.State())}
	tested := s.Total - s.NotApplicable - s.NotTestable - s.Error
	switch r.State().Kind() {
	case reports.Conformant:
		b.Color = "#1a7f37"
	case reports.Partial:
		b.Color = "#9a6700"
	case reports.NotConformant:
		b.Color, b.IsError = "#cf222e", true
	}
	if r.State().Kind() != reports.Conformant {
		b.Message = fmt.Sprintf("%s (%d of %d)", b.Message, s.Pass, tested)
	}
	return b
}

// writeBadgeJSON writes r's badge for the endpoint badge of shields.io.
func writeBadgeJSON(w io.Writer, r *reports.Report) error {
	return json.NewEncoder(w).Encode(badgeOf(r))
}

// writeBadgeSVG writes r's badge as a picture that needs nothing from elsewhere.
func writeBadgeSVG(w io.Writer, r *reports.Report) error {
	b := badgeOf(r)
	left, right := badgeWidth(b.Label), badgeWidth(b.Message)
	return badgeSVG.Execute(w, map[string]any{
		"Label": b.Label, "Message": b.Message, "Color": b.Color,
		"Left": left, "Right": right, "Width": left + right,
		"LeftMid": left / 2, "RightMid": left + right/2,
	})
}

// badgeWidth is a box's width in pixels for text of 11 px in a font whose characters are 6.6 px wide on average.
func badgeWidth(s string) int { return utf8.RuneCountInString(s)*66/10 + 12 }

var badgeSVG = template.Must(template.New("badge").Parse(`<svg xmlns="http://www.w3.org/2000/svg" width="{{.Width}}" height="20" role="img" aria-label="{{.Label}}: {{.Message}}">
<title>{{.Label}}: {{.Message}}</title>
<clipPath id="r"><rect width="{{.Width}}" height="20" rx="4"/></clipPath>
<g clip-path="url(#r)"><rect width="{{.Left}}" height="20" fill="#3b424a"/><rect x="{{.Left}}" width="{{.Right}}" height="20" fill="{{.Color}}"/></g>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11">
<text x="{{.LeftMid}}" y="14">{{.Label}}</text><text x="{{.RightMid}}" y="14">{{.Message}}</text>
</g>
</svg>
`))
