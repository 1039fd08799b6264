package attacks

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
)

// open opens a connection from an address of this machine, which is closed at the end of the test.
func (p *process) open(from string) net.Conn {
	p.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	c, err := d.Dial("tcp", p.address)
	if err != nil {
		p.t.Errorf("no connection: %v", err)
		return nil
	}
	p.t.Cleanup(func() { c.Close() })
	return c
}

// head is the head of a request with a body of so many bytes.
func head(path, user, password string, length int) string {
	credentials := ""
	if user != "" {
		credentials = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)) + "\r\n"
	}
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n", path, credentials, length)
}

// Bodies that arrive, but for their last byte, are held within a budget: of callers that the site refuses none of it is
// read, and of others there remains enough for who comes next.
func TestBodiesThatNeverEnd(t *testing.T) {
	const attackingBodies = 250
	body := []byte(`{"name":"content.echo","arguments":{"v":"` + strings.Repeat("x", longest))
	for name, c := range map[string]struct {
		path, user, password string
		mib                  int // of memory at most
	}{
		"with a wrong password":          {"/mcp", "mallory", "wrong", 120},
		"without credentials":            {"/mcp", "", "", 300},
		"with credentials":               {"/mcp", "mallory", "mallory-pass", 300},
		"with credentials, not over MCP": {"/mcp/tools/invoke", "mallory", "mallory-pass", 300},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, newSite(t), "--body-timeout", "3s")
			var refused atomic.Int64
			p.besides(func() {
				var wg sync.WaitGroup
				for range attackingBodies {
					wg.Go(func() {
						conn := p.open("127.0.0.1")
						if conn == nil {
							return
						}
						conn.SetDeadline(time.Now().Add(8 * time.Second))
						io.WriteString(conn, head(c.path, c.user, c.password, len(body)+1))
						go conn.Write(body)
						res, err := http.ReadResponse(bufio.NewReader(conn), nil)
						if err == nil && (res.StatusCode == 503 || res.StatusCode == 403 || res.StatusCode == 401) {
							refused.Add(1)
						}
					})
				}
				wg.Go(func() { // another caller's long body is taken meanwhile
					time.Sleep(time.Second)
					status, response := p.send(context.Background(), "127.0.0.2", "other", "POST", "/mcp/tools/invoke",
						`{"name":"content.echo","arguments":{"v":"`+strings.Repeat("x", 500_000)+`"}}`, nil)
					must.Expect(t, status == 200, "another caller's long body: %d %.200s", status, response)
				})
				wg.Wait()
			})
			p.bounded(c.mib)
			must.Expect(t, refused.Load() >= attackingBodies/2, "%d of %d bodies were refused", refused.Load(), attackingBodies)
		})
	}
}

// A body without a length is read up to the limit, and what comes after it is dropped up to another: a client that still
// sends would lose the response.
func TestChunkedBodiesWithoutEnd(t *testing.T) {
	const bodies, most = 20, 64 + 40 // MiB of each, with what sockets hold
	p := start(t, newSite(t))
	chunk := "10000\r\n" + strings.Repeat("x", 1<<16) + "\r\n"
	var sent atomic.Int64
	p.besides(func() {
		crowd(bodies, func(i int) {
			conn := p.open("127.0.0.1")
			if conn == nil {
				return
			}
			path := []string{"/mcp", "/mcp/tools/invoke"}[i%2]
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", path)
			conn.SetDeadline(time.Now().Add(15 * time.Second))
			for range 2000 {
				n, err := io.WriteString(conn, chunk)
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		})()
	})
	p.bounded(300)
	mib := sent.Load() >> 20
	must.Expect(t, mib <= bodies*most, "the bridge took %d MiB of %d bodies", mib, bodies)
}

// Long results that nobody reads are held within the same budget.
func TestLongResultsThatNobodyReads(t *testing.T) {
	p := start(t, newSite(t))
	p.besides(func() {
		crowd(150, func(int) {
			conn := p.open("127.0.0.1")
			if conn == nil {
				return
			}
			conn.(*net.TCPConn).SetReadBuffer(4096)
			body := `{"name":"content.large","arguments":{}}`
			io.WriteString(conn, head("/mcp/tools/invoke", "mallory", "mallory-pass", len(body))+body)
			time.Sleep(4 * time.Second)
		})()
	})
	p.bounded(350)
}

// Who reads none of many small responses is cut off.
func TestSmallResponsesThatNobodyReads(t *testing.T) {
	p := start(t, newSite(t), "--write-timeout", "1s")
	const requests = 20_000
	conn := p.open("127.0.0.1")
	body := `{"name":"content.echo","arguments":{}}`
	request := head("/mcp/tools/invoke", "mallory", "mallory-pass", len(body)) + body
	var served int64
	p.besides(func() {
		go func() {
			for range requests {
				if _, err := io.WriteString(conn, request); err != nil {
					return
				}
			}
		}()
		for served = -1; served != p.site.hostile.Load(); { // until the bridge cannot write any more
			served = p.site.hostile.Load()
			time.Sleep(1500 * time.Millisecond)
		}
		time.Sleep(1500 * time.Millisecond)
	})
	t.Logf("%d of %d requests were served before somebody read", served, requests)
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	io.Copy(io.Discard, conn) // whatever is still on its way
	more := p.site.hostile.Load() - served
	must.Expect(t, more <= 100 && served != requests, "the connection was still served, with %d calls, after nobody had read for seconds", more)
	p.bounded(200)
}

// Connections without a whole request head, of one address or of several, take neither the probes nor calls from anybody.
func TestConnectionFlood(t *testing.T) {
	for name, c := range map[string]struct {
		sends     string
		addresses int
		each      int
	}{
		"silent, one address":      {"", 1, 1300},
		"half a head, one address": {"GET /mcp/tools/list HTTP/1.1\r\nHost:", 1, 1300},
		"half a head, five":        {"GET /mcp/tools/list HTTP/1.1\r\nHost:", 5, 852},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, newSite(t), "--header-timeout", "30s")
			var opened atomic.Int64
			p.besides(func() {
				crowd(c.addresses*c.each, func(i int) {
					conn := p.open(fmt.Sprint("127.0.0.", 1+i%c.addresses))
					if conn == nil {
						return
					}
					opened.Add(1)
					io.WriteString(conn, c.sends) //nolint:errcheck // it may be closed already
				})()
				time.Sleep(500 * time.Millisecond) // new connections keep their places for a moment
				for _, from := range []string{"127.0.0.1", "127.0.0.99"} {
					for path, user := range map[string]string{"/healthz": "", "/readyz": "", "/mcp/tools/list": "agent"} {
						ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
						status, body := p.send(ctx, from, user, "GET", path, "", nil)
						cancel()
						must.Expect(t, status == 200, "%s from %s: %d %s", path, from, status, body)
					}
				}
			})
			must.Expect(t, opened.Load() >= int64(c.addresses*c.each)*9/10, "only %d connections were opened", opened.Load())
			p.bounded(300)
		})
	}
}

// One caller who floods a slow tool leaves places for others: they are served while all slow calls are still running.
func TestASlowToolIsFlooded(t *testing.T) {
	s := newSite(t)
	p := start(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var turnedAway atomic.Int64
	wait := crowd(900, func(int) {
		if status, body := p.call(ctx, "mallory", "content.slow", "{}"); status == 503 && strings.Contains(body, "overloaded") {
			turnedAway.Add(1)
		}
	})
	must.Become(t, 20*time.Second, func() bool { return s.slow.Load() >= 150 }, "the flood does not reach the site")
	for range 50 {
		p.mustServe("during the flood")
	}
	running := s.slow.Load()
	must.Expect(t, running >= 100 && running <= 200, "%d calls of one caller are at the site, want two thirds of 256 or so", running)
	close(s.release)
	wait()
	p.bounded(200)
}

// On stdio as well: values, endless lines, and messages that each start something that lasts.
func TestStdioIsFlooded(t *testing.T) {
	s := newSite(t)
	p := &process{t: t, site: s, output: &program.Output{}}
	p.cmd = command(s, p.output)
	in := must.Get(p.cmd.StdinPipe())(t)
	out := must.Get(p.cmd.StdoutPipe())(t)
	must.Do(t, p.cmd.Start())
	t.Cleanup(p.stop)
	ended := make(chan bool)
	longestLine := 0
	go func() {
		scan := bufio.NewScanner(out)
		scan.Buffer(nil, 1<<26)
		for scan.Scan() {
			longestLine = max(longestLine, len(scan.Bytes()))
			if strings.Contains(scan.Text(), `"id":"last"`) {
				ended <- true
				return
			}
		}
		ended <- false
	}()
	io.WriteString(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`+"\n")
	io.WriteString(in, strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n", 50_000))
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for i := range 20_000 {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":"s%d","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},%s}}`+"\n", i, meta)
	}
	for i := range 20 {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"content.integers","arguments":%s}}`+"\n", i, oversized["content.integers"]())
	}
	io.WriteString(in, `[`+strings.Repeat("0,", longest/2)+`0]`+"\n"+strings.Repeat("x", 50<<20)+"\n")
	io.WriteString(in, `{"jsonrpc":"2.0","id":"last","method":"ping"}`+"\n")
	select {
	case ok := <-ended:
		must.Expect(t, ok && longestLine <= 64<<10, "served: %t; the longest line has %d bytes", ok, longestLine)
	case <-time.After(time.Minute):
		t.Error("the last message has no response")
	}
	p.bounded(200)
}
