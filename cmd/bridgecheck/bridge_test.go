package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// The help names every setting of the bridge, with its default and its environment variable.
func TestHelpNamesEverySetting(t *testing.T) {
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetArgs([]string{"bridge", "--help"})
	must.Do(t, root.Execute())
	var line string
	for _, s := range bridge.Settings() {
		name := "\n      --" + s.Flag() + " "
		if s.Secret {
			name = "  " + s.Name + " "
		}
		at := strings.Index(out.String(), name)
		if at < 0 {
			t.Errorf("--help does not name %s", s.Name)
			continue
		}
		line, _, _ = strings.Cut(out.String()[at+1:], "\n      --") // the texts of flags are wrapped
		line = strings.Join(strings.Fields(line), " ")
		for _, has := range []string{s.Help, s.Env} {
			must.Expect(t, strings.Contains(line, has), "--help does not say %q of %s", has, s.Name)
		}
		must.Expect(t, s.Default == "" || strings.Contains(line, "(default "+s.Default+")"),
			"--help does not name the default of %s", s.Name)
	}
	must.Expect(t, strings.Contains(out.String(), "types"), "--help does not name the rules for custom types")
}

// SIGHUP puts the settings of the file in force; settings that are wrong change nothing.
func TestHangupReadsTheSettingsAgain(t *testing.T) {
	site := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":[{"id":"content.a"},{"id":"content.b"},{"id":"content.c"}]}`)
	}))
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	write := func(pageSize string) {
		t.Helper()
		must.Do(t, os.WriteFile(file, fmt.Appendf(nil, "drupal: %s\npage_size: %s\n", site.URL, pageSize), 0o600))
	}
	write("1")
	ctx, cancel := context.WithCancel(t.Context())
	out, stdout := io.Pipe()
	log, stderr := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, []string{"bridge", "--config", file, "--listen", "127.0.0.1:0"}, stdout, stderr)
	}()
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	address := strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	tools := func() int {
		t.Helper()
		res := must.Get(http.Get(address + "/mcp/tools/list"))(t)
		defer res.Body.Close()
		body := must.Get(io.ReadAll(res.Body))(t)
		return bytes.Count(body, []byte("inputSchema"))
	}
	said := bufio.NewScanner(log)
	self := must.Get(os.FindProcess(os.Getpid()))(t)
	for _, c := range []struct {
		pageSize, says string
		tools          int
	}{{"2", "the settings were read again", 2}, {"many", "the settings stay as they were", 2}, {"3", "the settings were read again", 3}} {
		write(c.pageSize)
		err := self.Signal(syscall.SIGHUP)
		must.Need(t, err == nil, "SKIPPED: no SIGHUP here: %v", err)
		for heard := false; !heard; {
			must.Assert(t, said.Scan(), "the log ended without %q", c.says)
			heard = strings.Contains(said.Text(), c.says)
		}
		must.Equal(t, tools(), c.tools, "tools on a page, page_size %s", c.pageSize)
	}
	go io.Copy(io.Discard, log)
	cancel()
	select {
	case code := <-ended:
		must.Expect(t, code == exitOK, "exit code %d", code)
	case <-time.After(10 * time.Second):
		t.Error("the command does not end")
	}
}
