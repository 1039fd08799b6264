// Package upstream checks how a bridge talks to its site: valid calls, and what it makes of a site that fails, hangs or
// answers nonsense. The faults are armed at the mock or at the recording proxy.
package upstream

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area upstream.
var Checks = []harness.Check{
	{ID: "upstream/valid-jsonrpc", Sees: harness.Site, Run: validJSONRPC, WithoutSite: callsInValidJSONRPC},
	{ID: "upstream/eager-validation", Sees: harness.Site, Generated: true, Run: eagerValidation},
	{ID: "upstream/pooled", Sees: harness.Journal, Costly: true, Run: pooled},
	{ID: "upstream/id-mismatch", Sees: harness.Site, Run: idMismatch},
	{ID: "upstream/http-error", Sees: harness.Journal, Run: httpError},
	{ID: "upstream/auth-error", Sees: harness.Journal, Run: authError},
	{ID: "upstream/timeout", Sees: harness.Journal, Run: timeout},
	{ID: "upstream/down-and-up", Sees: harness.Site, Run: downAndUp},
	{ID: "upstream/cancel", Sees: harness.Journal, Run: cancel},
	{ID: "upstream/huge-answer", Sees: harness.Journal, Run: hugeAnswer},
	{ID: "upstream/no-ssrf", Sees: harness.Site, Run: noSsrf},
	{ID: "upstream/post-only", Sees: harness.Journal, Run: postOnly},
	{ID: "upstream/error-any-status", Sees: harness.Site, Run: errorAnyStatus},
}

// Logf notes something beside the verdict, which -v shows.
func Logf(format string, args ...any) { ginkgo.GinkgoWriter.Printf(format+"\n", args...) }

// AllOf matches what all matchers match; the first that does not is the finding.
func AllOf(matchers ...types.GomegaMatcher) types.GomegaMatcher { return &allOf{all: matchers} }

type allOf struct {
	all   []types.GomegaMatcher
	first types.GomegaMatcher // that did not match
}

func (m *allOf) Match(actual any) (bool, error) {
	for _, matcher := range m.all {
		if ok, err := matcher.Match(actual); err != nil || !ok {
			m.first = matcher
			return false, err
		}
	}
	return true, nil
}

func (m *allOf) Finding(actual any, matched bool) harness.Finding {
	return m.first.(harness.Finder).Finding(actual, matched)
}

func (m *allOf) FailureMessage(actual any) string { return m.first.FailureMessage(actual) }

func (m *allOf) NegatedFailureMessage(actual any) string { return "not: " + m.FailureMessage(actual) }

// CallNothing matches an answer during which, since the last Mark, no call of the methods reached the site; without any,
// no call at all.
func CallNothing(methods ...string) types.GomegaMatcher {
	return match.Conform("no call to the site", func(a *harness.Response) string {
		if calls := a.T.Upstream.Calls(methods...); len(calls) > 0 {
			return fmt.Sprintf("%s, and a call of %s", a.Outcome(), match.Abbreviate(match.MethodsOf(calls)))
		}
		return ""
	})
}

// pageMark stands in the pages and texts that a failing site sends; no answer of the bridge may hold it.
const pageMark = "SITE-PAGE-7b1e"

// failedAnswers are answers to a call that are no JSON-RPC answer to it.
var failedAnswers = []scenario.SiteFailure{
	{Name: "a 500 with JSON that is no JSON-RPC", Fault: mockdrupal.Fault{Kind: fault.Status, Status: 500, Body: `{"message":"` + pageMark + `"}`}},
	{Name: "a 503 page", Fault: mockdrupal.Fault{Kind: fault.HTML, Status: 503, Body: "<html><title>Site under maintenance</title>" + pageMark + "</html>"}},
	{Name: "a 502 without a body", Fault: mockdrupal.Fault{Kind: fault.Empty, Status: 502}},
	{Name: "a 500 with a result", Fault: mockdrupal.Fault{Kind: fault.Status, Status: 500, Run: true}},
	{Name: "an HTML page under 200", Fault: mockdrupal.Fault{Kind: fault.HTML, Body: "<!DOCTYPE html><html>" + pageMark + "</html>"}},
	{Name: "a redirect", Fault: mockdrupal.Fault{Kind: fault.Redirect, Location: "/user/login"}},
	{Name: "an empty 200", Fault: mockdrupal.Fault{Kind: fault.Empty}},
	{Name: "a body cut off", Fault: mockdrupal.Fault{Kind: fault.Cut}},
	{Name: "a Content-Length that is too long", Fault: mockdrupal.Fault{Kind: fault.LengthLong}},
	{Name: "a Content-Length that is too short", Fault: mockdrupal.Fault{Kind: fault.LengthShort}},
	{Name: "invalid JSON", Fault: mockdrupal.Fault{Kind: fault.Garbage}},
	{Name: "JSON and more behind it", Fault: mockdrupal.Fault{Kind: fault.Trailing}},
	{Name: "invalid UTF-8", Fault: mockdrupal.Fault{Kind: fault.InvalidUTF8}},
}

// falseAnswers are JSON-RPC answers with a result that do not answer the request.
var falseAnswers = []scenario.SiteFailure{
	{Name: "a result with another id", Fault: mockdrupal.Fault{Kind: fault.WrongID}},
	{Name: "a result without an id", Fault: mockdrupal.Fault{Kind: fault.MissingID}},
	{Name: "a result with id null", Fault: mockdrupal.Fault{Kind: fault.NullID}},
	{Name: "result and error at once", Fault: mockdrupal.Fault{Kind: fault.Both}},
	{Name: "neither result nor error", Fault: mockdrupal.Fault{Kind: fault.Neither}},
}

func validJSONRPC(ctx context.Context, t *harness.T) {
	known := scenario.KnownTool(ctx, t)
	t.As(harness.Agent).Invoke(ctx, known, harness.Args{}).MustSucceed()
	echo := scenario.EchoTool(t)
	t.As(harness.Agent).Invoke(ctx, t.ToolName(echo.ID), echo.Arguments("valid")).MustSucceed()

	calls := 0
	for _, entry := range t.Drupal.Journal() {
		if entry.Path != "/jsonrpc" || entry.HTTPMethod != http.MethodPost {
			continue
		}
		calls++
		t.For(harness.Identity(entry.User), "", func() { mustBeValidCall(t, entry) })
	}
	t.Expect(calls).To(BeNumerically(">=", 2), harness.Mismatch("two invokes", "a POST /jsonrpc each", fmt.Sprintf("%d", calls)))
	t.Expect(t.Drupal.Calls(echo.ID)).NotTo(BeEmpty(), harness.Mismatch(fmt.Sprintf("the invoke of %s", echo.ID), "a call of exactly that method id", match.Abbreviate(match.MethodsOf(t.Drupal.Calls()))))
}

func eagerValidation(ctx context.Context, t *harness.T) {
	echo := scenario.EchoTool(t)
	t.As(harness.Agent).Invoke(ctx, t.ToolName(echo.ID), echo.Arguments("valid")).MustSucceed()

	for what, arguments := range harness.InOrder(map[string]any{"a required parameter missing": harness.Args{}, "a wrong type": echo.Arguments(map[string]any{"no": "string"})}) {
		t.Row(harness.Agent, t.ToolName(echo.ID), what, func() {
			t.Drupal.Mark()
			t.Expect(t.As(harness.Agent).Invoke(ctx, t.ToolName(echo.ID), arguments)).To(CallNothing())
		})
	}
	for _, c := range scenario.BrokenArguments(ctx, t) {
		t.For(harness.Agent, c.Name, func() {
			t.Drupal.Mark()
			t.Expect(t.As(harness.Agent).Invoke(ctx, c.Name, c.Value)).To(CallNothing(c.ID), c.What)
		})
	}
}

func pooled(ctx context.Context, t *harness.T) {
	call := scenario.MustRun(ctx, t)
	t.Call(ctx, call).MustSucceed()
	t.Upstream.Mark()
	const invokes, handful = 200, 10
	for range invokes {
		t.Call(ctx, call)
	}
	connections := map[int64]bool{}
	for _, entry := range t.Upstream.Journal() {
		if len(entry.Calls) > 0 { // a bridge may look up methods meanwhile
			connections[entry.Conn] = true
		}
	}
	t.Expect(len(connections)).To(BeNumerically("<=", handful), harness.Mismatch(fmt.Sprintf("%d invokes in turn", invokes), fmt.Sprintf("at most %d connections to the site", handful), fmt.Sprintf("%d", len(connections))))
}

func idMismatch(ctx context.Context, t *harness.T) {
	eachFailure(ctx, t, falseAnswers, scenario.MustRun(ctx, t), BeUpstreamError())
	failing := scenario.FailingTool(t)
	right := t.As(harness.Agent).Invoke(ctx, t.ToolName(failing.ID), harness.Args{}).MustMeet(TellFailure(failing.Behaviour.Error.Message))
	for _, f := range []scenario.SiteFailure{
		{Name: "an error with id null", Fault: mockdrupal.Fault{Kind: fault.NullID}},
		{Name: "an error without an id", Fault: mockdrupal.Fault{Kind: fault.MissingID}},
	} {
		eachFailure(ctx, t, []scenario.SiteFailure{f}, harness.AsAgent(t.ToolName(failing.ID)), match.Conform("that error: "+right.Outcome(), func(a *harness.Response) string {
			if a.Status != right.Status || a.Code() != right.Code() || !strings.Contains(a.Message(), failing.Behaviour.Error.Message) {
				return a.Outcome()
			}
			return ""
		}))
	}
}

func httpError(ctx context.Context, t *harness.T) {
	eachFailure(ctx, t, failedAnswers, scenario.MustRun(ctx, t), BeUpstreamError())
}

func authError(ctx context.Context, t *harness.T) {
	call := scenario.MustRun(ctx, t)
	t.Call(ctx, call).MustSucceed()

	t.Row(call.Identity, "", "the site's 401", func() {
		defer t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Status, Route: "jsonrpc", Status: 401, Body: `{"message":"No authentication credentials provided."}`})()
		refused := t.Call(ctx, call)
		t.Expect(refused).To(match.BeRefusedWith(401))
		t.Expect(refused).To(match.Conform("the site's challenge in WWW-Authenticate", func(a *harness.Response) string {
			if a.Header.Get("WWW-Authenticate") == "" {
				return "no WWW-Authenticate"
			}
			return ""
		}))
	})
	t.Row(call.Identity, "", "the site's 403", func() {
		defer t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Status, Route: "jsonrpc", Status: 403, Body: `{"message":"Access denied."}`})()
		t.Expect(t.Call(ctx, call)).To(match.BeRefusedWith(403))
	})
}

func timeout(ctx context.Context, t *harness.T) {
	if t.UpstreamTimeout == 0 {
		harness.NotTestable("how long the bridge waits for the site is unknown: give the setting `upstream_timeout`")
	}
	call := scenario.MustRun(ctx, t)
	t.Call(ctx, call).MustSucceed()
	limit := t.UpstreamTimeout + 1500*time.Millisecond
	hangs := []scenario.SiteFailure{
		{Name: "no headers", Fault: mockdrupal.Fault{Kind: fault.Hang, Route: "jsonrpc"}},
		{Name: "half a body", Fault: mockdrupal.Fault{Kind: fault.HangBody, Route: "jsonrpc"}},
		{Name: "no connection", Fault: mockdrupal.Fault{Kind: fault.Deaf, Delay: 2*limit + t.Timeout}},
	}
	if outlastsAll(ctx, t, hangs, call, limit) {
		return
	}
	listOutlasts(ctx, t, limit)
	for _, f := range hangs { // one after the other, to tell which it is
		disarm, err := t.Upstream.TryArm(f.Fault)
		if err != nil && f.Fault.Kind != fault.Deaf {
			panic(fmt.Sprintf("a check arms an impossible fault: %v", err))
		}
		if err != nil { // not every system can show it, nor a mock that does not listen by itself
			Logf("left out: a site that hangs with %s: %v", f.Name, err)
			continue
		}
		t.Row(call.Identity, "", "a site that hangs with "+f.Name, func() {
			defer disarm()
			t.Expect(t.Call(ctx, call)).To(OutlastCall(limit))
		})
		scenario.WaitRecovered(ctx, t, call)
	}
}

func downAndUp(ctx context.Context, t *harness.T) {
	known := scenario.KnownTool(ctx, t)
	t.As(harness.Agent).Invoke(ctx, known, harness.Args{}).MustSucceed()
	stranger := t.As(t.Drupal.NewUser(t.Permissions(harness.Agent)...))
	const down, atOnce = 10 * time.Second, 1200 * time.Millisecond
	began := time.Now()
	reopen, err := t.Drupal.TryArm(mockdrupal.Fault{Kind: fault.Refuse, Delay: down})
	if err != nil {
		harness.NotTestable("a site that is down cannot be shown: " + err.Error())
	}
	for what, ask := range harness.InOrder(map[string]func() *harness.Response{
		"invoke":                       func() *harness.Response { return t.As(harness.Agent).Invoke(ctx, known, harness.Args{}) },
		"list for a caller never seen": func() *harness.Response { return stranger.List(ctx) },
	}) {
		r := ask()
		if time.Since(began) > down {
			harness.NotTestable("the machine was too slow to look while the site was down")
		}
		t.Row(r.Who, "", what+" while the site is down", func() {
			t.Expect(r).To(match.BeRefusedWith(502, 503, 500))
			t.Expect(r).To(ComeInTime(atOnce))
		})
	}
	reopen()
	t.Row(harness.Agent, "", "the site is back", func() {
		t.Expect(scenario.Recovers(ctx, t, harness.AsAgent(known))).To(harness.BeNone())
		t.Expect(stranger.List(ctx)).To(match.HaveStatus(200))
	})
}

func cancel(ctx context.Context, t *harness.T) {
	call := scenario.MustRun(ctx, t)
	t.Call(ctx, call).MustSucceed()
	t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Hang, Route: "jsonrpc"})
	t.Upstream.Mark()
	leaving, leave := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer harness.Recover()
		defer close(gone)
		t.As(call.Identity).Send(leaving, harness.Request{Method: http.MethodPost, Path: harness.InvokePath, Body: bytes.NewReader(call.Body()), Show: string(call.Body()), Fresh: true})
	}()
	reached := harness.Within(ctx, 5*time.Second, func() bool { return len(t.Upstream.Journal()) > 0 })
	t.Expect(reached).To(BeTrue(), harness.Mismatch("the call that hangs", "it at the site", "nothing"))
	leave()
	<-gone
	soon := time.Second
	if t.UpstreamTimeout > 0 {
		soon = min(soon, t.UpstreamTimeout/2) // after that its own time-out would end the request
	}
	ended := harness.Within(ctx, soon, func() bool { return !t.Upstream.Journal()[0].End.IsZero() })
	t.Expect(ended).To(BeTrue(), harness.Mismatch("a caller that goes away", "its request to the site to end", fmt.Sprintf("it still running %v later", soon)))
}

func hugeAnswer(ctx context.Context, t *harness.T) {
	call := scenario.MustRun(ctx, t)
	t.Call(ctx, call).MustSucceed()
	eachFailure(ctx, t, []scenario.SiteFailure{{Name: "an answer of 256 MiB", Fault: mockdrupal.Fault{Kind: fault.Huge}}}, call, BeUpstreamError())
}

func noSsrf(ctx context.Context, t *harness.T) {
	known := scenario.KnownTool(ctx, t)
	t.As(harness.Agent).Invoke(ctx, known, harness.Args{}).MustSucceed()
	elsewhere, host := elsewhere(t)
	there := "http://" + host

	lures := func(what string, ask func()) {
		t.Row(harness.Agent, "", what, func() {
			before := len(elsewhere())
			ask()
			visits := elsewhere()[before:]
			t.Expect(visits).To(BeEmpty(), harness.Mismatch(what, "no connection to another host than the site", fmt.Sprintf("%s at %s", match.Abbreviate(visits), host)))
		})
	}
	lures("a name on describe", func() { t.As(harness.Agent).Describe(ctx, there+"/jsonrpc") })
	for _, name := range []string{there + "/jsonrpc", "//" + host + "/jsonrpc", "@" + host + "/"} {
		lures("the name "+name+" on invoke", func() { t.As(harness.Agent).Invoke(ctx, name, harness.Args{}) })
	}
	lures("a cursor", func() { t.As(harness.Agent).List(ctx, there) })
	lures("the header Host on list", func() {
		t.As(t.Drupal.NewUser(t.Permissions(harness.Agent)...)).Send(ctx, harness.Request{Path: harness.ListPath, Header: http.Header{"Host": {host}}})
	})
	body := fmt.Sprintf(`{"name":%q,"arguments":{}}`, known)
	for _, name := range []string{"X-Forwarded-Host", "X-Original-URL", "X-Forwarded-Server", "Forwarded", "Origin", "Referer", "X-Drupal-URL", "Host"} {
		lures("the header "+name+" on invoke", func() {
			t.As(harness.Agent).Send(ctx, harness.Request{Method: http.MethodPost, Path: harness.InvokePath, Header: http.Header{name: {there}}, Body: strings.NewReader(body), Show: body})
		})
	}
	for _, f := range []scenario.SiteFailure{
		{Name: "a redirect of a call", Fault: mockdrupal.Fault{Kind: fault.Redirect, Route: "jsonrpc", Location: there + "/jsonrpc"}},
		{Name: "a redirect of a call that keeps the verb", Fault: mockdrupal.Fault{Kind: fault.Redirect, Route: "jsonrpc", Location: there + "/jsonrpc", Status: 307}},
		{Name: "a redirect of discovery", Fault: mockdrupal.Fault{Kind: fault.Redirect, Route: "methods", Location: there + "/jsonrpc/methods"}},
		{Name: "a $ref in a schema", Fault: mockdrupal.Fault{Kind: fault.RemoteRef, Route: "methods", Location: there + "/schema.json"}},
	} {
		lures(f.Name, func() {
			stranger := t.Drupal.NewUser(t.Permissions(harness.Agent)...) // for whom nothing is cached
			defer t.Drupal.Arm(f.Fault)()
			t.As(stranger).List(ctx)
			t.As(harness.Agent).Invoke(ctx, known, harness.Args{})
		})
	}
	scenario.WaitRecovered(ctx, t, harness.AsAgent(known))
	if t.HasFindings() {
		return
	}
	t.Expect(elsewhere()).To(BeEmpty(), harness.Mismatch("no input may make the bridge call another host than the site", "no connection", fmt.Sprintf("one to %s", host)))
}

func postOnly(ctx context.Context, t *harness.T) {
	t.Call(ctx, scenario.MustRun(ctx, t)).MustSucceed()
	for _, entry := range t.Upstream.Journal() {
		if len(entry.Calls) == 0 {
			continue
		}
		t.Expect(entry.HTTPMethod+" "+entry.Path).To(Equal("POST /jsonrpc"), harness.Mismatch("a method call", "POST /jsonrpc", fmt.Sprintf("%s %s?%s", entry.HTTPMethod, entry.Path, exact.Cut(entry.RawQuery, 80))))
	}
	t.Expect(t.Upstream.Calls()).NotTo(BeEmpty(), harness.Mismatch("an invoke that succeeded", "its call at the site", "none"))
}

func errorAnyStatus(ctx context.Context, t *harness.T) {
	failing := scenario.FailingTool(t)
	right := t.As(harness.Agent).Invoke(ctx, t.ToolName(failing.ID), harness.Args{}).MustMeet(TellFailure(failing.Behaviour.Error.Message))
	same := match.Conform("that error: "+right.Outcome(), func(a *harness.Response) string {
		if a.Status != right.Status || a.Code() != right.Code() || !strings.Contains(a.Message(), failing.Behaviour.Error.Message) {
			return a.Outcome()
		}
		return ""
	})
	for _, status := range []int{200, 400, 500} {
		eachFailure(ctx, t, []scenario.SiteFailure{{Name: fmt.Sprintf("a JSON-RPC error under HTTP %d", status), Fault: mockdrupal.Fault{Kind: fault.Status, Status: status, Run: true}}}, harness.AsAgent(t.ToolName(failing.ID)), same)
	}
	eachFailure(ctx, t, []scenario.SiteFailure{
		{Name: "a JSON-RPC error without id under HTTP 400", Fault: mockdrupal.Fault{Kind: fault.Status, Status: 400, Body: errorBody(failing.Behaviour.Error, "")}},
		{Name: "a JSON-RPC error with id null under HTTP 500", Fault: mockdrupal.Fault{Kind: fault.Status, Status: 500, Body: errorBody(failing.Behaviour.Error, `"id":null,`)}},
	}, harness.AsAgent(t.ToolName(failing.ID)), same)
	eachFailure(ctx, t, []scenario.SiteFailure{
		{Name: "204", Fault: mockdrupal.Fault{Kind: fault.Empty, Status: 204}},
		{Name: "an empty 200", Fault: mockdrupal.Fault{Kind: fault.Empty}},
	}, scenario.MustRun(ctx, t), BeUpstreamError())
}

// eachFailure makes the call once under each failure of the site and judges the answer; between two it waits until
// the bridge serves again, for a breaker may have opened.
func eachFailure(ctx context.Context, t *harness.T, failures []scenario.SiteFailure, call harness.Invocation, judge OmegaMatcher) {
	for _, f := range failures {
		f.Fault.Route = "jsonrpc"
		t.Row(call.Identity, "", "the site gives "+f.Name, func() {
			defer t.Upstream.Arm(f.Fault)()
			t.Expect(t.Call(ctx, call)).To(judge)
		})
		scenario.WaitRecovered(ctx, t, scenario.MustRun(ctx, t))
	}
}

// elsewhere listens where no bridge has any business; the function tells who came.
func elsewhere(t *harness.T) (visitors func() []string, host string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		harness.NotTestable("no second host can be opened on this machine: " + err.Error())
	}
	var came atomic.Pointer[[]string]
	came.Store(&[]string{})
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list := append(append([]string{}, *came.Load()...), r.Method+" "+r.URL.Path)
		came.Store(&list)
		http.NotFound(w, r)
	})}
	go server.Serve(listener) //nolint:errcheck // it ends with Close
	harness.Cleanup(func(context.Context) { server.Close() })
	return func() []string { return *came.Load() }, listener.Addr().String()
}

func mustBeValidCall(t *harness.T, entry mockdrupal.Entry) {
	fault := callFault(entry)
	t.Expect(fault).To(BeEmpty(), harness.Mismatch("a request to the site", "valid JSON-RPC 2.0 with an id", fmt.Sprintf("one that is not (%s): %s", fault, exact.Cut(harness.OneLine(string(entry.Body)), 200))))
}

// callFault says what keeps a request to the site from being valid JSON-RPC 2.0 with an id; "" when it is.
func callFault(entry mockdrupal.Entry) string {
	if t, _, _ := strings.Cut(entry.Header.Get("Content-Type"), ";"); strings.TrimSpace(t) != "application/json" {
		return fmt.Sprintf("the Content-Type is %q", entry.Header.Get("Content-Type"))
	}
	v, err := exact.Parse(entry.Body)
	if err != nil {
		return "the body " + err.Error()
	}
	calls, batch := v.([]any)
	if !batch {
		calls = []any{v}
	}
	for _, c := range calls {
		call, ok := c.(map[string]any)
		if !ok {
			return "the body is no object"
		}
		if call["jsonrpc"] != "2.0" {
			return "`jsonrpc` is not \"2.0\""
		}
		if method, ok := call["method"].(string); !ok || method == "" {
			return "`method` is no string"
		}
		switch id := call["id"].(type) {
		case nil:
			return "there is no `id`"
		case map[string]any, []any, bool:
			return "`id` is " + match.TypeOf(id)
		}
		switch params := call["params"].(type) {
		case nil:
			if _, there := call["params"]; there {
				return "`params` is null"
			}
		case map[string]any, []any:
		default:
			return "`params` is " + match.TypeOf(params)
		}
	}
	return ""
}

func errorBody(e *fixtures.RPCError, id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0",%s"error":{"code":%d,"message":%s}}`, id, e.Code, harness.Encode(e.Message))
}

// BeUpstreamError matches the refusal that a broken answer of the site becomes: 500, 502 or 503, never the page itself.
func BeUpstreamError() OmegaMatcher {
	return match.Conform("500, 502 or 503 with the envelope, and nothing of the site's page", func(a *harness.Response) string {
		switch at := strings.Index(string(a.Body), pageMark); {
		case a.Code() == "" || !slices.Contains([]int{500, 502, 503}, a.Status):
			return a.Outcome()
		case at >= 0:
			return fmt.Sprintf("%d with the site's page in it: …%s", a.Status, exact.Cut(harness.OneLine(string(a.Body[max(0, at-60):])), 120))
		}
		return ""
	})
}

// TellFailure matches the refusal of a call whose method failed with the text.
func TellFailure(text string) OmegaMatcher {
	return match.MatchWhere(fmt.Sprintf("500 with %q", text), func(a *harness.Response) bool {
		return a.Status == http.StatusInternalServerError && strings.Contains(a.Message(), text)
	})
}

func callsInValidJSONRPC(ctx context.Context, t *harness.T) {
	scenario.MustSeeCalls(t)
	for _, call := range scenario.Allowed(t) {
		called := scenario.MustReach(ctx, t, call)
		t.For(call.Identity, call.Tool, func() {
			for _, entry := range t.Upstream.Journal() {
				if len(entry.Calls) > 0 {
					mustBeValidCall(t, entry)
				}
			}
			if t.Claims("naming-id") {
				t.Expect(match.MethodsOf(called)).To(ContainElement(call.Tool), harness.Mismatch(fmt.Sprintf("the invoke of %s", call.Tool), "a call of exactly that method id", match.Abbreviate(match.MethodsOf(called))))
			}
		})
	}
}
