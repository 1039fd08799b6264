package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// A live site becomes a site file that is valid and publishes the same methods.
func TestFixturesImport(t *testing.T) {
	site := unmarkedSite(t)
	t.Setenv("DRUPAL_USER", "agent")
	t.Setenv("DRUPAL_PASSWORD", "agent-pass")
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), []string{"fixtures", "import", "--url", site}, &stdout, &stderr)
	must.Assert(t, code == exitOK, "exit code %d: %s", code, stderr.String())
	read := must.Get(fixtures.Parse("imported.yaml", stdout.Bytes()))(t)
	original := must.Get(fixtures.Builtin("transcripts"))(t)
	agent, _ := original.User("agent")
	for i := range original.Methods {
		m := &original.Methods[i]
		_, ok := read.Method(m.ID)
		must.Expect(t, ok == original.MayRun(agent, m), "%s is in the site file: %t, and the agent may run it: %t", m.ID, ok, original.MayRun(agent, m))
	}
	m, ok := read.Method("fx.range")
	must.Expect(t, ok && len(m.Params) > 0, "fx.range is %+v", m)
	for name, args := range map[string][]string{"DRUPAL_USER": {"--url", site}, "https://drupal.example.org": {"--url", "site"}} {
		t.Setenv("DRUPAL_USER", "")
		stderr.Reset()
		code := execute(t.Context(), append([]string{"fixtures", "import"}, args...), &stdout, &stderr)
		must.Expect(t, code == exitUsage && strings.Contains(stderr.String(), name), "%v ended with %d: %s", args, code, stderr.String())
	}
}
