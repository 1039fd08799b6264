//go:build unix

// Package proxies tests bridges behind the five proxies that they stand behind in production: with the configurations of
// docs/behind-a-proxy.md, and with what the distribution gives and the one line that passes requests on.
package proxies

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// proxy is one of the five: its configurations, and how it is started in the foreground without rights.
type proxy struct {
	name, program string
	section       string // of the page, and the language of its block
	language      string
	wrap          func(dir, port, config string) map[string]string // the files of a configuration, by name
	args          func(dir, port string) []string
	plain         string // the distribution's defaults and the one line: AT is the bridge, PORT its own port
	tls           bool   // it ends TLS itself
}

var proxies = []proxy{
	{name: "nginx", program: "nginx", section: "nginx", language: "nginx", tls: true,
		wrap: func(dir, _, config string) map[string]string {
			temp := ""
			for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
				temp += kind + "_temp_path " + dir + "/" + kind + ";\n"
			}
			return map[string]string{"nginx.conf": "daemon off;\nmaster_process off;\npid " + dir + "/pid;\nerror_log " + dir + "/error.log;\n" +
				"events { worker_connections 768; }\nhttp {\naccess_log off;\nsendfile on;\ntcp_nopush on;\ngzip on;\n" + temp + config + "\n}\n"}
		},
		args:  func(dir, _ string) []string { return []string{"-c", dir + "/nginx.conf", "-p", dir} },
		plain: "server {\nlisten 127.0.0.1:PORT;\nlocation / { proxy_pass http://AT; }\n}\n"},
	{name: "apache", program: "apache2", section: "Apache", language: "apache", tls: true,
		wrap: func(dir, port, config string) map[string]string {
			modules := ""
			for name := range strings.FieldsSeq("mpm_event authz_core reqtimeout mime deflate filter setenvif headers ssl socache_shmcb http2 proxy proxy_http slotmem_shm proxy_balancer lbmethod_byrequests") {
				modules += "LoadModule " + name + "_module /usr/lib/apache2/modules/mod_" + name + ".so\n"
			}
			return map[string]string{"apache2.conf": modules + "User www-data\nGroup www-data\nServerRoot " + dir + "\nDefaultRuntimeDir " + dir + "\nPidFile " + dir + "/pid\nErrorLog " + dir + "/error.log\n" +
				"TypesConfig /dev/null\nMutex file:" + dir + "\nTimeout 300\nKeepAlive On\nMaxKeepAliveRequests 100\nKeepAliveTimeout 5\nServerName localhost\n" +
				"AddOutputFilterByType DEFLATE application/json\nRequestReadTimeout header=20-40,minrate=500 body=10,minrate=500\nListen 127.0.0.1:" + port + "\n" + config}
		},
		args:  func(dir, _ string) []string { return []string{"-DFOREGROUND", "-f", dir + "/apache2.conf"} },
		plain: "ProxyPass / http://AT/\n"},
	{name: "haproxy", program: "haproxy", section: "HAProxy", language: "haproxy", tls: true,
		wrap: func(dir, _, config string) map[string]string { return map[string]string{"haproxy.cfg": config + "\n"} },
		args: func(dir, _ string) []string { return []string{"-db", "-f", dir + "/haproxy.cfg"} },
		plain: "defaults\nmode http\noption httplog\noption dontlognull\ntimeout connect 5000\ntimeout client 50000\ntimeout server 50000\n" +
			"frontend f\nbind 127.0.0.1:PORT\ndefault_backend b\nbackend b\nserver one AT\n"},
	{name: "varnish", program: "varnishd", section: "Varnish", language: "vcl",
		wrap: func(dir, _, config string) map[string]string { return map[string]string{"default.vcl": config} },
		args: func(dir, port string) []string {
			return []string{"-F", "-a", "127.0.0.1:" + port, "-f", dir + "/default.vcl", "-n", dir + "/run", "-T", "none", "-s", "default,64m", "-j", "none"}
		},
		plain: "vcl 4.1;\nbackend default { .host = \"AT_HOST\"; .port = \"AT_PORT\"; }\n"},
	{name: "caddy", program: "caddy", section: "Caddy", language: "caddyfile", tls: true,
		wrap: func(dir, _, config string) map[string]string {
			return map[string]string{"Caddyfile": "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n" + config}
		},
		args: func(dir, _ string) []string {
			return []string{"run", "--adapter", "caddyfile", "--config", dir + "/Caddyfile"}
		},
		plain: "http://localhost:PORT {\n\treverse_proxy AT\n}\n"},
}

// ofPage is the configuration of the page.
func (p proxy) ofPage(t *testing.T) string {
	t.Helper()
	return p.block(t, p.section)
}

// ofTwo is the configuration of the page for two bridges.
func (p proxy) ofTwo(t *testing.T) string {
	t.Helper()
	one, more := p.ofPage(t), p.block(t, "Several bridges behind one URL")
	switch p.name {
	case "varnish":
		return more
	case "apache":
		return regexp.MustCompile(`(?m)^\tProxyPass .*$`).ReplaceAllLiteralString(one, more)
	case "caddy":
		return strings.Replace(one, "\treverse_proxy 127.0.0.1:8081 {", more, 1)
	}
	return regexp.MustCompile(`(?m)^\tserver .*127\.0\.0\.1:8081.*$`).ReplaceAllString(one, "$0\n"+more)
}

// block is the configuration in a section of the page.
func (p proxy) block(t *testing.T, section string) string {
	t.Helper()
	page := must.Get(os.ReadFile("../../docs/behind-a-proxy.md"))(t)
	_, text, _ := strings.Cut(string(page), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	block := regexp.MustCompile("(?s)\n```" + p.language + "\n(.*?)\n```\n").FindStringSubmatch(text)
	must.Assert(t, block != nil, "the section %s of the page has no configuration of %s", section, p.name)
	return block[1]
}

// start starts the proxy with a configuration before a bridge, which both end with the test, and gives its address. The
// configuration names addresses as the page does, or by PORT and AT.
func (p proxy) start(t *testing.T, config string, bridges ...string) *stand {
	t.Helper()
	program := p.path()
	must.Need(t, program != "", "SKIPPED: %s is not installed", p.program)
	dir := t.TempDir()
	must.Do(t, os.Chmod(dir, 0o755)) // for those that change their user
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must.Certificate(t, cert, key, nil)
	both := append(must.Get(os.ReadFile(cert))(t), must.Get(os.ReadFile(key))(t)...)
	must.Do(t, os.WriteFile(filepath.Join(dir, "both.pem"), both, 0o644))
	address := free(t)
	host, port, _ := net.SplitHostPort(bridges[0])
	own := portOf(address)
	second := append(bridges, "127.0.0.1:8083")[min(1, len(bridges))]
	config = strings.NewReplacer("127.0.0.1:8083", second, `"8083"`, `"`+portOf(second)+`"`, "*:443", "127.0.0.1:"+own, "listen 443", "listen 127.0.0.1:"+own, "/etc/ssl/bridge", dir,
		"bridge.example {", "https://localhost:"+own+" {", "bridge.example", "localhost", "127.0.0.1:8081", bridges[0], `.host = "127.0.0.1"`, `.host = "`+host+`"`,
		`"8081"`, `"`+port+`"`, "AT_HOST", host, "AT_PORT", port, "AT", bridges[0], "PORT", own).Replace(config)
	for name, text := range p.wrap(dir, own, config) {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	var said bytes.Buffer
	cmd := exec.Command(program, p.args(dir, own)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &said, &said
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin", "HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir}
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		late.Stop()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "error.log"))
			t.Logf("%s said:\n%s%s", p.name, said.String(), log[max(0, len(log)-4000):])
		}
	})
	awaitListening(t, address)
	return &stand{address: address, port: own, dir: dir}
}

// stand is a proxy that runs.
type stand struct {
	address, port string
	dir           string // with its certificate, cert.pem
}

// path is the path of the proxy's program; "": it is not there.
func (p proxy) path() string {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin") {
		if file := filepath.Join(dir, p.program); dir != "" {
			if _, err := os.Stat(file); err == nil {
				return file
			}
		}
	}
	return ""
}

func awaitListening(t *testing.T, address string) {
	t.Helper()
	must.Become(t, 30*time.Second, func() bool { return freeport.Listens(address) }, "nothing listens on %s", address)
}
