// Package protocol checks the HTTP of the three endpoints: verbs, HEAD, caching and other headers, connections.
package protocol

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area http.
var Checks = []check.Check{
	{ID: "http/method-not-allowed", Sees: check.Front, Run: methodNotAllowed},
	{ID: "http/head", Sees: check.Front, Run: head},
	{ID: "http/no-shared-cache", Sees: check.Front, Run: noSharedCache, OfOne: func(_ *check.T, a *check.Response) types.GomegaMatcher {
		switch {
		case a.Path == check.InvokePath:
		case a.Status/100 == 2:
			return scenario.ExcludeSharedCaches()
		case a.Status/100 == 4 && a.Method == http.MethodGet:
			return Not(inviteSharedCaches())
		}
		return nil
	}},
	{ID: "http/nosniff", Beside: "errors/envelope", ByMock: true, Sees: check.Front, Guesses: 3, Run: nosniff, OfOne: func(_ *check.T, a *check.Response) types.GomegaMatcher {
		if a.Status >= http.StatusBadRequest && a.Code() == "" {
			return nil // a server in front of the bridge may have refused it
		}
		return forbidSniffing()
	}},
	{ID: "http/content-negotiation", Sees: check.Front, Run: contentNegotiation},
	{ID: "http/trailing-and-case", Sees: check.Front, Run: trailingAndCase},
	{ID: "http/keep-alive-after-error", Sees: check.Front, Guesses: 2, Run: keepAliveAfterError},
	{ID: "http/slow-client", ByMock: true, Sees: check.Front, Run: slowClient},
}

func methodNotAllowed(ctx context.Context, t *check.T) {
	known := scenario.KnownTool(ctx, t)
	for path, query := range check.InOrder(map[string]string{check.ListPath: "", check.DescribePath: "name=" + url.QueryEscape(known)}) {
		t.As(check.Agent).Send(ctx, check.Request{Path: path, Raw: query}).MustSucceed()
		for _, verb := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			ask := check.Request{Method: verb, Path: path, Raw: query}
			if query != "" && verb != "DELETE" { // to list without a body
				ask.Show = string(client.Encode(map[string]any{"name": known}))
				ask.Body = strings.NewReader(ask.Show)
			}
			t.Row(check.Agent, "", strings.TrimSuffix(verb+" "+path+"?"+query, "?"), func() {
				r := t.As(check.Agent).Send(ctx, ask)
				t.Expect(r).To(match.HaveStatus(405))
				t.Expect(r).To(allowGET())
			})
		}
	}
	override := check.Request{Method: http.MethodPost, Path: check.ListPath, Raw: "_method=GET", Header: http.Header{"X-Http-Method-Override": {"GET"}}}
	t.Row(check.Agent, "", "POST "+check.ListPath+" that says it is a GET", func() { t.Expect(t.As(check.Agent).Send(ctx, override)).To(match.HaveStatus(405)) })
	t.Row(check.Agent, "", "PROPFIND "+check.ListPath, func() { // a server may not know the verb at all
		t.Expect(t.As(check.Agent).Send(ctx, check.Request{Method: "PROPFIND", Path: check.ListPath})).NotTo(match.BeSuccess())
	})
}

func head(ctx context.Context, t *check.T) {
	known := scenario.KnownTool(ctx, t)
	asks := map[string]check.Request{
		"list":                        {Path: check.ListPath},
		"describe":                    {Path: check.DescribePath, Query: url.Values{"name": {known}}},
		"describe of an unknown tool": {Path: check.DescribePath, Query: url.Values{"name": {scenario.NoSuchTool}}},
		"describe without a name":     {Path: check.DescribePath},
	}
	if next := t.As(check.Agent).MustListShared(ctx).Pages[0].NextCursor(); next != "" {
		asks["the second page"] = check.Request{Path: check.ListPath, Query: url.Values{"cursor": {next}}}
	}
	if tag := t.As(check.Agent).List(ctx).Header.Get("ETag"); tag != "" {
		asks["the list that the caller has"] = check.Request{Path: check.ListPath, Header: http.Header{"If-None-Match": {tag}}}
	}
	callersOf := map[string][]check.Identity{"list": t.Callers(check.Outsider, check.Anonymous), "describe": t.Callers(check.Outsider)}
	for what, ask := range check.InOrder(asks) {
		header := ask.Header
		for _, who := range append([]check.Identity{check.Agent}, callersOf[what]...) {
			var get, again, head *check.Response
			var body []byte
			for round := range 4 { // a header may show a clock or a counter, which moves on between two requests
				ask.Method, ask.Header = "", header
				if round%2 == 1 {
					t.As(who).Send(ctx, ask) // so that no counter of a small period is the same in each round
				}
				get, again = t.As(who).Send(ctx, ask), t.As(who).Send(ctx, ask)
				if what == "list" && who == check.Agent {
					get.MustSucceed()
				}
				ask.Method, ask.Header = http.MethodHead, http.Header{"Connection": {"close"}}
				maps.Copy(ask.Header, header)
				conn := dial(ctx, t.As(who))
				head = conn.ask(ctx, ask)
				body, _ = conn.rest()
				conn.close()
				if same, _ := haveHeadOf(get, again).Match(head); same {
					break
				}
			}
			t.Row(who, "", what, func() {
				t.Expect(head).To(haveHeadOf(get, again))
				t.Expect(string(body)).To(BeEmpty(), check.Mismatch(head.Subject(), "no body", fmt.Sprintf("%q", exact.Cut(string(body), 100))))
			})
		}
	}
}

func noSharedCache(ctx context.Context, t *check.T) {
	known := scenario.KnownTool(ctx, t)
	successes := append(t.As(check.Agent).MustListAll(ctx).Pages, t.As(check.Agent).Describe(ctx, known).MustSucceed())
	t.Each(successes, func(r *check.Response) { t.Expect(r).To(scenario.ExcludeSharedCaches()) })
	zipped := t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Header: http.Header{"Accept-Encoding": {"gzip"}}})
	if !t.HasFindings() {
		t.Row(check.Agent, "", "gzip asked for", func() { t.Expect(zipped).To(scenario.ExcludeSharedCaches()) })
	}
	refused := []*check.Response{t.As(check.Agent).Describe(ctx, scenario.NoSuchTool), t.As(check.Agent).Send(ctx, check.Request{Path: check.DescribePath}),
		t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Raw: "cursor=%21%21%21%21"})}
	for _, who := range t.Callers(check.Outsider, check.Anonymous) {
		refused = append(refused, t.As(who).List(ctx), t.As(who).Describe(ctx, known))
	}
	if tag := t.As(check.Agent).List(ctx).Header.Get("ETag"); tag != "" {
		refused = append(refused, t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Header: http.Header{"If-None-Match": {tag}}}))
	}
	t.Each(refused, func(r *check.Response) { t.Expect(r).NotTo(inviteSharedCaches()) })
}

func nosniff(ctx context.Context, t *check.T) {
	known := scenario.KnownTool(ctx, t)
	responses := []*check.Response{t.As(check.Agent).List(ctx).MustSucceed(), t.As(check.Agent).Describe(ctx, known),
		t.As(check.Agent).Describe(ctx, scenario.NoSuchTool), t.As(check.Agent).Invoke(ctx, scenario.NoSuchTool, check.Args{})}
	if call, ok := scenario.HarmlessCall(ctx, t); ok {
		responses = append(responses, t.Call(ctx, call))
	}
	for _, r := range scenario.SendRefusals(ctx, t) {
		if r.Response.Code() != "" { // without the envelope a server in front of the bridge may have refused it; errors/envelope tests that
			responses = append(responses, r.Response)
		}
	}
	t.Each(responses, func(r *check.Response) { t.Expect(r).To(forbidSniffing()) })
}

func contentNegotiation(ctx context.Context, t *check.T) {
	for _, ask := range []check.Request{{Path: check.ListPath}, {Path: check.DescribePath, Query: url.Values{"name": {scenario.KnownTool(ctx, t)}}}} {
		plain := t.As(check.Agent).Send(ctx, ask).MustSucceed()
		if same, _ := match.EqualResponse(plain).Match(t.As(check.Agent).Send(ctx, ask)); !same {
			check.BlockedBy(check.Finding{Subject: "two equal requests get different responses"}, "list/order-stable")
		}
		for what, accept := range check.InOrder(map[string][]string{"no Accept": nil, "Accept: */*": {"*/*"}, "a browser's Accept": {"text/html, application/json;q=0.9, */*;q=0.8"}}) {
			ask.Header = http.Header{"Accept": accept}
			r := t.As(check.Agent).Send(ctx, ask)
			t.Row(check.Agent, "", ask.Path+" with "+what, func() {
				given, usual := r.Header.Get("Content-Type"), plain.Header.Get("Content-Type")
				if what == "a browser's Accept" {
					if given != usual {
						t.Expect(r).NotTo(match.BeHTML())
					}
					return
				}
				t.Expect(r).To(match.EqualResponse(plain))
				t.Expect(given).To(Equal(usual), check.Mismatch(r.Subject(), fmt.Sprintf("the Content-Type %q as without it", usual), fmt.Sprintf("%q", given)))
			})
		}
	}
	if call, ok := scenario.HarmlessCall(ctx, t); ok && t.Call(ctx, call).Succeeded() { // else invoke/answers-result fails
		for what, accept := range check.InOrder(map[string][]string{"no Accept": nil, "Accept: */*": {"*/*"}}) {
			t.Row(call.Identity, call.Tool, check.InvokePath+" with "+what, func() {
				t.Expect(t.As(call.Identity).Send(ctx, check.Request{Method: http.MethodPost, Path: check.InvokePath, Header: http.Header{"Accept": accept},
					Body: bytes.NewReader(call.Body()), Show: string(call.Body())})).To(match.BeSuccess())
			})
		}
	}
	plain := t.As(check.Agent).List(ctx)
	lists := []*check.Response{plain} // each has its own compressed form, whatever was compressed before
	if next := plain.NextCursor(); next != "" {
		lists = append(lists, t.As(check.Agent).List(ctx, next))
	}
	for _, other := range scenario.ListsOfOthers(ctx, t) {
		if first := other.Pages[0]; first.Succeeded() && !bytes.Equal(first.Body, plain.Body) {
			lists = append(lists, first)
			break
		}
	}
	const large = 8 << 10
	for i, list := range lists {
		if len(list.Body) >= large {
			accepted := []string{"gzip, deflate", "gzip;q=1.0, identity;q=0.5", "gzip"}[i]
			t.Row(list.Who, list.RawQuery, "Accept-Encoding: "+accepted, func() {
				t.Expect(t.As(list.Who).Send(ctx, check.Request{Path: check.ListPath, Raw: list.RawQuery, Header: http.Header{"Accept-Encoding": {accepted}}})).To(scenario.DecodeTo(list))
			})
		}
	}
	for _, accepted := range []string{"gzip;q=0.000, identity", "identity, gzip ; q=0.0", "identity, *;q=0", "deflate, br"} {
		t.Row(check.Agent, "", "Accept-Encoding: "+accepted, func() {
			unwanted := t.As(check.Agent).Send(ctx, check.Request{Path: check.ListPath, Header: http.Header{"Accept-Encoding": {accepted}}})
			t.Expect(scenario.Listed(unwanted, "Content-Encoding")).NotTo(ContainElement("gzip"), check.Mismatch(unwanted.Subject(), "no gzip", "it"))
		})
	}
}

func trailingAndCase(ctx context.Context, t *check.T) {
	t.As(check.Agent).List(ctx).MustSucceed()
	isTool := func(path string) bool { // per-tool/unknown-404 tests those
		return t.Claims("per-tool") && strings.HasPrefix(path, "/mcp/tools/")
	}
	body, query := "{}", "" // what the endpoints take, to which a router may lead by a prefix
	if call, ok := scenario.HarmlessCall(ctx, t); ok {
		body, query = string(call.Body()), "name="+url.QueryEscape(call.Tool)
	}
	for path, verb := range check.InOrder(map[string]string{"/mcp/no-such-path": http.MethodDelete, "/mcp/tools/no-such-path": http.MethodPost, check.ListPath + "ing": http.MethodPut,
		check.ListPath + "/no-such-path": http.MethodPost, check.DescribePath + "/no-such-path": http.MethodPost, check.InvokePath + "/no-such-path": http.MethodPost}) {
		if isTool(path) {
			continue
		}
		t.Row(check.Agent, "", path, func() {
			r := t.As(check.Agent).Send(ctx, check.Request{Path: path, Raw: query})
			t.Expect(r).To(match.HaveStatus(404))
			t.Expect(r).To(match.KeepEnvelope())
			sent := t.As(check.Agent).Send(ctx, check.Request{Method: verb, Path: path, Body: strings.NewReader(body), Show: body})
			t.Expect(sent).To(match.BeClientError())
			t.Expect(sent).To(match.KeepEnvelope())
		})
		if verb != http.MethodPost {
			t.Row(check.Anonymous, "", path, func() { // who may have to authenticate first
				r := t.As(check.Anonymous).Send(ctx, check.Request{Path: path})
				t.Expect(r).To(match.BeClientError())
				t.Expect(r).To(match.KeepEnvelope())
			})
		}
	}
	for _, path := range slices.DeleteFunc([]string{check.ListPath + "/", "/mcp/no-such-path/", "/mcp/tools/LIST", "/mcp//tools//list", "/mcp/tools/list;x",
		"/mcp/", "/mcp/tools", "/mcp/tools/"}, isTool) {
		t.Row(check.Agent, "", path, func() {
			r := t.As(check.Agent).Send(ctx, check.Request{Path: path, Header: http.Header{"X-Forwarded-Host": {"elsewhere.invalid"}}})
			t.Expect(r).To(stayOnTheHost("/mcp"))
			if r.Status < 300 || r.Status > 399 {
				t.Expect(r).NotTo(match.BeHTML())
			}
		})
	}
	for _, path := range []string{"//elsewhere.invalid/", "/mcp/..//elsewhere.invalid/", "/mcp/%2e%2e//elsewhere.invalid", "/mcp//elsewhere.invalid/%2e%2e"} {
		t.Row(check.Agent, "", path, func() { t.Expect(t.As(check.Agent).Send(ctx, check.Request{Path: path})).To(stayOnTheHost("")) })
	}
}

func keepAliveAfterError(ctx context.Context, t *check.T) {
	control := dial(ctx, t.As(check.Agent))
	defer control.close()
	first := control.ask(ctx, check.Request{Path: check.ListPath}).MustSucceed()
	if !slices.Contains(scenario.Listed(first, "Connection"), "close") { // which it may say after a success: the clause is about refusals
		if next := control.ask(ctx, check.Request{Path: check.ListPath}); next.Err != nil {
			t.Fail(check.Mismatch(next.Subject()+", second on its connection, after a 200", "a response", next.Outcome()))
		}
	}
	for _, c := range refusedRequests {
		conn := dial(ctx, t.As(check.Agent))
		conn.client = t.As(c.who)
		ask := c.request
		if c.body != "" {
			ask.Body, ask.Show = strings.NewReader(c.body), c.body
		}
		if c.what == unannounced {
			ask.Body = io.MultiReader(ask.Body) // of which net/http does not know the length
		}
		failed := conn.ask(ctx, ask)
		conn.client = t.As(check.Agent)
		closes := slices.Contains(scenario.Listed(failed, "Connection"), "close")
		if failed.Status >= 400 && failed.Status < 500 && !failed.EndedByProxy() && !(c.what == unannounced && closes) { // a bridge need not take it
			where := "on the connection of " + c.what
			if closes {
				where += ", which ended with Connection: close"
			}
			t.Row(check.Agent, "", where, func() {
				if next := conn.ask(ctx, check.Request{Path: check.ListPath}); !next.Throttled() { // after the wrong credentials of a row
					t.Expect(next).To(match.HaveStatus(200))
				}
			})
		}
		conn.close()
	}
	afterTooLarge(ctx, t)
}

// tooLong is the length of a body that bridges refuse for its length.
const tooLong = 16 << 20

// afterTooLarge sends a body that consists of requests: a bridge that refuses it by its length alone may close the connection, or
// read on to its end, and takes no part of it for the next request.
func afterTooLarge(ctx context.Context, t *check.T) {
	conn := dial(ctx, t.As(check.Agent))
	defer conn.close()
	const line = "GET " + check.ListPath + " HTTP/1.1"
	const list = line + "\r\nHost: body.invalid\r\n\r\n"
	refused := conn.ask(ctx, check.Request{Method: http.MethodPost, Path: check.InvokePath,
		Body: strings.NewReader(strings.Repeat(list, tooLong/len(list)+1)[:tooLong]),
		Show: line, Unseen: tooLong - len(line), Length: tooLong})
	if refused.Status != http.StatusRequestEntityTooLarge || refused.EndedByProxy() {
		return
	}
	t.Row(check.Agent, "", "on the connection of a 413 of invoke", func() {
		second := conn.unasked()
		t.Expect(second).To(BeEmpty(), check.Mismatch(refused.Subject(), "no second response", fmt.Sprintf("%q, which answers the rest of the body", second)))
	})
}

// reading is how long a bridge, also one in the same process, may take until it reads what slow clients have sent.
const reading = 50 * time.Millisecond

// slowClient measures the list beside slow clients, against the bound that the clause names. That the bridge closes their
// connections after a bounded time is not tested: a sensible bound is longer than a run.
func slowClient(ctx context.Context, t *check.T) {
	other := scenario.NewCaller(t)
	usual := other.List(ctx).MustSucceed()
	const clients = 32
	call, calls := scenario.HarmlessCall(ctx, t)
	if call.Identity == check.Agent {
		call.Identity = other.Who
	}
	var called *check.Response
	if calls {
		called = t.Call(ctx, call)
		calls = called.Succeeded()
	}
	conns := make([]*connection, clients)
	for i := range conns {
		conns[i] = dial(ctx, t.As(check.Agent))
		defer conns[i].close()
		begin := "POST " + check.InvokePath + " HTTP/1.1\r\nHost: slow.invalid\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
		if calls && (i == 0 || other.Who != check.Agent) { // who is known, so that its body is read
			begin = strings.TrimSuffix(conns[i].headOf(ctx, check.Request{Method: http.MethodPost, Path: check.InvokePath,
				Header: http.Header{"Content-Type": {"application/json"}, "Content-Length": {"1000"}}}), "\r\n")
		}
		t.Expect(conns[i].write(begin+"X-Slow: ")).To(Succeed(), "a slow client's first bytes")
	}
	limit := 2*time.Second + 10*usual.Took
	for _, more := range []string{"s", "low\r\n\r\n{\"na"} { // within the header, and within the body
		for _, w := range conns {
			_ = w.write(more) // its connection may be closed by now, as it should be
		}
		time.Sleep(reading)
		list := check.Request{Path: check.ListPath, Fresh: true}
		t.Expect(other.Send(ctx, list)).To(succeedWithin(t, limit), "beside %d clients that send byte by byte", clients)
		if calls {
			t.Expect(t.Call(ctx, call)).To(succeedWithin(t, limit+10*called.Took), "beside %d clients that send byte by byte", clients)
		}
	}
}

// unannounced is a request whose body is in chunks: who reads as much as Content-Length says takes the body for the next request.
const unannounced = "a 404 of invoke, in chunks"

// refusedRequests are requests of each kind that is refused with a 4xx.
var refusedRequests = []struct {
	what    string
	who     check.Identity
	request check.Request
	body    string
}{
	{"a 404 of describe", check.Agent, check.Request{Path: check.DescribePath, Raw: "name=" + scenario.NoSuchTool}, ""},
	{"a 400 of describe", check.Agent, check.Request{Path: check.DescribePath}, ""},
	{"a 404 of an unknown path", check.Agent, check.Request{Path: "/mcp/no-such-path"}, ""},
	{"a 405 of list", check.Agent, check.Request{Method: http.MethodPost, Path: check.ListPath}, "{}"},
	{"a 400 of list", check.Agent, check.Request{Path: check.ListPath, Raw: "cursor=%21%21%21%21"}, ""},
	{"a 415 of invoke", check.Agent, check.Request{Method: http.MethodPost, Path: check.InvokePath, Header: scenario.AsText},
		`{"name":"` + scenario.NoSuchTool + `","arguments":{}}`},
	{"a 400 of invoke without arguments", check.Agent, check.Request{Method: http.MethodPost, Path: check.InvokePath}, `{"name":"` + scenario.NoSuchTool + `"}`},
	{"a 400 of invoke", check.Agent, check.Request{Method: http.MethodPost, Path: check.InvokePath}, `{"name":`},
	{unannounced, check.Agent, check.Request{Method: http.MethodPost, Path: check.InvokePath}, `{"name":"` + scenario.NoSuchTool + `","arguments":{}}`},
	{"a 405 of invoke", check.Agent, check.Request{Method: http.MethodPut, Path: check.InvokePath}, `{"name":"` + scenario.NoSuchTool + `","arguments":{}}`},
	{"a list without credentials", check.Anonymous, check.Request{Path: check.ListPath}, ""},
	{"an invoke with credentials of no account", check.Agent, check.Request{Method: http.MethodPost, Path: check.InvokePath, Header: scenario.AsNobody},
		`{"name":"` + scenario.NoSuchTool + `","arguments":{}}`},
}

// theMethodGET is in capital letters: the names of methods are case-sensitive.
var theMethodGET = regexp.MustCompile(`\bGET\b`)

// allowGET matches a response whose Allow header names GET.
func allowGET() OmegaMatcher {
	return match.Conform("an Allow header that names GET", func(r *check.Response) string {
		if slices.ContainsFunc(r.Header.Values("Allow"), theMethodGET.MatchString) {
			return ""
		}
		return "Allow " + scenario.Quoted(r.Header.Values("Allow"))
	})
}

// framing are the headers on the transfer of the body: HEAD may leave them out.
var framing = []string{"Date", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Trailer"}

// sameVaryButEncoding reports whether the response to HEAD has the Vary of GET, apart from Accept-Encoding: RFC 9110
// section 9.3.2 lets HEAD omit headers that are decided while the body is generated, as servers that compress do.
func sameVaryButEncoding(head, get *check.Response) bool {
	by := func(r *check.Response) []string {
		names := slices.DeleteFunc(scenario.Listed(r, "Vary"), func(name string) bool { return name == "accept-encoding" })
		slices.Sort(names)
		return names
	}
	return slices.Equal(by(head), by(get))
}

// haveHeadOf matches the response to HEAD: the status and the headers of GET, as far as two GETs agree on them.
func haveHeadOf(get, again *check.Response) OmegaMatcher {
	return match.Conform(fmt.Sprintf("GET's status %d and headers", get.Status), func(r *check.Response) string {
		if r.Err != nil || r.Status != get.Status {
			return r.Outcome()
		}
		for name, values := range check.InOrder(get.Header) {
			if slices.Contains(framing, name) || slices.Contains(scenario.VolatileHeaders, name) || !slices.Equal(values, again.Header[name]) {
				continue
			}
			if name == "Vary" && sameVaryButEncoding(r, get) {
				continue
			}
			if !slices.Equal(r.Header[name], values) {
				return fmt.Sprintf("%s %s where GET has %s", name, scenario.Quoted(r.Header[name]), scenario.Quoted(values))
			}
		}
		length, ofGet := r.Header.Get("Content-Length"), get.Header.Get("Content-Length")
		if r.Status == http.StatusOK && length != "" && ofGet != "" && ofGet == again.Header.Get("Content-Length") && length != ofGet {
			return fmt.Sprintf("Content-Length %s where GET has %s", length, ofGet)
		}
		return ""
	})
}

// inviteSharedCaches matches a response that permits shared caches to store it.
func inviteSharedCaches() OmegaMatcher {
	return &match.ResponseMatcher{Expected: "to invite shared caches", Test: func(r *check.Response) (string, bool) {
		fault, kept := scenario.ExcludeSharedCaches().(*match.ResponseMatcher).Test(r)
		return fault, !kept && slices.ContainsFunc(scenario.Listed(r, "Cache-Control"), func(directive string) bool {
			name, value, _ := strings.Cut(directive, "=")
			return name == "public" || (name == "s-maxage" || name == "max-age") && strings.Trim(value, "0") != ""
		})
	}}
}

// forbidSniffing matches a response that forbids browsers to guess its type.
func forbidSniffing() OmegaMatcher {
	return match.ConformHeader("X-Content-Type-Options", "X-Content-Type-Options: nosniff", func(r *check.Response) string {
		if slices.Contains(scenario.Listed(r, "X-Content-Type-Options"), "nosniff") {
			return ""
		}
		return scenario.Quoted(r.Header.Values("X-Content-Type-Options"))
	})
}

// stayOnTheHost matches a response that does not redirect to another host, nor to a path without the part.
func stayOnTheHost(part string) OmegaMatcher {
	return match.Conform(strings.TrimSuffix("no redirect to another host, or away from "+part, ", or away from "), func(r *check.Response) string {
		location := r.Header.Get("Location")
		if r.Status < 300 || r.Status > 399 || location == "" {
			return ""
		}
		here, err := url.Parse(r.Base + r.Path)
		if err != nil {
			return ""
		}
		there, err := here.Parse(location)
		if err != nil || there.Host != here.Host || !strings.Contains(there.Path, part) {
			return fmt.Sprintf("%d to %s", r.Status, location)
		}
		return ""
	})
}

// succeedWithin matches a response of 200 that took no longer than the limit.
func succeedWithin(t *check.T, limit time.Duration) OmegaMatcher {
	return match.Conform(fmt.Sprintf("200 within %v", limit.Round(time.Millisecond)), func(r *check.Response) string {
		if r.Status == http.StatusOK && r.Took <= limit {
			return ""
		}
		if r.Took > limit {
			t.ExemptIfLate()
		}
		return fmt.Sprintf("%s after %v", r.Outcome(), r.Took.Round(time.Millisecond))
	})
}
