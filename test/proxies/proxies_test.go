//go:build unix

package proxies

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/internal/redistest"
	"github.com/bridgecheck/bridgecheck/reports"
)

var only = flag.String("only", "", "clauses to test, instead of all: to look at one")

// upstreamTimeout is how long the bridges wait for the site.
const upstreamTimeout = "1s"

// bridges are those that stand behind the proxies, each with settings that make a run short.
var bridges = map[string]func(t *testing.T, site string) (address string, flags []string){
	"reference": reference,
	"node":      nodeStarter,
}

// reference starts the reference bridge with the settings of the page.
func reference(t *testing.T, site string) (string, []string) {
	t.Helper()
	return replicaOf(t, site)
}

// replicaOf is reference with variables of the environment.
func replicaOf(t *testing.T, site string, env ...string) (string, []string) {
	address, admin := free(t), free(t)
	config := filepath.Join(t.TempDir(), "bridge.yaml")
	write(t, config, "drupal: http://"+site+"\nlisten: "+address+"\nadmin_listen: "+admin+"\nallowed_hosts: [localhost]\ntrusted_proxies: [127.0.0.1]\n"+
		"base_path: /drupal\ncredentials: [basic, bearer, cookie]\ndrain_pause: 1s\ndiscovery_ttl: 1s\npermission_ttl: 1s\nupstream_timeout: "+upstreamTimeout+"\nrequest_timeout: 5s\nauth_address_failures: 100000\nauth_total_failures: 100000\n")
	serve(t, env, program.Build(t), "bridge", "--config", config)
	awaitListening(t, address)
	return address, []string{"--capabilities", "auth-bearer,auth-cookie,drupal-types,eager-validation,discovery-cache,permission-ttl,languages,mcp,mcp-2026,mcp-list-changed"}
}

// nodeStarter starts the starter in Node as it is written.
func nodeStarter(t *testing.T, site string) (string, []string) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: node is not installed")
	}
	dir := filepath.Join(t.TempDir(), "bridge")
	out, err := exec.Command(program.Build(t), "init", "node", dir).CombinedOutput()
	must.Assert(t, err == nil, "init: %v: %s", err, out)
	address := free(t)
	serve(t, []string{"DRUPAL_URL=http://" + site, "BRIDGE_LISTEN=" + address, "BRIDGE_DISCOVERY_TTL=1", "BRIDGE_UPSTREAM_TIMEOUT=1"}, "node", filepath.Join(dir, "bridge.js"))
	awaitListening(t, address)
	return address, []string{"--capabilities", "auth-bearer,languages"}
}

// The configurations of the page: no failure, and no warning but those of the starter itself and those that the page names.
func TestThePage(t *testing.T) {
	eachBridge(t, func(t *testing.T, p proxy, bridge string) {
		site := free(t)
		at, flags := bridges[bridge](t, site)
		config := p.ofPage(t)
		if bridge != "reference" {
			config = strings.Replace(config, "option httpchk GET /readyz\n", "", 1) // as the page says
		}
		s := p.start(t, config, at)
		url := "http://" + s.address
		if p.tls {
			url = "https://localhost:" + s.port
		}
		prefixes := []string{""}
		if bridge == "reference" {
			prefixes = append(prefixes, "/drupal")
		}
		for _, prefix := range prefixes {
			for _, r := range run(t, s, url+prefix, site, flags).Results {
				mayWarn := bridge != "reference" || r.ID == "upstream/cancel" && (p.name == "apache" || p.name == "varnish") // as the page says
				must.Expect(t, r.Verdict != reports.Fail && r.Verdict != reports.Error && (r.Verdict != reports.Warn || mayWarn),
					"%s%s: %s %s: %s", url, prefix, r.Verdict, r.ID, r.Message)
			}
		}
	})
}

// What the distribution gives and one line: whatever fails names the proxy.
func TestDefaults(t *testing.T) {
	eachBridge(t, func(t *testing.T, p proxy, bridge string) {
		site := free(t)
		at, flags := bridges[bridge](t, site)
		s := p.start(t, p.plain, at)
		report := run(t, s, "http://localhost:"+s.port, site, flags)
		for _, r := range report.Results {
			if r.Verdict == reports.Fail || r.Verdict == reports.Error || r.Verdict == reports.Warn {
				must.Expect(t, strings.Contains(r.Message, "the proxy") || bridge != "reference" && r.Verdict == reports.Warn,
					"%s %s does not name the proxy: %s", r.Verdict, r.ID, r.Message)
			}
		}
		t.Logf("seen: %s", report.Target.Proxy)
	})
}

// Two bridges behind one URL: with keys and a store in common none fails, and three runs are equal; what fails without names them.
func TestTwoBridges(t *testing.T) {
	nginx := proxies[0]
	for name, runs := range map[string]int{"shared": 3, "alone": 1} {
		t.Run(name, func(t *testing.T) {
			must.Need(t, !testing.Short(), "SKIPPED: -short: two bridges behind one URL are not tested")
			must.Need(t, nginx.path() != "", "SKIPPED: nginx is not installed: two bridges behind one URL are not tested")
			site, shared := free(t), []string{}
			if name == "shared" {
				shared = []string{"BRIDGE_SESSION_KEYS=two bridges have this key in common and it is no secret", "BRIDGE_SHARED=" + redistest.Start(t).Address}
			}
			one, flags := replicaOf(t, site, shared...)
			two, _ := replicaOf(t, site, shared...)
			s := nginx.start(t, nginx.ofTwo(t), one, two)
			var before map[string]reports.Verdict
			for n := range runs {
				report := run(t, s, "https://localhost:"+s.port, site, flags)
				for _, r := range report.Results {
					bad := r.Verdict == reports.Fail || r.Verdict == reports.Error || r.Verdict == reports.Warn
					must.Expect(t, !bad || name != "shared" && strings.Contains(r.Message, "session_keys, shared"),
						"run %d: %s %s: %s", n+1, r.Verdict, r.ID, r.Message)
					must.Expect(t, before == nil || before[r.ID] == r.Verdict,
						"run %d: %s is %s, and was %s", n+1, r.ID, r.Verdict, before[r.ID])
				}
				before = report.ByClause()
			}
		})
	}
}

func eachBridge(t *testing.T, test func(t *testing.T, p proxy, bridge string)) {
	for _, p := range proxies {
		for _, bridge := range []string{"reference", "node"} {
			t.Run(p.name+"/"+bridge, func(t *testing.T) {
				must.Need(t, !testing.Short(), "%v", "SKIPPED: -short: no bridge is tested behind "+p.name)
				must.Need(t, p.path() != "", "SKIPPED: %s is not installed: no bridge is tested behind it", p.program)
				test(t, p, bridge)
			})
		}
	}
}

// run tests a bridge by its public URL.
func run(t *testing.T, s *stand, url, site string, flags []string) *reports.Report {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "bridgecheck.yaml")
	write(t, config, "tls: {ca: "+s.dir+"/cert.pem}\n")
	args := append([]string{"run", "--config", config, "--url", url, "--mock-listen", site, "--report-dir", dir, "--discovery-ttl", "1s", "--upstream-timeout", upstreamTimeout}, flags...)
	if *only != "" {
		for id := range strings.SplitSeq(*only, ",") {
			args = append(args, "--only", id)
		}
	}
	cmd := exec.CommandContext(t.Context(), program.Build(t), args...)
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	report, failed := reports.ReadFile(filepath.Join(dir, "report.json"))
	must.Assert(t, failed == nil, "%v: %v: %v\n%s", args, err, failed, said)
	must.Expect(t, report.CutShort == "", "the run ended early: %s\n%s", report.CutShort, said)
	t.Logf("%s: %d pass, %d fail, %d warn, %d not testable in %d s; measured %+v", url, report.Summary.Pass, report.Summary.Fail, report.Summary.Warn, report.Summary.NotTestable, report.DurationMS/1000, report.Measured)
	return report
}

// serve starts a process that ends with the test.
func serve(t *testing.T, env []string, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	log := must.Get(os.Create(filepath.Join(t.TempDir(), "log")))(t)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		log.Close()
		if said, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s said:\n%s", name, said[max(0, len(said)-2000):])
		}
	})
	return cmd
}

func free(t *testing.T) string {
	t.Helper()
	return program.Address(t)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(file, []byte(text), 0o644))
}

// portOf is the port of an address.
func portOf(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", address, err))
	}
	return port
}
