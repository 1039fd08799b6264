package mockdrupal_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
)

// TestMockStaysFlatUnderLoad counts what all parts of a mock keep, on all kinds of requests: once its journal is full, ten
// times as many requests add nothing.
func TestMockStaysFlatUnderLoad(t *testing.T) {
	const limit = 500
	d := must.Get(mockdrupal.New(smallSite(), mockdrupal.Options{JournalLimit: limit, Flood: true}))(t)
	requests := func(from, to int) {
		for i := from; i < to; i++ {
			var target, body string
			switch i % 5 {
			case 0:
				target, body = "/jsonrpc", whoami
			case 1:
				target, body = "/jsonrpc", fmt.Sprintf(`[{"jsonrpc":"2.0","id":%d,"method":"no.such.%d"}]`, i, i)
			case 2:
				target = fmt.Sprintf("/jsonrpc/methods?x=%d", i)
			case 3:
				target, body = "/oauth/revoke", fmt.Sprintf("token=a.b%d.c", i)
			case 4:
				target, body = "/user/login?_format=json", fmt.Sprintf(`{"name":"user%d","pass":"x"}`, i)
			}
			verb := "POST"
			if body == "" {
				verb = "GET"
			}
			r := httptest.NewRequest(verb, target, strings.NewReader(body))
			r.SetBasicAuth("agent", "agent-pass")
			if i%7 == 0 {
				r.SetBasicAuth(fmt.Sprintf("user%d", i), "wrong")
			}
			r.Header.Set("Cookie", fmt.Sprintf("SESS%d=%d", i, i))
			d.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	requests(0, 2*limit)
	before := heap()
	requests(2*limit, 20*limit)
	grown := int64(heap()) - int64(before)
	must.Expect(t, grown <= 1<<20, "%d requests added %d bytes", 18*limit, grown)
	if kept := len(d.Journal().Entries(0)); kept != limit || d.Journal().Dropped() != 19*limit {
		t.Errorf("%d entries are kept and %d dropped, want %d and %d", kept, d.Journal().Dropped(), limit, 19*limit)
	}
	runtime.KeepAlive(d)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what has a finalizer goes in the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// recorded is a site with a recorder before it.
type recorded struct {
	url     string
	arm     func(mockdrupal.Fault) (func(), error)
	journal *mockdrupal.Journal
}

// mockAndProxy returns the addresses of a mock and of a proxy before it, each with its recorder.
func mockAndProxy(t *testing.T) map[string]recorded {
	t.Helper()
	s := start(t, smallSite(), mockdrupal.Options{})
	behind := start(t, smallSite(), mockdrupal.Options{})
	address := must.Get(url.Parse(behind.URL))(t)
	p := must.Get(proxy.New(address, proxy.Options{}))(t)
	server := must.Get(p.Listen("127.0.0.1:0"))(t)
	t.Cleanup(func() { server.Close() })
	return map[string]recorded{"mock": {s.URL, s.Arm, s.Journal()}, "proxy": {server.URL, p.Arm, p.Journal()}}
}

// TestOversizedResponsesAreValid reads them to the end with a client that accepts gzip, as a bridge without a limit does.
func TestOversizedResponsesAreValid(t *testing.T) {
	const size = 1 << 20
	for where, site := range mockAndProxy(t) {
		for _, kind := range []string{fault.Huge, fault.HugeMembers, fault.HugeGzip} {
			for name, c := range map[string]struct {
				verb, path, body string
				has              func(any) bool
			}{
				"a call":         {"POST", "/jsonrpc", `{"jsonrpc":"2.0","id":"x","method":"test.echo"}`, func(v any) bool { return v.(map[string]any)["id"] == "x" }},
				"a GET":          {"GET", "/jsonrpc?query=" + url.QueryEscape(whoami), "", func(v any) bool { return v.(map[string]any)["id"] == 7.0 }},
				"a batch":        {"POST", "/jsonrpc", "[" + whoami + `,{"jsonrpc":"2.0","id":8,"method":"test.echo"}]`, func(v any) bool { return len(v.([]any)) == 2 && v.([]any)[1].(map[string]any)["id"] == 8.0 }},
				"the collection": {"GET", "/jsonrpc/methods", "", func(v any) bool { return len(v.(map[string]any)["data"].([]any)) == 4 }},
			} {
				disarm := must.Get(site.arm(mockdrupal.Fault{Kind: kind, Size: size}))(t)
				after := site.journal.Last()
				res, body := do(t, c.verb, site.url+c.path, c.body, "Authorization", agentBasic)
				disarm()
				var doc any
				if err := json.Unmarshal([]byte(body), &doc); err != nil || res.StatusCode != 200 || len(body) < size || !c.has(doc) {
					t.Errorf("%s, %s, %s: %d, %d bytes, %v: %.200s", where, kind, name, res.StatusCode, len(body), err, body)
				}
				e := site.journal.Entries(after)[0]
				least := int64(size / 3)
				if kind == fault.HugeGzip {
					least = size / 2000
				}
				if e.BytesOut < least || e.BytesTaken < e.BytesOut || res.Uncompressed != (kind == fault.HugeGzip) {
					t.Errorf("%s, %s, %s: the journal counts %d bytes out and %d taken, uncompressed by the client: %v", where, kind, name, e.BytesOut, e.BytesTaken, res.Uncompressed)
				}
			}
		}
	}
}

// The count distinguishes a client that stops at a limit from one that reads everything.
func TestBytesTakenShowWhetherAClientStopsReading(t *testing.T) {
	const size, limit, buffers = 64 << 20, 1 << 20, 2 << 20
	s := start(t, smallSite(), mockdrupal.Options{})
	for _, kind := range []string{fault.Huge, fault.HugeMembers} {
		for _, reads := range []int64{limit, size} {
			disarm := must.Get(s.Arm(mockdrupal.Fault{Kind: kind, Size: size}))(t)
			after := s.Journal().Last()
			r, _ := http.NewRequest("POST", s.URL+"/jsonrpc", strings.NewReader(whoami))
			r.SetBasicAuth("agent", "agent-pass")
			res := must.Get(http.DefaultClient.Do(r))(t)
			n, err := io.Copy(io.Discard, io.LimitReader(res.Body, reads))
			res.Body.Close()
			must.Assert(t, err == nil && n >= min(reads, size/3), "%s: read %d bytes, %v", kind, n, err)
			disarm()
			waitUntil(t, func() bool { return !s.Journal().Entries(after)[0].End.IsZero() }, "the response ends")
			taken := s.Journal().Entries(after)[0].BytesTaken
			must.Expect(t, taken >= n && taken <= n+buffers, "%s: the client read %d bytes, the site counts %d", kind, n, taken)
			t.Logf("%s: the client read %d bytes, the site counts %d", kind, n, taken)
		}
	}
}
