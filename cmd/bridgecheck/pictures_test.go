package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/bridgecheck/bridgecheck/internal/chrome"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

var updatePictures = flag.Bool("update-pictures", false, "write docs/pictures again, from real runs")

const pictures = "../../docs/pictures"

// TestANewcomerFindsTheFirstFault opens the page of a real failing run as on a desk and on a telephone: the first fault,
// its reason and its curl line stand within two screens.
func TestANewcomerFindsTheFirstFault(t *testing.T) {
	window := chrome.Start(t)
	_, dir, said := runModule(t, nil, func(string) string { return "known: []\n" })
	page := must.Get(filepath.Abs(filepath.Join(dir, "report.html")))(t)
	for _, size := range []struct{ width, height int64 }{{1280, 860}, {360, 740}} {
		t.Run(fmt.Sprintf("%d px", size.width), func(t *testing.T) {
			b := chrome.Open(t, window, "file://"+page, size.width, size.height)
			ends := chrome.Eval[map[string]float64](b, `(() => {
				const first = document.querySelector('.first');
				const why = [...first.querySelectorAll('p')].find(p => p.textContent.startsWith('Why it matters.'));
				return Object.fromEntries(Object.entries({
					verdict: document.querySelector('h1'), clause: first.querySelector('.clause'), message: first.querySelector('.message'),
					reason: why, curl: first.querySelector('.curl pre'), copy: first.querySelector('.copy'),
				}).map(([name, e]) => [name, e.getBoundingClientRect().bottom]));
			})()`)
			for name, end := range ends {
				must.Expect(t, end > 0 && end <= float64(2*size.height),
					"the %s ends at %.0f px: two screens are %d", name, end, 2*size.height)
			}
			must.Expect(t, len(ends) == 6, "only %v were found; the run said %s", ends, said)
			b.Run(chromedp.Evaluate[chromedp.Void](`document.querySelector('details.result').open = true`))
			b.Until(`document.querySelector('.exchanges') && document.querySelector('.exchanges').textContent.includes('the site behind the bridge was not seen')`)
			b.Run(chromedp.Evaluate[chromedp.Void](`document.querySelector('details.result').open = false; scrollTo(0, 0)`))
			b.Picture(fmt.Sprintf("module-%d", size.width))
			if *updatePictures {
				keepPicture(t, map[int64]string{1280: "module.png", 360: "module-phone.png"}[size.width], b.Screen())
			}
		})
	}
	if !*updatePictures {
		return
	}
	reference := filepath.Join(t.TempDir(), "reference")
	o := command(t, "run", "--report-dir", reference)
	must.Assert(t, o.code == exitOK, "the reference bridge: exit code %d: %s%s", o.code, o.stdout, o.stderr)
	keepPicture(t, "reference.png", chrome.Open(t, window, "file://"+reference+"/report.html", 1280, 860).Screen())
	_, report := testModule(t, nil, func(string) string { return "known: []\n" })
	failing, _ := report.First()
	keepPicture(t, "clause.png", chrome.Open(t, window, "file://"+page+"#"+failing.ID, 1280, 860).Screen())
}

func keepPicture(t *testing.T, name string, png []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(pictures, name), png, 0o644))
}

func TestTheContractIsAPage(t *testing.T) {
	window := chrome.Start(t)
	page := filepath.Join(t.TempDir(), "contract.html")
	o := command(t, "checks", "--html", "-o", page)
	must.Assert(t, o.code == exitOK, "exit code %d: %s", o.code, o.stderr)
	_, views, err := clauses("")
	must.Do(t, err)
	b := chrome.Open(t, window, "file://"+page+"#q=typescript&open=mapping/no-params-object", 360, 740)
	b.Until(`document.getElementById('mapping/no-params-object').open`)
	counts := chrome.Eval[map[string]int](b, `({
		clauses: document.querySelectorAll('details.result').length, width: document.documentElement.scrollWidth,
		complete: [...document.querySelectorAll('details.result')].filter(d => d.querySelector('.right') && d.querySelector('.wrong') && d.querySelector('.remedy')).length,
		shown: [...document.querySelectorAll('details.result')].filter(d => !d.hidden).length,
	})`)
	must.Expect(t, counts["clauses"] == len(views) && counts["complete"] == len(views) && counts["width"] <= 360 && counts["shown"] != 0 && counts["shown"] <= 10,
		"the page has %v; the ledger has %d clauses", counts, len(views))
	b.Picture("contract-360")
}
