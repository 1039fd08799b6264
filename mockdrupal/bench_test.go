package mockdrupal_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// benchmark posts a small call over keep-alive connections, as fast as the machine does.
func benchmark(b *testing.B, address string) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r, _ := http.NewRequest("POST", address+"/jsonrpc", strings.NewReader(whoami))
			r.SetBasicAuth("agent", "agent-pass")
			res, err := client.Do(r)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func BenchmarkCallOverHTTP(b *testing.B) {
	benchmark(b, start(b, smallSite(), mockdrupal.Options{}).URL)
}

// BenchmarkStaticHandler is what the machine does with nothing behind HTTP: the other benchmarks' measure.
func BenchmarkStaticHandler(b *testing.B) {
	s := must.Serve(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":7,"result":{"uid":2,"name":"agent"}}`)
	}))
	benchmark(b, s.URL)
}

// BenchmarkCall is the mock alone, without HTTP around it.
func BenchmarkCall(b *testing.B) {
	d := must.Get(mockdrupal.New(smallSite(), mockdrupal.Options{}))(b)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", "/jsonrpc", strings.NewReader(whoami))
		r.SetBasicAuth("agent", "agent-pass")
		d.ServeHTTP(httptest.NewRecorder(), r)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func TestLargeSiteLoadsAndServes(t *testing.T) {
	const methods, limit = 100_000, 3 * time.Second
	site := must.Get(fixtures.Builtin("bulk-100000"))(t)
	begin := time.Now()
	s := start(t, site, mockdrupal.Options{})
	status, _ := call(t, s, "agent", `{"jsonrpc":"2.0","id":1,"method":"bulk.99999","params":{"n":1}}`)
	must.Assert(t, status == http.StatusOK, "the large site responds with %d", status)
	loaded := time.Since(begin)
	must.Expect(t, loaded <= limit, "loading took %v, want less than %v", loaded, limit)
	t.Logf("%d methods loaded in %v", methods, loaded)
}

// BenchmarkDiscovery shows 10,000 methods, encoded once and sent again and again.
func BenchmarkDiscovery(b *testing.B) {
	site := must.Get(fixtures.Builtin("bulk-10000"))(b)
	s := start(b, site, mockdrupal.Options{})
	for b.Loop() {
		_, body := do(b, "GET", s.URL+"/jsonrpc/methods", "", "Authorization", agentBasic)
		b.SetBytes(int64(len(body)))
	}
}
