package attacks

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// siegeMiB bounds the memory of a bridge with default settings under siege: twice max_buffered, for garbage is as much
// again until it is collected; 20 times max_body for each check under way; 64 KiB for each of max_connections.
const siegeMiB = 2*128 + 2*20*2 + 256

// honestPause is how long an honest caller thinks between two calls.
const honestPause = 20 * time.Millisecond

// TestSiege has hostile and honest callers side by side for SIEGE_TIME, and prints what became of the honest ones. As all
// share the machine, honest callers are measured before beside the same attacks on another bridge, too: what is slower then
// is the machine, and what is slower still under siege is the bridge.
func TestSiege(t *testing.T) {
	if os.Getenv("SIEGE_TIME") == "" {
		t.Skip("make siege runs it, for SIEGE_TIME")
	}
	lasts, err := time.ParseDuration(os.Getenv("SIEGE_TIME"))
	if err != nil {
		t.Fatalf("SIEGE_TIME is %q; it must be a time such as 10m", os.Getenv("SIEGE_TIME"))
	}
	s, decoySite := newSite(t), newSite(t)
	p := start(t, s, "--write-timeout", "5s", "--body-timeout", "5s")
	g, decoy := &siege{process: p}, &siege{process: start(t, decoySite, "--write-timeout", "5s", "--body-timeout", "5s")}

	calm := g.honest(t, lasts/6)
	t.Logf("calm:  %s", calm)
	_, end := decoy.attacked(t)
	busy := g.honest(t, lasts/3)
	end()
	close(decoySite.release)
	t.Logf("busy:  %s", busy)

	attacks, end := g.attacked(t)
	besieged := g.honest(t, lasts/2)
	close(s.release)
	end()
	p.mustServe("after the siege")

	crashes := 0
	if !p.alive() || strings.Contains(p.output.String(), "panic") {
		crashes++
	}
	g.look(p.output.String() + decoy.output.String())
	var made []string
	for i, kind := range kinds {
		made = append(made, fmt.Sprintf("%s %d", kind.name, attacks[i].Load()))
	}
	t.Logf("siege: %s", besieged)
	t.Logf("attacks: %s", strings.Join(made, ", "))
	t.Logf("%d crashes; the bridge held %d MiB of %d; honest callers' p99 is %.1f times that on a machine as busy and %.1f times the calm one, with %.2f %% clean 429 or 503; %d secrets in outputs",
		crashes, p.peak(), siegeMiB, besieged.times(busy), besieged.times(calm), besieged.cleanShare(), g.secrets.Load())
	if crashes > 0 || p.peak() > siegeMiB || g.secrets.Load() > 0 || besieged.failed > 0 || busy.failed > 0 || calm.failed > 0 || besieged.served == 0 {
		t.Errorf("the siege was won: %q", []string{calm.first, busy.first, besieged.first})
	}
}

// siege is a bridge with hostile and honest callers.
type siege struct {
	*process
	secrets atomic.Int64
}

// attacked has all kinds of attackers at work until end is called, and counts the attacks.
func (g *siege) attacked(t *testing.T) (attacks *[len(kinds)]atomic.Int64, end func()) {
	attacks = new([len(kinds)]atomic.Int64)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i, kind := range kinds {
		for n := range kind.at {
			wg.Go(func() {
				for ctx.Err() == nil {
					kind.attack(g, ctx, fmt.Sprintf("127.0.1.%d", 1+i*10+n))
					attacks[i].Add(1)
					sleep(ctx, kind.pause)
				}
			})
		}
	}
	return attacks, func() {
		cancel()
		wg.Wait()
	}
}

// look counts secrets in what the bridge said.
func (g *siege) look(said string) {
	for _, s := range []string{secret, "honest-pass", base64.StdEncoding.EncodeToString([]byte("honest:honest-pass"))} {
		if strings.Contains(said, s) {
			g.secrets.Add(1)
		}
	}
}

// outcome is what honest callers got.
type outcome struct {
	took                  []time.Duration
	served, clean, failed int
	first                 string // of the failures
}

func (o *outcome) p99() time.Duration {
	if len(o.took) == 0 {
		return 0
	}
	slices.Sort(o.took)
	return o.took[len(o.took)*99/100]
}

// times is how many times the p99 of another outcome the p99 is.
func (o *outcome) times(other *outcome) float64 {
	return float64(o.p99()) / float64(max(other.p99(), time.Microsecond))
}

func (o *outcome) cleanShare() float64 {
	return 100 * float64(o.clean) / float64(max(o.served+o.clean+o.failed, 1))
}

func (o *outcome) String() string {
	p99 := o.p99()
	return fmt.Sprintf("%d calls served, %d refused with 429 or 503, %d failed; median %s, p99 %s", o.served, o.clean, o.failed, o.took[len(o.took)/2], p99)
}

// honest has callers of several addresses call and list for a while.
func (g *siege) honest(t *testing.T, lasts time.Duration) *outcome {
	var mu sync.Mutex
	o := &outcome{}
	var wg sync.WaitGroup
	end := time.Now().Add(lasts)
	for n := range 4 {
		wg.Go(func() {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(10+n))}}
			client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: d.DialContext}}
			defer client.CloseIdleConnections()
			for i := 0; time.Now().Before(end); i++ {
				began := time.Now()
				status, body := g.ask(client, i)
				took := time.Since(began)
				mu.Lock()
				switch {
				case status == 200:
					o.served++
					o.took = append(o.took, took)
				case status == 429 || status == 503 && strings.Contains(body, `"code"`):
					o.clean++
				default:
					if o.failed++; o.first == "" {
						o.first = fmt.Sprintf("%d %.200s", status, body)
					}
				}
				mu.Unlock()
				time.Sleep(honestPause)
			}
		})
	}
	wg.Wait()
	return o
}

// ask is an honest caller's request.
func (g *siege) ask(client *http.Client, i int) (int, string) {
	method, path, body := "POST", "/mcp/tools/invoke", `{"name":"content.echo","arguments":{"v":[1,2,3]}}`
	switch i % 5 {
	case 1:
		method, path, body = "GET", "/mcp/tools/list", ""
	case 2:
		body = `{"name":"content.integers","arguments":{"v":[` + strings.Repeat("1,", 1000) + `1]}}`
	}
	req, err := http.NewRequest(method, "http://"+g.address+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.SetBasicAuth("honest", "honest-pass")
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	read, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	g.look(string(read) + fmt.Sprint(res.Header))
	return res.StatusCode, string(read)
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
	attack func(g *siege, ctx context.Context, from string)
}

var kinds = [...]kind{
	{"oversized values with closed sockets", 3, 50 * time.Millisecond, oversize},
	{"slow bodies", 2, 100 * time.Millisecond, slowBodies},
	{"slow readers", 2, 100 * time.Millisecond, slowReaders},
	{"connection floods", 1, 200 * time.Millisecond, flood},
	{"wrong passwords", 3, 5 * time.Millisecond, wrongPassword},
	{"garbage for cursors", 2, 5 * time.Millisecond, garbageCursor},
	{"spellings of one identity", 2, 5 * time.Millisecond, spelling},
	{"slow tools", 100, 0, slowTool},
	{"envelopes", 2, 50 * time.Millisecond, envelope},
}

func (g *siege) hostile(ctx context.Context, from, user, method, path, body string, h http.Header) {
	_, said := g.send(ctx, from, user, method, path, body, h)
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

func slowBodies(g *siege, ctx context.Context, from string) {
	var conns []net.Conn
	for range 30 {
		c := g.connect(ctx, from)
		if c == nil {
			break
		}
		conns = append(conns, c)
		io.WriteString(c, head("/mcp/tools/invoke", "mallory", "mallory-pass", longest)+`{"name":"content.echo","arguments":{"v":"`+strings.Repeat("x", 100<<10))
	}
	for range 20 {
		for _, c := range conns {
			io.WriteString(c, strings.Repeat("x", 4<<10))
		}
		sleep(ctx, 100*time.Millisecond)
	}
	for _, c := range conns {
		c.Close()
	}
}

func slowReaders(g *siege, ctx context.Context, from string) {
	body := `{"name":"content.` + []string{"large", "echo"}[rand.IntN(2)] + `","arguments":{}}`
	var conns []net.Conn
	for range 10 {
		c := g.connect(ctx, from)
		if c == nil {
			break
		}
		conns = append(conns, c)
		io.WriteString(c, strings.Repeat(head("/mcp/tools/invoke", "mallory", "mallory-pass", len(body))+body, 20))
	}
	sleep(ctx, 2*time.Second)
	for _, c := range conns {
		c.Close()
	}
}

func flood(g *siege, ctx context.Context, from string) {
	var conns []net.Conn
	for range 1500 {
		if c := g.connect(ctx, from); c != nil {
			conns = append(conns, c)
		}
	}
	for _, c := range conns[max(len(conns)-5, 0):] {
		io.WriteString(c, "GET /mcp/tools/list HTTP/1.1\r\nHost: x\r\n\r\n")
		c.SetReadDeadline(time.Now().Add(time.Second)) //nolint:errcheck // see connect
		if res, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
			said, _ := io.ReadAll(res.Body)
			g.look(string(said))
		}
	}
	sleep(ctx, time.Second)
	for _, c := range conns {
		c.Close()
	}
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
