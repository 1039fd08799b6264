package mockdrupal_test

import (
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
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
