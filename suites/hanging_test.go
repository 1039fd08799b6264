package suites_test

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// full runs every check, with the time-out that users have, in place of those of some areas.
var full = flag.Bool("full", false, "run every check against the bridges that hang; takes minutes")

// route is one kind of request to a bridge.
type route struct {
	name    string
	is      func(r *http.Request, body string) bool
	culprit string   // glob of the clauses of which one must fail
	only    []string // clauses of the short run
}

func below(path string) func(*http.Request, string) bool {
	return func(r *http.Request, _ string) bool { return r.URL.Path == path }
}

func page(further bool) func(*http.Request, string) bool {
	return func(r *http.Request, _ string) bool {
		return r.URL.Path == check.ListPath && r.URL.Query().Has("cursor") == further
	}
}

func mcpVerb(verb string) func(*http.Request, string) bool {
	return func(r *http.Request, _ string) bool { return r.URL.Path == check.MCPPath && r.Method == verb }
}

func mcpMethod(name string) func(*http.Request, string) bool {
	return func(r *http.Request, body string) bool {
		return r.URL.Path == check.MCPPath && strings.Contains(body, `"method":"`+name+`"`)
	}
}

var routes = []route{
	{"list", below(check.ListPath), "list/*", []string{"list/*", "describe/*", "access/*"}},
	{"list, first page", page(false), "list/*", []string{"list/*", "describe/*"}},
	{"list, further pages", page(true), "list/*", []string{"list/*", "fresh/*"}},
	{"describe", below(check.DescribePath), "describe/*", []string{"describe/*", "errors/*", "http/*"}},
	{"invoke", below(check.InvokePath), "invoke/*", []string{"invoke/*", "errors/*", "http/*"}},
	{"initialize", mcpMethod("initialize"), "mcp/*", []string{"mcp/*"}},
	{"notifications/initialized", mcpMethod("notifications/initialized"), "mcp/*", []string{"mcp/*"}},
	{"ping", mcpMethod("ping"), "mcp/*", []string{"mcp/*"}},
	{"server/discover", mcpMethod("server/discover"), "mcp/*", []string{"mcp/*"}},
	{"tools/list", mcpMethod("tools/list"), "mcp/*", []string{"mcp/*"}},
	{"tools/call", mcpMethod("tools/call"), "mcp/*", []string{"mcp/*"}},
	{"subscriptions/listen", mcpMethod("subscriptions/listen"), "mcp/stateless-2026", []string{"mcp/*"}},
	{"GET of MCP", mcpVerb(http.MethodGet), "fresh/notify", []string{"mcp/*", "fresh/notify"}},
	{"DELETE of MCP", mcpVerb(http.MethodDelete), "mcp/session", []string{"mcp/*"}},
}

// hanging tests the reference bridge behind a front that never responds to the requests that hangs says. It counts them.
func hanging(t *testing.T, hangs func(*http.Request, string) bool, o suites.Options) (report *reports.Report, hung int64) {
	t.Helper()
	var count atomic.Int64
	over := make(chan struct{})
	bed := must.Get(testbed.Start(testbed.Options{Middleware: func(_ testbed.Backends, bridge http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var start bytes.Buffer
			io.CopyN(&start, r.Body, 4<<10) //nolint:errcheck // a short body is as good
			if hangs(r, start.String()) {
				count.Add(1)
				io.Copy(io.Discard, r.Body) //nolint:errcheck // the server sees a caller go only when the body is read
				select {
				case <-r.Context().Done():
				case <-over:
				}
				return
			}
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(&start, r.Body), r.Body}
			bridge.ServeHTTP(w, r)
		})
	}}))(t)
	defer bed.Close()
	defer close(over)
	bed.Profile.Run(&o)
	o.Capabilities, o.Site.Drupal, o.Bridge.Advance, o.Bridge.Stdio = bed.Profile.Capabilities, bed.Drupal, bed.Advance, bed.Stdio
	o.Bridge.DiscoveryTTL, o.Bridge.PermissionTTL, o.Bridge.UpstreamTimeout = testbed.TTL, testbed.PermissionTTL, testbed.UpstreamTimeout
	report = run(t, bed.URL, o)
	return report, count.Load()
}

// A bridge that hangs on one route is not conformant, a clause of that route fails, and the run waits for few of its
// requests. With -full the run is the one that users have: it takes at most a minute longer than against a bridge that
// responds.
func TestABridgeThatHangsOnOneRoute(t *testing.T) {
	t.Parallel()
	options := func(only []string) (suites.Options, time.Duration) {
		if *full {
			return suites.Options{}, time.Minute
		}
		return suites.Options{Connection: suites.Connection{Timeout: 700 * time.Millisecond}, Only: only, Cases: 12}, 12 * time.Second
	}
	var all []string
	for _, route := range routes {
		all = append(all, route.only...)
	}
	o, extra := options(all)
	healthy, _ := hanging(t, func(*http.Request, string) bool { return false }, o)
	must.Assert(t, healthy.Summary.Fail <= 0, "the bridge that hangs on no route is %s", healthy.Headline())
	for _, route := range routes {
		t.Run(route.name, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			o, _ := options(route.only)
			report, hung := hanging(t, route.is, o)
			var failed []string
			for _, r := range report.Results {
				if r.Verdict == reports.Fail {
					failed = append(failed, r.ID)
				}
			}
			if report.Summary.Fail == 0 && slices.ContainsFunc(report.Results, func(r reports.Result) bool { return strings.Contains(r.Message, "the machine is overloaded") }) {
				t.Skip("the machine is overloaded: a time-out says nothing of the bridge")
			}
			right := slices.ContainsFunc(failed, func(id string) bool { ok, _ := path.Match(route.culprit, id); return ok })
			must.Expect(t, right && report.State() == reports.NotConformant && report.CutShort == "" && hung != 0,
				"want a failure of %s, got %s, cut short %q, failed %v", route.culprit, report.Headline(), report.CutShort, failed)
			took := time.Duration(report.DurationMS-healthy.DurationMS) * time.Millisecond
			must.Expect(t, took <= extra, "it took %v longer than the healthy run, want at most %v", took, extra)
			t.Logf("%+v beside the healthy run, %d requests hung, failed: %v", took.Round(time.Second), hung, failed)
		})
	}
}

// A bridge that ends while it is tested is named once, and the run ends.
func TestABridgeThatEndsEndsTheRun(t *testing.T) {
	drupal := defaultSite(t, mockdrupal.Options{}, nil)
	reference := referenceBefore(t, drupal)
	var asked atomic.Int64
	var server *httptest.Server
	server = must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == client.DescribePath && asked.Add(1) == 8 { // which nothing but a check sends
			server.Listener.Close()
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Connection", "close")
		reference.ServeHTTP(w, r)
	}))
	o := suites.Options{Site: suites.Site{Drupal: drupal}, Only: []string{"list/*", "describe/*"}}
	o.Bridge.DiscoveryTTL = time.Minute
	report := run(t, server.URL, o)
	failed := 0
	for _, r := range report.Results {
		if r.Verdict == reports.Fail {
			failed++
		}
	}
	must.Expect(t, failed == 1 && strings.Contains(report.CutShort, "accepts no connections"),
		"%d clauses failed, want the one that ran; cut short: %q", failed, report.CutShort)
}
