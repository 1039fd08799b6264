package bridge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
)

// soakCalls is how many calls TestSoak makes: BRIDGE_SOAK_CALLS, or few enough for every run of the tests.
func soakCalls(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("BRIDGE_SOAK_CALLS"))
	switch {
	case os.Getenv("BRIDGE_SOAK_CALLS") == "":
		return 4_000
	case err != nil || n < 1:
		t.Fatalf("BRIDGE_SOAK_CALLS is %q; it must be a number of calls", os.Getenv("BRIDGE_SOAK_CALLS"))
	}
	return n
}

// soakFaults are armed all the time, each hitting a few calls in a hundred.
var soakFaults = []mockdrupal.Fault{
	{Kind: fault.Status, Status: 500}, {Kind: fault.HTML}, {Kind: fault.Reset},
	{Kind: fault.Reset, Run: true}, {Kind: fault.Cut, Run: true}, {Kind: fault.Garbage},
	{Kind: fault.WrongID, Run: true}, {Kind: fault.Empty}, {Kind: fault.Neither},
	{Kind: fault.Delay, Delay: 20 * time.Millisecond},
}

// soakDiscoveryFaults hit every fourth discovery or so; the lists stay what they were.
var soakDiscoveryFaults = []mockdrupal.Fault{
	{Kind: fault.Status, Status: 500}, {Kind: fault.HTML}, {Kind: fault.Reset}, {Kind: fault.Cut},
}

// soakUsers see different tools each.
var soakUsers = []string{"agent", "agent2", "admin", "discoverer"}

// soak is what a soak found out; all but calls, lists, served and refused must stay 0.
type soak struct {
	calls, lists, served, refused, duplicates, crossTalk, lost, leaked atomic.Int64

	expected map[string]string // the first page of each user's list
}

// One soak shows what no single check can: whatever the site does to the calls, none runs twice, none gets another's
// response, none is lost, and nothing of the site or of a credential shows.
func TestSoak(t *testing.T) {
	n := soakCalls(t)
	site := must.Get(fixtures.Builtin("default"))(t)
	site = site.Clone()
	site.Methods = append(site.Methods, fixtures.Method{
		ID: "soak.echo", Usage: "Gives its token back", MCP: &fixtures.Tool{},
		Params:    []fixtures.Param{{Name: "token", Schema: fixtures.Raw(`{"type":"string"}`), Required: true}},
		Behaviour: fixtures.Behaviour{Kind: fixtures.Echo},
	})
	const chunk = 2_000
	drupal := must.Get(mockdrupal.New(site, mockdrupal.Options{JournalLimit: 2 * chunk}))(t)
	behind := must.Serve(t, drupal)
	b := must.Get(bridge.New(bridge.Options{Drupal: behind.URL, CallOptions: bridge.CallOptions{UpstreamTimeout: 5 * time.Second}, DiscoveryOptions: bridge.DiscoveryOptions{DiscoveryTTL: time.Second, PermissionTTL: time.Second}}))(t)
	defer b.Close()
	front := must.Serve(t, b)
	front.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 64

	s := soak{expected: map[string]string{}}
	for _, user := range soakUsers {
		s.expected[user] = list(t, front, user).Body
	}
	s.round(t, front, drupal, 0, chunk) // warm, without faults
	for i, f := range soakFaults {
		f.Route, f.Method, f.Probability, f.Seed = "jsonrpc", "soak.*", 0.03, uint64(i)
		_, err := drupal.Arm(f)
		must.Assert(t, err == nil, "%s: %v", f.Kind, err)
	}
	for i, f := range soakDiscoveryFaults {
		f.Route, f.Probability, f.Seed = "methods", 0.08, uint64(i)
		_, err := drupal.Arm(f)
		must.Assert(t, err == nil, "%s: %v", f.Kind, err)
	}
	goroutines, heap := settled()
	for from := chunk; from < n; from += chunk {
		s.round(t, front, drupal, from, min(chunk, n-from))
	}
	grownGoroutines, grownHeap := settled()
	t.Logf("%d calls, %d served, %d refused, %d lists between them: %d duplicate executions, %d cross-talk, %d lost responses, %d leaked secrets; goroutines %d → %d, heap %d → %d KiB",
		s.calls.Load(), s.served.Load(), s.refused.Load(), s.lists.Load(), s.duplicates.Load(), s.crossTalk.Load(), s.lost.Load(), s.leaked.Load(),
		goroutines, grownGoroutines, heap>>10, grownHeap>>10)
	must.Expect(t, s.duplicates.Load()+s.crossTalk.Load()+s.lost.Load()+s.leaked.Load() <= 0 && s.served.Load() != 0 && s.refused.Load() != 0,
		"the soak found faults, or nothing at all")
	must.Expect(t, grownGoroutines <= goroutines+100 && grownHeap <= heap+32<<20, "something grows")
}

// round makes calls from 32 callers at once and then holds the site's journal against them.
func (s *soak) round(t *testing.T, front *httptest.Server, drupal *mockdrupal.Drupal, from, n int) {
	drupal.Journal().Clear()
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 32 {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				s.call(t, front, soakUsers[i%3], fmt.Sprintf("token-%d", from+int(i)))
				if i%10 == 0 {
					s.list(t, front, soakUsers[i/10%int64(len(soakUsers))])
				}
			}
		})
	}
	wg.Wait()
	runs := map[string]int{}
	for _, e := range drupal.Journal().Entries(0) {
		for _, c := range e.Calls {
			if c.Ran && c.Method == "soak.echo" {
				runs[string(c.Params)]++
			}
		}
	}
	for _, count := range runs {
		if count > 1 {
			s.duplicates.Add(int64(count - 1))
		}
	}
}

func (s *soak) call(t *testing.T, front *httptest.Server, user, token string) {
	s.calls.Add(1)
	status, body := s.ask(t, front, user, "POST", "/mcp/tools/invoke", `{"name":"soak.echo","arguments":{"token":"`+token+`"}}`)
	var response struct {
		Result struct{ Token string }
		Error  struct{ Code, Message string }
	}
	switch {
	case status == 0 || json.Unmarshal(body, &response) != nil || status != 200 && response.Error.Code == "":
		s.lost.Add(1)
	case status != 200:
		s.refused.Add(1)
	case response.Result.Token != token:
		s.crossTalk.Add(1)
	default:
		s.served.Add(1)
	}
}

func (s *soak) list(t *testing.T, front *httptest.Server, user string) {
	s.lists.Add(1)
	switch status, body := s.ask(t, front, user, "GET", "/mcp/tools/list", ""); {
	case status != 200: // whatever the site does, there is a list to fall back on
		s.lost.Add(1)
	case string(body) != s.expected[user]:
		s.crossTalk.Add(1)
	}
}

// ask sends one request and looks for secrets in the response; status 0: there was none.
func (s *soak) ask(t *testing.T, front *httptest.Server, user, method, path, body string) (status int, response []byte) {
	req, err := http.NewRequest(method, front.URL+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	req.SetBasicAuth(user, user+"-pass")
	req.Header.Set("Content-Type", "application/json")
	res, err := front.Client().Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	if response, err = io.ReadAll(res.Body); err != nil {
		return 0, nil
	}
	shown := string(response) + fmt.Sprint(res.Header)
	for _, secret := range []string{"-pass", "CANARY", "<html", strings.TrimPrefix(req.Header.Get("Authorization"), "Basic ")} {
		if strings.Contains(shown, secret) {
			s.leaked.Add(1)
		}
	}
	return res.StatusCode, response
}

// settled counts goroutines and live heap once the garbage is gone.
func settled() (goroutines int, heap uint64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), m.HeapAlloc
}
