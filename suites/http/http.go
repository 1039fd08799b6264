// Package http checks the HTTP of the three endpoints: verbs, HEAD, caching and other headers, connections.
package http

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area http.
var Checks = []harness.Check{
	{ID: "http/method-not-allowed", Sees: harness.Front, Run: methodNotAllowed},
	{ID: "http/head", Sees: harness.Front, Run: head},
	{ID: "http/no-shared-cache", Sees: harness.Front, Run: noSharedCache},
	{ID: "http/nosniff", Sees: harness.Front, Run: nosniff},
	{ID: "http/content-negotiation", Sees: harness.Front, Run: contentNegotiation},
	{ID: "http/trailing-and-case", Sees: harness.Front, Run: trailingAndCase},
	{ID: "http/keep-alive-after-error", Sees: harness.Front, Run: keepAliveAfterError},
	{ID: "http/slow-client", Sees: harness.Front, Run: slowClient},
}

func methodNotAllowed(ctx context.Context, t *harness.T) {
	known := scenario.KnownTool(ctx, t)
	for path, query := range harness.InOrder(map[string]string{harness.ListPath: "", harness.DescribePath: "name=" + url.QueryEscape(known)}) {
		t.As(harness.Agent).Send(ctx, harness.Request{Path: path, Raw: query}).MustSucceed()
		for _, verb := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			t.Row(harness.Agent, "", strings.TrimSuffix(verb+" "+path+"?"+query, "?"), func() {
				r := t.As(harness.Agent).Send(ctx, harness.Request{Method: verb, Path: path, Raw: query})
				t.Expect(r).To(match.HaveStatus(405))
				t.Expect(r).To(AllowGET())
			})
		}
	}
}

func head(ctx context.Context, t *harness.T) {
	known := scenario.KnownTool(ctx, t)
	for what, ask := range harness.InOrder(map[string]harness.Request{
		"list":                        {Path: harness.ListPath},
		"describe":                    {Path: harness.DescribePath, Query: url.Values{"name": {known}}},
		"describe of an unknown tool": {Path: harness.DescribePath, Query: url.Values{"name": {scenario.NoSuchTool}}},
	}) {
		for _, who := range append([]harness.Identity{harness.Agent}, t.Callers(harness.Outsider, harness.Anonymous)...) {
			ask.Method, ask.Header = "", nil
			get, again := t.As(who).Send(ctx, ask), t.As(who).Send(ctx, ask)
			if what == "list" && who == harness.Agent {
				get.MustSucceed()
			}
			ask.Method, ask.Header = http.MethodHead, http.Header{"Connection": {"close"}}
			wire := Dial(ctx, t.As(who))
			head := wire.Ask(ctx, ask)
			body, _ := wire.Rest()
			wire.Close()
			t.Row(who, "", what, func() {
				t.Expect(head).To(HaveTheHeadOf(get, again))
				t.Expect(string(body)).To(BeEmpty(), harness.Mismatch(head.Subject(), "no body", exact.Cut(harness.OneLine(string(body)), 100)))
			})
		}
	}
}

func noSharedCache(ctx context.Context, t *harness.T) {
	known := scenario.KnownTool(ctx, t)
	given := append(t.As(harness.Agent).MustListAll(ctx).Pages, t.As(harness.Agent).Describe(ctx, known).MustSucceed())
	t.Each(given, func(a *harness.Response) { t.Expect(a).To(KeepFromOthers()) })
	zipped := t.As(harness.Agent).Send(ctx, harness.Request{Path: harness.ListPath, Header: http.Header{"Accept-Encoding": {"gzip"}}})
	if !t.HasFindings() {
		t.Row(harness.Agent, "", "gzip asked for", func() { t.Expect(zipped).To(KeepFromOthers()) })
	}
	refused := []*harness.Response{t.As(harness.Agent).Describe(ctx, scenario.NoSuchTool)}
	for _, who := range t.Callers(harness.Outsider, harness.Anonymous) {
		refused = append(refused, t.As(who).List(ctx), t.As(who).Describe(ctx, known))
	}
	if tag := t.As(harness.Agent).List(ctx).Header.Get("ETag"); tag != "" {
		refused = append(refused, t.As(harness.Agent).Send(ctx, harness.Request{Path: harness.ListPath, Header: http.Header{"If-None-Match": {tag}}}))
	}
	t.Each(refused, func(r *harness.Response) { t.Expect(r).NotTo(InviteOthers()) })
}

func nosniff(ctx context.Context, t *harness.T) {
	known := scenario.KnownTool(ctx, t)
	answers := []*harness.Response{t.As(harness.Agent).List(ctx).MustSucceed(), t.As(harness.Agent).Describe(ctx, known), t.As(harness.Agent).Describe(ctx, scenario.NoSuchTool), t.As(harness.Agent).Invoke(ctx, scenario.NoSuchTool, harness.Args{})}
	if call, ok := scenario.HarmlessCall(ctx, t); ok {
		answers = append(answers, t.Call(ctx, call))
	}
	t.Each(answers, func(a *harness.Response) { t.Expect(a).To(ForbidSniffing()) })
}

func contentNegotiation(ctx context.Context, t *harness.T) {
	for _, ask := range []harness.Request{{Path: harness.ListPath}, {Path: harness.DescribePath, Query: url.Values{"name": {scenario.KnownTool(ctx, t)}}}} {
		plain := t.As(harness.Agent).Send(ctx, ask).MustSucceed()
		if same, _ := match.EqualResponse(plain).Match(t.As(harness.Agent).Send(ctx, ask)); !same {
			harness.BlockedBy(harness.Finding{Subject: "two equal requests get different answers"}, "list/order-stable")
		}
		for what, accept := range harness.InOrder(map[string][]string{"no Accept": nil, "Accept: */*": {"*/*"}, "a browser's Accept": {"text/html, application/json;q=0.9, */*;q=0.8"}}) {
			ask.Header = http.Header{"Accept": accept}
			r := t.As(harness.Agent).Send(ctx, ask)
			t.Row(harness.Agent, "", ask.Path+" with "+what, func() {
				given, usual := r.Header.Get("Content-Type"), plain.Header.Get("Content-Type")
				if what == "a browser's Accept" {
					if given != usual {
						t.Expect(r).NotTo(match.BeHTML())
					}
					return
				}
				t.Expect(r).To(match.EqualResponse(plain))
				t.Expect(given).To(Equal(usual), harness.Mismatch(r.Subject(), fmt.Sprintf("the Content-Type %q as without it", usual), fmt.Sprintf("%q", given)))
			})
		}
	}
	plain := t.As(harness.Agent).List(ctx)
	const large = 8 << 10
	if len(plain.Body) >= large {
		t.Row(harness.Agent, "", "gzip asked for", func() {
			t.Expect(t.As(harness.Agent).Send(ctx, harness.Request{Path: harness.ListPath, Header: http.Header{"Accept-Encoding": {"gzip"}}})).To(DecodeTo(plain.Body))
		})
	}
	t.Row(harness.Agent, "", "Accept-Encoding: gzip;q=0", func() {
		unwanted := t.As(harness.Agent).Send(ctx, harness.Request{Path: harness.ListPath, Header: http.Header{"Accept-Encoding": {"gzip;q=0, identity"}}})
		t.Expect(scenario.Listed(unwanted, "Content-Encoding")).NotTo(ContainElement("gzip"), harness.Mismatch(unwanted.Subject(), "no gzip", "it"))
	})
}

func trailingAndCase(ctx context.Context, t *harness.T) {
	t.As(harness.Agent).List(ctx).MustSucceed()
	unknown := []string{"/mcp/no-such-path", "/mcp/no/such/path.html"}
	if !t.Claims("per-tool") { // per-tool/unknown-404 judges those below /mcp/tools/
		unknown = append(unknown, "/mcp/tools/no-such-path", "/mcp/tools/list/no-such-path")
	}
	for _, path := range unknown {
		t.Row(harness.Agent, "", path, func() {
			r := t.As(harness.Agent).Send(ctx, harness.Request{Path: path})
			t.Expect(r).To(match.HaveStatus(404))
			t.Expect(r).To(match.KeepEnvelope())
			posted := t.As(harness.Agent).Send(ctx, harness.Request{Method: http.MethodPost, Path: path, Body: strings.NewReader("{}"), Show: "{}"})
			t.Expect(posted).To(match.BeClientError())
			t.Expect(posted).To(match.KeepEnvelope())
		})
	}
	for _, path := range []string{harness.ListPath + "/", "/mcp/no-such-path/", "/mcp/tools/LIST", "/mcp//tools//list", "/mcp/tools/list;x"} {
		t.Row(harness.Agent, "", path, func() {
			r := t.As(harness.Agent).Send(ctx, harness.Request{Path: path})
			t.Expect(r).To(StayOnTheHost())
			if r.Status < 300 || r.Status > 399 {
				t.Expect(r).NotTo(match.BeHTML())
			}
		})
	}
	for _, path := range []string{"/mcp/..//elsewhere.invalid/", "/mcp/%2e%2e//elsewhere.invalid", "/mcp//elsewhere.invalid/%2e%2e"} {
		t.Row(harness.Agent, "", path, func() { t.Expect(t.As(harness.Agent).Send(ctx, harness.Request{Path: path})).To(StayOnTheHost()) })
	}
}

func keepAliveAfterError(ctx context.Context, t *harness.T) {
	twin := Dial(ctx, t.As(harness.Agent))
	defer twin.Close()
	twin.Ask(ctx, harness.Request{Path: harness.ListPath}).MustSucceed()
	if next := twin.Ask(ctx, harness.Request{Path: harness.ListPath}); next.Err != nil {
		harness.NotTestable("the connection does not serve a second request after a success either: " + next.Outcome())
	}
	for _, c := range afterErrors {
		wire := Dial(ctx, t.As(harness.Agent))
		ask := c.request
		if c.body != "" {
			ask.Body, ask.Show = strings.NewReader(c.body), c.body
		}
		if failed := wire.Ask(ctx, ask); failed.Status >= 400 && failed.Status < 500 {
			where := "on the connection of " + c.what
			if slices.Contains(scenario.Listed(failed, "Connection"), "close") {
				where += ", which it ended with Connection: close"
			}
			t.Row(harness.Agent, "", where, func() { t.Expect(wire.Ask(ctx, harness.Request{Path: harness.ListPath})).To(match.HaveStatus(200)) })
		}
		wire.Close()
	}
}

// That a slow client is cut off in bounded time is not judged: any bound that a bridge may set is longer than a run.
func slowClient(ctx context.Context, t *harness.T) {
	usual := t.As(harness.Agent).List(ctx).MustSucceed()
	const clients = 32
	slow := []string{
		"GET " + harness.ListPath + " HTTP/1.1\r\nHost: slow.invalid\r\nX-Slow: ",
		"POST " + harness.InvokePath + " HTTP/1.1\r\nHost: slow.invalid\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"na",
	}
	wires := make([]*wire, clients)
	for i := range wires {
		wires[i] = Dial(ctx, t.As(harness.Agent))
		defer wires[i].Close()
		t.Expect(wires[i].Write(slow[i%len(slow)])).To(Succeed(), "a slow client's first bytes")
	}
	limit := 2*time.Second + 10*usual.Took
	for _, more := range []string{"m", "o"} {
		for _, w := range wires {
			_ = w.Write(more) // it may have been cut off by now, which is right
		}
		t.Expect(t.As(harness.Agent).Send(ctx, harness.Request{Path: harness.ListPath, Fresh: true})).To(ComeWithin(limit), "beside %d clients that send byte by byte", clients)
	}
}

// afterErrors are requests of every sort that is refused with a 4xx.
var afterErrors = []struct {
	what    string
	request harness.Request
	body    string
}{
	{"a 404 of describe", harness.Request{Path: harness.DescribePath, Raw: "name=" + scenario.NoSuchTool}, ""},
	{"a 400 of describe", harness.Request{Path: harness.DescribePath}, ""},
	{"a 404 of an unknown path", harness.Request{Path: "/mcp/no-such-path"}, ""},
	{"a 405 of list", harness.Request{Method: http.MethodPost, Path: harness.ListPath}, "{}"},
	{"a 400 of invoke", harness.Request{Method: http.MethodPost, Path: harness.InvokePath}, `{"name":`},
	{"a 404 of invoke", harness.Request{Method: http.MethodPost, Path: harness.InvokePath}, `{"name":"` + scenario.NoSuchTool + `","arguments":{}}`},
	{"a 405 of invoke", harness.Request{Method: http.MethodPut, Path: harness.InvokePath}, `{"name":"` + scenario.NoSuchTool + `","arguments":{}}`},
	{"a 401 of list", harness.Request{Path: harness.ListPath, Header: scenario.AsNobody}, ""},
	{"a 401 of invoke", harness.Request{Method: http.MethodPost, Path: harness.InvokePath, Header: scenario.AsNobody}, `{"name":"` + scenario.NoSuchTool + `","arguments":{}}`},
}

// AllowGET matches an answer whose Allow header names GET.
func AllowGET() OmegaMatcher {
	return match.Conform("an Allow header that names GET", func(a *harness.Response) string {
		if slices.Contains(scenario.Listed(a, "Allow"), "get") {
			return ""
		}
		return "Allow " + scenario.Quoted(a.Header.Values("Allow"))
	})
}

// framing are the headers that say how a body travels, and when: HEAD may leave them out.
var framing = []string{"Date", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Trailer"}

// sameButEncoding tells whether the answer to HEAD varies by what GET's does, but for the encoding: RFC 9110 section
// 9.3.2 lets HEAD leave out what is decided while a body is made, and servers that compress decide it then.
func sameButEncoding(head, get *harness.Response) bool {
	by := func(a *harness.Response) []string {
		names := slices.DeleteFunc(scenario.Listed(a, "Vary"), func(name string) bool { return name == "accept-encoding" })
		slices.Sort(names)
		return names
	}
	return slices.Equal(by(head), by(get))
}

// HaveTheHeadOf matches the answer to HEAD: the status and the headers of GET, as far as two GETs agree on them.
func HaveTheHeadOf(get, again *harness.Response) OmegaMatcher {
	return match.Conform(fmt.Sprintf("GET's status %d and headers", get.Status), func(a *harness.Response) string {
		if a.Err != nil || a.Status != get.Status {
			return a.Outcome()
		}
		for name, values := range harness.InOrder(get.Header) {
			if slices.Contains(framing, name) || slices.Contains(match.VolatileHeaders, name) || !slices.Equal(values, again.Header[name]) {
				continue
			}
			if name == "Vary" && sameButEncoding(a, get) {
				continue
			}
			if !slices.Equal(a.Header[name], values) {
				return fmt.Sprintf("%s %s where GET has %s", name, scenario.Quoted(a.Header[name]), scenario.Quoted(values))
			}
		}
		length, ofGet := a.Header.Get("Content-Length"), get.Header.Get("Content-Length")
		if a.Status == http.StatusOK && length != "" && ofGet != "" && ofGet == again.Header.Get("Content-Length") && length != ofGet {
			return fmt.Sprintf("Content-Length %s where GET has %s", length, ofGet)
		}
		return ""
	})
}

// KeepFromOthers matches an answer that no shared cache may give to another caller.
func KeepFromOthers() OmegaMatcher {
	return match.Conform("Cache-Control with no-store, no-cache or private, or a Vary that names what identifies the caller", func(a *harness.Response) string {
		if scenario.ForbidsStoring(a) {
			return ""
		}
		identifies := []string{"*", "authorization"}
		if a.Sent.Get("Cookie") != "" {
			identifies = []string{"*", "cookie"}
		}
		if slices.ContainsFunc(scenario.Listed(a, "Vary"), func(name string) bool { return slices.Contains(identifies, name) }) {
			return ""
		}
		return fmt.Sprintf("Cache-Control %s, Vary %s", scenario.Quoted(a.Header.Values("Cache-Control")), scenario.Quoted(a.Header.Values("Vary")))
	})
}

// InviteOthers matches an answer that says a shared cache may give it to anybody.
func InviteOthers() OmegaMatcher {
	return &match.ResponseMatcher{Expected: "to invite shared caches", Test: func(a *harness.Response) (string, bool) {
		fault, kept := KeepFromOthers().(*match.ResponseMatcher).Test(a)
		return fault, !kept && slices.ContainsFunc(scenario.Listed(a, "Cache-Control"), func(directive string) bool {
			name, value, _ := strings.Cut(directive, "=")
			return name == "public" || (name == "s-maxage" || name == "max-age") && strings.Trim(value, "0") != ""
		})
	}}
}

// ForbidSniffing matches an answer that no browser may take for another type than it says.
func ForbidSniffing() OmegaMatcher {
	return match.Conform("X-Content-Type-Options: nosniff", func(a *harness.Response) string {
		if slices.Contains(scenario.Listed(a, "X-Content-Type-Options"), "nosniff") {
			return ""
		}
		return scenario.Quoted(a.Header.Values("X-Content-Type-Options"))
	})
}

// DecodeTo matches an answer in gzip that decodes to the bytes.
func DecodeTo(plain []byte) OmegaMatcher {
	return match.Conform("gzip of the same bytes", func(a *harness.Response) string {
		if !slices.Contains(scenario.Listed(a, "Content-Encoding"), "gzip") {
			return "Content-Encoding " + scenario.Quoted(a.Header.Values("Content-Encoding"))
		}
		r, err := gzip.NewReader(bytes.NewReader(a.Body))
		if err != nil {
			return "a body that is no gzip: " + err.Error()
		}
		decoded, err := io.ReadAll(io.LimitReader(r, harness.MaxResponse))
		switch {
		case err != nil:
			return "a broken gzip stream: " + err.Error()
		case !bytes.Equal(decoded, plain):
			return fmt.Sprintf("other bytes: %s", exact.Cut(string(decoded), 120))
		}
		return ""
	})
}

// StayOnTheHost matches an answer that does not redirect to another host.
func StayOnTheHost() OmegaMatcher {
	return match.Conform("no redirect to another host", func(a *harness.Response) string {
		location := a.Header.Get("Location")
		if a.Status < 300 || a.Status > 399 || location == "" {
			return ""
		}
		here, err := url.Parse(a.T.URL + a.Path)
		if err != nil {
			return ""
		}
		there, err := here.Parse(location)
		if err != nil || there.Host != here.Host {
			return fmt.Sprintf("%d to %s", a.Status, location)
		}
		return ""
	})
}

// ComeWithin matches an answer of 200 that took no longer than the limit.
func ComeWithin(limit time.Duration) OmegaMatcher {
	return match.Conform(fmt.Sprintf("200 within %v", limit.Round(time.Millisecond)), func(a *harness.Response) string {
		if a.Status == http.StatusOK && a.Took <= limit {
			return ""
		}
		return fmt.Sprintf("%s after %v", a.Outcome(), a.Took.Round(time.Millisecond))
	})
}

// wire is one HTTP/1.1 connection of a caller, for what net/http's own client hides: whether it stays open, and what
// comes after a message's end.
type wire struct {
	client harness.Client
	conn   net.Conn
	from   *bufio.Reader
}

// Dial opens a connection to the bridge. Where it cannot, the running check is not testable.
func Dial(ctx context.Context, c harness.Client) *wire {
	u, err := url.Parse(c.T.URL)
	if err != nil {
		harness.NotTestable("the URL cannot be dialled: " + err.Error())
	}
	if by, err := c.T.Transport.Proxy(&http.Request{URL: u}); by != nil || err != nil {
		harness.NotTestable("it needs a connection of its own to the bridge, and the run goes by a proxy")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	address := net.JoinHostPort(u.Hostname(), port)
	dialer := net.Dialer{Timeout: c.T.Timeout}
	var conn net.Conn
	if u.Scheme == "https" {
		settings := c.T.Transport.TLSClientConfig.Clone()
		if settings == nil {
			settings = &tls.Config{}
		}
		settings.NextProtos = []string{"http/1.1"}
		conn, err = (&tls.Dialer{NetDialer: &dialer, Config: settings}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = dialer.DialContext(ctx, "tcp", address)
	}
	if err != nil {
		harness.NotTestable("no connection of its own can be opened: " + harness.NoResponse(ctx, err).Error())
	}
	return &wire{c, conn, bufio.NewReader(conn)}
}

// Close ends the connection.
func (w *wire) Close() { w.conn.Close() }

// Ask sends a request on the connection and reads the answer.
func (w *wire) Ask(ctx context.Context, r harness.Request) *harness.Response {
	a := w.client.ResponseTo(&r)
	req, err := w.client.Request(ctx, r, a)
	w.client.T.WaitForRate()
	since := w.client.T.Upstream.Last()
	a.At = time.Now()
	if err == nil {
		err = w.roundTrip(req, a)
	}
	if err != nil {
		a.Err = harness.NoResponse(ctx, err)
	}
	a.Took = time.Since(a.At)
	w.client.T.Record(a, since)
	return a
}

func (w *wire) roundTrip(req *http.Request, a *harness.Response) error {
	if err := w.conn.SetDeadline(time.Now().Add(w.client.T.Timeout)); err != nil {
		return err
	}
	if err := req.Write(w.conn); err != nil {
		return err
	}
	if _, err := w.from.Peek(1); err != nil { // ReadResponse calls no answer a cut one
		return err
	}
	resp, err := http.ReadResponse(w.from, req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	a.Status, a.Header = resp.StatusCode, resp.Header
	if resp.Close && resp.ProtoAtLeast(1, 1) {
		a.Header.Set("Connection", "close") // which ReadResponse takes out
	}
	a.Body, err = io.ReadAll(io.LimitReader(resp.Body, harness.MaxResponse))
	return err
}

// Rest is what the bridge sends after its last answer, until it closes the connection.
func (w *wire) Rest() ([]byte, error) { return io.ReadAll(io.LimitReader(w.from, harness.MaxResponse)) }

// Write sends bytes as they are.
func (w *wire) Write(text string) error {
	w.client.T.WaitForRate()
	if err := w.conn.SetWriteDeadline(time.Now().Add(w.client.T.Timeout)); err != nil {
		return fmt.Errorf("set a deadline: %w", err)
	}
	_, err := io.WriteString(w.conn, text)
	return err
}
