//go:build unix

package proxies

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// Two bridges are restarted one after the other while callers list and call: no request is lost, and no call runs twice.
func TestRollingRestart(t *testing.T) {
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) {
			must.Need(t, !testing.Short(), "%v", "SKIPPED: -short: no bridge is restarted behind "+p.name)
			must.Need(t, p.path() != "", "SKIPPED: %s is not installed: no bridge is restarted behind it", p.program)
			drupal, site := echoSite(t)
			replicas := []*replica{newReplica(t, site), newReplica(t, site)}
			s := p.start(t, p.ofTwo(t), replicas[0].address, replicas[1].address)
			url, client := "http://localhost:"+s.port, s.client(t)
			if p.tls {
				url = "https://localhost:" + s.port
			}
			time.Sleep(4 * time.Second) // for the first checks of health

			var done atomic.Bool
			var sent atomic.Int64
			var mu sync.Mutex
			answered := map[string]bool{}
			var callers sync.WaitGroup
			for n := range 8 {
				callers.Go(func() {
					for i := 0; !done.Load(); i++ {
						token := fmt.Sprintf("%d-%d", n, i)
						request, err := http.NewRequest("GET", url+"/mcp/tools/list", nil)
						if n%2 == 1 {
							request, err = http.NewRequest("POST", url+"/mcp/tools/invoke", strings.NewReader(`{"name":"restart.echo","arguments":{"token":"`+token+`"}}`))
							request.Header.Set("Content-Type", "application/json")
						}
						if err != nil {
							t.Error(err)
							return
						}
						request.SetBasicAuth("agent", "agent-pass")
						sent.Add(1)
						response, err := client.Do(request)
						if err != nil {
							t.Errorf("%s %s: %v", request.Method, token, err)
							continue
						}
						body, err := io.ReadAll(response.Body)
						response.Body.Close()
						if err != nil || response.StatusCode != 200 {
							t.Errorf("%s %s: %d %v %s", request.Method, token, response.StatusCode, err, body[:min(len(body), 200)])
							continue
						}
						if n%2 == 1 {
							mu.Lock()
							answered[token] = bytes.Contains(body, []byte(token))
							mu.Unlock()
						}
						time.Sleep(5 * time.Millisecond)
					}
				})
			}
			for _, r := range replicas {
				time.Sleep(time.Second)
				r.restart()
				time.Sleep(3 * time.Second) // until the proxy sees it
			}
			done.Store(true)
			callers.Wait()
			runs := map[string]int{}
			for _, entry := range drupal.Journal().Entries(0) {
				for _, call := range entry.Calls {
					if call.Method == "restart.echo" {
						runs[string(call.Params)]++
					}
				}
			}
			for token, own := range answered {
				ran := runs[`{"token":"`+token+`"}`]
				must.Expect(t, ran == 1 && own, "the call %s ran %d times; its response is its own: %v", token, ran, own)
			}
			for params, n := range runs {
				must.Expect(t, n <= 1, "%s ran %d times", params, n)
			}
			t.Logf("%d requests, %d calls", sent.Load(), len(answered))
			must.Expect(t, len(answered) >= 100, "%d calls: too few", len(answered))
		})
	}
}

// echoSite is a site with a method that gives its argument back.
func echoSite(t *testing.T) (*mockdrupal.Drupal, string) {
	t.Helper()
	site := must.Get(fixtures.Builtin("default"))(t)
	site = site.Clone()
	site.Methods = append(site.Methods, fixtures.Method{ID: "restart.echo", Usage: "Gives its token back", MCP: &fixtures.Tool{},
		Params:    []fixtures.Param{{Name: "token", Schema: fixtures.Raw(`{"type":"string"}`), Required: true}},
		Behaviour: fixtures.Behaviour{Kind: fixtures.Echo}})
	drupal := must.Get(mockdrupal.New(site, mockdrupal.Options{JournalLimit: 200_000}))(t)
	server := must.Serve(t, drupal)
	return drupal, server.URL
}

// replica is a bridge that is restarted.
type replica struct {
	t                        *testing.T
	program, address, config string
	process                  *exec.Cmd
}

func newReplica(t *testing.T, site string) *replica {
	r := &replica{t: t, program: program.Build(t), address: free(t), config: filepath.Join(t.TempDir(), "bridge.yaml")}
	write(t, r.config, "drupal: "+site+"\nlisten: "+r.address+"\nallowed_hosts: [localhost]\ntrusted_proxies: [127.0.0.1]\ndrain_pause: 5s\n")
	r.start()
	t.Cleanup(func() {
		r.process.Process.Kill()
		r.process.Wait()
	})
	return r
}

func (r *replica) start() {
	r.process = exec.Command(r.program, "bridge", "--config", r.config)
	r.process.Env = []string{"PATH=" + os.Getenv("PATH")}
	must.Do(r.t, r.process.Start())
	awaitListening(r.t, r.address)
}

func (r *replica) restart() {
	r.process.Process.Signal(syscall.SIGTERM)
	r.process.Wait()
	r.start()
}

// client is a client that trusts the proxy's certificate.
func (s *stand) client(t *testing.T) *http.Client {
	t.Helper()
	cert := must.Get(os.ReadFile(filepath.Join(s.dir, "cert.pem")))(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}
