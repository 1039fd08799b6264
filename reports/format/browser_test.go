package format

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/bridgecheck/bridgecheck/internal/chrome"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

// settled is shown once that is what is wanted, or after two seconds: the page follows its address a moment later.
func settled(b *chrome.Tab, want string) string {
	got := shown(b)
	for end := time.Now().Add(2 * time.Second); got != want && time.Now().Before(end); got = shown(b) {
		time.Sleep(10 * time.Millisecond)
	}
	return got
}

// shown lists the clauses that the filters leave.
func shown(b *chrome.Tab) string {
	return chrome.Eval[string](b, `[...document.querySelectorAll('details.result')].filter(d => !d.hidden).map(d => d.id).join(' ')`)
}

// pageFile writes a report's page and gives its address.
func pageFile(t *testing.T, r, previous *reports.Report) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if previous != nil {
		r.Since = reports.Compare(previous, r)
	}
	must.Do(t, os.WriteFile(path, sample.Written(t, func(b *bytes.Buffer) error { return escaped(writeHTML)(b, r) }), 0o600))
	return "file://" + path
}

func TestPage(t *testing.T) {
	window := chrome.Start(t)
	address := pageFile(t, sample.Every(), nil)

	t.Run("filters narrow the list and stay in the address", func(t *testing.T) {
		b := chrome.Open(t, window, address, 1280, 900)
		b.Run(chromedp.Click(`label:has([value=fail])`))
		b.Until(`location.hash === '#verdict=fail'`)
		got := settled(b, "mapping/no-params-object describe/reflects-safely")
		must.Expect(t, got == "mapping/no-params-object describe/reflects-safely", "the verdict filter leaves %s", got)
		b.Run(chromedp.SetValue(`select[name=area]`, "describe"), chromedp.Evaluate[chromedp.Void](`document.querySelector('select[name=area]').dispatchEvent(new Event('input', {bubbles: true}))`))
		b.Until(`location.hash === '#verdict=fail&area=describe'`)
		b.Run(chromedp.Reload())
		must.Equal(t, settled(b, "describe/reflects-safely"), "describe/reflects-safely", "what the reloaded address shows")
		must.Equal(t, chrome.Eval[string](b, `document.getElementById('shown').textContent`), "1 of 11 clauses", "the count")
		b.Run(chromedp.Click(`button[type=reset]`))
		b.Until(`location.hash === '' && ![...document.querySelectorAll('details.result')].some(d => d.hidden)`)
		b.Run(chromedp.SendKeys(`input[name=q]`, "the mock drupal STOPPED"))
		must.Equal(t, settled(b, "invoke/answers-result"), "invoke/answers-result", "what the text filter leaves")
		b.Run(chromedp.SendKeys(`input[name=q]`, "!"))
		b.Until(`!document.getElementById('none').hidden`)
		b.Run(chromedp.Click(`button[type=reset]`))
		b.Until(`location.hash === '' && document.getElementById('none').hidden`)
		b.Run(chromedp.Click(`a[href="#level=SHOULD&area=invoke"]`))
		b.Until(`location.hash === '#level=SHOULD&area=invoke'`)
		must.Equal(t, settled(b, "invoke/null-result"), "invoke/null-result", "where a cell of the picture leads")
	})

	t.Run("a deep link opens its clause with both sides", func(t *testing.T) {
		b := chrome.Open(t, window, address+"#describe/reflects-safely", 1280, 900)
		const clause = `document.getElementById('describe/reflects-safely')`
		b.Until(clause + `.open && ` + clause + `.querySelectorAll('.exchange').length === 4`)
		shown := chrome.Eval[string](b, clause+`.querySelector('.exchanges').textContent`)
		for _, want := range []string{"agent → bridge", "bridge → site as agent", `"id": 9007199254740993`, "the method ran", "connection reset", "not text, shown as base64", "nothing reached the site"} {
			must.Expect(t, strings.Contains(shown, want), "the exchanges lack %q:\n%s", want, shown)
		}
		top := chrome.Eval[float64](b, clause+`.getBoundingClientRect().top`)
		must.Expect(t, top >= -1 && top <= 400, "the clause is at %v, out of sight", top)
		b.Picture("exchanges-1280")

		b.Run(chromedp.Navigate(address+"#verdict=fail&open=describe/reflects-safely"), chromedp.Reload())
		b.Until(clause + `.open`)
		got := settled(b, "mapping/no-params-object describe/reflects-safely")
		must.Expect(t, got == "mapping/no-params-object describe/reflects-safely", "a deep link with a filter shows %s", got)
	})

	t.Run("the curl line is copied", func(t *testing.T) {
		b := chrome.Open(t, window, address, 1280, 900)
		for _, permission := range []string{"clipboard-read", "clipboard-write"} {
			must.Get(chromedp.CallBrowser(b.Context(), browser.SetPermission, browser.SetPermissionParams{
				Permission: &browser.PermissionDescriptor{Name: permission}, Setting: browser.PermissionSettingGranted,
			}))(t)
		}
		b.Run(chromedp.Click(`.first .copy`))
		b.Until(`document.querySelector('.first .copy').textContent === 'Copied'`)
		got := chrome.Take(b, chromedp.Evaluate[string](`navigator.clipboard.readText()`, chromedp.EvalAwaitPromise))
		all := sample.Every().Escaped().Results
		must.Expect(t, slices.ContainsFunc(all, func(r reports.Result) bool { return r.Curl != "" && r.Curl == got }),
			"the clipboard has %q, which is the curl line of no clause", got)
		must.Equal(t, chrome.Eval[string](b, `document.getElementById('announce').textContent`), "Copied", "what a screen reader gets")
	})

	t.Run("keys search, move and open", func(t *testing.T) {
		b := chrome.Open(t, window, address, 1280, 900)
		b.Run(chromedp.KeyEvent("/"))
		b.Until(`document.activeElement.name === 'q'`)
		b.Run(chromedp.KeyEvent("describe"), chromedp.KeyEvent(kb.Enter))
		b.Until(`document.activeElement.parentElement.id === 'describe/reflects-safely'`)
		b.Run(chromedp.KeyEvent("j"), chromedp.KeyEvent("k"), chromedp.KeyEvent(kb.Enter))
		b.Until(`document.getElementById('describe/reflects-safely').open`)
		b.Until(`location.hash === '#q=describe&open=describe/reflects-safely'`)
	})

	t.Run("Tab reaches every kind of control", func(t *testing.T) {
		b := chrome.Open(t, window, address, 1280, 900)
		reached := map[string]bool{}
		for range 60 {
			b.Run(chromedp.KeyEvent(kb.Tab))
			reached[chrome.Eval[string](b, `document.activeElement.matches('a') ? 'link' : document.activeElement.matches('summary') ? 'clause' : document.activeElement.type || document.activeElement.tagName`)] = true
		}
		for _, want := range []string{"link", "clause", "checkbox", "select-one", "search", "button"} {
			must.Expect(t, reached[want], "Tab never reaches a %s: %v", want, reached)
		}
	})

	t.Run("a hostile bridge's text is shown and harms nothing", func(t *testing.T) {
		b := chrome.Open(t, window, address+"#describe/reflects-safely", 360, 740)
		b.Until(`document.querySelectorAll('.exchange').length === 4`)
		b.Run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll('details').forEach(d => d.open = true)`))
		must.Expect(t, !chrome.Eval[bool](b, `'pwned' in window || document.querySelectorAll('img, script:not([type])').length !== 1`),
			"the bridge's markup became part of the page")
		text := chrome.Eval[string](b, `document.getElementById('describe/reflects-safely').innerText`)
		for _, want := range []string{`<script>window.pwned=1</script></script><img src=x onerror=pwned=1>`, `\u202egnp.exe`, `more bytes)`} {
			n := strings.Count(text, want)
			must.Expect(t, n >= 1, "the clause does not show %q", want)
		}
		must.Expect(t, !strings.ContainsAny(text, "\u202e\x00\x1b"), "a character that acts on the text stands there as it is")
		width := chrome.Eval[int](b, `document.documentElement.scrollWidth`)
		must.Expect(t, width <= 360, "at 360 px the page is %d px wide", width)
	})

	t.Run("every control has a name for a screen reader", func(t *testing.T) {
		b := chrome.Open(t, window, address+"#describe/reflects-safely", 1280, 900)
		b.Until(`document.querySelectorAll('.exchange').length === 4`)
		tree := must.Get(chromedp.Call(b.Context(), accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}))(t)
		named := 0
		for _, n := range tree.Nodes {
			if n.Ignored || n.Role == nil {
				continue
			}
			switch role := strings.Trim(string(n.Role.Value), `"`); role {
			case "link", "button", "checkbox", "combobox", "searchbox", "DisclosureTriangle":
				named++
				must.Expect(t, n.Name != nil && len(strings.Trim(string(n.Name.Value), `" `)) > 0, "a %s has no name", role)
			}
		}
		must.Expect(t, named >= 40, "only %d controls were found", named)
	})

	for _, size := range []struct{ width, height int64 }{{1280, 900}, {360, 740}} {
		t.Run(fmt.Sprintf("the first fault is found without scrolling twice at %d px", size.width), func(t *testing.T) {
			b := chrome.Open(t, window, pageFile(t, sample.Every(), sample.Kept()), size.width, size.height)
			bottom := chrome.Eval[float64](b, `document.querySelector('.first .curl').getBoundingClientRect().bottom`)
			must.Expect(t, bottom <= float64(2*size.height), "the curl line ends at %v px, below two screens of %d", bottom, size.height)
			width := chrome.Eval[int64](b, `document.documentElement.scrollWidth`)
			must.Expect(t, width <= size.width, "the page is %d px wide", width)
			b.Picture(fmt.Sprintf("report-%d", size.width))
		})
	}

	t.Run("what needs attention is open on paper", func(t *testing.T) {
		b := chrome.Open(t, window, address, 1280, 900)
		paper := chrome.Take(b, chromedp.PrintToPDF(chromedp.PDFPrintBackground()))
		closed := chrome.Eval[string](b, `[...document.querySelectorAll('details.result[data-attention]')].filter(d => !d.open).map(d => d.id).join(' ')`)
		must.Expect(t, closed == "", "on paper these are closed: %s", closed)
		must.Do(t, os.WriteFile(filepath.Join(t.ArtifactDir(), "report.pdf"), paper, 0o644))
	})
}

func TestClausePage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clauses.html")
	data := sample.Written(t, func(b *bytes.Buffer) error {
		return WriteClauses(b, "2026-11-21", "# The contract\n\n| a | b |\n|---|---|\n| `c` | [d](#clauses) |\n\n```http request\nGET / HTTP/1.1\n```\n", []ClauseDoc{
			{ID: "list/answers-json", Level: reports.MUST, Area: "list", Text: "`tools` is an array.", Source: "plan2", Right: `{"tools": []}`, Wrong: sample.Hostile, Mutants: []string{"tools-null"}},
			{ID: "mcp/origin", Level: reports.MUST, Area: "mcp", Capability: "mcp", Text: "A foreign Origin: 403.", Source: "mcp"},
			{ID: "list/cursor-empty", Level: reports.SHOULD, Area: "list", Text: "`cursor=` means the first page.", Source: "seen", Unchecked: true},
		})
	})
	must.Do(t, os.WriteFile(path, data, 0o600))
	b := chrome.Open(t, chrome.Start(t), "file://"+path+"#area=list&open=list/answers-json", 1280, 900)
	b.Until(`document.getElementById('list/answers-json').open`)
	must.Equal(t, settled(b, "list/answers-json list/cursor-empty"), "list/answers-json list/cursor-empty", "what the filter shows")
	b.Picture("clauses-1280")
}

func TestLargePageOpens(t *testing.T) {
	window := chrome.Start(t)
	r := sample.Every()
	evidence := r.Results[4].Evidence
	for i := range 500 {
		r.Results = append(r.Results, reports.Result{ID: fmt.Sprintf("load/case-%d", i), Area: "load", Level: reports.MUST, Verdict: reports.Fail, Message: "wrong",
			Expected: `{"a":1}`, Actual: `{"a":2}`, DurationMS: float64(i), Evidence: evidence, Curl: "curl x"})
	}
	address := pageFile(t, r, nil)
	// The machine may be busy with other tests: the best of three counts.
	best := time.Hour
	for range 3 {
		b := chrome.Open(t, window, address, 1280, 900)
		took := time.Duration(chrome.Eval[float64](b, `(() => {
			const loaded = performance.getEntriesByType('navigation')[0].loadEventEnd, before = performance.now();
			const d = document.getElementById('load/case-499');
			d.open = true;
			d.scrollIntoView();
			d.getBoundingClientRect();
			return loaded + performance.now() - before;
		})()`) * float64(time.Millisecond))
		best = min(best, took)
	}
	t.Logf("511 results opened in %v", best.Round(time.Millisecond))
	must.Expect(t, best <= 20*time.Second, "511 results take %v to open", best)
}

// contrasts gives, for each text on the page that stands out less than WCAG's level AA asks, what it is and by how much.
const contrasts = `(() => {
	const canvas = document.createElement('canvas');
	canvas.width = canvas.height = 1;
	const pen = canvas.getContext('2d', {willReadFrequently: true});
	const paint = colours => {
		pen.clearRect(0, 0, 1, 1);
		for (const c of colours) { pen.fillStyle = c; pen.fillRect(0, 0, 1, 1); }
		return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
	};
	const luminance = rgb => rgb.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
	const weak = [];
	for (const e of document.querySelectorAll('body *')) {
		const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
		if (!own || !e.checkVisibility() || e.closest('.hidden, .skip')) continue;
		const behind = [];
		for (let at = e; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
		const style = getComputedStyle(e), ground = ['Canvas', ...behind];
		const [a, b] = [luminance(paint(ground)), luminance(paint([...ground, style.color]))];
		const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05), size = parseFloat(style.fontSize);
		const needed = size >= 24 || size >= 18.66 && style.fontWeight >= 700 ? 3 : 4.5;
		if (ratio < needed) weak.push(e.tagName + '.' + e.className + ' ' + e.textContent.trim().slice(0, 30) + ' ' + ratio.toFixed(2));
	}
	return [...new Set(weak)];
})()`

func TestTextStandsOutInLightAndDark(t *testing.T) {
	dir := t.TempDir()
	pages := map[string][]byte{
		"clauses.html": sample.Written(t, func(b *bytes.Buffer) error {
			return WriteClauses(b, "2026-11-21", "# The contract\n\n| a | b |\n|---|---|\n| `c` | [d](#clauses) |\n\n```http request\nGET / HTTP/1.1\n```\n", []ClauseDoc{{ID: "list/answers-json", Level: reports.MUST, Area: "list", Text: "`tools` is an array.", Source: "s", Why: "w", Right: "r", Wrong: "x", Remedy: "PHP: `a`\nGo: b"}})
		}),
		"index.html": sample.Written(t, func(b *bytes.Buffer) error {
			return WriteIndex(b, []Run{{ID: "a", Path: "a/report.json", Report: sample.Every()}, {ID: "b", Path: "b/report.json", Report: sample.Kept()}}, []Run{{Path: "c.json", Err: errors.New("the JSON ends early")}})
		}),
		"table.html": sample.Written(t, func(b *bytes.Buffer) error {
			return Tabulate([]*reports.Report{sample.Kept(), sample.Every()}).WriteHTML(b)
		}),
	}
	for name, data := range pages {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	window := chrome.Start(t)
	for name, address := range map[string]string{
		"report": pageFile(t, sample.Every(), sample.Kept()), "clauses": "file://" + dir + "/clauses.html", "table": "file://" + dir + "/table.html", "index": "file://" + dir + "/index.html",
	} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(name+" "+scheme, func(t *testing.T) {
				b := chrome.Open(t, window, address, 1280, 900)
				b.Run(chromedp.EmulateViewport(1280, 900))
				b.Prefer(scheme)
				b.Run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll('details').forEach(d => d.open = true)`))
				for _, weak := range chrome.Eval[[]string](b, contrasts) {
					t.Errorf("too little contrast: %s", weak)
				}
				b.Picture(name + "-" + scheme)
				b.Accessible()
			})
		}
	}
}
