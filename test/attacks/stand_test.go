// Package attacks attacks the reference bridge as a process of its own over real listeners, as any client
// could: each test asserts bounded memory and bounded work of the process, and that other callers are served meanwhile.
// Work is counted (steps of checking, calls at the site), memory is the most that the process ever held.
package attacks

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
)

// binary is the program under attack: BRIDGECHECK, or one that is built for the tests.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if who := os.Getenv(besiege); who != "" {
		attackUntilEnd(who)
		return 0
	}
	flag.Parse()
	if testing.Short() {
		fmt.Println("SKIPPED: THE BRIDGE WAS NOT ATTACKED: -short is set")
		return 0
	}
	var err error
	if binary, err = program.Path(); err != nil {
		log.Fatal(err)
	}
	return m.Run()
}

// site is a Drupal site whose methods are worth attacking.
type site struct {
	*httptest.Server
	calls   atomic.Int64 // that came
	hostile atomic.Int64 // of them, those of mallory
	slow    atomic.Int64 // of content.slow that have not ended
	release chan struct{}
	takes   time.Duration // for each request
}

// tools are the site's methods by the schema of their one parameter.
var tools = map[string]string{
	"content.echo":     `{}`,
	"content.integers": `{"type":"array","items":{"type":"integer"}}`,
	"content.unique":   `{"type":"array","uniqueItems":true}`,
	"content.objects":  `{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}`,
	"content.pattern":  `{"type":"array","items":{"type":"string","pattern":"^(([a-z]{0,30}){0,30})*$"}}`,
	"content.numbers":  `{"type":"array","items":{"multipleOf":0.001,"maximum":1e300}}`,
	"content.names":    `{"type":"object","patternProperties":{"a+b":{"type":"null"},"(x+x+)+y":{"type":"null"}},"additionalProperties":{"type":"string"}}`,
	"content.closed":   `{"type":"object","properties":{"x":{}},"additionalProperties":false}`,
	"content.any":      `{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"null"},{"required":["a"]},{"const":1},{"enum":[2,3,4]}]}}`,
	"content.tree":     `{"type":["array","object"],"items":{"type":["array","object"],"items":{"type":"array","items":{"type":"object"}}}}`,
	"content.formats":  `{"type":"array","items":{"type":"string","format":"email"}}`,
	"content.enum":     `{"type":"array","items":{"enum":["` + strings.Repeat("a long value ", 500) + `"]}}`,
	"content.later":    `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"array","items":{"type":"integer"},"uniqueItems":true}`,
	"content.slow":     `{}`,
	"content.large":    `{}`,
}

const (
	largeResult = 6 << 20 // bytes of content.large
	smallResult = 4 << 10 // bytes of content.echo
	secret      = "s3cret-of-the-site"
)

func newSite(t testing.TB) *site {
	s := &site{release: make(chan struct{})}
	var methods []string
	for id, schema := range tools {
		methods = append(methods, fmt.Sprintf(`{"id":%q,"attributes":{"usage":"A method","params":{"v":{"schema":%s}},"mcpTool":{}}}`, id, schema))
	}
	list := `{"data":[` + strings.Join(methods, ",") + `],"meta":{"mcp":{"discovery":true}}}`
	large, small := []byte(`"`+strings.Repeat("x", largeResult)+`"`), []byte(`"`+strings.Repeat("y", smallResult)+`"`)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		time.Sleep(s.takes)
		user, password, given := r.BasicAuth()
		if given && password != user+"-pass" {
			w.Header().Set("X-Debug", secret)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if r.URL.Path == "/jsonrpc/methods" {
			io.WriteString(w, list)
			return
		}
		var c struct {
			Method string
			ID     json.RawMessage
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &c) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.calls.Add(1)
		if user == "mallory" {
			s.hostile.Add(1)
		}
		result := small
		switch c.Method {
		case "content.slow":
			s.slow.Add(1)
			defer s.slow.Add(-1)
			select {
			case <-s.release:
			case <-r.Context().Done():
				return
			}
		case "content.large":
			result = large
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":`, c.ID)
		w.Write(result) // not by Fprintf, which would copy it first
		io.WriteString(w, "}")
	}))
	t.Cleanup(s.Close)
	return s
}

// process is a bridge under attack.
type process struct {
	t       testing.TB
	site    *site
	cmd     *exec.Cmd
	address string // host:port
	output  *program.Output
	ended   atomic.Bool

	authorization string // of honest callers; "": a password
}

// start starts a bridge before a site, with flags beside, and has it serve.
func start(t testing.TB, s *site, flags ...string) *process {
	t.Helper()
	p := launch(t, s, flags...)
	p.mustServe("before the attack")
	return p
}

// launch is start without a caller.
func launch(t testing.TB, s *site, flags ...string) *process {
	t.Helper()
	p := &process{t: t, site: s, output: &program.Output{}}
	p.cmd = exec.Command(binary, append([]string{"bridge", "--drupal", s.URL, "--listen", "127.0.0.1:0"}, flags...)...)
	p.cmd.Stderr = p.output
	if os.Getenv("BRIDGECHECK") != "" {
		endWithTests(p.cmd)
	}
	_, p.address, _ = strings.Cut(program.Listening(t, p.cmd), "://")
	t.Cleanup(p.stop)
	return p
}

func (p *process) stop() {
	if p.ended.Swap(true) {
		return
	}
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// command is a bridge that speaks MCP on stdio.
func command(s *site, output io.Writer) *exec.Cmd {
	cmd := exec.Command(binary, "bridge", "--drupal", s.URL, "--stdio")
	cmd.Env = append(os.Environ(), "DRUPAL_USER=honest", "DRUPAL_PASSWORD=honest-pass")
	cmd.Stderr = output
	return cmd
}

// alive reports whether the process is still there.
func (p *process) alive() bool { return p.cmd.Process.Signal(syscall.Signal(0)) == nil }

// peak is the most memory that the process ever held, in MiB.
func (p *process) peak() int {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Skipf("memory is read from /proc: %v", err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	must.Assert(p.t, m != nil, "the process is gone, and with it its memory")
	kib, _ := strconv.Atoi(string(m[1]))
	return kib >> 10
}

// metric reads a figure of the bridge's.
func (p *process) metric(name string) float64 {
	p.t.Helper()
	_, body := p.send(context.Background(), "127.0.0.1", "", "GET", "/metrics", "", nil)
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(body)
	must.Assert(p.t, m != nil, "the bridge does not count %s", name)
	v, _ := strconv.ParseFloat(m[1], 64)
	return v
}

// send sends a request on a connection of its own from an address of this machine, and gives status and body; status 0:
// there was no response.
func (p *process) send(ctx context.Context, from, user, method, path, body string, header http.Header) (int, string) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+p.address+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	maps.Copy(req.Header, header)
	if user != "" {
		req.SetBasicAuth(user, user+"-pass")
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := &http.Client{Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}}
	status, read, _ := do(client, req)
	return status, read
}

// do sends a request, and returns status, body and header of the response; status 0: there was none, and body is the reason.
func do(client *http.Client, req *http.Request) (int, string, http.Header) {
	res, err := client.Do(req)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer res.Body.Close()
	read, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error(), nil
	}
	return res.StatusCode, string(read), res.Header
}

// call invokes a tool with arguments from 127.0.0.1.
func (p *process) call(ctx context.Context, user, tool, arguments string) (int, string) {
	return p.send(ctx, "127.0.0.1", user, "POST", "/mcp/tools/invoke", `{"name":"`+tool+`","arguments":`+arguments+`}`, nil)
}

// crowd has so many act at once, and gives what waits for all of them.
func crowd(many int, act func(i int)) (wait func()) {
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() { act(i) })
	}
	return all.Wait
}

// mustServe asserts that an honest caller is served within a time in which people still wait.
func (p *process) mustServe(when string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	user, header := "honest", http.Header{}
	if p.authorization != "" {
		user = ""
		header.Set("Authorization", p.authorization)
	}
	status, body := p.send(ctx, "127.0.0.9", user, "POST", "/mcp/tools/invoke", `{"name":"content.echo","arguments":{"v":1}}`, header)
	must.Expect(p.t, status == 200, "%s an honest caller gets %d %.200s", when, status, body)
}

// besides has an honest caller call all through an attack, and asserts that all calls are served.
func (p *process) besides(attack func()) {
	p.t.Helper()
	done := make(chan struct{})
	var served atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			p.mustServe("during the attack")
			served.Add(1)
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	attack()
	close(done)
	wg.Wait()
	p.mustServe("after the attack")
}

// mostLog is how many bytes a bridge logs under attack, and as many as program.Output keeps.
const mostLog = 1 << 20

// quiet asserts that the process logged no more than so many bytes.
func (p *process) quiet(most int) {
	p.t.Helper()
	out := p.output.String()
	must.Expect(p.t, len(out) <= most, "%d bytes are logged: %.1000s", len(out), out)
}

// bounded asserts that the process never held more than so many MiB, and logged little.
func (p *process) bounded(most int) {
	p.t.Helper()
	if peak := p.peak(); peak > most {
		p.t.Errorf("the bridge held %d MiB, want %d at most", peak, most)
	} else {
		p.t.Logf("the bridge held %d MiB of %d", peak, most)
	}
	out := p.output.String()
	must.Expect(p.t, len(out) < mostLog, "%d bytes are logged, or more: %.1000s", len(out), out)
	must.Expect(p.t, !strings.Contains(out, secret) && !strings.Contains(out, "-pass") && !strings.Contains(out, "panic"),
		"the log shows a secret or a panic: %.2000s", out)
}
