package bridge_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// eventually waits for what another goroutine does.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	must.Become(t, 10*time.Second, done, "%s", what)
}

func TestMetricsCountAndNameNobody(t *testing.T) {
	s := newSite(t, echo, `{"id":"content.bad","attributes":{"mcpTool":{},"params":{"p":{"schema":{"$ref":"http://x/"}}}}}`)
	front := start(t, s, func(o *bridge.Options) { o.Output = "warn" })
	list(t, front, "agent")
	list(t, front, "agent")
	call(t, front, "agent", "content.echo", `{"n":1}`)
	call(t, front, "agent", "content.echo", `{"n":0}`)
	call(t, front, "agent", "no.such.tool", `{}`)
	r := send(t, front, "", "GET", "/metrics", "")
	for _, has := range []string{
		`bridge_request_seconds_count{endpoint="/mcp/tools/list",status="200"} 2`,
		`bridge_request_seconds_count{endpoint="/mcp/tools/invoke",status="400"} 1`,
		`bridge_request_seconds_bucket{endpoint="/mcp/tools/invoke",status="404",le="+Inf"} 1`,
		`bridge_upstream_seconds_count{outcome="200",purpose="call"} 1`,
		`bridge_upstream_seconds_count{outcome="200",purpose="discovery"} 1`,
		`bridge_discovery_total{outcome="hit"} 4`, `bridge_discovery_total{outcome="miss"} 1`,
		`bridge_violations_total{kind="input"} 1`, `bridge_quarantined_methods 1`, `bridge_site_up 1`, `bridge_callers 1`,
	} {
		must.Expect(t, strings.Contains(r.Body, has+"\n"), "the metrics lack %s", has)
	}
	must.Expect(t, !strings.Contains(r.Body, "content.") && !strings.Contains(r.Body, "agent") && !strings.Contains(r.Body, "no.such"),
		"the metrics name a tool or a caller:\n%s", r.Body)
}

// served starts a bridge as the command does, and gives its address and what ends it.
func served(t *testing.T, o bridge.Options) (address string, stop func() error) {
	t.Helper()
	b := must.Get(bridge.New(o))(t)
	server := must.Get(o.Server(b))(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- bridge.Serve(ctx, server, l) }()
	t.Cleanup(func() { cancel(); b.Close() })
	return l.Addr().String(), func() error { cancel(); return <-ended }
}

func TestRequestsUnderWayGetAResponseBeforeTheEnd(t *testing.T) {
	s := newSite(t, echo)
	arrived, release := make(chan struct{}), make(chan struct{})
	s.response = func(w http.ResponseWriter, _ *http.Request, c rpc) {
		close(arrived)
		<-release
		fmt.Fprintf(w, `{"id":%s,"result":"late"}`, c.ID)
	}
	address, stop := served(t, bridge.Options{Drupal: s.URL})
	got := make(chan string, 1)
	go func() {
		res, err := http.Post("http://"+address+"/mcp/tools/invoke", "application/json", strings.NewReader(`{"name":"content.echo","arguments":{}}`))
		if err != nil {
			got <- err.Error()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		got <- string(body)
	}()
	<-arrived
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	eventually(t, "the bridge still listens", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	close(release)
	must.Equal(t, <-got, `{"result":"late"}`, "the response to the request under way")
	err := <-ended
	must.Expect(t, err == nil, "%v", err)
}

func TestTheBridgesOwnCertificate(t *testing.T) {
	dir := t.TempDir()
	o := bridge.Options{Drupal: newSite(t, echo).URL, ServingOptions: bridge.ServingOptions{
		TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem")}}
	own := must.Certificate(t, o.TLSCert, o.TLSKey, nil)
	address, _ := served(t, o)
	pool := x509.NewCertPool()
	pool.AddCert(own.Leaf)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	res := must.Get(client.Get("https://" + address + "/mcp/tools/list"))(t)
	res.Body.Close()
	must.Expect(t, res.StatusCode == 200 && res.TLS.Version >= tls.VersionTLS12, "status %d, TLS %x", res.StatusCode, res.TLS.Version)
	err := o.Check()
	must.Expect(t, err == nil, "%v", err)
	swapped := bridge.Options{Drupal: o.Drupal, ServingOptions: bridge.ServingOptions{TLSCert: o.TLSKey, TLSKey: o.TLSCert}}
	must.Say(t, swapped.Check(), "tls_cert")
}

func TestABodyThatDoesNotArriveIsCutOff(t *testing.T) {
	address, _ := served(t, bridge.Options{Drupal: newSite(t, echo).URL, ServingOptions: bridge.ServingOptions{BodyTimeout: 50 * time.Millisecond}})
	for _, path := range []string{"/mcp/tools/invoke", "/mcp"} {
		c := must.Get(net.Dial("tcp", address))(t)
		defer c.Close()
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", path)
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		must.Assert(t, err == nil, "%s: %v", path, err)
		must.Expect(t, res.StatusCode == 400 && res.Close, "%s: status %d, close %t", path, res.StatusCode, res.Close)
	}
}

func TestTheTraceGoesOnToTheSite(t *testing.T) {
	s := newSite(t, echo)
	var mu sync.Mutex
	var got []string
	note := func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, strings.Join([]string{r.URL.Path, r.Header.Get("X-Request-Id"), r.Header.Get("Traceparent"), r.Header.Get("Tracestate"), r.Header.Get("Baggage")}, " "))
	}
	s.list = func(w http.ResponseWriter, r *http.Request) { note(r); io.WriteString(w, `{"data":[`+echo+`]}`) }
	s.response = func(w http.ResponseWriter, r *http.Request, c rpc) {
		note(r)
		fmt.Fprintf(w, `{"id":%s,"result":1}`, c.ID)
	}
	c := &clock{}
	front := start(t, s, func(o *bridge.Options) { o.Now = c.now })
	for _, id := range []string{"one", "two"} {
		send(t, front, "agent", "POST", "/mcp/tools/invoke", `{"name":"content.echo","arguments":{}}`,
			"X-Request-Id", id, "Traceparent", "00-"+id, "Tracestate", "t="+id, "Baggage", "user=x")
		c.advance(61 * time.Second)
	}
	want := "[/jsonrpc/methods one 00-one t=one  /jsonrpc one 00-one t=one  /jsonrpc/methods two 00-two t=two  /jsonrpc two 00-two t=two ]"
	must.Expect(t, fmt.Sprint(got) == want, "the site got %v\nwant %s", got, want)
}

// Only callers seen lately are kept fresh unasked.
func TestBackgroundRefresh(t *testing.T) {
	s := newSite(t, method("content.old"))
	c := &clock{}
	front := start(t, s, func(o *bridge.Options) { o.Now, o.Background = c.now, 5*time.Minute })
	list(t, front, "agent")
	s.change(func() { s.methods = []string{method("content.new")} })
	c.advance(61 * time.Second)
	eventually(t, "nobody refreshes a caller seen a minute ago", func() bool { return s.discoveries.Load() == 2 })
	r := list(t, front, "agent")
	must.Expect(t, strings.Contains(r.Body, "content.new") && s.discoveries.Load() == 2, "after %d discoveries: %s", s.discoveries.Load(), r.Body)
	c.advance(time.Hour)
	time.Sleep(600 * time.Millisecond) // the poller looks twice
	must.Equal(t, s.discoveries.Load(), 2, "discoveries for a caller who left an hour ago")
}

func TestReadOnlyGoesByAnnotationFirst(t *testing.T) {
	annotated := func(id, annotations string) string {
		return fmt.Sprintf(`{"id":%q,"attributes":{"usage":"u","mcpTool":{"annotations":%s}}}`, id, annotations)
	}
	front := start(t, newSite(t,
		annotated("content.purge", `{"readOnlyHint":true}`), annotated("content.list", `{"readOnlyHint":false}`),
		annotated("content.find", `{}`), annotated("content.get", `{"destructiveHint":true}`), annotated("content.save", `{}`),
	), func(o *bridge.Options) { o.ReadOnly = true })
	must.Equal(t, fmt.Sprint(names(list(t, front, "agent").Body)), "[content.purge content.find]", "tools")
	call(t, front, "agent", "content.save", "{}").expect(t, 404, "a tool that writes")
}

func names(body string) []string {
	var list []string
	for _, m := range toolName.FindAllStringSubmatch(body, -1) {
		list = append(list, m[1])
	}
	return list
}

func TestAWarningIsLoggedForAResultThatBreaksItsSchema(t *testing.T) {
	s := newSite(t, `{"id":"content.x","attributes":{"output":{"type":"object"},"mcpTool":{}}}`)
	s.response = func(w http.ResponseWriter, _ *http.Request, c rpc) { fmt.Fprintf(w, `{"id":%s,"result":5}`, c.ID) }
	var log bytes.Buffer
	front := start(t, s, func(o *bridge.Options) {
		o.Output, o.Logger = "warn", slog.New(slog.NewTextHandler(&log, nil))
	})
	r := call(t, front, "agent", "content.x", "{}")
	must.Expect(t, r.Body == `{"result":5}`, "%d %s", r.Status, r.Body)
	front.Close() // so that nobody writes the log any more
	must.Expect(t, strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), "content.x"), "the log: %s", &log)
}

func TestModulePagesThatDoNotEnd(t *testing.T) {
	mux := http.NewServeMux()
	s := newSite(t)
	mux.HandleFunc("/mcp/tools/list", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"tools":[{"name":"a","description":"A","inputSchema":{"type":"object"}}],"nextCursor":"MQ=="}`)
	})
	s.Config.Handler = mux
	front := start(t, s, func(o *bridge.Options) { o.Source = bridge.SourceModule })
	r := list(t, front, "agent")
	must.Expect(t, r.Status == 502 && r.Code() == "upstream_error", "%d %s", r.Status, r.Body)
}

// A reference takes the values that the site has, as long as there are few; a look-up that fails costs nothing.
func TestReferencesTakeWhatTheSiteHas(t *testing.T) {
	s := newSite(t, `{"id":"content.create","attributes":{"usage":"u","params":{"type":{"schema":{"type":"entity_reference","settings":{"target_type":"node_type"}}}},"mcpTool":{}}}`,
		`{"id":"node_type.list","attributes":{}}`)
	result := ""
	s.response = func(w http.ResponseWriter, _ *http.Request, c rpc) { fmt.Fprintf(w, `{"id":%s,%s}`, c.ID, result) }
	for _, c := range []struct{ result, schema string }{
		{`"result":[{"id":"article","label":"A"},{"id":"page"}]`, `{"type":"string","enum":["article","page"]}`},
		{`"result":["article","page"]`, `{"type":"string","enum":["article","page"]}`},
		{`"result":["a","b","c","d"]`, `{"type":"string"}`},
		{`"result":[]`, `{"type":"string"}`},
		{`"result":{"odd":true}`, `{"type":"string"}`},
		{`"error":{"code":-32600,"message":"m","data":"Access Denied"}`, `{"type":"string"}`},
	} {
		result = c.result
		front := start(t, s, func(o *bridge.Options) { o.TargetMax = 3 })
		r := list(t, front, "agent")
		must.Expect(t, strings.Contains(r.Body, `{"type":`+c.schema+`}`), "%s: want %s in %s", c.result, c.schema, r.Body)
	}
}

// What the bridge does unasked leaves room for those who ask.
func TestBackgroundRefreshLeavesRoomForCalls(t *testing.T) {
	s := newSite(t, echo)
	c := &clock{}
	front := start(t, s, func(o *bridge.Options) {
		o.Now, o.Background, o.MaxInFlight, o.MaxWaiting = c.now, 5*time.Minute, 4, 4
	})
	const others = 20
	for i := range others {
		list(t, front, fmt.Sprint("other", i))
	}
	list(t, front, "agent")
	release := make(chan struct{})
	s.change(func() {
		s.list = func(w http.ResponseWriter, r *http.Request) {
			if user, _, _ := r.BasicAuth(); user != "agent" {
				<-release
			}
			io.WriteString(w, `{"data":[`+echo+`],"meta":{"mcp":{"discovery":true}}}`)
		}
	})
	before := s.discoveries.Load()
	c.advance(61 * time.Second)
	eventually(t, "nobody is refreshed", func() bool { return s.discoveries.Load() > before })
	time.Sleep(50 * time.Millisecond) // for the others to crowd in
	call(t, front, "agent", "content.echo", `{}`).expect(t, 200, "a call while others are refreshed")
	close(release)
	eventually(t, "not all are refreshed", func() bool { return s.discoveries.Load() >= before+others+1 })
}

// A site that fails is not asked by everyone who listens four times a second.
func TestBackgroundRefreshWaitsAfterAFailure(t *testing.T) {
	s := newSite(t, echo)
	c := &clock{}
	front := start(t, s, func(o *bridge.Options) { o.Now, o.Background = c.now, 5*time.Minute })
	list(t, front, "agent")
	s.change(func() { s.list = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) } })
	c.advance(61 * time.Second)
	time.Sleep(1500 * time.Millisecond) // the poller looks five times or six
	n := s.discoveries.Load() - 1
	must.Expect(t, n >= 1 && n <= 2, "the site that fails was asked %d times in 1.5 s, want once a second", n)
	s.change(func() { s.list = nil })
	asked := s.discoveries.Load()
	eventually(t, "nobody notices that the site is back", func() bool { return s.discoveries.Load() > asked })
}
