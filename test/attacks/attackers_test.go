package attacks

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// besiege is the variable that makes this program attackers: it holds whose, the address of the bridge and the authorization
// server, with blanks between them.
const besiege = "ATTACKERS_BESIEGE"

// hostiles are a process of their own, for real ones run elsewhere: its priority is the lowest there is, so that what
// honest callers lose is lost by the bridge and not by the processors that the attackers take from it. In the process of
// the callers a thread of that priority would hold up all of Go's goroutines there.
type hostiles struct {
	cmd  *exec.Cmd
	end  io.Closer
	said *json.Decoder
	peer string // the address of a server that sends what no peer should
}

// harm is what attackers did and saw.
type harm struct {
	Attacks map[string]int64 // by their kind
	Sent    int64            // responses of the hostile peer
	Limited int64            // requests that got 429 or 503
	Secrets int64
}

func (h harm) String() string {
	return fmt.Sprintf("%v; %d requests met a limit; the peer sent %d responses", h.Attacks, h.Limited, h.Sent)
}

// weak names the kinds that made fewer attacks than their least.
func (h harm) weak(who string, in time.Duration) string {
	var weak []string
	for _, kind := range kinds[who] {
		if rate := float64(h.Attacks[kind.name]) / in.Seconds(); rate < kind.least {
			weak = append(weak, fmt.Sprintf("%s %.1f a second of %.1f", kind.name, rate, kind.least))
		}
	}
	return strings.Join(weak, ", ")
}

// attack starts attackers, of those in kinds. By nice(1), for on Linux a process that runs can lower the priority of one thread
// only.
func attack(t *testing.T, p *process, who, issuer string) *hostiles {
	t.Helper()
	self := must.Get(os.Executable())(t)
	a := &hostiles{cmd: exec.Command("nice", "-n", "19", self)}
	a.cmd.Env = append(os.Environ(), besiege+"="+who+" "+p.address+" "+issuer)
	a.cmd.Stderr = os.Stderr
	endWithTests(a.cmd)
	a.end = must.Get(a.cmd.StdinPipe())(t)
	a.said = json.NewDecoder(must.Get(a.cmd.StdoutPipe())(t))
	must.Do(t, a.cmd.Start())
	t.Cleanup(func() { a.cmd.Process.Kill() })
	must.Do(t, a.said.Decode(&a.peer))
	return a
}

// stop ends the attacks and says what they did.
func (a *hostiles) stop(t *testing.T) (h harm) {
	t.Helper()
	a.end.Close()
	err := a.said.Decode(&h)
	must.Assert(t, err == nil, "the attackers do not say what they did: %v", err)
	err = a.cmd.Wait()
	must.Assert(t, err == nil, "the attackers failed: %v", err)
	return h
}

// attackUntilEnd is the attackers' process: all kinds are at work until standard input ends.
func attackUntilEnd(variable string) {
	with := strings.Split(variable, " ")
	kinds := kinds[with[0]]
	g := &siege{process: &process{address: with[1]}}
	if with[0] == "issuer" {
		server, err := authserver.Listen("127.0.0.1:0", authserver.Options{})
		if err != nil {
			log.Fatal(err)
		}
		server.URL = with[2]
		g.issuer = server
	}
	var sent atomic.Int64
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := sent.Add(1)
		answers[int(n)%len(answers)].send(w, n)
	}))
	said := json.NewEncoder(os.Stdout)
	if err := said.Encode(peer.Listener.Addr().String()); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	made := make([]atomic.Int64, len(kinds))
	crowd(len(kinds), func(i int) {
		crowd(kinds[i].at, func(n int) {
			for ctx.Err() == nil {
				kinds[i].attack(g, ctx, fmt.Sprintf("127.0.1.%d", 1+i*10+n))
				made[i].Add(1)
				sleep(ctx, kinds[i].pause)
			}
		})()
	})()
	h := harm{Attacks: map[string]int64{}, Sent: sent.Load(), Limited: g.limited.Load(), Secrets: g.secrets.Load()}
	for i, kind := range kinds {
		h.Attacks[kind.name] = made[i].Load()
	}
	if err := said.Encode(h); err != nil {
		log.Fatal(err)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// kind is a way to attack, of so many attackers at a time who rest for a while after each attack.
type kind struct {
	name   string
	at     int
	pause  time.Duration
	least  float64 // attacks a second without which it is no siege: at most a quarter of what two processors make
	attack func(g *siege, ctx context.Context, from string)
}

// kinds are by who attacks: callers, or a peer, which they make send its responses.
var kinds = map[string][]kind{
	"callers": {
		{"oversized values with closed sockets", 3, 50 * time.Millisecond, 5, oversize},
		{"slow bodies", 2, 100 * time.Millisecond, 0.2, slowBodies},
		{"slow readers", 2, 100 * time.Millisecond, 0.2, slowReaders},
		{"connection floods", 1, 200 * time.Millisecond, 0.1, flood},
		{"wrong passwords", 3, 5 * time.Millisecond, 40, wrongPassword},
		{"garbage for cursors", 2, 5 * time.Millisecond, 25, garbageCursor},
		{"spellings of one identity", 2, 5 * time.Millisecond, 25, spelling},
		{"slow tools", 100, 0, 8, slowTool},
		{"envelopes", 2, 50 * time.Millisecond, 5, envelope},
	},
	"site":   {{"lists", 8, 0, 3, hostileList}, {"results", 8, 0, 3, hostileResult}},
	"issuer": {{"invented keys", 16, 10 * time.Millisecond, 100, inventedKey}},
}

func (g *siege) hostile(ctx context.Context, from, user, method, path, body string, h http.Header) {
	status, said := g.send(ctx, from, user, method, path, body, h)
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		g.limited.Add(1)
	}
	g.look(said)
}

// bodies are the oversized bodies, made once.
var bodies = sync.OnceValue(func() (made []string) {
	for tool, arguments := range oversized {
		made = append(made, `{"name":"`+tool+`","arguments":`+arguments()+`}`)
	}
	return made
})

func oversize(g *siege, ctx context.Context, from string) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(50+rand.IntN(1000))*time.Millisecond)
	defer cancel()
	g.hostile(ctx, from, "mallory", "POST", "/mcp/tools/invoke", bodies()[rand.IntN(len(oversized))], nil)
}

// connect opens a connection for an attack; nil where the bridge takes none.
func (g *siege) connect(ctx context.Context, from string) net.Conn {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 2 * time.Second}
	c, err := d.DialContext(ctx, "tcp", g.address)
	if err != nil {
		return nil
	}
	c.SetDeadline(time.Now().Add(10 * time.Second)) //nolint:errcheck // the connection is new
	return c
}

// connectAll opens up to so many connections for an attack, and sends something on each.
func (g *siege) connectAll(ctx context.Context, from string, many int, sends string) (all []net.Conn) {
	for range many {
		c := g.connect(ctx, from)
		if c == nil {
			break
		}
		all = append(all, c)
		io.WriteString(c, sends)
	}
	return all
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		c.Close()
	}
}

func slowBodies(g *siege, ctx context.Context, from string) {
	conns := g.connectAll(ctx, from, 30,
		head("/mcp/tools/invoke", "mallory", "mallory-pass", longest)+`{"name":"content.echo","arguments":{"v":"`+strings.Repeat("x", 100<<10))
	defer closeAll(conns)
	for range 20 {
		for _, c := range conns {
			io.WriteString(c, strings.Repeat("x", 4<<10))
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

func slowReaders(g *siege, ctx context.Context, from string) {
	body := `{"name":"content.` + []string{"large", "echo"}[rand.IntN(2)] + `","arguments":{}}`
	defer closeAll(g.connectAll(ctx, from, 10, strings.Repeat(head("/mcp/tools/invoke", "mallory", "mallory-pass", len(body))+body, 20)))
	sleep(ctx, 2*time.Second)
}

func flood(g *siege, ctx context.Context, from string) {
	var conns []net.Conn
	for range 1500 {
		if c := g.connect(ctx, from); c != nil {
			conns = append(conns, c)
		}
	}
	defer closeAll(conns)
	for _, c := range conns[max(len(conns)-5, 0):] {
		io.WriteString(c, "GET /mcp/tools/list HTTP/1.1\r\nHost: x\r\n\r\n")
		c.SetReadDeadline(time.Now().Add(time.Second)) //nolint:errcheck // see connect
		if res, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
			said, _ := io.ReadAll(res.Body)
			g.look(string(said))
		}
	}
	sleep(ctx, time.Second)
}

func wrongPassword(g *siege, ctx context.Context, from string) {
	credentials := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "honest:%d", rand.Int()))
	g.hostile(ctx, from, "", "POST", "/mcp/tools/invoke", `{"name":"content.echo","arguments":{}}`, http.Header{"Authorization": {"Basic " + credentials}})
}

func garbageCursor(g *siege, ctx context.Context, from string) {
	garbage := make([]byte, rand.IntN(200))
	for i := range garbage {
		garbage[i] = "0123456789abcdefABCDEF%+/=-_"[rand.IntN(28)]
	}
	g.hostile(ctx, from, "mallory", "GET", "/mcp/tools/list?cursor="+strings.ReplaceAll(string(garbage), "%", "%25"), "", nil)
}

func spelling(g *siege, ctx context.Context, from string) {
	scheme := []string{"Basic ", "basic ", "BASIC ", "Basic  ", "bAsIc "}[rand.IntN(5)]
	pair := base64.StdEncoding.EncodeToString([]byte("mallory:mallory-pass"))
	h := http.Header{
		"Authorization": {scheme + pair + []string{"", " ", "=", "=="}[rand.IntN(4)]}, "Accept-Language": {fmt.Sprintf("x-%d", rand.Int())},
		"Cookie": {fmt.Sprintf("SESS%x=%x; theme=%d", rand.Int(), rand.Int(), rand.Int())},
	}
	g.hostile(ctx, from, "", "GET", "/mcp/tools/list", "", h)
}

func slowTool(g *siege, ctx context.Context, from string) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	g.hostile(ctx, "127.0.2.1", "mallory", "POST", "/mcp/tools/invoke", `{"name":"content.slow","arguments":{}}`, nil)
}

func envelope(g *siege, ctx context.Context, from string) {
	body := []string{
		"[" + strings.Repeat("0,", 500_000) + "0]", strings.Repeat("[", 1_000_000), wideBody(),
		`{"name":["` + strings.Repeat(`\n","`, 300_000) + `"]}`, "\x1f\x8b\x08\x00" + strings.Repeat("\x00", 500_000),
	}[rand.IntN(5)]
	g.hostile(ctx, from, "mallory", "POST", []string{"/mcp", "/mcp/tools/invoke"}[rand.IntN(2)], body, nil)
}

var wideBody = sync.OnceValue(wide)

func hostileList(g *siege, ctx context.Context, from string) {
	g.hostile(ctx, from, "mallory", "GET", "/mcp/tools/list", "", nil)
}

func hostileResult(g *siege, ctx context.Context, from string) {
	g.hostile(ctx, from, "trudy", "POST", "/mcp/tools/invoke", `{"name":"content.echo","arguments":{"v":1}}`, nil)
}

func inventedKey(g *siege, ctx context.Context, from string) {
	g.hostile(ctx, from, "", "GET", "/mcp/tools/list", "", http.Header{"Authorization": {"Bearer " + invented(g.issuer, rand.Int())}})
}
