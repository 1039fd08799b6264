package attacks

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// originRequests are requests to all of the bridge's interfaces that do something for the caller.
var originRequests = map[string][3]string{
	"list":        {"GET", "/mcp/tools/list", ""},
	"describe":    {"GET", "/mcp/tools/describe?name=content.echo", ""},
	"invoke":      {"POST", "/mcp/tools/invoke", identityCall},
	"initialize":  {"POST", "/mcp", identityInitialize},
	"invalidate":  {"POST", "/mcp/admin/invalidate", ""},
	"diagnostics": {"GET", "/mcp/admin/diagnostics", ""},
	"metrics":     {"GET", "/metrics", ""},
}

// One policy of host names and origins holds for the tools API as for /mcp: neither a page of another host nor a page whose
// host name was made to point at this machine gets anything.
func TestOriginOfOtherPages(t *testing.T) {
	site := newIdentitySite(t)
	setup := func(hosts []string) string {
		return identityBridge(t, site.URL, func(o *bridge.Options) {
			o.AllowedHosts, o.AdminTokens = hosts, []caller.Secret{"operator"}
		})
	}
	base := setup(nil)
	own := strings.TrimPrefix(base, "http://")
	listed := setup([]string{"bridge.example"})
	for name, c := range map[string]struct {
		base    string
		headers []string
		refused bool
	}{
		"no origin":            {base, nil, false},
		"own page":             {base, []string{"Origin", base}, false},
		"page of another host": {base, []string{"Origin", "http://evil.example"}, true},
		"page of another host, with a CSRF token":        {base, []string{"Origin", "http://evil.example", "X-CSRF-Token", "t"}, true},
		"page of a sandbox":                              {base, []string{"Origin", "null"}, true},
		"page of another port here":                      {base, []string{"Origin", "http://127.0.0.1:1"}, true},
		"two origins":                                    {base, []string{"Origin", base, "Origin", "http://evil.example"}, true},
		"rebound name, its own page":                     {base, []string{"Host", "evil.example:8081", "Origin", "http://evil.example:8081"}, true},
		"rebound name, without an origin":                {base, []string{"Host", "evil.example:8081"}, true},
		"rebound name that begins alike":                 {base, []string{"Host", own + ".evil.example"}, true},
		"the allowed name":                               {listed, []string{"Host", "bridge.example"}, false},
		"page of the allowed name, through a proxy here": {listed, []string{"Origin", "https://bridge.example"}, false},
		"a name that is not allowed":                     {listed, []string{"Host", "other.example"}, true},
	} {
		for what, request := range originRequests {
			headers := append([]string{"Authorization", identityBasic("user1", "user1-pass")}, c.headers...)
			if strings.HasPrefix(request[1], "/mcp/admin") {
				headers[1] = "Bearer operator"
			}
			r := identitySend(t, request[0], c.base+request[1], request[2], headers...)
			refused := r.status == 403
			must.Expect(t, refused == c.refused && (refused || r.status == 200), "%s: %s: %d %.200s", name, what, r.status, r.body)
			must.Expect(t, r.header.Get("Access-Control-Allow-Origin") == "",
				"%s: %s: pages of other hosts may read the response", name, what)
		}
		for _, probe := range []string{"/healthz", "/readyz"} {
			identitySend(t, "GET", c.base+probe, "", c.headers...).expect(t, 200, "%s: %s", name, probe)
		}
	}
}

// A renewed certificate is served without a restart; one that is broken leaves the one before in force.
func TestOriginCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	renew := func() *big.Int { return must.Certificate(t, cert, key, nil).Leaf.SerialNumber }
	first := renew()
	o := bridge.Options{Drupal: newIdentitySite(t).URL, ServingOptions: bridge.ServingOptions{TLSCert: cert, TLSKey: key}}
	_, server, l := newServer(t, o)
	go server.ServeTLS(l, "", "") //nolint:errcheck // it ends with Close
	defer server.Close()
	serves := func(want *big.Int) bool {
		c := must.Get(tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true}))(t)
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Cmp(want) == 0
	}
	becomes := func(want *big.Int, what string) {
		t.Helper()
		must.Become(t, 10*time.Second, func() bool { return serves(want) }, "%s is not served", what)
	}
	must.Assert(t, serves(first), "another certificate is served")
	second := renew()
	becomes(second, "the renewed certificate")
	must.Do(t, os.WriteFile(key, []byte("broken"), 0o600))
	for deadline := time.Now().Add(1500 * time.Millisecond); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		must.Assert(t, serves(second), "with a broken key another certificate is served")
	}
	must.Do(t, os.Remove(key))
	must.Do(t, exec.Command("mkfifo", key).Run()) // nobody writes to it: who opens it as a file waits
	for deadline := time.Now().Add(1500 * time.Millisecond); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		must.Assert(t, serves(second), "with a FIFO as key another certificate is served")
	}
	must.Do(t, os.Remove(key))
	becomes(renew(), "after a broken pair the next one")
}

// The audit log says who ran what with which outcome, over each interface, and holds nothing that callers sent beside it.
func TestOriginAuditLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	site := newIdentitySite(t)
	b, base := identityServe(t, site.URL, func(o *bridge.Options) { o.AuditLog = file })
	agent := []string{"Authorization", identityBasic("User1", "user1-pass"), "X-Request-Id", "r-1"}
	secret := `{"name":"content.echo","arguments":{"text":"canary-argument"}}`
	identitySend(t, "POST", base+"/mcp/tools/invoke", secret, agent...)
	identitySend(t, "POST", base+"/mcp/tools/invoke", `{"name":"no.such\n{\"user\":\"admin\"}","arguments":{}}`, agent...)
	identitySend(t, "POST", base+"/mcp/tools/invoke", `{"name":"content.echo","arguments":{"text":5}}`, agent...)
	id := sessionOpen(t, base, agent...)
	identitySend(t, "POST", base+"/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":`+secret+`}`, append(agent, "Mcp-Session-Id", id)...)
	identitySend(t, "GET", base+"/mcp/tools/list", "", agent...)
	must.Do(t, os.Rename(file, file+".1")) // as logrotate does
	must.Do(t, b.Reload(bridge.Options{Drupal: site.URL, ServingOptions: bridge.ServingOptions{AuditLog: file}}))
	identitySend(t, "POST", base+"/mcp/tools/invoke", secret, "Authorization", "Bearer good-canary-token")
	before := must.Get(os.ReadFile(file + ".1"))(t)
	after := must.Get(os.ReadFile(file))(t)
	var got []string
	for text := range bytes.Lines(append(before, after...)) {
		var line struct {
			Time                             time.Time
			User, Caller, Address, Tool      string
			Outcome                          string
			Status                           int
			RequestID                        string `json:"request_id"`
			Arguments, Result, Authorization any
		}
		err := json.Unmarshal(text, &line)
		must.Assert(t, err == nil, "%s: %v", text, err)
		must.Expect(t, time.Since(line.Time) <= time.Minute && line.Caller != "" && line.Address == "127.0.0.1", "line %s", text)
		got = append(got, fmt.Sprint(line.User, " ", line.RequestID == "r-1", " ", line.Tool, " ", line.Outcome, " ", line.Status))
	}
	want := []string{
		"user1 true content.echo ok 200", "user1 true no.such\n{\"user\":\"admin\"} tool_not_found 404", "user1 true content.echo invalid_params 400",
		"user1 true content.echo ok 200", " false content.echo ok 200",
	}
	must.Expect(t, fmt.Sprintf("%q", got) == fmt.Sprintf("%q", want), "lines %q\nwant  %q", got, want)
	must.Expect(t, !strings.Contains(string(before)+string(after), "canary") && !strings.Contains(string(before), "user1-pass"),
		"the log shows what it must not:\n%s%s", before, after)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file may be read by others: %v %v", info.Mode(), err)
	}
	err := (bridge.Options{Drupal: site.URL, ServingOptions: bridge.ServingOptions{AuditLog: filepath.Join(t.TempDir(), "none", "x")}}).Check()
	must.Expect(t, err != nil && strings.Contains(err.Error(), "audit_log"), "a folder that is not there: %v", err)
}
