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

	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/reports"
)

// The starter in PHP behind nginx and FPM, with the pool of the page: no failure.
func TestFPM(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: the starter in PHP is not tested under FPM")
	}
	found, _ := filepath.Glob("/usr/sbin/php-fpm*")
	nginx := proxies[0]
	if len(found) == 0 || nginx.path() == "" || os.Getuid() != 0 {
		t.Skip("SKIPPED: php-fpm or nginx is not installed, or this is not root: the starter in PHP is not tested under FPM")
	}
	dir, site := t.TempDir(), free(t)
	starter, socket := filepath.Join(dir, "bridge"), filepath.Join(dir, "fpm.sock")
	if out, err := exec.Command(program.Build(t), "init", "php", starter).CombinedOutput(); err != nil {
		t.Fatalf("init: %v: %s", err, out)
	}
	page, err := os.ReadFile("../../docs/behind-a-proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(language string) string {
		m := regexp.MustCompile("(?s)\n```" + language + "\n(.*?)\n```\n").FindStringSubmatch(string(page))
		if m == nil {
			t.Fatalf("the page has no %s", language)
		}
		return strings.NewReplacer("/run/php/bridge.sock", socket, "/srv/bridge", starter, "http://127.0.0.1:8080", "http://"+site, "www-data", "root",
			"include fastcgi_params", "include /etc/nginx/fastcgi_params").Replace(m[1])
	}
	write(t, filepath.Join(dir, "fpm.conf"), "[global]\nerror_log = "+dir+"/fpm.log\n"+block("ini")+"\n")
	serve(t, nil, found[0], "--nodaemonize", "--allow-to-run-as-root", "--fpm-config", filepath.Join(dir, "fpm.conf"))
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(dir + "/fpm.log")
			t.Fatalf("FPM does not listen:\n%s", log)
		}
	}
	s := nginx.start(t, block("fpm"), "127.0.0.1:8081")
	for _, r := range run(t, s, "https://localhost:"+s.port, site, []string{"--capabilities", "auth-bearer,auth-cookie,languages", "--upstream-timeout", "10s"}).Results {
		if r.Verdict == reports.Fail || r.Verdict == reports.Error {
			t.Errorf("%s %s: %s", r.Verdict, r.ID, r.Message)
		}
		if r.Verdict == reports.Warn {
			t.Logf("%s %s: %s", r.Verdict, r.ID, r.Message)
		}
	}
}
