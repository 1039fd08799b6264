package bridge_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/mux"
	"github.com/xeipuuv/gojsonschema"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// The benchmarks put the bridge beside the least that could do the same, in one run and taking turns, and report how
// much of the floor's throughput the bridge has (of-floor), how many times its cost (of-cost), and what it adds to the
// median (added-ms).

var speed = flag.Bool("speed", false, "check the benchmarks against the bridge's targets; the machine must have nothing else to do")

// TestSpeed prints the figures that the bridge has targets for, and fails for those that it misses.
func TestSpeed(t *testing.T) {
	must.Need(t, *speed, "make bench runs it: the machine must have nothing else to do")
	for _, c := range []struct {
		what     string
		run      func(*testing.B)
		unit     string
		min, max float64
	}{
		{"invoke with validation, 64 callers: throughput beside a minimal proxy that validates", BenchmarkInvokeBesideMinimalProxy, "of-floor", 0.95, 0},
		{"invoke, 1 caller: added to the median of the direct call, in ms", BenchmarkInvokeBesideDirectCall, "added-ms", 0, 0.35},
		{"list of 50 tools, warm, 1 caller: throughput beside a static handler", BenchmarkListBesideStaticHandler, "of-floor", 0.8, 0},
		{"the same, 64 callers", BenchmarkListBesideStaticHandler64, "of-floor", 0.8, 0},
		{"page of 100,000 tools: cost beside a page of 100", BenchmarkPageOfManyBesidePageOfFew, "of-cost", 0, 1.5},
		{"first list of 10,000 tools: seconds from the site's response on", BenchmarkFirstListOf10000, "", 0, 1},
		{"tools/call, 16 callers: throughput beside a bare server of the Go SDK", BenchmarkToolsCallBesideSDK, "of-floor", 0.9, 0},
		{"opening an MCP session and listing 500 tools: seconds", BenchmarkSessionOpenWith500Tools, "", 0, 0.005},
		{"1,000 idle MCP sessions: MB", BenchmarkThousandIdleSessions, "MB/1000", 0, 60},
		{"1,000 idle MCP sessions that listen, with the clients' ends: MB", BenchmarkThousandListeningSessions, "MB/1000", 0, 60},
		{"a second caller while a first floods a slow tool: throughput beside its own", BenchmarkSecondCallerBesideAFlood, "of-own", 0.8, 0},
		{"1 MB of arguments that break their schema: bytes allocated beside the body's", BenchmarkMemoryOfAnOversizedRequest, "x-body", 0, 20},
	} {
		r := testing.Benchmark(c.run)
		got, bound := r.Extra[c.unit], fmt.Sprintf("at least %v", c.min)
		if c.unit == "" {
			got = time.Duration(r.NsPerOp()).Seconds()
		}
		if c.max > 0 {
			bound = fmt.Sprintf("at most %v", c.max)
		}
		if t.Logf("%-90s %6.2f (%s)", c.what, got, bound); r.N == 0 || got < c.min || c.max > 0 && got > c.max {
			t.Errorf("missed: %s", c.what)
		}
	}
}

// benchSchema is the input schema of the benchmarks' tool.
const benchSchema = `{"type":"object","properties":{"query":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":100}},"required":["query"]}`

const benchMethod = `{"id":"content.search","attributes":{"usage":"Searches","params":{` +
	`"query":{"schema":{"type":"string","minLength":1},"attributes":{"required":true}},` +
	`"limit":{"schema":{"type":"integer","minimum":1,"maximum":100}}},"mcpTool":{}}}`

const benchBody = `{"name":"content.search","arguments":{"query":"words","limit":10}}`

// benchSite returns the same 1 KiB result for every call.
func benchSite(b *testing.B) *httptest.Server {
	result := `[` + strings.Repeat(`{"nid":1,"title":"An article"},`, 32) + `{}]`
	s := must.Serve(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/jsonrpc/methods" {
			io.WriteString(w, `{"data":[`+benchMethod+`]}`)
			return
		}
		var c struct{ ID json.RawMessage }
		json.NewDecoder(r.Body).Decode(&c)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, c.ID, result)
	}))
	return s
}

// floor is the least that a bridge could be: it validates with the same library, calls the site and splices the result.
func floor(b *testing.B, site string) *httptest.Server {
	schema := must.Get(gojsonschema.NewSchema(gojsonschema.NewStringLoader(benchSchema)))(b)
	transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	var id atomic.Int64
	r := mux.NewRouter()
	r.HandleFunc("/mcp/tools/invoke", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var in struct {
			Name      string
			Arguments json.RawMessage
		}
		if json.Unmarshal(body, &in) != nil {
			w.WriteHeader(400)
			return
		}
		if result, err := schema.Validate(gojsonschema.NewBytesLoader(in.Arguments)); err != nil || !result.Valid() {
			w.WriteHeader(400)
			return
		}
		out, _ := http.NewRequestWithContext(r.Context(), "POST", site+"/jsonrpc", bytes.NewReader(fmt.Appendf(nil,
			`{"jsonrpc":"2.0","method":%q,"params":%s,"id":%d}`, in.Name, in.Arguments, id.Add(1))))
		out.Header.Set("Content-Type", "application/json")
		out.Header.Set("Authorization", r.Header.Get("Authorization"))
		res, err := transport.RoundTrip(out)
		if err != nil {
			w.WriteHeader(502)
			return
		}
		defer res.Body.Close()
		response, _ := io.ReadAll(res.Body)
		var rpc struct{ Result json.RawMessage }
		if json.Unmarshal(response, &rpc) != nil {
			w.WriteHeader(502)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"result":%s}`, rpc.Result)
	}).Methods("POST")
	return must.Serve(b, r)
}

// load sends n requests from c clients at once and gives the time per request of the whole, and the median of one.
func load(b *testing.B, client *http.Client, c, n int, request func() *http.Request) (each, median time.Duration) {
	took := make([]time.Duration, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range c {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				began := time.Now()
				res, err := client.Do(request())
				if err != nil {
					b.Error(err)
					return
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
				must.Expect(b, res.StatusCode == 200, "status %d", res.StatusCode)
				took[i] = time.Since(began)
			}
		})
	}
	wg.Wait()
	each = time.Since(start) / time.Duration(n)
	slices.Sort(took)
	return each, took[n/2]
}

// turns is how many times in a round the two targets change places: short turns meet the same machine.
const turns = 8

// beside has two targets take turns and reports the medians over all turns.
func beside(b *testing.B, c, n int, floor, bridge func() *http.Request) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}
	defer client.CloseIdleConnections()
	load(b, client, c, n/4, floor) // both warm
	load(b, client, c, n/4, bridge)
	var ratios, added []float64
	for b.Loop() {
		for range turns {
			f, fm := load(b, client, c, n/turns, floor)
			g, gm := load(b, client, c, n/turns, bridge)
			ratios = append(ratios, f.Seconds()/g.Seconds())
			added = append(added, float64((gm-fm).Microseconds())/1000)
		}
	}
	slices.Sort(ratios)
	slices.Sort(added)
	b.ReportMetric(ratios[len(ratios)/2], "of-floor")
	b.ReportMetric(1/ratios[len(ratios)/2], "of-cost")
	b.ReportMetric(added[len(added)/2], "added-ms")
	b.ReportMetric(0, "ns/op") // a round is no unit
}

func post(url string) func() *http.Request {
	return func() *http.Request {
		r, _ := http.NewRequest("POST", url, strings.NewReader(benchBody))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Basic YWdlbnQ6YWdlbnQtcGFzcw==")
		return r
	}
}

func fetch(url string) func() *http.Request {
	return func() *http.Request {
		r, _ := http.NewRequest("GET", url, nil)
		r.Header.Set("Authorization", "Basic YWdlbnQ6YWdlbnQtcGFzcw==")
		return r
	}
}

func benchBridge(b *testing.B, site string) *httptest.Server {
	br := must.Get(bridge.New(bridge.Options{Drupal: site}))(b)
	return serve(b, br)
}

// Invoke with validation, 64 callers at once, beside a hand-written proxy: at least 0.95 of it.
func BenchmarkInvokeBesideMinimalProxy(b *testing.B) {
	site := benchSite(b)
	beside(b, 64, 4000, post(floor(b, site.URL).URL+"/mcp/tools/invoke"), post(benchBridge(b, site.URL).URL+"/mcp/tools/invoke"))
}

// One caller beside the direct call to the site: at most 0.35 ms more in the median.
func BenchmarkInvokeBesideDirectCall(b *testing.B) {
	site := benchSite(b)
	direct := func() *http.Request {
		r, _ := http.NewRequest("POST", site.URL+"/jsonrpc", strings.NewReader(`{"jsonrpc":"2.0","method":"content.search","params":{"query":"words","limit":10},"id":1}`))
		return r
	}
	beside(b, 1, 2000, direct, post(benchBridge(b, site.URL).URL+"/mcp/tools/invoke"))
}

// A warm list of 50 tools beside a static handler behind the same router, for one caller: at least 0.8 of it.
func BenchmarkListBesideStaticHandler(b *testing.B) { besideStatic(b, 1, 50, "/mcp/tools/list") }

// The same for 64 callers at once.
func BenchmarkListBesideStaticHandler64(b *testing.B) { besideStatic(b, 64, 50, "/mcp/tools/list") }

// besideStatic puts a GET, of a site with so many tools, beside a handler that has the response ready.
func besideStatic(b *testing.B, c, tools int, target string) {
	s := newSite(b)
	for i := range tools {
		s.methods = append(s.methods, strings.Replace(benchMethod, "content.search", fmt.Sprint("content.search", i), 1))
	}
	front := benchBridge(b, s.URL)
	body := []byte(send(b, front, "agent", "GET", target, "").Body)
	r := mux.NewRouter()
	path, _, _ := strings.Cut(target, "?")
	r.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.Write(body)
	}).Methods("GET")
	static := must.Serve(b, r)
	beside(b, c, 4000, fetch(static.URL+target), fetch(front.URL+target))
}

// bulk is a site's list of n methods, each different.
func bulk(n int) []string {
	methods := make([]string, n)
	for i := range methods {
		methods[i] = strings.Replace(benchMethod, "content.search", fmt.Sprintf("content.m%06d", i), 1)
	}
	return methods
}

// A page of 100,000 tools beside a page of 100: at most 1.5 times its cost.
func BenchmarkPageOfManyBesidePageOfFew(b *testing.B) {
	few, many := newSite(b, bulk(100)...), newSite(b, bulk(100_000)...)
	raise := func(o *bridge.Options) { o.MaxAnswer = 256 << 20 }
	fewFront, manyFront := start(b, few, raise), start(b, many, raise)
	list(b, fewFront, "agent")
	list(b, manyFront, "agent")
	beside(b, 8, 4000, fetch(fewFront.URL+"/mcp/tools/list?cursor=NTA="), fetch(manyFront.URL+"/mcp/tools/list?cursor=NTAwMDA="))
}

// The first list of 10,000 tools, with the site's response, translation and the first page: under a second.
func BenchmarkFirstListOf10000(b *testing.B) {
	s := newSite(b, bulk(10_000)...)
	salt := 0
	for b.Loop() {
		b.StopTimer()
		salt++ // a bridge that knows nothing, and a site that says something new
		s.change(func() {
			s.meta = fmt.Sprintf(`{"mcp":{"discovery":true},"salt":"%x"}`, sha256.Sum256([]byte{byte(salt)}))
		})
		br := must.Get(bridge.New(bridge.Options{Drupal: s.URL, CallOptions: bridge.CallOptions{MaxAnswer: 256 << 20}}))(b)
		b.StartTimer()
		w := httptest.NewRecorder()
		br.ServeHTTP(w, httptest.NewRequest("GET", "/mcp/tools/list", nil))
		if w.Code != 200 {
			b.Fatal(w.Body)
		}
		b.StopTimer()
		br.Close()
		b.StartTimer()
	}
}

// One caller floods a slow tool; another calls a fast one, as it does when it is alone. At least 0.8 of
// its own throughput is left to it.
func BenchmarkSecondCallerBesideAFlood(b *testing.B) {
	const workers, calls, flood, slowCall = 8, 4000, 600, 2 * time.Second
	var slow atomic.Int64
	s := newSite(b, echo, method("content.slow"))
	s.response = func(w http.ResponseWriter, r *http.Request, c rpc) {
		if c.Method == "content.slow" {
			slow.Add(1)
			defer slow.Add(-1)
			select {
			case <-time.After(slowCall):
			case <-r.Context().Done():
			}
		}
		fmt.Fprintf(w, `{"id":%s,"result":1}`, c.ID)
	}
	front := start(b, s)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024}}
	defer client.CloseIdleConnections()
	request := func(user, tool string) *http.Request {
		r, _ := http.NewRequest("POST", front.URL+"/mcp/tools/invoke", strings.NewReader(`{"name":"`+tool+`","arguments":{}}`))
		r.Header.Set("Content-Type", "application/json")
		r.SetBasicAuth(user, user+"-pass")
		return r
	}
	fast := func() *http.Request { return request("second", "content.echo") }
	load(b, client, workers, calls, fast)
	var ratios []float64
	for b.Loop() {
		alone, _ := load(b, client, workers, calls, fast)
		ctx, cancel := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		for range flood {
			wg.Go(func() {
				for ctx.Err() == nil {
					if res, err := client.Do(request("first", "content.slow").WithContext(ctx)); err == nil {
						res.Body.Close()
					}
				}
			})
		}
		for slow.Load() < 150 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(slowCall / 5) // the rest of the flood has to connect
		beside, _ := load(b, client, workers, calls, fast)
		cancel()
		wg.Wait()
		for slow.Load() > 0 {
			time.Sleep(time.Millisecond)
		}
		ratios = append(ratios, alone.Seconds()/beside.Seconds())
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "of-own")
	b.ReportMetric(0, "ns/op")
}

// A megabyte of strings where integers should be: what its request costs, beside its size. At most 20 times.
func BenchmarkMemoryOfAnOversizedRequest(b *testing.B) {
	s := newSite(b, `{"id":"content.x","attributes":{"params":{"list":{"schema":{"type":"array","items":{"type":"integer"}}}},"mcpTool":{}}}`)
	front := start(b, s)
	list(b, front, "agent")
	body := `{"name":"content.x","arguments":{"list":[` + strings.Repeat(`"",`, 1<<20/3) + `""]}}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	for b.Loop() {
		if r := send(b, front, "agent", "POST", "/mcp/tools/invoke", body); r.Status != 400 {
			b.Fatalf("%d %.200s", r.Status, r.Body)
		}
		n++
	}
	runtime.ReadMemStats(&after)
	cost := float64(after.TotalAlloc-before.TotalAlloc) / float64(n) / float64(len(body))
	b.ReportMetric(cost, "x-body")
}
