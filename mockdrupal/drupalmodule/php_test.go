package drupalmodule

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// newerPHP are the versions that npm's @php-wasm packages have and Debian has not.
var newerPHP = []string{"8.3", "8.4", "8.5"}

// wasm is where the packages of testdata/php are installed: `npm ci --prefix mockdrupal/drupalmodule/testdata/php`, or another
// directory with these packages by BRIDGECHECK_PHP_WASM.
func wasm(t *testing.T) string {
	t.Helper()
	dir := must.Get(filepath.Abs(cmp.Or(os.Getenv("BRIDGECHECK_PHP_WASM"), "testdata/php")))(t)
	modules := filepath.Join(dir, "node_modules")
	_, missing := os.Stat(filepath.Join(modules, "@php-wasm", "node"))
	if _, err := exec.LookPath("node"); err != nil || missing != nil {
		t.Skip("NOT TESTED on PHP 8.3 to 8.5: it needs node and `npm ci --prefix mockdrupal/drupalmodule/testdata/php`")
	}
	runner := t.TempDir()
	script, err := os.ReadFile("testdata/php/php.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(runner, "php.mjs"), script, 0o600)
	}
	if err == nil {
		err = os.Symlink(modules, filepath.Join(runner, "node_modules"))
	}
	must.Do(t, err)
	return filepath.Join(runner, "php.mjs")
}

// newPHP runs a script of testdata by a newer PHP, and fails where it prints to standard error, as PHP does with deprecations.
func newPHP(t *testing.T, runner, version string, directories []string, script string, arguments ...string) []byte {
	t.Helper()
	testdata := must.Get(filepath.Abs("testdata"))(t)
	cmd := exec.CommandContext(t.Context(), "node", append([]string{runner, filepath.Join(testdata, script)}, arguments...)...)
	cmd.Env = append(os.Environ(), "PHP_VERSION="+version, "PHP_ROOTS="+strings.Join(append(directories, testdata), ":"))
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	must.Assert(t, err == nil && errors.Len() == 0, "PHP %s: %v\n%s%.2000s", version, err, errors.Bytes(), out)
	return out
}

// The module does what the mock does on every PHP that Drupal supports, without a deprecation: testdata/run.php makes one an exception.
func TestBehavesAsTheMockOnNewerPHP(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: no PHP is started")
	runner := wasm(t)
	for _, name := range sites {
		site, dir := exported(t, name, 3)
		collected := &phpSite{t: t}
		behavesAsTheMock(t, site.Clone(), collected, map[fixtures.Kind]int{})
		must.Assert(t, len(collected.later) >= 50, "only %d requests of the site %s ran", len(collected.later), name)
		requests := t.TempDir()
		var lines bytes.Buffer
		for _, e := range collected.later {
			must.Do(t, json.NewEncoder(&lines).Encode(e.request))
		}
		must.Do(t, os.WriteFile(filepath.Join(requests, "requests.jsonl"), lines.Bytes(), 0o600))
		for _, version := range newerPHP {
			t.Run(name+"/"+version, func(t *testing.T) {
				out := newPHP(t, runner, version, []string{dir, requests}, "run.php", dir, filepath.Join(requests, "requests.jsonl"))
				p := &phpSite{t: t, out: bufio.NewReader(bytes.NewReader(out))}
				for _, e := range collected.later {
					_, got := p.read()
					must.Expect(t, got == e.want, "%s\nPHP:  %s\nmock: %s", e.request.Body, got, e.want)
				}
			})
		}
	}
}

// A site that is not for tests is refused with the reason, by the hook before Drupal 11.2 and by the class from then on.
func TestRefusesSitesWithTheReason(t *testing.T) {
	_, dir := exported(t, "default", 3)
	type refusal struct {
		Description string
		Error       bool
	}
	check := func(t *testing.T, cores []string, most int, run func(script string, arguments ...string) []byte) {
		for _, core := range cores {
			for _, c := range []struct{ name, site, wants string }{
				{"without the setting", `"settings":{},"accounts":0,"nodes":0`, "$settings['bridgecheck_fixtures'] = TRUE;"},
				{"with accounts", `"settings":{"bridgecheck_fixtures":true},"accounts":2,"nodes":null`, "content or accounts of its own"},
				{"with content", `"settings":{"bridgecheck_fixtures":true},"accounts":0,"nodes":1`, "content or accounts of its own"},
				{"empty", `"settings":{"bridgecheck_fixtures":true},"accounts":0,"nodes":0`, ""},
				{"forced", `"settings":{"bridgecheck_fixtures":true,"bridgecheck_fixtures_force":true},"accounts":2,"nodes":1`, ""},
			}[:most] {
				out := run("requirements.php", dir, `{"core":"`+core+`",`+c.site+`}`)
				var refusals map[string]refusal
				err := json.Unmarshal(out, &refusals)
				must.Assert(t, err == nil, "Drupal %s, %s: %v\n%s", core, c.name, err, out)
				said := ""
				for _, r := range refusals {
					said += r.Description
					must.Expect(t, r.Error, "Drupal %s, %s: %s is no error", core, c.name, r.Description)
				}
				must.Expect(t, strings.Contains(said, c.wants) && (said == "") == (c.wants == ""),
					"Drupal %s, %s: refused with %q, expected %q", core, c.name, said, c.wants)
			}
		}
	}
	t.Run("php", func(t *testing.T) {
		requirePHP(t)
		check(t, []string{"10.6", "11.1", "11.4", "12"}, 5, func(script string, arguments ...string) []byte {
			out, err := exec.Command("php", append([]string{"testdata/" + script}, arguments...)...).CombinedOutput()
			must.Assert(t, err == nil, "%v\n%s", err, out)
			return out
		})
	})
	for _, version := range newerPHP {
		t.Run(version, func(t *testing.T) {
			runner := wasm(t)
			// A start of such a PHP takes seconds.
			check(t, []string{"11.4"}, 2, func(script string, arguments ...string) []byte {
				return newPHP(t, runner, version, []string{dir}, script, arguments...)
			})
		})
	}
}
