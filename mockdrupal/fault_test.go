package mockdrupal_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/patch"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// patience is how long a connection may stay silent before a test considers a request to hang.
const patience = 700 * time.Millisecond

// received is what a client received of one request on a connection of its own.
type received struct {
	raw   []byte // all that came
	err   error  // how reading ended; nil at a clean end
	first time.Duration
}

// head and body of the response.
func (w received) head() string { h, _, _ := bytes.Cut(w.raw, []byte("\r\n\r\n")); return string(h) }
func (w received) body() string { _, b, _ := bytes.Cut(w.raw, []byte("\r\n\r\n")); return string(b) }

// send writes a request onto a new connection and reads until the end or until the connection is silent.
func send(t *testing.T, s *mockdrupal.Server, verb, path, body string) received {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		return received{err: err}
	}
	defer conn.Close()
	start := time.Now()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\nAuthorization: Basic YWdlbnQ6YWdlbnQtcGFzcw==\r\nContent-Length: %d\r\n\r\n%s",
		verb, path, len(body), body)
	var w received
	buffer := make([]byte, 64<<10)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		n, err := conn.Read(buffer)
		if n > 0 && w.first == 0 {
			w.first = time.Since(start)
		}
		w.raw = append(w.raw, buffer[:n]...)
		if errors.Is(err, io.EOF) {
			return w
		}
		if err != nil {
			w.err = err
			return w
		}
	}
}

const whoami = `{"jsonrpc":"2.0","id":7,"method":"test.whoami"}`

// contains is a check that the response's status line and body hold these texts.
func contains(status, text string) func(*testing.T, received) {
	return func(t *testing.T, w received) {
		t.Helper()
		must.Expect(t, w.err == nil && strings.HasPrefix(w.head(), "HTTP/1.1 "+status) && strings.Contains(w.body(), text),
			"want %s with %s, saw (%v)\n%s", status, text, w.err, shorten(w.raw))
	}
}

func shorten(b []byte) string {
	if len(b) > 600 {
		return string(b[:600]) + "…"
	}
	return string(b)
}

// declares is a check that the body is not as long as announced.
func declares(t *testing.T, w received, off int) {
	t.Helper()
	var length int
	for line := range strings.SplitSeq(w.head(), "\r\n") {
		if _, v, ok := strings.Cut(line, "Content-Length: "); ok {
			fmt.Sscan(v, &length)
		}
	}
	got := len(w.body())
	must.Expect(t, (length-got)*off > 0, "announced %d bytes, sent %d:\n%s", length, got, shorten(w.raw))
}

// faultCases show every kind of fault on a connection.
var faultCases = []struct {
	fault mockdrupal.Fault
	path  string // "": POST /jsonrpc
	ran   int64  // how often the method runs
	check func(*testing.T, received)
}{
	{mockdrupal.Fault{Kind: fault.Delay, Delay: 40 * time.Millisecond}, "", 1, func(t *testing.T, w received) {
		contains("200", `"id":7`)(t, w)
		must.Expect(t, w.first >= 40*time.Millisecond, "the first byte came after %v", w.first)
	}},
	{mockdrupal.Fault{Kind: fault.DelayBody, Delay: 20 * time.Millisecond}, "", 1, contains("200", `"name":"agent"}}`)},
	{mockdrupal.Fault{Kind: fault.Drip, Delay: 100 * time.Microsecond}, "", 1, contains("200", `"name":"agent"}}`)},
	{mockdrupal.Fault{Kind: fault.Hang}, "", 0, func(t *testing.T, w received) {
		must.Expect(t, len(w.raw) == 0 && errors.Is(w.err, os.ErrDeadlineExceeded), "want silence, saw (%v) %s", w.err, w.raw)
	}},
	{mockdrupal.Fault{Kind: fault.HangBody}, "", 1, func(t *testing.T, w received) {
		must.Expect(t, errors.Is(w.err, os.ErrDeadlineExceeded) && strings.Contains(w.body(), `{"jsonrpc"`) && !strings.Contains(w.body(), "agent"),
			"want half a body and silence, saw (%v) %s", w.err, w.raw)
	}},
	{mockdrupal.Fault{Kind: fault.ResetEarly}, "", 0, isReset},
	{mockdrupal.Fault{Kind: fault.Reset}, "", 0, isReset},
	{mockdrupal.Fault{Kind: fault.Reset, Run: true}, "", 1, isReset},
	{mockdrupal.Fault{Kind: fault.Close}, "", 0, isClosed},
	{mockdrupal.Fault{Kind: fault.Close, Run: true}, "", 1, isClosed},
	{mockdrupal.Fault{Kind: fault.Cut}, "", 1, func(t *testing.T, w received) { declares(t, w, +1) }},
	{mockdrupal.Fault{Kind: fault.CutChunks}, "", 1, func(t *testing.T, w received) {
		contains("200", `"name":"agent"}}`)(t, w)
		must.Expect(t, strings.HasSuffix(w.body(), "}\r\n") && !strings.Contains(w.head(), "Content-Length"), "want chunks without an end, saw %s", w.raw)
	}},
	{mockdrupal.Fault{Kind: fault.LengthLong}, "", 1, func(t *testing.T, w received) { declares(t, w, +1) }},
	{mockdrupal.Fault{Kind: fault.LengthShort}, "", 1, func(t *testing.T, w received) { declares(t, w, -1) }},
	{mockdrupal.Fault{Kind: fault.Status, Status: 503, Body: `{"busy":true}`}, "", 0, contains("503", `{"busy":true}`)},
	{mockdrupal.Fault{Kind: fault.HTML}, "", 0, contains("200", "<title>Error | Small</title>")},
	{mockdrupal.Fault{Kind: fault.Empty}, "", 0, func(t *testing.T, w received) {
		contains("200", "")(t, w)
		must.Expect(t, w.body() == "", "want no body, saw %s", w.body())
	}},
	{mockdrupal.Fault{Kind: fault.ContentType}, "", 1, func(t *testing.T, w received) {
		must.Expect(t, strings.Contains(w.head(), "Content-Type: text/plain"), "want text/plain, saw\n%s", w.head())
	}},
	{mockdrupal.Fault{Kind: fault.Garbage}, "", 1, func(t *testing.T, w received) {
		contains("200", "{")(t, w)
		must.Expect(t, !json.Valid([]byte(w.body())), "want no JSON, saw %s", w.body())
	}},
	{mockdrupal.Fault{Kind: fault.Trailing}, "", 1, func(t *testing.T, w received) {
		contains("200", "}\n<br />")(t, w)
	}},
	{mockdrupal.Fault{Kind: fault.Leading}, "", 1, func(t *testing.T, w received) {
		contains("200", "<br />\n{")(t, w)
	}},
	{mockdrupal.Fault{Kind: fault.InvalidUTF8}, "", 1, func(t *testing.T, w received) {
		must.Expect(t, !utf8.ValidString(w.body()), "want invalid UTF-8, saw %q", w.body())
	}},
	{mockdrupal.Fault{Kind: fault.NotJSON, Body: "NaN"}, "", 0, contains("200", `"result":NaN}`)},
	{mockdrupal.Fault{Kind: fault.Excess}, "", 1, contains("200", `"id":8,"result":"stray"}`)},
	{mockdrupal.Fault{Kind: fault.CloseIdle}, "", 1, func(t *testing.T, w received) {
		contains("200", `"name":"agent"`)(t, w)
		must.Expect(t, !strings.Contains(strings.ToLower(w.head()), "connection: close"), "the end is announced: %s", w.head())
	}},
	{mockdrupal.Fault{Kind: fault.BOM}, "", 1, contains("200", "\xef\xbb\xbf{")},
	{mockdrupal.Fault{Kind: fault.Duplicate}, "", 1, contains("200", `"agent"},"jsonrpc":"2.0","id":7`)},
	{mockdrupal.Fault{Kind: fault.WrongID}, "", 1, contains("200", `"id":8`)},
	{mockdrupal.Fault{Kind: fault.MissingID}, "", 1, contains("200", `{"jsonrpc":"2.0","result"`)},
	{mockdrupal.Fault{Kind: fault.NullID}, "", 1, contains("200", `"id":null,"result"`)},
	{mockdrupal.Fault{Kind: fault.TrueID}, "", 1, contains("200", `"id":true,"result"`)},
	{mockdrupal.Fault{Kind: fault.IDType}, "", 1, contains("200", `"id":"7"`)},
	{mockdrupal.Fault{Kind: fault.Both}, "", 1, contains("200", `"agent"},"error":{"code":-32603`)},
	{mockdrupal.Fault{Kind: fault.NullError}, "", 1, contains("200", `"agent"},"error":null`)},
	{mockdrupal.Fault{Kind: fault.Neither}, "", 1, contains("200", `{"jsonrpc":"2.0","id":7}`)},
	{mockdrupal.Fault{Kind: fault.Batch}, "", 1, contains("200", `[{"jsonrpc":"2.0","id":7`)},
	{mockdrupal.Fault{Kind: fault.Result, Body: `{"a":1}`}, "", 0, contains("200", `{"jsonrpc":"2.0","id":7,"result":{"a":1}}`)},
	{mockdrupal.Fault{Kind: fault.Failure, Status: 400, Body: `{"code":-32000,"message":"No"}`}, "", 0, contains("400", `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"No"}}`)},
	{mockdrupal.Fault{Kind: fault.Echo}, "", 0, contains("200", `{"jsonrpc":"2.0","id":7,"result":`)},
	{mockdrupal.Fault{Kind: fault.Huge, Size: 1 << 20}, "", 0, isHuge(`"id":7,"result":"`)},
	{mockdrupal.Fault{Kind: fault.HugeMembers, Size: 1 << 20}, "", 0, isHuge(`"id":7,"result":{"m0":0,"m1":1,`)},
	{mockdrupal.Fault{Kind: fault.HugeGzip, Size: 1 << 20}, "", 0, isHuge(`"id":7,"result":"`)}, // the request accepts no gzip
	{mockdrupal.Fault{Kind: fault.SetCookie, Cookie: "marker=one; Path=/"}, "", 1, func(t *testing.T, w received) {
		contains("200", `"name":"agent"`)(t, w)
		must.Expect(t, strings.Contains(w.head(), "\r\nSet-Cookie: marker=one; Path=/"), "want the marker's cookie, saw\n%s", w.head())
	}},
	{mockdrupal.Fault{Kind: fault.Gzip}, "", 1, func(t *testing.T, w received) {
		r, err := gzip.NewReader(strings.NewReader(w.body()))
		if err == nil {
			_, err = io.ReadAll(r)
		}
		must.Expect(t, err != nil && strings.Contains(w.head(), "Content-Encoding: gzip"), "want a broken gzip stream, saw\n%s", shorten(w.raw))
	}},
	{mockdrupal.Fault{Kind: fault.Redirect}, "", 0, func(t *testing.T, w received) {
		must.Expect(t, strings.HasPrefix(w.head(), "HTTP/1.1 302") && strings.Contains(w.head(), "Location: http://elsewhere.invalid/"),
			"want a redirect elsewhere, saw\n%s", w.head())
	}},
	{mockdrupal.Fault{Kind: fault.NullSchema}, "/jsonrpc/methods", 0, contains("200", `"schema":null`)},
	{mockdrupal.Fault{Kind: fault.ListNotes}, "/jsonrpc/methods", 0, contains("200", `"annotations":["a","b"]`)},
	{mockdrupal.Fault{Kind: fault.CyclicRef}, "/jsonrpc/methods", 0, contains("200", `"schema":{"$ref":"#"}`)},
	{mockdrupal.Fault{Kind: fault.RemoteRef, Location: "http://elsewhere.test/s.json"}, "/jsonrpc/methods", 0, contains("200", `{"$ref":"http://elsewhere.test/s.json"}`)},
	{mockdrupal.Fault{Kind: fault.DeepSchema}, "/jsonrpc/methods", 0, func(t *testing.T, w received) {
		n := strings.Count(w.body(), `{"type":"array","items":`)
		must.Expect(t, n >= 5000, "want a schema 5,000 deep, saw %d levels", n)
	}},
	{mockdrupal.Fault{Kind: fault.DuplicateTool}, "/jsonrpc/methods", 0, func(t *testing.T, w received) {
		must.Equal(t, strings.Count(w.body(), `"id":"test.echo"`), 2, "how often test.echo is listed")
	}},
}

// isHuge is a check that the body is valid JSON of at least 1 MiB, sent in chunks.
func isHuge(text string) func(*testing.T, received) {
	return func(t *testing.T, w received) {
		t.Helper()
		contains("200", text)(t, received{raw: []byte(w.head() + "\r\n\r\n" + w.body())})
		body, err := io.ReadAll(httputil.NewChunkedReader(strings.NewReader(w.body())))
		must.Expect(t, err == nil && len(body) >= 1<<20 && json.Valid(body),
			"want valid JSON of 1 MiB, saw %d bytes (%v): %s … %s", len(body), err, shorten(body), body[max(0, len(body)-100):])
	}
}

func isReset(t *testing.T, w received) {
	t.Helper()
	must.Expect(t, errors.Is(w.err, syscall.ECONNRESET) && len(w.raw) == 0, "want a reset before any byte, saw (%v) %s", w.err, w.raw)
}

func isClosed(t *testing.T, w received) {
	t.Helper()
	must.Expect(t, w.err == nil && len(w.raw) == 0, "want the end of the connection before any byte, saw (%v) %s", w.err, w.raw)
}

func TestFaultsOnTheConnection(t *testing.T) {
	for _, c := range faultCases {
		name := c.fault.Kind
		if c.fault.Run {
			name += " after running"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, smallSite(), mockdrupal.Options{})
			must.Get(s.Arm(c.fault))(t)
			var w received
			if c.path == "" {
				w = send(t, s, "POST", "/jsonrpc", whoami)
			} else {
				w = send(t, s, "GET", c.path, "")
			}
			c.check(t, w)
			must.Equal(t, s.Runs("test.whoami"), c.ran, "runs of the method")
			entries := s.Journal().Entries(0)
			must.Expect(t, len(entries) == 1 && entries[0].Fault == c.fault.Kind, "the journal does not name the fault: %+v", entries)
			s.DisarmAll()
			contains("200", `"name":"agent"`)(t, send(t, s, "POST", "/jsonrpc", whoami))
		})
	}
}

func TestEveryKindOfFaultHasItsTest(t *testing.T) {
	elsewhere := map[string]bool{fault.Stale: true, fault.Refuse: true, fault.Deaf: true} // tests of their own below
	for _, kind := range fault.Kinds() {
		seen := elsewhere[kind.Name]
		for _, c := range faultCases {
			seen = seen || c.fault.Kind == kind.Name
		}
		must.Expect(t, seen,
			"no test sees the fault %s on the connection: add a row for it to faultCases in mockdrupal/fault_test.go", kind.Name)
	}
}

func TestDisarmingLetsAFaultThatActsForTheLastTimeGoOn(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	disarm := must.Get(s.Arm(mockdrupal.Fault{Kind: fault.Result, Body: `"late"`, Delay: time.Hour, Count: 1}))(t)
	late := make(chan received)
	go func() { late <- send(t, s, "POST", "/jsonrpc", whoami) }()
	waitUntil(t, func() bool { return len(s.Faults()) == 0 }, "the fault acts")
	disarm()
	contains("200", `"result":"late"`)(t, <-late)
}

func TestStaleDiscoveryShowsTheSiteAsItWas(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	disarm := must.Get(s.Arm(mockdrupal.Fault{Kind: fault.Stale, Route: route.Methods}))(t)
	must.Do(t, s.Patch(patch.Patch{Disable: patch.Selection{Methods: []string{"test.echo"}}}))
	contains("200", "test.echo")(t, send(t, s, "GET", "/jsonrpc/methods", ""))
	disarm()
	w := send(t, s, "GET", "/jsonrpc/methods", "")
	must.Expect(t, !strings.Contains(w.body(), "test.echo"), "the disabled method is still shown: %s", shorten(w.raw))
}

func TestConnectionsTimeOutForAWhile(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	address := strings.TrimPrefix(s.URL, "http://")
	pooled := &http.Transport{}
	defer pooled.CloseIdleConnections()
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		req := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/jsonrpc/methods", nil))(t)
		resp, err := pooled.RoundTrip(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	must.Do(t, ask())
	unused, err := net.Dial("tcp", address) // open, and never used
	must.Do(t, err)
	defer unused.Close()
	time.Sleep(20 * time.Millisecond) // until the server has taken it
	for range 2 {
		disarm, err := s.Arm(mockdrupal.Fault{Kind: fault.Deaf, Delay: time.Minute})
		must.Need(t, err == nil, "NOT TESTED HERE: %v", err)
		_, err = net.DialTimeout("tcp", address, 300*time.Millisecond)
		must.Expect(t, isTimeout(err), "connecting gave %v, want a time-out", err)
		must.Say(t, ask(), "", "a request on a connection that was open before got a response")
		err = ask()
		must.Expect(t, errors.Is(err, context.DeadlineExceeded), "a request on a new connection gave %v, want a time-out", err)
		unused.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, err = unused.Read(make([]byte, 1))
		must.Expect(t, err != nil && !isTimeout(err), "a connection that was never used is open still: %v", err)
		disarm()
		err = ask()
		must.Expect(t, err == nil, "the mock does not come back: %v", err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestFaultsMatchByRouteMethodUserCountAndChance(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	arm := func(f mockdrupal.Fault) {
		t.Helper()
		f.Kind, f.Status = fault.Status, 503
		must.Get(s.Arm(f))(t)
	}
	hits := func(user, method string, times int) (affected int) {
		for range times {
			if status, _ := call(t, s, user, `{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`); status == 503 {
				affected++
			}
		}
		return affected
	}
	for _, c := range []struct {
		name         string
		fault        mockdrupal.Fault
		user, method string
		want         int // of 40
	}{
		{"another route", mockdrupal.Fault{Route: route.Methods}, "agent", "test.echo", 0},
		{"the method", mockdrupal.Fault{Method: "test.e*"}, "agent", "test.echo", 40},
		{"another method", mockdrupal.Fault{Method: "test.e*"}, "agent", "test.count", 0},
		{"the user", mockdrupal.Fault{User: "agent"}, "agent", "test.echo", 40},
		{"another user", mockdrupal.Fault{User: "admin"}, "agent", "test.echo", 0},
		{"three times", mockdrupal.Fault{Count: 3}, "agent", "test.echo", 3},
	} {
		arm(c.fault)
		must.Equal(t, hits(c.user, c.method, 40), c.want, "of 40 requests affected, %s", c.name)
		s.DisarmAll()
	}
	arm(mockdrupal.Fault{Route: route.Method, Method: "test.echo"})
	for id, status := range map[string]int{"test.echo": 503, "test.count": 200} {
		res, _ := do(t, "GET", s.URL+"/jsonrpc/methods/"+id, "", "Authorization", agentBasic)
		must.Expect(t, res.StatusCode == status, "the fault of test.echo: %s gives %d, want %d", id, res.StatusCode, status)
	}
	s.DisarmAll()
	chance := mockdrupal.Fault{Probability: 0.5, Seed: 1}
	arm(chance)
	first := hits("agent", "test.echo", 40)
	s.DisarmAll()
	arm(chance)
	if again := hits("agent", "test.echo", 40); first != again || first < 8 || first > 32 {
		t.Errorf("by chance %d, then %d of 40 requests were affected: want about half, and the same with the same seed", first, again)
	}
}

func TestFaultsOfOneRouteLeaveTheOthersAlone(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	must.Get(s.Arm(mockdrupal.Fault{Kind: fault.NullSchema, Count: 1}))(t)
	contains("200", `"name":"agent"`)(t, send(t, s, "POST", "/jsonrpc", whoami))
	contains("200", `"schema":null`)(t, send(t, s, "GET", "/jsonrpc/methods", ""))
	must.Refuse(s.Arm(mockdrupal.Fault{Kind: fault.NullSchema, Route: route.JSONRPC}))(t, "", "a poisoned discovery of /jsonrpc is armed: it can match nothing")
}

func TestFaultsUnderLoadWhileTheSiteChanges(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{JournalLimit: 50})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 40 {
				r, _ := http.NewRequest("POST", s.URL+"/jsonrpc", strings.NewReader(whoami))
				r.SetBasicAuth("agent", "agent-pass")
				if res, err := http.DefaultClient.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			}
		})
	}
	for i := range 40 {
		kind := []string{fault.Status, fault.Reset, fault.WrongID, fault.Cut}[i%4]
		must.Get(s.Arm(mockdrupal.Fault{Kind: kind, Count: 2, Probability: 0.5, Seed: uint64(i)}))(t)
		s.SetSite(s.Site().Clone())
		_ = s.Journal().Entries(0)
	}
	group.Wait()
	s.DisarmAll()
	contains("200", `"name":"agent"`)(t, send(t, s, "POST", "/jsonrpc", whoami))
	shown, dropped := len(s.Journal().Entries(0)), s.Journal().Dropped()
	must.Expect(t, shown == 50 && dropped != 0, "the journal shows %d entries and dropped %d, want 50 and more than 0", shown, dropped)
}

func TestCookieFaultNeedsACookie(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	for _, cookie := range []string{"", "no-value", "=x"} {
		must.Refuse(s.Arm(mockdrupal.Fault{Kind: fault.SetCookie, Cookie: cookie}))(t, "", cookie)
	}
}
