package journal

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

var post = httptest.NewRequest(http.MethodPost, "/jsonrpc", nil)

// arrive records one request with a body and ends it.
func arrive(j *Journal, c *Conn, body []byte) *Record {
	rec := j.Begin(post, c)
	j.Body(rec, body, false)
	j.Calls(rec, []Call{{Method: "m", Params: body}})
	j.End(rec)
	return rec
}

func TestLargeBodiesPushOldEntriesOut(t *testing.T) {
	j := New(0)
	large := make([]byte, MaxBytes/4-10_000)
	for range 6 {
		arrive(j, &Conn{}, large)
	}
	kept := j.Entries(0)
	must.Expect(t, len(kept) == 4 && j.Dropped() == 2 && kept[0].Seq == 3 && j.Lost(0) == 2 && j.Lost(2) == 0,
		"of six large requests %d are kept, from number %d, %d dropped, %d lost; want 4, from 3, 2 and 2", len(kept), kept[0].Seq, j.Dropped(), j.Lost(0))
	last := kept[3]
	must.Expect(t, len(last.Body) == MaxBody && last.BodyBytes == int64(len(large)), "the last entry shows %d of %d bytes", len(last.Body), last.BodyBytes)
	late := j.Begin(httptest.NewRequest(http.MethodPost, "/", nil), &Conn{})
	j.Clear()
	if j.Body(late, large, false); j.bytes != 0 {
		t.Errorf("a request that was cleared while under way still weighs %d bytes", j.bytes)
	}
}

// TestMemoryStaysFlatUnderAnHourOfLoad counts: as many requests as a busy hour brings (300 a second), with bodies and
// headers of all sizes. Neither the entries nor their bytes nor the heap grow once the ring is full.
func TestMemoryStaysFlatUnderAnHourOfLoad(t *testing.T) {
	const requests = 3600 * 300
	j := New(1000)
	conn := &Conn{Net: &net.TCPConn{}}
	full := uint64(0)
	for i := range requests {
		if arrive(j, conn, make([]byte, i*37%5000)); i == requests/100 {
			full = heap()
		}
		must.Assert(t, len(j.ring) <= 1000 && j.bytes <= MaxBytes,
			"after %d requests the ring holds %d entries of %d bytes", i+1, len(j.ring), j.bytes)
	}
	grown := int64(heap()) - int64(full)
	must.Expect(t, grown <= 2<<20, "the heap grew by %d bytes between request %d and %d", grown, requests/100, requests)
	if kept := j.Entries(0); len(kept) != 1000 || j.Dropped() != requests-1000 || kept[0].Seq != requests-999 || j.Lost(0) != j.Dropped() {
		t.Errorf("kept %d from %d, dropped %d, lost %d", len(kept), kept[0].Seq, j.Dropped(), j.Lost(0))
	}
	runtime.KeepAlive(j)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestRingAgreesWithAList compares the ring with the plain list of all entries.
func TestRingAgreesWithAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 200).Draw(t, "limit")
		j := New(limit)
		var all []int64 // numbers of the entries that were not cleared
		dropped := int64(0)
		for range rapid.IntRange(0, 600).Draw(t, "steps") {
			if rapid.IntRange(0, 99).Draw(t, "step") == 0 {
				j.Clear()
				all, dropped = nil, 0
				continue
			}
			all = append(all, arrive(j, &Conn{}, nil).entry.Seq)
			if len(all) > limit {
				all, dropped = all[1:], dropped+1
			}
		}
		after := rapid.Int64Range(0, j.Last()).Draw(t, "after")
		want := []int64{}
		for _, seq := range all {
			if seq > after {
				want = append(want, seq)
			}
		}
		got := []int64{}
		for _, e := range j.Entries(after) {
			got = append(got, e.Seq)
		}
		must.Assert(t, fmt.Sprint(got) == fmt.Sprint(want) && j.Dropped() == dropped && j.Lost(after) == j.Last()-after-int64(len(want)),
			"after %d: got %v (dropped %d, lost %d), want %v (dropped %d)", after, got, j.Dropped(), j.Lost(after), want, dropped)
	})
}

func TestCredentialsAreShownOnlyAsHashes(t *testing.T) {
	for name, value := range map[string]string{
		"Authorization": "Basic s3cret", "Proxy-Authorization": "Bearer s3cret", "Cookie": "SESSx=s3cret; other=s3cret",
		"X-Csrf-Token": "s3cret", "X-Forwarded-Authorization": "s3cret", "X-Api-Key": "s3cret", "Authentication-Token": "Basic: s3cret", "X-Auth": "s3cret",
	} {
		r := httptest.NewRequest(http.MethodPost, "/user/login?_format=json&token=s3cret&access_token=s3cret&%74oken=s3cret", nil)
		r.Header.Set(name, value)
		r.Header.Set("Accept-Language", "de") // positive control: what is no credential stays
		j := New(0)
		rec := j.Begin(r, &Conn{})
		j.Body(rec, []byte(`{"name":"agent","pass":"s3cret"}`), true)
		shown := must.Get(json.Marshal(j.Entries(0)))(t)
		if strings.Contains(string(shown), "s3cret") || !strings.Contains(string(shown), "sha256:") || !strings.Contains(string(shown), `"Accept-Language":["de"]`) {
			t.Errorf("%s: %s", name, shown)
		}
		must.Expect(t, r.Header.Get(name) == value, "%s: the request itself was changed to %q", name, r.Header.Get(name))
	}
}

func TestCookiesAreFoundByNameAndValue(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header["Cookie"] = []string{`marker=one; quoted="two"`, "third=3"}
	j := New(0)
	e := j.View(j.Begin(r, &Conn{}))
	for name, value := range map[string]string{"marker": "one", "quoted": "two", "third": "3"} {
		must.Expect(t, e.SentCookie(name, value) && !e.SentCookie(name, "other") && !e.SentCookie("other", value),
			"%s=%s: %v", name, value, e.Cookies)
	}
}

func TestBytesAreCountedPerRequestOfAConnection(t *testing.T) {
	j, conn := New(0), &Conn{Number: 7, Net: &net.TCPConn{}}
	for _, n := range []int{100, 20} {
		arrive(j, conn, nil)
		conn.Took(n)
	}
	if e := j.Entries(0); e[0].BytesTaken != 100 || e[1].BytesTaken != 20 || e[1].Conn != 7 {
		t.Errorf("taken %d and %d, want 100 and 20", e[0].BytesTaken, e[1].BytesTaken)
	}
	conn.Took(5) // what arrives late still counts for the last request
	e := j.Entries(1)
	must.Expect(t, e[0].BytesTaken == 25, "taken %d, want 25", e[0].BytesTaken)
}

func FuzzRedaction(f *testing.F) {
	f.Add("Basic abc", "a=1; b=2", "token=x&y")
	f.Fuzz(func(t *testing.T, authorization, cookie, query string) {
		const secret = "xyzzy-s3cret"
		h := redactHeader(http.Header{"Authorization": {authorization + secret}, "Cookie": {cookie + "=" + secret}})
		must.Lacks(t, fmt.Sprint(h), secret, "the header")
		must.Lacks(t, redactQuery("token="+secret+"&"+query), secret, "the query")
		cookiesOf(http.Header{"Cookie": {cookie}})
	})
}
