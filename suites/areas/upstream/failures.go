package upstream

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// pageMark is in the pages and texts that a failing site sends; no response of the bridge may contain it.
const pageMark = "SITE-PAGE-7b1e"

// outOfOrder are responses of a site that serves nothing, whatever is asked.
var outOfOrder = []scenario.SiteFailure{
	{Name: "a 500 with JSON that is no JSON-RPC", Fault: mockdrupal.Fault{Kind: fault.Status, Status: 500, Body: `{"message":"` + pageMark + `"}`}},
	{Name: "a 503 page", Fault: mockdrupal.Fault{Kind: fault.HTML, Status: 503, Body: "<html><title>Site under maintenance</title>" + pageMark + "</html>"}},
}

// brokenResponses are responses to a call that are no JSON-RPC response to it.
var brokenResponses = slices.Concat(outOfOrder, []scenario.SiteFailure{
	{Name: "a 404 page", Fault: mockdrupal.Fault{Kind: fault.HTML, Status: 404, Body: "<html><title>Page not found</title>" + pageMark + "</html>"}},
	{Name: "a 502 without a body", Fault: mockdrupal.Fault{Kind: fault.Empty, Status: 502}},
	{Name: "a 500 with a result", Fault: mockdrupal.Fault{Kind: fault.Status, Status: 500, Run: true}},
	{Name: "a 302 with a result", Fault: mockdrupal.Fault{Kind: fault.Status, Status: 302, Run: true}},
	{Name: "an HTML page under 200", Fault: mockdrupal.Fault{Kind: fault.HTML, Body: "<!DOCTYPE html><html>" + pageMark + "</html>"}},
	{Name: "a redirect", Fault: mockdrupal.Fault{Kind: fault.Redirect, Location: "/user/login"}},
	{Name: "an empty 200", Fault: mockdrupal.Fault{Kind: fault.Empty}},
	{Name: "a body in chunks without the last one", Fault: mockdrupal.Fault{Kind: fault.CutChunks}},
	{Name: "a Content-Length that is too long", Fault: mockdrupal.Fault{Kind: fault.LengthLong}},
	{Name: "a Content-Length that is too short", Fault: mockdrupal.Fault{Kind: fault.LengthShort}},
	{Name: "invalid JSON", Fault: mockdrupal.Fault{Kind: fault.Garbage}},
	{Name: "JSON and more behind it", Fault: mockdrupal.Fault{Kind: fault.Trailing}},
	{Name: "a notice of PHP before the JSON", Fault: mockdrupal.Fault{Kind: fault.Leading}},
	{Name: "NaN as the result", Fault: mockdrupal.Fault{Kind: fault.NotJSON, Body: "NaN"}},
	{Name: "-Infinity in the result", Fault: mockdrupal.Fault{Kind: fault.NotJSON, Body: `{"n":-Infinity}`}},
	{Name: "a number that begins with a zero", Fault: mockdrupal.Fault{Kind: fault.NotJSON, Body: "[01]"}},
	{Name: "a comma too many", Fault: mockdrupal.Fault{Kind: fault.NotJSON, Body: "[1,]"}},
	{Name: "single quotes", Fault: mockdrupal.Fault{Kind: fault.NotJSON, Body: "{'a':1}"}},
	{Name: "a comment", Fault: mockdrupal.Fault{Kind: fault.NotJSON, Body: "[1/* one */]"}},
	{Name: "a line end within a text", Fault: mockdrupal.Fault{Kind: fault.NotJSON, Body: "\"a\nb\""}},
	{Name: "invalid UTF-8", Fault: mockdrupal.Fault{Kind: fault.InvalidUTF8}},
	{Name: "a gzip stream that breaks", Fault: mockdrupal.Fault{Kind: fault.Gzip}},
})

// mismatchedResponses are JSON-RPC responses with a result that do not belong to the request.
var mismatchedResponses = []scenario.SiteFailure{
	{Name: "a result with another id", Fault: mockdrupal.Fault{Kind: fault.WrongID}},
	{Name: "a result without an id", Fault: mockdrupal.Fault{Kind: fault.MissingID}},
	{Name: "a result with id null", Fault: mockdrupal.Fault{Kind: fault.NullID}},
	{Name: "a result with the id true, which equals any number to PHP", Fault: mockdrupal.Fault{Kind: fault.TrueID}},
	{Name: "result and error at once", Fault: mockdrupal.Fault{Kind: fault.Both}},
	{Name: "a result and the error null at once", Fault: mockdrupal.Fault{Kind: fault.NullError}},
	{Name: "neither result nor error", Fault: mockdrupal.Fault{Kind: fault.Neither}},
	{Name: "the response in a list", Fault: mockdrupal.Fault{Kind: fault.Batch}},
}

func idMismatch(ctx context.Context, t *check.T) {
	eachRefused(ctx, t, mismatchedResponses, scenario.MustRun(ctx, t), beUpstreamError())
	failing := scenario.FailingTool(t)
	call := check.AsAgent(t.ToolName(failing.ID))
	plain := t.Call(ctx, call)
	t.Row(call.Identity, call.Tool, "a method that fails, as the site reports it", func() { t.Expect(plain).NotTo(match.BeRefusedWith(502, 503, 504)) })
	if t.HasFindings() {
		return
	}
	plain.MustMeet(showFailure(failing.Behaviour.Error.Message))
	eachFailure(ctx, t, []scenario.SiteFailure{
		{Name: "an error with id null", Fault: mockdrupal.Fault{Kind: fault.NullID}},
		{Name: "an error without an id", Fault: mockdrupal.Fault{Kind: fault.MissingID}},
	}, call, showSameFailure(plain, failing.Behaviour.Error.Message))
}

// brokenDiscoveries are responses to a request for the methods that list none.
var brokenDiscoveries = slices.Concat(outOfOrder, []scenario.SiteFailure{
	{Name: "other JSON under 200", Fault: mockdrupal.Fault{Kind: fault.Status, Status: 200, ContentType: "application/json", Body: `{"message":"` + pageMark + `"}`}},
	{Name: "a 404 page", Fault: mockdrupal.Fault{Kind: fault.HTML, Status: 404, Body: "<html>" + pageMark + "</html>"}},
	{Name: "a redirect", Fault: mockdrupal.Fault{Kind: fault.Redirect, Location: "/user/login"}},
	{Name: "half a body", Fault: mockdrupal.Fault{Kind: fault.Cut}},
	{Name: "an empty 200", Fault: mockdrupal.Fault{Kind: fault.Empty}},
	{Name: "invalid UTF-8", Fault: mockdrupal.Fault{Kind: fault.InvalidUTF8}},
})

func httpError(ctx context.Context, t *check.T) {
	call := mustRunAnyResult(ctx, t)
	eachRefused(ctx, t, brokenResponses, call, beUpstreamError())
	if s, opened := t.MCPBeside(ctx, call.Identity); opened {
		t.Row(call.Identity, call.Tool, "tools/call while the site sends an HTML page under 200", func() {
			defer t.Upstream.Arm(mockdrupal.Fault{Kind: fault.HTML, Route: route.JSONRPC, Body: "<!DOCTYPE html><html>" + pageMark + "</html>"})()
			t.Expect(s.CallTool(ctx, call.Tool, call.Object())).NotTo(match.BeToolResult())
		})
		scenario.WaitRecovered(ctx, t, call)
	}
	if t.Drupal == nil {
		return
	}
	known := t.As(check.Agent).MustListShared(ctx)
	for _, f := range brokenDiscoveries {
		f.Fault.Route = route.Methods
		stranger := newcomer(t) // a list for another caller may be cached
		t.Row(stranger.Who, "", "the site sends "+f.Name+" for its methods", func() {
			defer t.Upstream.Arm(f.Fault)()
			r := stranger.List(ctx)
			t.Expect(r).To(beUpstreamErrorOrList(known, t.Alone()))
			if !r.Succeeded() {
				return
			}
			if all := stranger.ListAll(ctx); all.Fault.IsZero() {
				missing := match.Minus(known.Names(), all.Names())
				t.Expect(missing).To(BeEmpty(),
					check.Mismatch(r.Subject(), "a refusal, or all that others with the same permissions see", "a list without "+match.Abbreviate(missing)))
			}
		})
		scenario.WaitRecovered(ctx, t, scenario.MustRun(ctx, t))
	}
}

// mustReach makes a call that has to succeed. It has to pass the recording proxy before a site that is not the run's own: what the
// proxy does to calls is nothing to a bridge that is not pointed at it.
func mustReach(ctx context.Context, t *check.T, call check.Invocation) {
	if t.Drupal == nil {
		scenario.MustReach(ctx, t, call)
		return
	}
	t.Call(ctx, call).MustSucceed()
}

// mustRunAnyResult is scenario.MustRun, of a tool, where there is one, whose outputSchema refuses nothing that a bridge makes of a response.
func mustRunAnyResult(ctx context.Context, t *check.T) check.Invocation {
	if t.Drupal != nil {
		for _, tool := range scenario.Samples(t, check.Agent, fixtures.Value) {
			if tool.Output == nil {
				return check.AsAgent(tool.Name)
			}
		}
	}
	return scenario.MustRun(ctx, t)
}

// resultStatus sends a result under statuses that say that there is none.
func resultStatus(ctx context.Context, t *check.T) {
	var failures []scenario.SiteFailure
	for _, status := range []int{http.StatusBadRequest, http.StatusNotFound, http.StatusTooManyRequests} {
		failures = append(failures, scenario.SiteFailure{Name: fmt.Sprintf("a %d with a result", status), Fault: mockdrupal.Fault{Kind: fault.Status, Status: status, Run: true}})
	}
	eachRefused(ctx, t, failures, scenario.MustRun(ctx, t), match.MatchWhere("a refusal with the envelope", func(r *check.Response) bool {
		return r.Status >= 400 && r.Code() != ""
	}))
}

// excessBytes makes two calls: behind the response to the first the site sends one for a call that nobody has made.
func excessBytes(ctx context.Context, t *check.T) {
	call := callAndNext(ctx, t, fault.Excess, 20*time.Millisecond, match.MatchWhere("its own result, or 500, 502 or 503 with the envelope", func(r *check.Response) bool {
		refused := r.Code() != "" && slices.Contains([]int{500, 502, 503}, r.Status)
		return !strings.Contains(string(r.Body), fault.Stray) && (r.Status < 400 || refused)
	}))
	scenario.WaitRecovered(ctx, t, call)
}

// idleClosed makes two calls: the site closes the connection behind its response to the first, as it does with those that
// nobody uses for a time.
func idleClosed(ctx context.Context, t *check.T) {
	callAndNext(ctx, t, fault.CloseIdle, 100*time.Millisecond, match.HaveStatus(http.StatusOK))
}

// callAndNext makes a call to which the site responds with a fault of the connection, and another once a client that looks has had
// the time to see it. Both meet the same.
func callAndNext(ctx context.Context, t *check.T, kind string, seen time.Duration, meet types.GomegaMatcher) check.Invocation {
	call := scenario.MustRun(ctx, t)
	mustReach(ctx, t, call)
	disarm := t.Upstream.Arm(mockdrupal.Fault{Kind: kind, Route: route.JSONRPC})
	first := t.Call(ctx, call)
	disarm()
	time.Sleep(seen)
	for i, r := range []*check.Response{first, t.Call(ctx, call)} {
		t.Row(call.Identity, call.Tool, []string{"the call", "the call after it"}[i], func() { t.Expect(r).To(meet) })
	}
	return call
}

// authError gets the 401 twice: as the site sends it to callers without credentials, with its challenge, and by a fault on
// a call of a caller with credentials, as when a password has changed; that one has no challenge to forward.
func authError(ctx context.Context, t *check.T) {
	call := scenario.MustRun(ctx, t)
	mustReach(ctx, t, call)

	anonymous := t.As(check.Anonymous).InvokeBody(ctx, call.Body())
	if anonymous.Status == http.StatusUnauthorized { // else the site lets anonymous callers in, or access/anonymous-401 fails
		t.Row(check.Anonymous, "", "the site's 401 to a caller without credentials", func() { t.Expect(anonymous).To(haveSitesChallenge(t)) })
	}
	if t.Advance != nil { // the bridge may have kept the site's refusal
		t.Advance(2 * scenario.RefusalsLast)
	}
	t.Upstream.Mark()
	list := t.As(check.Anonymous).List(ctx)
	asked := slices.ContainsFunc(t.Upstream.Journal(), func(e journal.Entry) bool { return e.Route == route.Methods && e.Status == http.StatusUnauthorized })
	if asked && list.Status == http.StatusUnauthorized { // else the bridge's own challenge is right as well
		t.Row(check.Anonymous, "", "the site's 401 to a list without credentials", func() { t.Expect(list).To(haveSitesChallenge(t)) })
	}
	for _, row := range []struct {
		status int
		body   string
	}{
		{401, `{"message":"No authentication credentials provided."}`},
		{403, `{"message":"Access denied."}`},
		{403, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Access denied."}}`}, // a module in front of jsonrpc
	} {
		call := call
		if call.Identity == check.Agent && row.status == http.StatusUnauthorized && t.Refusable() != check.Agent {
			call.Identity = t.Refusable()
			mustReach(ctx, t, call)
		}
		t.Row(call.Identity, "", fmt.Sprintf("the site's %d to a call, with %s", row.status, row.body), func() {
			defer t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Status, Route: route.JSONRPC, Status: row.status, Body: row.body})()
			t.Expect(t.Call(ctx, call)).To(match.BeRefusedWith(row.status))
			if s, opened := t.MCPBeside(ctx, call.Identity); opened && row.status == http.StatusUnauthorized {
				t.Expect(s.CallTool(ctx, call.Tool, call.Object())).To(match.MatchWhere("401 with a challenge in WWW-Authenticate", func(r *check.Response) bool {
					return r.Status == http.StatusUnauthorized && r.Header.Get("WWW-Authenticate") != ""
				}), "tools/call")
			}
		})
	}
}

// haveSitesChallenge matches a 401 with the challenge that the site sent.
func haveSitesChallenge(t *check.T) types.GomegaMatcher {
	title, expected := siteTitle(t), "the site's challenge in WWW-Authenticate"
	if title != "" {
		expected += fmt.Sprintf(", with realm=%q", title)
	}
	return match.ConformHeader("WWW-Authenticate", expected, func(r *check.Response) string {
		challenges := strings.Join(r.Header.Values("WWW-Authenticate"), ", ")
		switch {
		case challenges == "":
			return "no WWW-Authenticate"
		case title != "" && !hasRealm(challenges, title): // that of Drupal's challenge
			return challenges
		}
		return ""
	})
}

func hasRealm(challenges, realm string) bool {
	return regexp.MustCompile(`(?i:realm)\s*=\s*"` + regexp.QuoteMeta(realm) + `"`).MatchString(challenges)
}

// siteTitle is the realm of the mock's challenge; "" where another site is behind the bridge, or it may be of another kind.
func siteTitle(t *check.T) string {
	if t.Drupal == nil || !t.Claims("auth-basic") {
		return ""
	}
	if _, mock := t.Drupal.Mock.(*mockdrupal.Drupal); !mock || strings.ContainsAny(t.Drupal.Site().Title, `"\`) {
		return ""
	}
	return t.Drupal.Site().Title
}

// oversized are valid responses to a call: a bridge without a limit takes them and succeeds.
var oversized = []scenario.SiteFailure{
	{Name: "one long string", Fault: mockdrupal.Fault{Kind: fault.Huge}},
	{Name: "many small members", Fault: mockdrupal.Fault{Kind: fault.HugeMembers}},
	{Name: "one long string, compressed", Fault: mockdrupal.Fault{Kind: fault.HugeGzip}},
}

func hugeResponse(ctx context.Context, t *check.T) {
	const size = 256 << 20
	defer t.AllowTime(10 * time.Second)() // so much takes its time, whatever a usual response may take
	call := scenario.MustRun(ctx, t)
	mustReach(ctx, t, call)
	for _, f := range oversized {
		f.Fault.Route, f.Fault.Size = route.JSONRPC, size
		t.Row(call.Identity, "", "a valid response of 256 MiB: "+f.Name, func() {
			t.Upstream.Mark()
			defer t.Upstream.Arm(f.Fault)()
			r := untilInTime(t, func() *check.Response { return t.Call(ctx, call) })
			t.Expect(r).To(beUpstreamError())
			expectCutOff(t, r, size)
		})
		if t.HasFindings() {
			return // each takes long where there is no limit
		}
		scenario.WaitRecovered(ctx, t, call)
	}
	if t.Drupal == nil {
		return
	}
	known, stranger := t.As(check.Agent).MustListShared(ctx), newcomer(t)
	t.Row(stranger.Who, "", "256 MiB for its methods", func() {
		t.Upstream.Mark()
		defer t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Huge, Route: route.Methods, Size: size})()
		r := untilInTime(t, func() *check.Response { return stranger.List(ctx) })
		t.Expect(r).To(beUpstreamErrorOrList(known, t.Alone()))
		expectCutOff(t, r, size)
	})
	scenario.WaitRecovered(ctx, t, call)
}

// untilInTime asks up to three times, while a machine is too busy for the bridge to reach its limit of size in time.
func untilInTime(t *check.T, ask func() *check.Response) *check.Response {
	r := ask()
	for tries := 1; tries < 3 && r.Status == http.StatusGatewayTimeout; tries++ {
		r = ask()
	}
	if r.Status == http.StatusGatewayTimeout {
		t.ExemptIfCrowded()
	}
	return r
}

// expectCutOff fails if the bridge has taken all of a response of the site since the last Mark.
func expectCutOff(t *check.T, r *check.Response, size int64) {
	for _, entry := range t.Upstream.Journal() {
		t.Expect(entry.BytesTaken < size).To(BeTrue(), check.Mismatch(r.Subject(), "the response of the site to be cut off",
			fmt.Sprintf("all %d bytes of it taken", entry.BytesTaken)))
	}
}

// inARow are more failures than circuit breakers count by default, five or ten: a method that fails is no site that does.
const inARow = 11

func errorAnyStatus(ctx context.Context, t *check.T) {
	failing := scenario.FailingTool(t)
	call := check.AsAgent(t.ToolName(failing.ID))
	plain := t.Call(ctx, call).MustMeet(showFailure(failing.Behaviour.Error.Message))
	failures := []scenario.SiteFailure{
		{Name: "a JSON-RPC error without id under HTTP 400", Fault: mockdrupal.Fault{Kind: fault.Status, Status: 400, Body: errorBody(failing.Behaviour.Error, "")}},
		{Name: "a JSON-RPC error with id null under HTTP 500", Fault: mockdrupal.Fault{Kind: fault.Status, Status: 500, Body: errorBody(failing.Behaviour.Error, `"id":null,`)}},
	}
	for _, status := range []int{200, 400, 500} {
		failures = append(failures, scenario.SiteFailure{Name: fmt.Sprintf("a JSON-RPC error under HTTP %d", status), Fault: mockdrupal.Fault{Kind: fault.Status, Status: status, Run: true}})
	}
	eachFailure(ctx, t, failures, call, showSameFailure(plain, failing.Behaviour.Error.Message))
	t.Row(call.Identity, call.Tool, fmt.Sprintf("%d JSON-RPC errors under HTTP 500 in a row", inARow), func() {
		defer t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Status, Route: route.JSONRPC, Status: http.StatusInternalServerError, Run: true})()
		for n := 0; n < inARow && !t.HasFindings(); n++ {
			t.Expect(t.Call(ctx, call)).To(showSameFailure(plain, failing.Behaviour.Error.Message))
		}
	})
	scenario.WaitRecovered(ctx, t, scenario.MustRun(ctx, t))
	var denials []scenario.SiteFailure
	for _, status := range []int{400, 500} { // that under 200 is what sites send
		denials = append(denials, scenario.SiteFailure{Name: fmt.Sprintf("a denial under HTTP %d", status), Fault: mockdrupal.Fault{Kind: fault.Status, Status: status,
			Body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request","data":"Access Denied: The 'access content' permission is required."}}`}})
	}
	eachFailure(ctx, t, denials, call, match.BeRefusedWith(http.StatusForbidden, http.StatusNotFound))
	eachFailure(ctx, t, []scenario.SiteFailure{
		{Name: "204", Fault: mockdrupal.Fault{Kind: fault.Empty, Status: 204}},
		{Name: "an empty 200", Fault: mockdrupal.Fault{Kind: fault.Empty}},
	}, scenario.MustRun(ctx, t), beUpstreamError())
}

// eachFailure makes the call once under each failure of the site. Between two it waits until the bridge serves again, for
// a circuit breaker may have opened.
func eachFailure(ctx context.Context, t *check.T, failures []scenario.SiteFailure, call check.Invocation, want OmegaMatcher) {
	for _, f := range failures {
		f.Fault.Route = route.JSONRPC
		t.Row(call.Identity, "", "the site sends "+f.Name, func() {
			defer t.Upstream.Arm(f.Fault)()
			t.Expect(t.Call(ctx, call)).To(want)
		})
		scenario.WaitRecovered(ctx, t, scenario.MustRun(ctx, t))
	}
}

// eachRefused is eachFailure of a call that succeeds without.
func eachRefused(ctx context.Context, t *check.T, failures []scenario.SiteFailure, call check.Invocation, want OmegaMatcher) {
	mustReach(ctx, t, call)
	eachFailure(ctx, t, failures, call, want)
}

func errorBody(e *fixtures.RPCError, id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0",%s"error":{"code":%d,"message":%s}}`, id, e.Code, client.Encode(e.Message))
}
