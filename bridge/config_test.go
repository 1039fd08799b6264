package bridge_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestConfigurationErrorsNameFileAndLine(t *testing.T) {
	for name, c := range map[string]struct{ yaml, says string }{
		"unknown key":         {"drupal: http://x\npage_sise: 3", `b.yaml:2: unknown setting "page_sise"; did you mean page_size?`},
		"no number":           {"page_size: many", "b.yaml:1: page_size: \"many\" must be a whole number"},
		"zero":                {"\n\npage_size: 0", "b.yaml:3: page_size"},
		"no time":             {"discovery_ttl: soon", "b.yaml:1: discovery_ttl: \"soon\" must be a time"},
		"negative time":       {"discovery_ttl: -5", "must be a time above 0"},
		"unknown choice":      {"naming: dots", "must be one of [id underscore]"},
		"deep":                {"types: {x: {schema: " + strings.Repeat("{a: ", 6000), "values are nested more than 200 deep"},
		"many values":         {"include: [" + strings.Repeat("a,", 700_000) + "]", "b.yaml:1: the file has 700001 lines, commas and brackets, more than 600000"},
		"twice":               {"page_size: 3\npage_size: 4", "b.yaml:2: page_size is set a second time, after line 1"},
		"a list at the top":   {"- page_size", "b.yaml:1: a configuration is a mapping"},
		"two documents":       {"page_size: 3\n---\npage_size: 4", "one YAML document"},
		"broken YAML":         {"page_size: [", "b.yaml:1:"},
		"a mapping":           {"include: {a: b}", "b.yaml:1: include: must be a value or a list"},
		"no value":            {"include:", "has no value"},
		"a secret in plain":   {"service_password: hunter2", "b.yaml:1: service_password is a secret"},
		"a missing secret":    {"service_password_file: /nonexistent", "b.yaml:1: service_password_file"},
		"scheme":              {"credentials: [basic, digest]", "must be a list of basic, bearer, cookie"},
		"a rule without":      {"types: {geofield: {}}", "geofield has no schema"},
		"a rule with more":    {"types: {geofield: {schema: {type: object}, colour: red}}", "colour"},
		"a rule that is none": {"types: {geofield: {schema: {type: nonsense}}}", "geofield"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bridge.ParseConfig("b.yaml", []byte(c.yaml))
			must.Expect(t, err != nil && strings.Contains(err.Error(), c.says), "error = %v\nwant one that says %s", err, c.says)
			must.Expect(t, err == nil || !strings.Contains(err.Error(), "hunter2") && !strings.Contains(err.Error(), "bridge.Options"),
				"the message shows too much: %v", err)
		})
	}
}

func TestFileEnvironmentAndFlagsFillTheSameOptions(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "b.yaml")
	write := func(name, text string) { must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	write("secret", "hunter2\n")
	write("b.yaml", "drupal: http://file\npage_size: 10\ndiscovery_ttl: 5m\ninclude: [a.*, b]\nservice_password_file: secret\n"+
		"types:\n  geofield: {schema: {type: object}, settings: {max: properties/lat/maximum}}\n")
	o := must.Get(bridge.LoadConfig(file))(t)
	env := map[string]string{"DRUPAL_URL": "http://env", "BRIDGE_PERMISSION_TTL": "1", "BRIDGE_UPSTREAM_TIMEOUT": "2.5"}
	must.Do(t, o.FromEnv(func(k string) string { return env[k] }))
	must.Do(t, o.Flags().Parse([]string{"--page-size", "20", "--read-only", "true"}))
	got := fmt.Sprintln(o.Drupal, o.PageSize, o.DiscoveryTTL, o.PermissionTTL, o.UpstreamTimeout, o.Include, o.ReadOnly, o.ServicePassword, len(o.Types["geofield"].Settings))
	want := "http://env 20 5m0s 1s 2.5s [a.* b] true [redacted] 1\n"
	must.Expect(t, got == want, "options = %s\nwant      %s", got, want)
	s := fmt.Sprintf("%v %+v %#v", o, o, o)
	must.Expect(t, !strings.Contains(s, "hunter2"), "printing the options shows the password")
}

func TestOptionsThatMeanNothingAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		o    bridge.Options
		says string
	}{
		"no site":               {bridge.Options{}, "base address"},
		"no http":               {bridge.Options{Drupal: "ftp://x"}, "base address"},
		"a password in the URL": {bridge.Options{Drupal: "http://u:hunter2@x"}, "base address"},
		"an account without": {
			bridge.Options{Drupal: "http://x", CallerOptions: bridge.CallerOptions{ServiceUser: "s", ServicePassword: "p"}}, "front-end token"},
		"a certificate alone":     {bridge.Options{Drupal: "http://x", ServingOptions: bridge.ServingOptions{TLSCert: "c"}}, "go together"},
		"no such authority":       {bridge.Options{Drupal: "http://x", CallOptions: bridge.CallOptions{UpstreamCA: "/nonexistent"}}, "upstream_ca"},
		"a pattern with blanks":   {bridge.Options{Drupal: "http://x", ToolOptions: bridge.ToolOptions{Include: []string{" a"}}}, "include"},
		"a page of minus one":     {bridge.Options{Drupal: "http://x", ToolOptions: bridge.ToolOptions{PageSize: -1}}, "positive"},
		"lazy schemas of modules": {bridge.Options{Drupal: "http://x", ToolOptions: bridge.ToolOptions{LazySchemas: true, Source: "module"}}, "lazy_schemas"},
	} {
		if _, err := bridge.New(c.o); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error = %v, want one that says %q", name, err, c.says)
		}
	}
}

func TestReloadDropsNothing(t *testing.T) {
	s, other := newSite(t, method("content.x")), newSite(t, method("content.y"))
	b := must.Get(bridge.New(bridge.Options{Drupal: s.URL}))(t)
	front := serve(t, b)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				must.Equal(t, get(t, front, "/mcp/tools/list"), 200, "the list during the reload")
			}
		})
	}
	eventually(t, "nobody asks", func() bool { return s.discoveries.Load() > 0 })
	for range 20 {
		err := b.Reload(bridge.Options{Drupal: other.URL})
		must.Expect(t, err == nil, "%v", err)
		must.Say(t, b.Reload(bridge.Options{Drupal: "nonsense"}), "", "a reload with nonsense works")
	}
	close(stop)
	wg.Wait()
	before := other.discoveries.Load()
	b.Reload(bridge.Options{Drupal: other.URL})
	get(t, front, "/mcp/tools/list")
	must.Expect(t, other.discoveries.Load() == before+1, "the new options are not in force")
}

// Nothing that the earlier options made stays in memory, else each reload of a long life would take more.
func TestReloadForgetsTheEarlierOptions(t *testing.T) {
	s := newSite(t, method("content.x"))
	transport := &http.Transport{}
	gone := weak.Make(transport)
	b := must.Get(bridge.New(bridge.Options{Drupal: s.URL, Transport: transport}))(t)
	transport = nil
	front := serve(t, b)
	id := mcpPost(t, front, "agent", "", initialize).Header.Get("Mcp-Session-Id")
	r := mcpPost(t, front, "agent", id, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	must.Assert(t, strings.Contains(r.Body, "content.x"), "the list is %s", r.Body)
	get(t, front, "/mcp/tools/list")
	if runtime.GC(); gone.Value() == nil {
		t.Fatal("the options in force are gone")
	}
	must.Do(t, b.Reload(bridge.Options{Drupal: s.URL}))
	eventually(t, "what the earlier options made is still there", func() bool { runtime.GC(); return gone.Value() == nil })
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	s := newSite(t, echo)
	before := runtime.NumGoroutine()
	for range 10 {
		b := must.Get(bridge.New(bridge.Options{Drupal: s.URL, DiscoveryOptions: bridge.DiscoveryOptions{Background: time.Minute}}))(t)
		r := httptest.NewRequest("GET", "/mcp/tools/list", nil)
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		must.Expect(t, w.Code == 200, "%d %s", w.Code, w.Body)
		b.Close()
	}
	s.CloseClientConnections()
	eventually(t, "goroutines are left behind", func() bool { return runtime.NumGoroutine() <= before+3 }) // connections take a moment to notice
}

func TestServeEndsWithItsContext(t *testing.T) {
	s := newSite(t, echo)
	address, stop := served(t, bridge.Options{Drupal: s.URL, ServingOptions: bridge.ServingOptions{HeaderTimeout: 50 * time.Millisecond}})
	slow := must.Get(net.Dial("tcp", address))(t)
	defer slow.Close()
	fmt.Fprint(slow, "GET /healthz HTTP/1.1\r\nHost:")
	slow.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, _ := slow.Read(make([]byte, 512)); n > 0 {
		t.Log("a header that does not end was served before it was cut off")
	}
	_, err := slow.Read(make([]byte, 1))
	must.Expect(t, err != nil && !strings.Contains(err.Error(), "timeout"), "a header that does not end is not cut off: %v", err)
	err = stop()
	must.Expect(t, err == nil, "Serve = %v", err)
}

// A configuration is refused or gives options; it never panics, and no message shows Go's names.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("drupal: http://x\ninclude: [a, b]\n"))
	f.Add([]byte("types: {x: {schema: {type: object}}}"))
	f.Add([]byte("&a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), "_file") {
			return // reads files
		}
		_, err := bridge.ParseConfig("b.yaml", data)
		must.Expect(t, err == nil || strings.HasPrefix(err.Error(), "b.yaml"), "error without a place: %v", err)
	})
}
