package main

import (
	"bytes"
	"strings"
	"testing"

	"bridgecheck/bridge"
)

// Whatever can be set about the bridge, --help tells of it: name, default, environment.
func TestHelpTellsOfEverySetting(t *testing.T) {
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetArgs([]string{"bridge", "--help"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	var told string
	for _, s := range bridge.Settings() {
		name := "--" + s.Flag() + " "
		if s.Secret {
			name = "  " + s.Name + " "
		}
		at := strings.Index(out.String(), name)
		if at < 0 {
			t.Errorf("--help does not name %s", s.Name)
			continue
		}
		told, _, _ = strings.Cut(out.String()[at:], "\n")
		for _, has := range []string{s.Help, s.Env} {
			if !strings.Contains(told, has) {
				t.Errorf("--help does not say %q of %s", has, s.Name)
			}
		}
		if s.Default != "" && !strings.Contains(told, "(default "+s.Default+")") {
			t.Errorf("--help does not name the default of %s", s.Name)
		}
	}
	if !strings.Contains(out.String(), "types") {
		t.Error("--help does not name the rules for custom types")
	}
}
