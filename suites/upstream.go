package suites

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// pageMark stands in the pages and texts that a failing site sends; no answer of the bridge may hold it.
const pageMark = "SITE-PAGE-7b1e"

// siteFailure is a way in which the site fails a call.
type siteFailure struct {
	name  string
	fault mockdrupal.Fault
}

// failedAnswers are answers to a call that are no JSON-RPC answer to it.
var failedAnswers = []siteFailure{
	{"a 500 with JSON that is no JSON-RPC", mockdrupal.Fault{Kind: mockdrupal.FaultStatus, Status: 500, Body: `{"message":"` + pageMark + `"}`}},
	{"a 503 page", mockdrupal.Fault{Kind: mockdrupal.FaultHTML, Status: 503, Body: "<html><title>Site under maintenance</title>" + pageMark + "</html>"}},
	{"a 502 without a body", mockdrupal.Fault{Kind: mockdrupal.FaultEmpty, Status: 502}},
	{"a 500 with a result", mockdrupal.Fault{Kind: mockdrupal.FaultStatus, Status: 500, Run: true}},
	{"an HTML page under 200", mockdrupal.Fault{Kind: mockdrupal.FaultHTML, Body: "<!DOCTYPE html><html>" + pageMark + "</html>"}},
	{"a redirect", mockdrupal.Fault{Kind: mockdrupal.FaultRedirect, Location: "/user/login"}},
	{"an empty 200", mockdrupal.Fault{Kind: mockdrupal.FaultEmpty}},
	{"a body cut off", mockdrupal.Fault{Kind: mockdrupal.FaultCut}},
	{"a Content-Length that is too long", mockdrupal.Fault{Kind: mockdrupal.FaultLengthLong}},
	{"a Content-Length that is too short", mockdrupal.Fault{Kind: mockdrupal.FaultLengthShort}},
	{"invalid JSON", mockdrupal.Fault{Kind: mockdrupal.FaultGarbage}},
	{"JSON and more behind it", mockdrupal.Fault{Kind: mockdrupal.FaultTrailing}},
	{"invalid UTF-8", mockdrupal.Fault{Kind: mockdrupal.FaultInvalidUTF8}},
}

// falseAnswers are JSON-RPC answers with a result that do not answer the request.
var falseAnswers = []siteFailure{
	{"a result with another id", mockdrupal.Fault{Kind: mockdrupal.FaultWrongID}},
	{"a result without an id", mockdrupal.Fault{Kind: mockdrupal.FaultMissingID}},
	{"a result with id null", mockdrupal.Fault{Kind: mockdrupal.FaultNullID}},
	{"result and error at once", mockdrupal.Fault{Kind: mockdrupal.FaultBoth}},
	{"neither result nor error", mockdrupal.Fault{Kind: mockdrupal.FaultNeither}},
}

// checks__upstream__upstream are the checks of this file.
var checks__upstream__upstream = []Check{
	{ID: "upstream/valid-jsonrpc", Sees: Site, Run: chk__upstream__validJSONRPC, WithoutSite: callsInValidJSONRPC},
	{ID: "upstream/eager-validation", Sees: Site, Generated: true, Run: chk__upstream__eagerValidation},
	{ID: "upstream/pooled", Sees: Journal, Costly: true, Run: chk__upstream__pooled},
	{ID: "upstream/id-mismatch", Sees: Site, Run: chk__upstream__idMismatch},
	{ID: "upstream/http-error", Sees: Journal, Run: chk__upstream__httpError},
	{ID: "upstream/auth-error", Sees: Journal, Run: chk__upstream__authError},
	{ID: "upstream/timeout", Sees: Journal, Run: chk__upstream__timeout},
	{ID: "upstream/down-and-up", Sees: Site, Run: chk__upstream__downAndUp},
	{ID: "upstream/cancel", Sees: Journal, Run: chk__upstream__cancel},
	{ID: "upstream/huge-answer", Sees: Journal, Run: chk__upstream__hugeAnswer},
	{ID: "upstream/no-ssrf", Sees: Site, Run: chk__upstream__noSsrf},
	{ID: "upstream/post-only", Sees: Journal, Run: chk__upstream__postOnly},
	{ID: "upstream/error-any-status", Sees: Site, Run: chk__upstream__errorAnyStatus},
}

func chk__upstream__validJSONRPC(ctx context.Context, t *T) {
	known := t.KnownTool(ctx)
	t.As(Agent).Invoke(ctx, known, Args{}).MustSucceed()
	echo := t.echoTool()
	t.As(Agent).Invoke(ctx, t.ToolName(echo.ID), echo.arguments("valid")).MustSucceed()

	calls := 0
	for _, entry := range t.Drupal.Journal() {
		if entry.Path != "/jsonrpc" || entry.HTTPMethod != http.MethodPost {
			continue
		}
		calls++
		t.For(Identity(entry.User), "", func() { t.mustBeValidCall(entry) })
	}
	t.Expect(calls).To(BeNumerically(">=", 2), mismatch("two invokes", "a POST /jsonrpc each", fmt.Sprintf("%d", calls)))
	t.Expect(t.Drupal.Calls(echo.ID)).NotTo(BeEmpty(), mismatch(fmt.Sprintf("the invoke of %s", echo.ID), "a call of exactly that method id", fewOf(methodsOf(t.Drupal.Calls()))))
}

func chk__upstream__eagerValidation(ctx context.Context, t *T) {
	echo := t.echoTool()
	t.As(Agent).Invoke(ctx, t.ToolName(echo.ID), echo.arguments("valid")).MustSucceed()

	for what, arguments := range inOrder(map[string]any{"a required parameter missing": Args{}, "a wrong type": echo.arguments(map[string]any{"no": "string"})}) {
		t.Row(Agent, t.ToolName(echo.ID), what, func() {
			t.Drupal.Mark()
			t.Expect(t.As(Agent).Invoke(ctx, t.ToolName(echo.ID), arguments)).To(CallNothing())
		})
	}
	for _, c := range t.brokenArguments(ctx) {
		t.For(Agent, c.Name, func() {
			t.Drupal.Mark()
			t.Expect(t.As(Agent).Invoke(ctx, c.Name, c.Value)).To(CallNothing(c.ID), c.What)
		})
	}
}

func chk__upstream__pooled(ctx context.Context, t *T) {
	call := t.mustRun(ctx)
	t.make(ctx, call).MustSucceed()
	t.Upstream.Mark()
	const invokes, handful = 200, 10
	for range invokes {
		t.make(ctx, call)
	}
	connections := map[int64]bool{}
	for _, entry := range t.Upstream.Journal() {
		if len(entry.Calls) > 0 { // a bridge may look up methods meanwhile
			connections[entry.Conn] = true
		}
	}
	t.Expect(len(connections)).To(BeNumerically("<=", handful), mismatch(fmt.Sprintf("%d invokes in turn", invokes), fmt.Sprintf("at most %d connections to the site", handful), fmt.Sprintf("%d", len(connections))))
}

func chk__upstream__idMismatch(ctx context.Context, t *T) {
	t.eachFailure(ctx, falseAnswers, t.mustRun(ctx), BeUpstreamError())
	failing := t.failingTool()
	right := t.As(Agent).Invoke(ctx, t.ToolName(failing.ID), Args{}).MustMeet(TellFailure(failing.Behaviour.Error.Message))
	for _, f := range []siteFailure{
		{"an error with id null", mockdrupal.Fault{Kind: mockdrupal.FaultNullID}},
		{"an error without an id", mockdrupal.Fault{Kind: mockdrupal.FaultMissingID}},
	} {
		t.eachFailure(ctx, []siteFailure{f}, asAgent(t.ToolName(failing.ID)), Meet("that error: "+right.Outcome(), func(a *Response) string {
			if a.Status != right.Status || a.Code() != right.Code() || !strings.Contains(a.Message(), failing.Behaviour.Error.Message) {
				return a.Outcome()
			}
			return ""
		}))
	}
}

func chk__upstream__httpError(ctx context.Context, t *T) {
	t.eachFailure(ctx, failedAnswers, t.mustRun(ctx), BeUpstreamError())
}

func chk__upstream__authError(ctx context.Context, t *T) {
	call := t.mustRun(ctx)
	t.make(ctx, call).MustSucceed()

	t.Row(call.Identity, "", "the site's 401", func() {
		defer t.Upstream.Arm(mockdrupal.Fault{Kind: mockdrupal.FaultStatus, Route: "jsonrpc", Status: 401, Body: `{"message":"No authentication credentials provided."}`})()
		refused := t.make(ctx, call)
		t.Expect(refused).To(BeRefusedWith(401))
		t.Expect(refused).To(Meet("the site's challenge in WWW-Authenticate", func(a *Response) string {
			if a.Header.Get("WWW-Authenticate") == "" {
				return "no WWW-Authenticate"
			}
			return ""
		}))
	})
	t.Row(call.Identity, "", "the site's 403", func() {
		defer t.Upstream.Arm(mockdrupal.Fault{Kind: mockdrupal.FaultStatus, Route: "jsonrpc", Status: 403, Body: `{"message":"Access denied."}`})()
		t.Expect(t.make(ctx, call)).To(BeRefusedWith(403))
	})
}

func chk__upstream__timeout(ctx context.Context, t *T) {
	if t.UpstreamTimeout == 0 {
		NotTestable("how long the bridge waits for the site is unknown: give the setting `upstream_timeout`")
	}
	call := t.mustRun(ctx)
	t.make(ctx, call).MustSucceed()
	limit := t.UpstreamTimeout + 1500*time.Millisecond
	hangs := []siteFailure{
		{"no headers", mockdrupal.Fault{Kind: mockdrupal.FaultHang, Route: "jsonrpc"}},
		{"half a body", mockdrupal.Fault{Kind: mockdrupal.FaultHangBody, Route: "jsonrpc"}},
		{"no connection", mockdrupal.Fault{Kind: mockdrupal.FaultDeaf, Delay: 2*limit + t.timeout}},
	}
	if t.outlastsAll(ctx, hangs, call, limit) {
		return
	}
	t.listOutlasts(ctx, limit)
	for _, f := range hangs { // one after the other, to tell which it is
		disarm, err := t.Upstream.TryArm(f.fault)
		if err != nil && f.fault.Kind != mockdrupal.FaultDeaf {
			panic(fmt.Sprintf("a check arms an impossible fault: %v", err))
		}
		if err != nil { // not every system can show it, nor a mock that does not listen by itself
			Logf("left out: a site that hangs with %s: %v", f.name, err)
			continue
		}
		t.Row(call.Identity, "", "a site that hangs with "+f.name, func() {
			defer disarm()
			t.Expect(t.make(ctx, call)).To(OutlastCall(limit))
		})
		t.recovered(ctx, call)
	}
}

func chk__upstream__downAndUp(ctx context.Context, t *T) {
	known := t.KnownTool(ctx)
	t.As(Agent).Invoke(ctx, known, Args{}).MustSucceed()
	stranger := t.As(t.Drupal.NewUser(t.Permissions(Agent)...))
	const down, atOnce = 10 * time.Second, 1200 * time.Millisecond
	began := time.Now()
	reopen, err := t.Drupal.TryArm(mockdrupal.Fault{Kind: mockdrupal.FaultRefuse, Delay: down})
	if err != nil {
		NotTestable("a site that is down cannot be shown: " + err.Error())
	}
	for what, ask := range inOrder(map[string]func() *Response{
		"invoke":                       func() *Response { return t.As(Agent).Invoke(ctx, known, Args{}) },
		"list for a caller never seen": func() *Response { return stranger.List(ctx) },
	}) {
		r := ask()
		if time.Since(began) > down {
			NotTestable("the machine was too slow to look while the site was down")
		}
		t.Row(r.Who, "", what+" while the site is down", func() {
			t.Expect(r).To(BeRefusedWith(502, 503, 500))
			t.Expect(r).To(ComeInTime(atOnce))
		})
	}
	reopen()
	t.Row(Agent, "", "the site is back", func() {
		t.Expect(t.comesBack(ctx, asAgent(known))).To(BeNone())
		t.Expect(stranger.List(ctx)).To(HaveStatus(200))
	})
}

func chk__upstream__cancel(ctx context.Context, t *T) {
	call := t.mustRun(ctx)
	t.make(ctx, call).MustSucceed()
	t.Upstream.Arm(mockdrupal.Fault{Kind: mockdrupal.FaultHang, Route: "jsonrpc"})
	t.Upstream.Mark()
	leaving, leave := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer Recover()
		defer close(gone)
		t.As(call.Identity).Send(leaving, Request{Method: http.MethodPost, Path: InvokePath, Body: bytes.NewReader(call.body()), Show: string(call.body()), Fresh: true})
	}()
	reached := within(ctx, 5*time.Second, func() bool { return len(t.Upstream.Journal()) > 0 })
	t.Expect(reached).To(BeTrue(), mismatch("the call that hangs", "it at the site", "nothing"))
	leave()
	<-gone
	soon := time.Second
	if t.UpstreamTimeout > 0 {
		soon = min(soon, t.UpstreamTimeout/2) // after that its own time-out would end the request
	}
	ended := within(ctx, soon, func() bool { return !t.Upstream.Journal()[0].End.IsZero() })
	t.Expect(ended).To(BeTrue(), mismatch("a caller that goes away", "its request to the site to end", fmt.Sprintf("it still running %v later", soon)))
}

func chk__upstream__hugeAnswer(ctx context.Context, t *T) {
	call := t.mustRun(ctx)
	t.make(ctx, call).MustSucceed()
	t.eachFailure(ctx, []siteFailure{{"an answer of 256 MiB", mockdrupal.Fault{Kind: mockdrupal.FaultHuge}}}, call, BeUpstreamError())
}

func chk__upstream__noSsrf(ctx context.Context, t *T) {
	known := t.KnownTool(ctx)
	t.As(Agent).Invoke(ctx, known, Args{}).MustSucceed()
	elsewhere, host := t.elsewhere()
	there := "http://" + host

	lures := func(what string, ask func()) {
		t.Row(Agent, "", what, func() {
			before := len(elsewhere())
			ask()
			visits := elsewhere()[before:]
			t.Expect(visits).To(BeEmpty(), mismatch(what, "no connection to another host than the site", fmt.Sprintf("%s at %s", fewOf(visits), host)))
		})
	}
	lures("a name on describe", func() { t.As(Agent).Describe(ctx, there+"/jsonrpc") })
	for _, name := range []string{there + "/jsonrpc", "//" + host + "/jsonrpc", "@" + host + "/"} {
		lures("the name "+name+" on invoke", func() { t.As(Agent).Invoke(ctx, name, Args{}) })
	}
	lures("a cursor", func() { t.As(Agent).List(ctx, there) })
	lures("the header Host on list", func() {
		t.As(t.Drupal.NewUser(t.Permissions(Agent)...)).Send(ctx, Request{Path: ListPath, Header: http.Header{"Host": {host}}})
	})
	body := fmt.Sprintf(`{"name":%q,"arguments":{}}`, known)
	for _, name := range []string{"X-Forwarded-Host", "X-Original-URL", "X-Forwarded-Server", "Forwarded", "Origin", "Referer", "X-Drupal-URL", "Host"} {
		lures("the header "+name+" on invoke", func() {
			t.As(Agent).Send(ctx, Request{Method: http.MethodPost, Path: InvokePath, Header: http.Header{name: {there}}, Body: strings.NewReader(body), Show: body})
		})
	}
	for _, f := range []siteFailure{
		{"a redirect of a call", mockdrupal.Fault{Kind: mockdrupal.FaultRedirect, Route: "jsonrpc", Location: there + "/jsonrpc"}},
		{"a redirect of a call that keeps the verb", mockdrupal.Fault{Kind: mockdrupal.FaultRedirect, Route: "jsonrpc", Location: there + "/jsonrpc", Status: 307}},
		{"a redirect of discovery", mockdrupal.Fault{Kind: mockdrupal.FaultRedirect, Route: "methods", Location: there + "/jsonrpc/methods"}},
		{"a $ref in a schema", mockdrupal.Fault{Kind: mockdrupal.FaultRemoteRef, Route: "methods", Location: there + "/schema.json"}},
	} {
		lures(f.name, func() {
			stranger := t.Drupal.NewUser(t.Permissions(Agent)...) // for whom nothing is cached
			defer t.Drupal.Arm(f.fault)()
			t.As(stranger).List(ctx)
			t.As(Agent).Invoke(ctx, known, Args{})
		})
	}
	t.recovered(ctx, asAgent(known))
	if t.wrong() {
		return
	}
	t.Expect(elsewhere()).To(BeEmpty(), mismatch("no input may make the bridge call another host than the site", "no connection", fmt.Sprintf("one to %s", host)))
}

func chk__upstream__postOnly(ctx context.Context, t *T) {
	t.make(ctx, t.mustRun(ctx)).MustSucceed()
	for _, entry := range t.Upstream.Journal() {
		if len(entry.Calls) == 0 {
			continue
		}
		t.Expect(entry.HTTPMethod+" "+entry.Path).To(Equal("POST /jsonrpc"), mismatch("a method call", "POST /jsonrpc", fmt.Sprintf("%s %s?%s", entry.HTTPMethod, entry.Path, exact.Cut(entry.RawQuery, 80))))
	}
	t.Expect(t.Upstream.Calls()).NotTo(BeEmpty(), mismatch("an invoke that succeeded", "its call at the site", "none"))
}

func chk__upstream__errorAnyStatus(ctx context.Context, t *T) {
	failing := t.failingTool()
	right := t.As(Agent).Invoke(ctx, t.ToolName(failing.ID), Args{}).MustMeet(TellFailure(failing.Behaviour.Error.Message))
	same := Meet("that error: "+right.Outcome(), func(a *Response) string {
		if a.Status != right.Status || a.Code() != right.Code() || !strings.Contains(a.Message(), failing.Behaviour.Error.Message) {
			return a.Outcome()
		}
		return ""
	})
	for _, status := range []int{200, 400, 500} {
		t.eachFailure(ctx, []siteFailure{{fmt.Sprintf("a JSON-RPC error under HTTP %d", status), mockdrupal.Fault{Kind: mockdrupal.FaultStatus, Status: status, Run: true}}}, asAgent(t.ToolName(failing.ID)), same)
	}
	t.eachFailure(ctx, []siteFailure{
		{"a JSON-RPC error without id under HTTP 400", mockdrupal.Fault{Kind: mockdrupal.FaultStatus, Status: 400, Body: errorBody(failing.Behaviour.Error, "")}},
		{"a JSON-RPC error with id null under HTTP 500", mockdrupal.Fault{Kind: mockdrupal.FaultStatus, Status: 500, Body: errorBody(failing.Behaviour.Error, `"id":null,`)}},
	}, asAgent(t.ToolName(failing.ID)), same)
	t.eachFailure(ctx, []siteFailure{
		{"204", mockdrupal.Fault{Kind: mockdrupal.FaultEmpty, Status: 204}},
		{"an empty 200", mockdrupal.Fault{Kind: mockdrupal.FaultEmpty}},
	}, t.mustRun(ctx), BeUpstreamError())
}

// eachFailure makes the call once under each failure of the site and judges the answer; between two it waits until
// the bridge serves again, for a breaker may have opened.
func (t *T) eachFailure(ctx context.Context, failures []siteFailure, call Invocation, judge OmegaMatcher) {
	for _, f := range failures {
		f.fault.Route = "jsonrpc"
		t.Row(call.Identity, "", "the site gives "+f.name, func() {
			defer t.Upstream.Arm(f.fault)()
			t.Expect(t.make(ctx, call)).To(judge)
		})
		t.recovered(ctx, t.mustRun(ctx))
	}
}

// recovered waits until the bridge serves again after a fault of the site is over.
func (t *T) recovered(ctx context.Context, call Invocation) {
	if fault := t.comesBack(ctx, call); !fault.none() {
		Untestable("the bridge does not serve again after a fault of the site (upstream/down-and-up judges that): ", fault)
	}
}

// comesBack makes a call that has to succeed until it does: at once, or after the Retry-After that a breaker announces. It says
// what came instead.
func (t *T) comesBack(ctx context.Context, call Invocation) Finding {
	r := t.make(ctx, call)
	for range 3 {
		if r.Succeeded() {
			return Finding{}
		}
		seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
		if err != nil {
			break
		}
		t.pass(ctx, time.Duration(seconds)*time.Second)
		r = t.make(ctx, call)
	}
	if r.Succeeded() {
		return Finding{}
	}
	return mismatch(r.Subject(), "a success once the site is well", r.Outcome())
}

// pass lets time go by: on the run's clock where there is one, else on the wall's.
func (t *T) pass(ctx context.Context, d time.Duration) {
	if t.advance != nil {
		t.advance(d)
		return
	}
	select {
	case <-time.After(min(d, 30*time.Second)):
	case <-ctx.Done():
	}
}

// elsewhere listens where no bridge has any business; the function tells who came.
func (t *T) elsewhere() (visitors func() []string, host string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		NotTestable("no second host can be opened on this machine: " + err.Error())
	}
	var came atomic.Pointer[[]string]
	came.Store(&[]string{})
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list := append(append([]string{}, *came.Load()...), r.Method+" "+r.URL.Path)
		came.Store(&list)
		http.NotFound(w, r)
	})}
	go server.Serve(listener) //nolint:errcheck // it ends with Close
	Cleanup(func(context.Context) { server.Close() })
	return func() []string { return *came.Load() }, listener.Addr().String()
}

func (t *T) mustBeValidCall(entry mockdrupal.Entry) {
	fault := callFault(entry)
	t.Expect(fault).To(BeEmpty(), mismatch("a request to the site", "valid JSON-RPC 2.0 with an id", fmt.Sprintf("one that is not (%s): %s", fault, exact.Cut(oneLine(string(entry.Body)), 200))))
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
			return "`id` is " + typeOf(id)
		}
		switch params := call["params"].(type) {
		case nil:
			if _, there := call["params"]; there {
				return "`params` is null"
			}
		case map[string]any, []any:
		default:
			return "`params` is " + typeOf(params)
		}
	}
	return ""
}

func errorBody(e *fixtures.RPCError, id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0",%s"error":{"code":%d,"message":%s}}`, id, e.Code, encode(e.Message))
}

// BeUpstreamError matches the refusal that a broken answer of the site becomes: 500, 502 or 503, never the page itself.
func BeUpstreamError() OmegaMatcher {
	return Meet("500, 502 or 503 with the envelope, and nothing of the site's page", func(a *Response) string {
		switch at := strings.Index(string(a.Body), pageMark); {
		case a.Code() == "" || !slices.Contains([]int{500, 502, 503}, a.Status):
			return a.Outcome()
		case at >= 0:
			return fmt.Sprintf("%d with the site's page in it: …%s", a.Status, exact.Cut(oneLine(string(a.Body[max(0, at-60):])), 120))
		}
		return ""
	})
}

// TellFailure matches the refusal of a call whose method failed with the text.
func TellFailure(text string) OmegaMatcher {
	return matching(fmt.Sprintf("500 with %q", text), func(a *Response) bool {
		return a.Status == http.StatusInternalServerError && strings.Contains(a.Message(), text)
	})
}

// BeEnvelope matches a refusal in the contract's envelope.
func BeEnvelope() OmegaMatcher {
	return matching(`{"error": {"code", "message"}}`, func(a *Response) bool { return a.Code() != "" && a.Message() != "" })
}
