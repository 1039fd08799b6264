package format

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
)

//go:embed html
var assets embed.FS

// asset returns an embedded file; its absence is a mistake of the build.
func asset(name string) string {
	data, err := assets.ReadFile("html/" + name)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// document is what every page of ours needs: our own style and script, allowed by their hashes and nothing else.
type document struct {
	Title  string
	Style  template.CSS
	Script template.JS
	Policy string
}

func newDocument(title string) document {
	style, script := asset("page.css"), asset("page.js")
	return document{
		Title: title, Style: template.CSS(style), Script: template.JS(script),
		Policy: fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; img-src data:; base-uri 'none'; form-action 'none'", contentHash(style), contentHash(script)),
	}
}

func contentHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// reportView is report.html as its template sees it.
type reportView struct {
	document
	*reports.Report
	State    reports.State
	Reasons  string
	Counts   []verdictCount
	First    *resultView     // the fault to begin with; nil: none
	Cause    string          // the gravest cause; "": it does not explain two failures
	Steps    [][]segment     // how to fix the first fault
	Shared   []reports.Group // the causes of several clauses
	Table    []areaRow
	Filters  filterOptions
	Views    []resultView
	Slowest  []timing
	Settings []setting
	SiteSeen bool // something was seen of what reached the site behind the bridge
}

type verdictCount struct {
	Verdict reports.Verdict
	Word    string
	N       int
	X       float64 // where its bar begins, in percent of the whole
	Share   float64 // percent of the whole
}

// areaRow is one area of the picture areas × levels.
type areaRow struct {
	Area  string
	Cells []areaCell
}

type areaCell struct {
	Area   string
	Level  reports.Level // empty: all
	Counts []verdictCount
	Kept   int
	Apply  int
	Total  int
}

type filterOptions struct {
	Areas, Capabilities []string
	Levels              []reports.Level
}

type resultView struct {
	reports.Result
	Word      string
	Subject   string // the message without what Want and Got show
	Want, Got []segment
	Steps     [][]segment // the remedy, a line a step; none where there is nothing to fix
	Attention bool        // it needs a reader's action
}

type timing struct {
	ID    string
	MS    float64
	Share float64 // percent of the slowest
}

type setting struct{ Name, Value string }

// slowestShown is how many clauses the timings chart has.
const slowestShown = 15

var pages = template.Must(template.New("report.gohtml").Funcs(template.FuncMap{
	"visible": terminal.Escape,
	"prose":   prose,
	"steps":   steps,
	"word":    func(v reports.Verdict) string { return words[v] },
	"ms":      func(ms float64) string { return fmt.Sprintf("%.1f ms", ms) },
	"slug":    func(s reports.State) string { return strings.ReplaceAll(string(s.Kind()), " ", "-") },
	"name":    reports.Target.Title,
	"tone": func(s reports.State) reports.Verdict {
		return map[reports.State]reports.Verdict{reports.Conformant: reports.Pass, reports.Partial: reports.Warn, reports.NotConformant: reports.Fail}[s.Kind()]
	},
}).ParseFS(assets, "html/*.gohtml"))

// writeHTML writes r as one self-contained page. It shows at most 16 KiB of a value or body; report.json has more.
func writeHTML(w io.Writer, r *reports.Report) error {
	r = r.Excerpt()
	r.Summarize()
	p := reportView{
		document: newDocument("bridgecheck: " + r.Target.Title()),
		Report:   r, State: r.State(),
		Reasons: strings.TrimPrefix(r.Headline(), string(r.State())+": "),
		Counts:  countsOf(r.Results), Table: areaTable(r), Filters: filtersOf(r),
		Views: viewsOf(r), Slowest: slowest(r.Results),
	}
	if first, ok := r.First(); ok {
		p.First = &p.Views[slices.IndexFunc(p.Views, func(v resultView) bool { return v.ID == first.ID })]
	}
	if p.First != nil {
		p.Steps = p.First.Steps
	}
	if cause, ok := r.FirstCause(); ok {
		p.Cause, p.Steps = cause.Explains(r), steps(cause.Remedy)
	}
	p.Shared = slices.DeleteFunc(r.Groups(), func(g reports.Group) bool { return len(g.Clauses) < 2 })
	for _, result := range r.Results {
		p.SiteSeen = p.SiteSeen || slices.ContainsFunc(result.Evidence, func(e reports.Exchange) bool { return len(e.Drupal) > 0 })
	}
	for name, value := range r.Settings {
		p.Settings = append(p.Settings, setting{name, fmt.Sprint(value)})
	}
	slices.SortFunc(p.Settings, func(a, b setting) int { return cmp.Compare(a.Name, b.Name) })
	return pages.ExecuteTemplate(w, "report.gohtml", p)
}

// countsOf counts verdicts and lays them side by side as parts of a bar of 100.
func countsOf(results []reports.Result) []verdictCount {
	var counts []verdictCount
	s := (&reports.Report{Results: results}).Counted()
	x := 0.0
	for _, v := range []reports.Verdict{reports.Fail, reports.Error, reports.Fixed, reports.Warn, reports.Known, reports.NotTestable, reports.NotApplicable, reports.Pass} {
		if n := s.Count(v); n > 0 {
			share := 100 * float64(n) / float64(s.Total)
			counts = append(counts, verdictCount{v, words[v], n, x, share})
			x += share
		}
	}
	return counts
}

func areaTable(r *reports.Report) []areaRow {
	var rows []areaRow
	for _, area := range r.Areas() {
		row := areaRow{Area: area}
		for _, level := range r.Levels() {
			row.Cells = append(row.Cells, cellOf(r, area, level))
		}
		rows = append(rows, row)
	}
	return rows
}

// cellOf counts the clauses of an area, those of one level unless that is empty.
func cellOf(r *reports.Report, area string, level reports.Level) areaCell {
	var some []reports.Result
	for _, result := range r.Results {
		if result.Area == area && (level == "" || result.Level == level) {
			some = append(some, result)
		}
	}
	s := (&reports.Report{Results: some}).Counted()
	return areaCell{area, level, countsOf(some), s.Pass, s.Total - s.NotApplicable, s.Total}
}

// prose splits a sentence of the contract at its backquotes: what is between two of them is code.
func prose(s string) []segment {
	var segments []segment
	for i, part := range strings.Split(s, "`") {
		segments = append(segments, segment{part, i%2 == 1})
	}
	return segments
}

// steps splits a remedy at its line ends.
func steps(remedy string) [][]segment {
	var all [][]segment
	for line := range strings.Lines(remedy) {
		all = append(all, prose(strings.TrimSpace(line)))
	}
	return all
}

func filtersOf(r *reports.Report) filterOptions {
	f := filterOptions{Areas: r.Areas(), Levels: r.Levels()}
	for _, result := range r.Results {
		if result.Capability != "" && !slices.Contains(f.Capabilities, result.Capability) {
			f.Capabilities = append(f.Capabilities, result.Capability)
		}
	}
	slices.Sort(f.Capabilities)
	return f
}

// viewsOf prepares the results of r, a copy that it may change. What needs attention comes first, binding clauses before
// others, else in the contract's order.
func viewsOf(r *reports.Report) []resultView {
	var views []resultView
	for _, result := range r.Results {
		v := resultView{Result: result, Word: words[result.Verdict], Subject: result.Subject()}
		if result.Verdict != reports.Pass && result.Verdict != reports.NotApplicable {
			v.Steps = steps(result.Remedy)
		}
		v.Want, v.Got = diffValues(result.Expected, result.Actual)
		paramsAsText(v.Evidence)
		v.Attention = !slices.Contains([]reports.Verdict{reports.Pass, reports.NotApplicable, reports.Known}, result.Verdict)
		views = append(views, v)
	}
	levels := r.Levels()
	slices.SortStableFunc(views, func(a, b resultView) int {
		return cmp.Or(
			cmp.Compare(slices.Index(reports.Verdicts(), a.Verdict), slices.Index(reports.Verdicts(), b.Verdict)),
			cmp.Compare(slices.Index(levels, a.Level), slices.Index(levels, b.Level)))
	})
	return views
}

// paramsAsText turns the params of what reached the site into JSON strings: a browser would round their numbers.
func paramsAsText(evidence []reports.Exchange) {
	for _, e := range evidence {
		for i, up := range e.Drupal {
			if len(up.Params) > 0 {
				e.Drupal[i].Params, _ = json.Marshal(string(up.Params)) // a string always encodes
			}
		}
	}
}

func slowest(results []reports.Result) []timing {
	var timings []timing
	for _, r := range results {
		if r.DurationMS > 0 {
			timings = append(timings, timing{ID: r.ID, MS: r.DurationMS})
		}
	}
	slices.SortStableFunc(timings, func(a, b timing) int { return cmp.Compare(b.MS, a.MS) })
	timings = timings[:min(len(timings), slowestShown)]
	for i := range timings {
		timings[i].Share = 100 * timings[i].MS / timings[0].MS
	}
	return timings
}

// htmlVerdicts reads the verdicts back from the attributes of the clauses.
var htmlVerdicts = patternVerdicts(regexp.MustCompile(`<details class="result [a-z-]+" id="([^"]+)" data-verdict="([a-z-]+)"`))
