package bridge_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
)

// Refused requests are logged without secrets, each address apart, and all counted.
func TestRefusalsAreLoggedAndCounted(t *testing.T) {
	s := newSite(t, echo)
	s.list = func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "" && password != user+"-pass" {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		io.WriteString(w, `{"data":[`+echo+`],"meta":{"mcp":{"discovery":true}}}`)
	}
	log := &program.Output{}
	front := start(t, s, func(o *bridge.Options) {
		o.Logger, o.TrustedProxies, o.AllowedHosts = slog.New(slog.NewJSONHandler(log, nil)), []string{"127.0.0.1"}, []string{"127.0.0.1"}
		o.RatePerSec, o.RateBurst, o.TotalFailures = 0.001, 1, 1000
	})
	from := func(address, user, password, path string, headers ...string) int {
		if headers = append(headers, "X-Forwarded-For", address); user != "" {
			headers = append(headers, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
		}
		return send(t, front, "", "GET", path, "", headers...).Status
	}
	const list = "/mcp/tools/list"
	got := from("203.0.113.1", "agent", "agent-pass", list)
	must.Assert(t, got == 200, "the positive control: %d", got)
	must.Expect(t, log.String() == "", "a success is logged: %s", log)
	for i := range 6 {
		from("203.0.113.2", "agent", fmt.Sprint("guess-canary-", i), list)
	}
	from("203.0.113.3", "s3cret-canary", "x", list)
	from("203.0.113.4", "", "", list, "Host", "evil.example")
	from("203.0.113.4", "", "", list, "Origin", "http://evil.example")
	for range 2 {
		call(t, front, "agent", "content.echo", "{}")
	}
	kinds := map[string]int{}
	for line := range strings.Lines(log.String()) {
		var l struct{ Kind, Client, User, Why, Level string }
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Kind == "" {
			continue
		}
		kinds[l.Kind]++
		want := map[string]string{"203.0.113.2": "agent", "203.0.113.4": ""}
		user, ok := want[l.Client]
		must.Expect(t, (!ok || l.User == user) && l.Level == "WARN" && l.Client != "", "line %s", line)
		must.Expect(t, l.Client != "203.0.113.3" || strings.HasPrefix(l.User, "unknown:"),
			"a name that is not known is in the log: %s", line)
		must.Expect(t, l.Kind != "host" && l.Kind != "origin" || strings.Contains(l.Why, "allowed_hosts"),
			"the line does not name allowed_hosts: %s", line)
	}
	must.Expect(t, kinds["credentials"] == 5 && kinds["throttled"] == 2 && kinds["host"] == 1 && kinds["origin"] == 1 && kinds["rate"] == 1,
		"lines by kind: %v\n%s", kinds, log)
	must.Expect(t, !strings.Contains(log.String(), "canary"), "a secret is in the log:\n%s", log)
	lines := strings.Count(log.String(), "\n")
	for range 100 {
		from("203.0.113.5", "", "", list, "Origin", "http://evil.example")
	}
	from("203.0.113.6", "", "", list, "Origin", "http://evil.example")
	if more := strings.Count(log.String(), "\n") - lines; more > 25 || !strings.Contains(log.String(), `"client":"203.0.113.6"`) {
		t.Errorf("a flood of 100 from one address is %d lines, or hides another address:\n%s", more, log)
	}
	metrics := send(t, front, "", "GET", "/metrics", "").Body
	for _, has := range []string{`{kind="credentials"} 5`, `{kind="throttled"} 2`, `{kind="rate"} 1`, `{kind="host"} 1`, `{kind="origin"} 102`, `{kind="access"} 0`} {
		must.Expect(t, strings.Contains(metrics, "bridge_refusals_total"+has+"\n"), "the metrics lack %s", has)
	}
}

// An address that could be read as another, or as two, replaces no site.
func TestABadAddressReplacesNoSite(t *testing.T) {
	s := newSite(t, echo)
	b := must.Get(bridge.New(bridge.Options{Drupal: s.URL, ToolOptions: bridge.ToolOptions{PageSize: 7}}))(t)
	defer b.Close()
	front := serve(t, b)
	for _, bad := range []string{
		"http://evil/ x", " http://evil", "http://evil\t", "http://evil/\nx", "http://evil,http://other", "http://evil;x/", "http://evil/<x>", `http://evil\x`,
		"http://a@evil/", "http://evil?x", "http://evil/?", "http://evil/#", "http://", "evil", "//evil", "ftp://evil", "http:evil", "http://evil:0", "http://evil:99999", "http://evil:",
		"http://evil..example/", "http://-/", "http://evil/\x7f", "http://evil/\xff",
	} {
		must.Say(t, b.Reload(bridge.Options{Drupal: bad}), "drupal", bad)
		got := send(t, front, "agent", "GET", "/mcp/tools/list", "")
		must.Assert(t, got.Status == 200, "after %q: %d %s", bad, got.Status, got.Body)
	}
	for _, good := range []string{"https://example.com", "http://[::1]:8080/", "https://münchen.example/drupal/web", "http://my_host:80", "http://10.0.0.1/a%20b"} {
		err := (bridge.Options{Drupal: good}).Check()
		must.Expect(t, err == nil, "%q: %v", good, err)
	}
}

// A long error text of the site does not reach the caller, nor the log.
func TestALongErrorOfTheSiteIsCut(t *testing.T) {
	long := strings.Repeat("x", 7<<20)
	for name, failure := range map[string]string{
		"a message":          `{"code":-32000,"message":"` + long + `"}`,
		"data":               `{"code":-32000,"message":"m","data":"` + long + `"}`,
		"an object of data":  `{"code":-32000,"message":"m","data":{"a":"` + long + `"}}`,
		"refused parameters": `{"code":-32602,"message":"m","data":"` + long + `"}`,
		"a parameter's name": `{"code":-32602,"message":"m","data":"Missing required parameter: ` + long + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, log := newSite(t, echo), &program.Output{}
			s.response = func(w http.ResponseWriter, _ *http.Request, c rpc) {
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":%s}`, c.ID, failure)
			}
			front := start(t, s, func(o *bridge.Options) {
				o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})
			got := call(t, front, "agent", "content.echo", "{}")
			must.Expect(t, got.Status >= 400 && len(got.Body) <= 16<<10 && json.Valid([]byte(got.Body)) && len(log.String()) <= 64<<10,
				"%d with %d bytes, and %d of log", got.Status, len(got.Body), len(log.String()))
		})
	}
}

// Files with secrets or settings that others may read or change are named with the command that fixes it.
func TestExposedFilesAreNamed(t *testing.T) {
	dir := t.TempDir()
	secret, config := filepath.Join(dir, "it's secret"), filepath.Join(dir, "bridge.yaml")
	for path, text := range map[string]string{secret: "p", config: "drupal: http://site.example\nservice_user: u\nservice_password_file: \"it's secret\"\nvisibility: broad\n"} {
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	said := func(mode os.FileMode, path string) string {
		t.Helper()
		must.Do(t, os.Chmod(path, mode))
		o := must.Get(bridge.LoadConfig(config))(t)
		log := &program.Output{}
		o.Logger = slog.New(slog.NewJSONHandler(log, nil))
		b := must.Get(bridge.New(o))(t)
		defer b.Close()
		must.Do(t, b.Reload(o))
		must.Do(t, os.Chmod(path, 0o600))
		return log.String()
	}
	for _, c := range []struct {
		mode os.FileMode
		path string
		says string
	}{
		{0o600, secret, ""}, {0o440, secret, ""}, {0o400, config, ""},
		{0o644, secret, "may be read"}, {0o602, secret, "may be changed"}, {0o620, secret, "may be changed"}, {0o644, config, "may be read"}, {0o666, config, "may be changed"},
	} {
		log := said(c.mode, c.path)
		command := "chmod o-rwx,g-w " + c.path
		if c.path == secret {
			command = `chmod o-rwx,g-w '` + dir + `/it'\\''s secret'`
		}
		must.Expect(t, (c.says != "" || log == "") && (c.says == "" || strings.Count(log, c.says) == 2 && strings.Count(log, command) == 2),
			"%s with %o: %s\nwant %q and %s, at the start and at the reload", c.path, c.mode, log, c.says, command)
	}
}

// Credentials in the clear beyond this machine are warned of, with the address as it is.
func TestPlainHTTPBeyondThisMachineIsWarnedOf(t *testing.T) {
	s := newSite(t, echo)
	for _, c := range []struct {
		listen string
		plain  bool
		warns  bool
	}{{"127.0.0.1:0", false, false}, {"0.0.0.0:0", false, true}, {"0.0.0.0:0", true, false}} {
		log := &program.Output{}
		o := bridge.Options{Drupal: s.URL, PlainHTTP: c.plain, Logger: slog.New(slog.NewTextHandler(log, nil))}
		b := must.Get(bridge.New(o))(t)
		server := must.Get(o.Server(b))(t)
		l := must.Get(net.Listen("tcp4", c.listen))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		err := bridge.Serve(ctx, server, l)
		must.Expect(t, err == nil, "%v", err)
		cancel()
		b.Close()
		said := log.String()
		got := strings.Contains(said, "PLAIN HTTP") && strings.Contains(said, "listen="+l.Addr().String()) && strings.Contains(said, "plain_http")
		must.Expect(t, got == c.warns, "%s, plain_http %v: %s", c.listen, c.plain, log)
	}
}
