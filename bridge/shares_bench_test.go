package bridge_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

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
