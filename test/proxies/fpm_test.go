//go:build unix

package proxies

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/reports"
)

// The starter in PHP behind nginx and FPM. With the pool of the page nothing fails; with that of Debian, of five processes, and one
// line of nginx, what fails names the proxy, or the pool.
func TestFPM(t *testing.T) {
	const debian = "[bridge]\nuser = www-data\nlisten = /run/php/bridge.sock\npm = dynamic\npm.max_children = 5\npm.start_servers = 2\npm.min_spare_servers = 1\npm.max_spare_servers = 3\nenv[DRUPAL_URL] = http://127.0.0.1:8080\n"
	const pass = "server {\nlisten 443 ssl;\nssl_certificate /etc/ssl/bridge/cert.pem;\nssl_certificate_key /etc/ssl/bridge/key.pem;\n" +
		"location / { include fastcgi_params; fastcgi_param SCRIPT_FILENAME /srv/bridge/index.php; fastcgi_pass unix:/run/php/bridge.sock; }\n}\n"
	for name, c := range map[string]struct{ pool, server string }{"the page": {fpmBlock(t, "ini"), fpmBlock(t, "fpm")}, "defaults": {debian, pass}} {
		t.Run(name, func(t *testing.T) {
			must.Need(t, !testing.Short(), "SKIPPED: -short: the starter in PHP is not tested under FPM")
			found, _ := filepath.Glob("/usr/sbin/php-fpm*")
			nginx := proxies[0]
			must.Need(t, len(found) > 0 && nginx.path() != "" && os.Getuid() == 0,
				"SKIPPED: php-fpm or nginx is not installed, or this is not root: the starter in PHP is not tested under FPM")
			dir, site := t.TempDir(), free(t)
			starter, socket := filepath.Join(dir, "bridge"), filepath.Join(dir, "fpm.sock")
			out, err := exec.Command(program.Build(t), "init", "php", starter).CombinedOutput()
			must.Assert(t, err == nil, "init: %v: %s", err, out)
			here := strings.NewReplacer("/run/php/bridge.sock", socket, "/srv/bridge", starter, "http://127.0.0.1:8080", "http://"+site, "www-data", "root",
				"include fastcgi_params", "include /etc/nginx/fastcgi_params")
			write(t, filepath.Join(dir, "fpm.conf"), "[global]\nerror_log = "+dir+"/fpm.log\n"+here.Replace(c.pool)+"\n")
			serve(t, nil, found[0], "--nodaemonize", "--allow-to-run-as-root", "--fpm-config", filepath.Join(dir, "fpm.conf"))
			must.Become(t, 20*time.Second, func() bool { _, err := os.Stat(socket); return err == nil }, "FPM does not listen")
			s := nginx.start(t, here.Replace(c.server), "127.0.0.1:8081")
			for _, r := range run(t, s, "https://localhost:"+s.port, site, []string{"--capabilities", "auth-bearer,auth-cookie,languages", "--upstream-timeout", "10s"}).Results {
				named := name == "defaults" && (strings.Contains(r.Message, "the proxy") || r.ID == "load/slow-method-isolated" && strings.Contains(r.Remedy, "pm.max_children"))
				if (r.Verdict == reports.Fail || r.Verdict == reports.Error) && !named {
					t.Errorf("%s %s: %s", r.Verdict, r.ID, r.Message)
				} else if r.Verdict == reports.Fail || r.Verdict == reports.Warn {
					t.Logf("%s %s: %s", r.Verdict, r.ID, r.Message)
				}
			}
		})
	}
}

// fpmBlock is a configuration of the page.
func fpmBlock(t *testing.T, language string) string {
	t.Helper()
	page := must.Get(os.ReadFile("../../docs/behind-a-proxy.md"))(t)
	m := regexp.MustCompile("(?s)\n```" + language + "\n(.*?)\n```\n").FindStringSubmatch(string(page))
	must.Assert(t, m != nil, "the page has no %s", language)
	return m[1]
}
