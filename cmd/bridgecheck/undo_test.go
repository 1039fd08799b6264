package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/module"
)

// siteWithLogin is a site that is itself a bridge, whose callers authenticate by sessions, and a configuration for it.
func siteWithLogin(t *testing.T) (site, configuration string) {
	t.Helper()
	fixture := must.Get(fixtures.Builtin("default"))(t)
	extension := must.Get(module.New(module.V13))(t)
	drupal := must.Get(mockdrupal.New(fixture, mockdrupal.Options{Extensions: []mockdrupal.Extension{extension}}))(t)
	server := must.Serve(t, drupal)
	t.Setenv("AGENT_PASSWORD", "agent-pass")
	configuration = filepath.Join(t.TempDir(), "site.yaml")
	text := "url: " + server.URL + "\ncapabilities: [auth-cookie, -auth-basic]\nrate: 50\nidentities: {agent: {login: {user: agent, password: {env: AGENT_PASSWORD}}}}\n"
	must.Do(t, os.WriteFile(configuration, []byte(text), 0o600))
	return server.URL, configuration
}

func isOpen(t *testing.T, s settings.Session) bool {
	t.Helper()
	req := must.Get(http.NewRequest(http.MethodGet, s.Site+"/user/login_status?_format=json", nil))(t)
	req.Header.Set("Cookie", s.Cookie)
	resp := must.Get(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(t)
	return strings.TrimSpace(string(body)) == "1"
}

func TestACrashedRunIsUndone(t *testing.T) {
	_, configuration := siteWithLogin(t)
	dir := t.TempDir()
	run := exec.Command("bridgecheck", "run", "--config", configuration, "--report-dir", dir)
	must.Do(t, run.Start())
	left := filepath.Join(dir, undoName)
	said := func() bool { _, err := os.Stat(left); return err == nil }
	must.Become(t, 30*time.Second, said, "the run never said what it has to undo")
	must.Do(t, run.Process.Kill())
	_ = run.Wait() // it was killed
	data := must.Get(os.ReadFile(left))(t)
	var sessions []settings.Session
	if err := json.Unmarshal(data, &sessions); err != nil || len(sessions) != 1 || !isOpen(t, sessions[0]) {
		t.Fatalf("%d sessions were left open (%v), want one: this proves nothing", len(sessions), err)
	}
	o := command(t, "run", "--cleanup", "--config", configuration, "--report-dir", dir)
	must.Assert(t, o.code == 0 && strings.Contains(o.stdout, "sessions ended: 1"), "run --cleanup ended with %d: %s%s", o.code, o.stdout, o.stderr)
	must.Expect(t, !isOpen(t, sessions[0]), "the session is open still")
	o = command(t, "run", "--cleanup", "--report-dir", dir)
	must.Expect(t, o.code == 0 && strings.Contains(o.stdout, "nothing to undo"), "a second run --cleanup ended with %d: %s", o.code, o.stdout)
}

func TestARunEndsItsSessions(t *testing.T) {
	_, configuration := siteWithLogin(t)
	dir := t.TempDir()
	o := command(t, "run", "--config", configuration, "--report-dir", dir, "--only", "list/has-tools-array")
	_, err := os.Stat(filepath.Join(dir, undoName))
	must.Expect(t, o.code == exitOK && os.IsNotExist(err), "the run ended with %d and left %s (%v): %s", o.code, undoName, err, o.stderr)
}

// Who put a file there that all can read must not read our sessions.
func TestTheUndoFileIsPrivateWhateverWasThere(t *testing.T) {
	must.Need(t, runtime.GOOS != "windows", "SKIPPED: permissions of another kind")
	sessions := []settings.Session{{Site: "http://site.invalid", Cookie: "SESS=secret"}}
	victim := filepath.Join(t.TempDir(), "victim")
	for name, before := range map[string]func(path string) error{
		"nothing":        func(string) error { return nil },
		"a file for all": func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o666), os.Chmod(path, 0o666)) },
		"a link to elsewhere": func(path string) error {
			return errors.Join(os.WriteFile(victim, nil, 0o666), os.Symlink(victim, path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, undoName)
			must.Do(t, before(path))
			must.Do(t, remember(dir, sessions))
			info, err := os.Lstat(path)
			must.Expect(t, err == nil && info.Mode() == 0o600, "the mode is %v (%v), expected a file with 0600", info.Mode(), err)
			data, err := os.ReadFile(path)
			must.Expect(t, err == nil && bytes.Contains(data, []byte("SESS=secret")), "the file holds %q (%v)", data, err)
			files, err := os.ReadDir(dir)
			must.Expect(t, err == nil && len(files) == 1, "the directory holds %v (%v), expected one file", files, err)
		})
	}
	data, err := os.ReadFile(victim)
	must.Expect(t, err == nil && len(data) == 0, "the link's target holds %q (%v), expected nothing", data, err)
}
