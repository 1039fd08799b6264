package docs

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/reports/baseline"
)

var data = regexp.MustCompile("(?ms)^```(yaml|json)\n(.*?)^```$")

// kinds are the kinds of YAML files that pages show, each by what its text has; others are configurations of a run.
var kinds = []struct {
	has   *regexp.Regexp
	parse func(name string, data []byte) error
}{
	{regexp.MustCompile(`^# \.github/workflows/`), func(string, []byte) error { return nil }}, // test/release reads it
	{regexp.MustCompile(`^known:`), parsed(baseline.Parse)},
	{regexp.MustCompile(`(?m)^(drupal|oauth_issuer|types|visibility|tls_cert):`), parsed(bridge.ParseConfig)},
	{regexp.MustCompile(`(?m)^methods:`), parsed(fixtures.Parse)},
	{regexp.MustCompile(``), parsed(settings.Parse)},
}

func parsed[T any](parse func(name string, data []byte) (T, error)) func(name string, data []byte) error {
	return func(name string, data []byte) error {
		_, err := parse(name, data)
		return err
	}
}

// TestConfigurations reads the YAML and JSON blocks of README.md and docs as the program that it is for.
func TestConfigurations(t *testing.T) {
	read := 0
	for page, text := range pages(t) {
		if page == "docs/contributing.md" {
			continue // their blocks are parts of files
		}
		for _, m := range data.FindAllStringSubmatch(text, -1) {
			read++
			if m[1] == "json" {
				must.Expect(t, json.Valid([]byte(strings.TrimSpace(m[2]))), "%s: not JSON:\n%s", page, m[2])
				continue
			}
			for _, k := range kinds {
				if k.has.MatchString(m[2]) {
					err := k.parse(page, []byte(m[2]))
					must.Expect(t, err == nil, "%v, in the block\n%s", err, m[2])
					break
				}
			}
		}
	}
	must.Expect(t, read >= 8, "%d blocks were read, expected 8 at least", read)
}
