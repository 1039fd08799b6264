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

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
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
	{"a 500 with JSON that is no JSON-RPC", mockdrupal.Fault{Kind: fault.Status, Status: 500, Body: `{"message":"` + pageMark + `"}`}},
	{"a 503 page", mockdrupal.Fault{Kind: fault.HTML, Status: 503, Body: "<html><title>Site under maintenance</title>" + pageMark + "</html>"}},
	{"a 502 without a body", mockdrupal.Fault{Kind: fault.Empty, Status: 502}},
	{"a 500 with a result", mockdrupal.Fault{Kind: fault.Status, Status: 500, Run: true}},
	{"an HTML page under 200", mockdrupal.Fault{Kind: fault.HTML, Body: "<!DOCTYPE html><html>" + pageMark + "</html>"}},
	{"a redirect", mockdrupal.Fault{Kind: fault.Redirect, Location: "/user/login"}},
	{"an empty 200", mockdrupal.Fault{Kind: fault.Empty}},
	{"a body cut off", mockdrupal.Fault{Kind: fault.Cut}},
	{"a Content-Length that is too long", mockdrupal.Fault{Kind: fault.LengthLong}},
	{"a Content-Length that is too short", mockdrupal.Fault{Kind: fault.LengthShort}},
	{"invalid JSON", mockdrupal.Fault{Kind: fault.Garbage}},
	{"JSON and more behind it", mockdrupal.Fault{Kind: fault.Trailing}},
	{"invalid UTF-8", mockdrupal.Fault{Kind: fault.InvalidUTF8}},
}

// falseAnswers are JSON-RPC answers with a result that do not answer the request.
var falseAnswers = []siteFailure{
	{"a result with another id", mockdrupal.Fault{Kind: fault.WrongID}},
	{"a result without an id", mockdrupal.Fault{Kind: fault.MissingID}},
	{"a result with id null", mockdrupal.Fault{Kind: fault.NullID}},
	{"result and error at once", mockdrupal.Fault{Kind: fault.Both}},
	{"neither result nor error", mockdrupal.Fault{Kind: fault.Neither}},
}

var _ = Area("upstream", func(b *Bridge) {
	b.Check("upstream/valid-jsonrpc", func(ctx SpecContext) {
		known := b.KnownTool(ctx)
		b.As(Agent).Invoke(ctx, known, Args{}).MustSucceed()
		echo := b.echoTool()
		b.As(Agent).Invoke(ctx, b.ToolName(echo.ID), echo.arguments("valid")).MustSucceed()

		calls := 0
		for _, entry := range b.Drupal.Journal() {
			if entry.Path != "/jsonrpc" || entry.HTTPMethod != http.MethodPost {
				continue
			}
			calls++
			b.For(Identity(entry.User), "", func() { mustBeValidCall(entry) })
		}
		Expect(calls).To(BeNumerically(">=", 2), "two invokes: expected a POST /jsonrpc each, got %d", calls)
		Expect(b.Drupal.Calls(echo.ID)).NotTo(BeEmpty(), "the invoke of %s: expected a call of exactly that method id, got %s", echo.ID, fewOf(methodsOf(b.Drupal.Calls())))
	})

	b.Check("upstream/eager-validation", func(ctx SpecContext) {
		echo := b.echoTool()
		b.As(Agent).Invoke(ctx, b.ToolName(echo.ID), echo.arguments("valid")).MustSucceed()

		for what, arguments := range inOrder(map[string]any{"a required parameter missing": Args{}, "a wrong type": echo.arguments(map[string]any{"no": "string"})}) {
			b.Row(Agent, b.ToolName(echo.ID), what, func() {
				b.Drupal.Mark()
				Expect(b.As(Agent).Invoke(ctx, b.ToolName(echo.ID), arguments)).To(CallNothing())
			})
		}
		for _, c := range b.brokenArguments(ctx) {
			b.For(Agent, c.Name, func() {
				b.Drupal.Mark()
				Expect(b.As(Agent).Invoke(ctx, c.Name, c.Value)).To(CallNothing(c.ID), c.What)
			})
		}
	})

	b.Check("upstream/pooled", func(ctx SpecContext) {
		call := b.mustRun(ctx)
		b.make(ctx, call).MustSucceed()
		b.Upstream.Mark()
		const invokes, handful = 200, 10
		for range invokes {
			b.make(ctx, call)
		}
		connections := map[int64]bool{}
		for _, entry := range b.Upstream.Journal() {
			if len(entry.Calls) > 0 { // a bridge may look up methods meanwhile
				connections[entry.Conn] = true
			}
		}
		Expect(len(connections)).To(BeNumerically("<=", handful), "%d invokes in turn: expected at most %d connections to the site, got %d", invokes, handful, len(connections))
	})

	b.Check("upstream/id-mismatch", func(ctx SpecContext) {
		b.eachFailure(ctx, falseAnswers, b.mustRun(ctx), BeUpstreamError())
		failing := b.failingTool()
		right := b.As(Agent).Invoke(ctx, b.ToolName(failing.ID), Args{}).MustMeet(TellFailure(failing.Behaviour.Error.Message))
		for _, f := range []siteFailure{
			{"an error with id null", mockdrupal.Fault{Kind: fault.NullID}},
			{"an error without an id", mockdrupal.Fault{Kind: fault.MissingID}},
		} {
			b.eachFailure(ctx, []siteFailure{f}, asAgent(b.ToolName(failing.ID)), Meet("that error: "+right.Outcome(), func(a *Answer) string {
				if a.Status != right.Status || a.Code() != right.Code() || !strings.Contains(a.Message(), failing.Behaviour.Error.Message) {
					return a.Outcome()
				}
				return ""
			}))
		}
	})

	b.Check("upstream/http-error", func(ctx SpecContext) {
		b.eachFailure(ctx, failedAnswers, b.mustRun(ctx), BeUpstreamError())
	})

	b.Check("upstream/auth-error", func(ctx SpecContext) {
		call := b.mustRun(ctx)
		b.make(ctx, call).MustSucceed()

		b.Row(call.Identity, "", "the site's 401", func() {
			defer b.Upstream.Arm(mockdrupal.Fault{Kind: fault.Status, Route: "jsonrpc", Status: 401, Body: `{"message":"No authentication credentials provided."}`})()
			refused := b.make(ctx, call)
			Expect(refused).To(BeRefusedWith(401))
			Expect(refused).To(Meet("the site's challenge in WWW-Authenticate", func(a *Answer) string {
				if a.Header.Get("WWW-Authenticate") == "" {
					return "no WWW-Authenticate"
				}
				return ""
			}))
		})
		b.Row(call.Identity, "", "the site's 403", func() {
			defer b.Upstream.Arm(mockdrupal.Fault{Kind: fault.Status, Route: "jsonrpc", Status: 403, Body: `{"message":"Access denied."}`})()
			Expect(b.make(ctx, call)).To(BeRefusedWith(403))
		})
	})

	b.Check("upstream/timeout", func(ctx SpecContext) {
		if b.UpstreamTimeout == 0 {
			NotTestable("how long the bridge waits for the site is unknown: give the setting `upstream_timeout`")
		}
		call := b.mustRun(ctx)
		b.make(ctx, call).MustSucceed()
		limit := b.UpstreamTimeout + 1500*time.Millisecond
		hangs := []siteFailure{
			{"no headers", mockdrupal.Fault{Kind: fault.Hang, Route: "jsonrpc"}},
			{"half a body", mockdrupal.Fault{Kind: fault.HangBody, Route: "jsonrpc"}},
			{"no connection", mockdrupal.Fault{Kind: fault.Deaf, Delay: 2*limit + b.timeout}},
		}
		if b.outlastsAll(ctx, hangs, call, limit) {
			return
		}
		b.listOutlasts(ctx, limit)
		for _, f := range hangs { // one after the other, to tell which it is
			disarm, err := b.Upstream.TryArm(f.fault)
			if err != nil && f.fault.Kind != fault.Deaf {
				panic(fmt.Sprintf("a check arms an impossible fault: %v", err))
			}
			if err != nil { // not every system can show it, nor a mock that does not listen by itself
				GinkgoWriter.Printf("left out: a site that hangs with %s: %v\n", f.name, err)
				continue
			}
			b.Row(call.Identity, "", "a site that hangs with "+f.name, func() {
				defer disarm()
				Expect(b.make(ctx, call)).To(OutlastCall(limit))
			})
			b.recovered(ctx, call)
		}
	})

	b.Check("upstream/down-and-up", func(ctx SpecContext) {
		known := b.KnownTool(ctx)
		b.As(Agent).Invoke(ctx, known, Args{}).MustSucceed()
		stranger := b.As(b.Drupal.NewUser(b.Permissions(Agent)...))
		const down, atOnce = 10 * time.Second, 1200 * time.Millisecond
		began := time.Now()
		reopen, err := b.Drupal.TryArm(mockdrupal.Fault{Kind: fault.Refuse, Delay: down})
		if err != nil {
			NotTestable("a site that is down cannot be shown: " + err.Error())
		}
		for what, ask := range inOrder(map[string]func() *Answer{
			"invoke":                       func() *Answer { return b.As(Agent).Invoke(ctx, known, Args{}) },
			"list for a caller never seen": func() *Answer { return stranger.List(ctx) },
		}) {
			r := ask()
			if time.Since(began) > down {
				NotTestable("the machine was too slow to look while the site was down")
			}
			b.Row(r.Who, "", what+" while the site is down", func() {
				Expect(r).To(BeRefusedWith(502, 503, 500))
				Expect(r).To(ComeInTime(atOnce))
			})
		}
		reopen()
		b.Row(Agent, "", "the site is back", func() {
			Expect(b.comesBack(ctx, asAgent(known))).To(BeEmpty())
			Expect(stranger.List(ctx)).To(HaveStatus(200))
		})
	})

	b.Check("upstream/cancel", func(ctx SpecContext) {
		call := b.mustRun(ctx)
		b.make(ctx, call).MustSucceed()
		b.Upstream.Arm(mockdrupal.Fault{Kind: fault.Hang, Route: "jsonrpc"})
		b.Upstream.Mark()
		leaving, leave := context.WithCancel(ctx)
		gone := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(gone)
			b.As(call.Identity).Send(leaving, Request{Method: http.MethodPost, Path: InvokePath, Body: bytes.NewReader(call.body()), Show: string(call.body()), Fresh: true})
		}()
		Eventually(b.Upstream.Journal).WithContext(ctx).WithTimeout(5*time.Second).WithPolling(5*time.Millisecond).ShouldNot(BeEmpty(), "the call that hangs: expected it at the site, got nothing")
		leave()
		<-gone
		soon := time.Second
		if b.UpstreamTimeout > 0 {
			soon = min(soon, b.UpstreamTimeout/2) // after that its own time-out would end the request
		}
		Eventually(func() bool { return !b.Upstream.Journal()[0].End.IsZero() }).WithContext(ctx).WithTimeout(soon).WithPolling(5*time.Millisecond).
			Should(BeTrue(), "a caller that goes away: expected its request to the site to end, got it still running %v later", soon)
	})

	b.Check("upstream/huge-answer", func(ctx SpecContext) {
		call := b.mustRun(ctx)
		b.make(ctx, call).MustSucceed()
		b.eachFailure(ctx, []siteFailure{{"an answer of 256 MiB", mockdrupal.Fault{Kind: fault.Huge}}}, call, BeUpstreamError())
	})

	b.Check("upstream/no-ssrf", func(ctx SpecContext) {
		known := b.KnownTool(ctx)
		b.As(Agent).Invoke(ctx, known, Args{}).MustSucceed()
		elsewhere, host := b.elsewhere()
		there := "http://" + host

		lures := func(what string, ask func()) {
			b.Row(Agent, "", what, func() {
				before := len(elsewhere())
				ask()
				visits := elsewhere()[before:]
				Expect(visits).To(BeEmpty(), "%s: expected no connection to another host than the site, got %s at %s", what, fewOf(visits), host)
			})
		}
		lures("a name on describe", func() { b.As(Agent).Describe(ctx, there+"/jsonrpc") })
		for _, name := range []string{there + "/jsonrpc", "//" + host + "/jsonrpc", "@" + host + "/"} {
			lures("the name "+name+" on invoke", func() { b.As(Agent).Invoke(ctx, name, Args{}) })
		}
		lures("a cursor", func() { b.As(Agent).List(ctx, there) })
		lures("the header Host on list", func() {
			b.As(b.Drupal.NewUser(b.Permissions(Agent)...)).Send(ctx, Request{Path: ListPath, Header: http.Header{"Host": {host}}})
		})
		body := fmt.Sprintf(`{"name":%q,"arguments":{}}`, known)
		for _, name := range []string{"X-Forwarded-Host", "X-Original-URL", "X-Forwarded-Server", "Forwarded", "Origin", "Referer", "X-Drupal-URL", "Host"} {
			lures("the header "+name+" on invoke", func() {
				b.As(Agent).Send(ctx, Request{Method: http.MethodPost, Path: InvokePath, Header: http.Header{name: {there}}, Body: strings.NewReader(body), Show: body})
			})
		}
		for _, f := range []siteFailure{
			{"a redirect of a call", mockdrupal.Fault{Kind: fault.Redirect, Route: "jsonrpc", Location: there + "/jsonrpc"}},
			{"a redirect of a call that keeps the verb", mockdrupal.Fault{Kind: fault.Redirect, Route: "jsonrpc", Location: there + "/jsonrpc", Status: 307}},
			{"a redirect of discovery", mockdrupal.Fault{Kind: fault.Redirect, Route: "methods", Location: there + "/jsonrpc/methods"}},
			{"a $ref in a schema", mockdrupal.Fault{Kind: fault.RemoteRef, Route: "methods", Location: there + "/schema.json"}},
		} {
			lures(f.name, func() {
				stranger := b.Drupal.NewUser(b.Permissions(Agent)...) // for whom nothing is cached
				defer b.Drupal.Arm(f.fault)()
				b.As(stranger).List(ctx)
				b.As(Agent).Invoke(ctx, known, Args{})
			})
		}
		b.recovered(ctx, asAgent(known))
		if b.wrong() {
			return
		}
		Expect(elsewhere()).To(BeEmpty(), "no input may make the bridge call another host than the site: expected no connection, got one to %s", host)
	})

	b.Check("upstream/post-only", func(ctx SpecContext) {
		b.make(ctx, b.mustRun(ctx)).MustSucceed()
		for _, entry := range b.Upstream.Journal() {
			if len(entry.Calls) == 0 {
				continue
			}
			Expect(entry.HTTPMethod+" "+entry.Path).To(Equal("POST /jsonrpc"), "a method call: expected POST /jsonrpc, got %s %s?%s", entry.HTTPMethod, entry.Path, exact.Cut(entry.RawQuery, 80))
		}
		Expect(b.Upstream.Calls()).NotTo(BeEmpty(), "an invoke that succeeded: expected its call at the site, got none")
	})

	b.Check("upstream/error-any-status", func(ctx SpecContext) {
		failing := b.failingTool()
		right := b.As(Agent).Invoke(ctx, b.ToolName(failing.ID), Args{}).MustMeet(TellFailure(failing.Behaviour.Error.Message))
		same := Meet("that error: "+right.Outcome(), func(a *Answer) string {
			if a.Status != right.Status || a.Code() != right.Code() || !strings.Contains(a.Message(), failing.Behaviour.Error.Message) {
				return a.Outcome()
			}
			return ""
		})
		for _, status := range []int{200, 400, 500} {
			b.eachFailure(ctx, []siteFailure{{fmt.Sprintf("a JSON-RPC error under HTTP %d", status), mockdrupal.Fault{Kind: fault.Status, Status: status, Run: true}}}, asAgent(b.ToolName(failing.ID)), same)
		}
		b.eachFailure(ctx, []siteFailure{
			{"a JSON-RPC error without id under HTTP 400", mockdrupal.Fault{Kind: fault.Status, Status: 400, Body: errorBody(failing.Behaviour.Error, "")}},
			{"a JSON-RPC error with id null under HTTP 500", mockdrupal.Fault{Kind: fault.Status, Status: 500, Body: errorBody(failing.Behaviour.Error, `"id":null,`)}},
		}, asAgent(b.ToolName(failing.ID)), same)
		b.eachFailure(ctx, []siteFailure{
			{"204", mockdrupal.Fault{Kind: fault.Empty, Status: 204}},
			{"an empty 200", mockdrupal.Fault{Kind: fault.Empty}},
		}, b.mustRun(ctx), BeUpstreamError())
	})
})

// eachFailure makes the call once under each failure of the site and judges the answer; between two it waits until
// the bridge serves again, for a breaker may have opened.
func (b *Bridge) eachFailure(ctx context.Context, failures []siteFailure, call Invocation, judge OmegaMatcher) {
	for _, f := range failures {
		f.fault.Route = "jsonrpc"
		b.Row(call.Identity, "", "the site gives "+f.name, func() {
			defer b.Upstream.Arm(f.fault)()
			Expect(b.make(ctx, call)).To(judge)
		})
		b.recovered(ctx, b.mustRun(ctx))
	}
}

// recovered waits until the bridge serves again after a fault of the site is over.
func (b *Bridge) recovered(ctx context.Context, call Invocation) {
	if fault := b.comesBack(ctx, call); fault != "" {
		NotTestable("the bridge does not serve again after a fault of the site (upstream/down-and-up judges that): " + fault)
	}
}

// comesBack makes a call that has to succeed until it does: at once, or after the Retry-After that a breaker announces. It says
// what came instead.
func (b *Bridge) comesBack(ctx context.Context, call Invocation) string {
	r := b.make(ctx, call)
	for range 3 {
		if r.Succeeded() {
			return ""
		}
		seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
		if err != nil {
			break
		}
		b.pass(ctx, time.Duration(seconds)*time.Second)
		r = b.make(ctx, call)
	}
	if r.Succeeded() {
		return ""
	}
	return mismatch(r.Subject(), "a success once the site is well", r.Outcome())
}

// pass lets time go by: on the run's clock where there is one, else on the wall's.
func (b *Bridge) pass(ctx context.Context, d time.Duration) {
	if b.advance != nil {
		b.advance(d)
		return
	}
	select {
	case <-time.After(min(d, 30*time.Second)):
	case <-ctx.Done():
	}
}

// elsewhere listens where no bridge has any business; the function tells who came.
func (b *Bridge) elsewhere() (visitors func() []string, host string) {
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
	DeferCleanup(server.Close)
	return func() []string { return *came.Load() }, listener.Addr().String()
}

func mustBeValidCall(entry mockdrupal.Entry) {
	fault := callFault(entry)
	Expect(fault).To(BeEmpty(), "a request to the site: expected valid JSON-RPC 2.0 with an id, got one that is not (%s): %s", fault, exact.Cut(oneLine(string(entry.Body)), 200))
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
	return Meet("500, 502 or 503 with the envelope, and nothing of the site's page", func(a *Answer) string {
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
	return judging(fmt.Sprintf("500 with %q", text), func(a *Answer) bool {
		return a.Status == http.StatusInternalServerError && strings.Contains(a.Message(), text)
	})
}

// BeEnvelope matches a refusal in the contract's envelope.
func BeEnvelope() OmegaMatcher {
	return judging(`{"error": {"code", "message"}}`, func(a *Answer) bool { return a.Code() != "" && a.Message() != "" })
}
