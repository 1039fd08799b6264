package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/bridgecheck/bridgecheck/internal/chrome"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
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
				if end <= 0 || end > float64(2*size.height) {
					t.Errorf("the %s ends at %.0f px: two screens are %d", name, end, 2*size.height)
				}
			}
			if len(ends) != 6 {
				t.Errorf("only %v were found; the run said %s", ends, said)
			}
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
	var stdout, stderr bytes.Buffer
	if code := execute(t.Context(), []string{"run", "--report-dir", reference}, &stdout, &stderr); code != exitOK {
		t.Fatalf("the reference bridge: exit code %d: %s%s", code, &stdout, &stderr)
	}
	keepPicture(t, "reference.png", chrome.Open(t, window, "file://"+reference+"/report.html", 1280, 860).Screen())
	_, report := testModule(t, nil, func(string) string { return "known: []\n" })
	failing, _ := report.First()
	keepPicture(t, "clause.png", chrome.Open(t, window, "file://"+page+"#"+failing.ID, 1280, 860).Screen())
}

func keepPicture(t *testing.T, name string, png []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(pictures, name), png, 0o644))
}

// TestFormsOfARealRunAgree tests the module with a baseline that makes known and fixed clauses of its faults, and reads
// every form by its own reader.
func TestFormsOfARealRunAgree(t *testing.T) {
	window := chrome.Start(t)
	_, dir, said := runModule(t, nil, func(string) string {
		return "known:\n- {clause: mapping/input-object, reason: ticket 1}\n- {clause: list/answers-json, reason: ticket 2}\n"
	})
	file := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatalf("%v; the run said %s", err, said)
		}
		return data
	}
	report := must.Get(reports.Parse(file("report.json")))(t)
	want, counts := map[string]string{}, map[string]int{}
	for _, r := range report.Results {
		want[r.ID] = string(r.Verdict)
		counts[string(r.Verdict)]++
	}
	for _, v := range reports.Verdicts() {
		if v != reports.Error && counts[string(v)] == 0 { // an error is the harness's own failing
			t.Errorf("the run has no %s", v)
		}
		if n := report.Summary.Count(v); n != counts[string(v)] {
			t.Errorf("report.json counts %d %s and has %d", n, v, counts[string(v)])
		}
	}
	agree := func(form string, got map[string]string) {
		if !maps.Equal(got, want) {
			t.Errorf("%s has the verdicts\n%v, report.json\n%v", form, got, want)
		}
	}

	var junit struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Cases []struct {
				Name       string `xml:"name,attr"`
				Properties []struct {
					Name  string `xml:"name,attr"`
					Value string `xml:"value,attr"`
				} `xml:"properties>property"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	must.Do(t, xml.Unmarshal(file("junit.xml"), &junit))
	got := map[string]string{}
	for _, suite := range junit.Suites {
		for _, c := range suite.Cases {
			for _, p := range c.Properties {
				if p.Name == "verdict" {
					got[c.Name] = p.Value
				}
			}
		}
	}
	agree("junit.xml", got)
	s := report.Summary
	if junit.Tests != s.Total || junit.Failures != s.Fail+s.Fixed || junit.Skipped != s.Known+s.NotApplicable+s.NotTestable {
		t.Errorf("junit.xml counts %d tests, %d failures, %d skipped; report.json %+v", junit.Tests, junit.Failures, junit.Skipped, s)
	}

	var sarif struct {
		Runs []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results    []struct{ RuleID string }
			Properties struct{ Verdicts map[string]string }
		}
	}
	must.Do(t, json.Unmarshal(file("report.sarif"), &sarif))
	agree("report.sarif", sarif.Runs[0].Properties.Verdicts)
	if n := len(sarif.Runs[0].Tool.Driver.Rules); n != s.Total {
		t.Errorf("report.sarif has %d rules for %d clauses", n, s.Total)
	}
	if n := len(sarif.Runs[0].Results); n != s.Fail+s.Warn+s.Known+s.Fixed {
		t.Errorf("report.sarif has %d results; report.json %+v", n, s)
	}

	got = map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\S+) \| (?:MUST|SHOULD|MAY) \| \S+ ([a-z-]+) \|$`).FindAllSubmatch(file("summary.md"), -1) {
		got[string(m[1])] = string(m[2])
	}
	agree("summary.md", got)

	message := fmt.Sprintf("%s (%d of %d)", report.State(), s.Pass, s.Pass+s.Fail+s.Warn+s.Known+s.Fixed)
	for _, name := range []string{"badge.json", "badge.svg"} {
		if !strings.Contains(string(file(name)), message) {
			t.Errorf("%s does not say %q", name, message)
		}
	}

	page := must.Get(filepath.Abs(filepath.Join(dir, "report.html")))(t)
	b := chrome.Open(t, window, "file://"+page, 1280, 860)
	shown := chrome.Eval[map[string]string](b, `Object.fromEntries([...document.querySelectorAll('details.result > summary')].map(e => [e.querySelector('.id').innerText, e.querySelector('.tag').innerText]))`)
	words := map[string]string{"passed": "pass", "failed": "fail", "warned": "warn", "known": "known", "fixed": "fixed", "not applicable": "not-applicable", "not testable": "not-testable", "error": "error"}
	got = map[string]string{}
	for id, word := range shown {
		got[id] = words[word]
	}
	agree("report.html", got)
	bars := chrome.Eval[map[string]int](b, `Object.fromEntries([...document.querySelectorAll('[data-count]')].map(e => [e.dataset.count, Number(e.textContent)]))`)
	counts["total"] = s.Total
	if !maps.Equal(bars, counts) {
		t.Errorf("report.html counts %v, report.json has %v", bars, counts)
	}
}

func TestTheContractIsAPage(t *testing.T) {
	window := chrome.Start(t)
	page := filepath.Join(t.TempDir(), "contract.html")
	var stdout, stderr bytes.Buffer
	if code := execute(t.Context(), []string{"checks", "--html", "-o", page}, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	_, views, err := clauses("")
	if err != nil {
		t.Fatal(err)
	}
	b := chrome.Open(t, window, "file://"+page+"#q=typescript&open=mapping/no-params-object", 360, 740)
	b.Until(`document.getElementById('mapping/no-params-object').open`)
	counts := chrome.Eval[map[string]int](b, `({
		clauses: document.querySelectorAll('details.result').length, width: document.documentElement.scrollWidth,
		complete: [...document.querySelectorAll('details.result')].filter(d => d.querySelector('.right') && d.querySelector('.wrong') && d.querySelector('.remedy')).length,
		shown: [...document.querySelectorAll('details.result')].filter(d => !d.hidden).length,
	})`)
	if counts["clauses"] != len(views) || counts["complete"] != len(views) || counts["width"] > 360 || counts["shown"] == 0 || counts["shown"] > 10 {
		t.Errorf("the page has %v; the ledger has %d clauses", counts, len(views))
	}
	b.Picture("contract-360")
}
