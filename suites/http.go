package suites

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// checks__http__http are the checks of this file.
var checks__http__http = []Check{
	{ID: "http/method-not-allowed", Sees: Front, Run: chk__http__methodNotAllowed},
	{ID: "http/head", Sees: Front, Run: chk__http__head},
	{ID: "http/no-shared-cache", Sees: Front, Run: chk__http__noSharedCache},
	{ID: "http/nosniff", Sees: Front, Run: chk__http__nosniff},
	{ID: "http/content-negotiation", Sees: Front, Run: chk__http__contentNegotiation},
	{ID: "http/trailing-and-case", Sees: Front, Run: chk__http__trailingAndCase},
	{ID: "http/keep-alive-after-error", Sees: Front, Run: chk__http__keepAliveAfterError},
	{ID: "http/slow-client", Sees: Front, Run: chk__http__slowClient},
}

func chk__http__methodNotAllowed(ctx context.Context, t *T) {
	known := t.KnownTool(ctx)
	for path, query := range inOrder(map[string]string{ListPath: "", DescribePath: "name=" + url.QueryEscape(known)}) {
		t.As(Agent).Send(ctx, Request{Path: path, Raw: query}).MustSucceed()
		for _, verb := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			t.Row(Agent, "", strings.TrimSuffix(verb+" "+path+"?"+query, "?"), func() {
				r := t.As(Agent).Send(ctx, Request{Method: verb, Path: path, Raw: query})
				t.Expect(r).To(HaveStatus(405))
				t.Expect(r).To(AllowGET())
			})
		}
	}
}

func chk__http__head(ctx context.Context, t *T) {
	known := t.KnownTool(ctx)
	for what, ask := range inOrder(map[string]Request{
		"list":                        {Path: ListPath},
		"describe":                    {Path: DescribePath, Query: url.Values{"name": {known}}},
		"describe of an unknown tool": {Path: DescribePath, Query: url.Values{"name": {noSuchTool}}},
	}) {
		for _, who := range append([]Identity{Agent}, t.callers(Outsider, Anonymous)...) {
			ask.Method, ask.Header = "", nil
			get, again := t.As(who).Send(ctx, ask), t.As(who).Send(ctx, ask)
			if what == "list" && who == Agent {
				get.MustSucceed()
			}
			ask.Method, ask.Header = http.MethodHead, http.Header{"Connection": {"close"}}
			wire := t.As(who).Dial(ctx)
			head := wire.Ask(ctx, ask)
			body, _ := wire.Rest()
			wire.Close()
			t.Row(who, "", what, func() {
				t.Expect(head).To(HaveTheHeadOf(get, again))
				t.Expect(string(body)).To(BeEmpty(), mismatch(head.Subject(), "no body", exact.Cut(oneLine(string(body)), 100)))
			})
		}
	}
}

func chk__http__noSharedCache(ctx context.Context, t *T) {
	known := t.KnownTool(ctx)
	given := append(t.As(Agent).MustListAll(ctx).Pages, t.As(Agent).Describe(ctx, known).MustSucceed())
	t.each(given, func(a *Response) { t.Expect(a).To(KeepFromOthers()) })
	zipped := t.As(Agent).Send(ctx, Request{Path: ListPath, Header: http.Header{"Accept-Encoding": {"gzip"}}})
	if !t.wrong() {
		t.Row(Agent, "", "gzip asked for", func() { t.Expect(zipped).To(KeepFromOthers()) })
	}
	refused := []*Response{t.As(Agent).Describe(ctx, noSuchTool)}
	for _, who := range t.callers(Outsider, Anonymous) {
		refused = append(refused, t.As(who).List(ctx), t.As(who).Describe(ctx, known))
	}
	if tag := t.As(Agent).List(ctx).Header.Get("ETag"); tag != "" {
		refused = append(refused, t.As(Agent).Send(ctx, Request{Path: ListPath, Header: http.Header{"If-None-Match": {tag}}}))
	}
	t.each(refused, func(r *Response) { t.Expect(r).NotTo(InviteOthers()) })
}

func chk__http__nosniff(ctx context.Context, t *T) {
	known := t.KnownTool(ctx)
	answers := []*Response{t.As(Agent).List(ctx).MustSucceed(), t.As(Agent).Describe(ctx, known), t.As(Agent).Describe(ctx, noSuchTool), t.As(Agent).Invoke(ctx, noSuchTool, Args{})}
	if call, ok := t.harmless(ctx); ok {
		answers = append(answers, t.make(ctx, call))
	}
	t.each(answers, func(a *Response) { t.Expect(a).To(ForbidSniffing()) })
}

func chk__http__contentNegotiation(ctx context.Context, t *T) {
	for _, ask := range []Request{{Path: ListPath}, {Path: DescribePath, Query: url.Values{"name": {t.KnownTool(ctx)}}}} {
		plain := t.As(Agent).Send(ctx, ask).MustSucceed()
		if same, _ := EqualAnswer(plain).Match(t.As(Agent).Send(ctx, ask)); !same {
			NotTestable("two equal requests get different answers (list/order-stable judges that)")
		}
		for what, accept := range inOrder(map[string][]string{"no Accept": nil, "Accept: */*": {"*/*"}, "a browser's Accept": {"text/html, application/json;q=0.9, */*;q=0.8"}}) {
			ask.Header = http.Header{"Accept": accept}
			r := t.As(Agent).Send(ctx, ask)
			t.Row(Agent, "", ask.Path+" with "+what, func() {
				given, usual := r.Header.Get("Content-Type"), plain.Header.Get("Content-Type")
				if what == "a browser's Accept" {
					if given != usual {
						t.Expect(r).NotTo(BeHTML())
					}
					return
				}
				t.Expect(r).To(EqualAnswer(plain))
				t.Expect(given).To(Equal(usual), mismatch(r.Subject(), fmt.Sprintf("the Content-Type %q as without it", usual), fmt.Sprintf("%q", given)))
			})
		}
	}
	plain := t.As(Agent).List(ctx)
	const large = 8 << 10
	if len(plain.Body) >= large {
		t.Row(Agent, "", "gzip asked for", func() {
			t.Expect(t.As(Agent).Send(ctx, Request{Path: ListPath, Header: http.Header{"Accept-Encoding": {"gzip"}}})).To(DecodeTo(plain.Body))
		})
	}
	t.Row(Agent, "", "Accept-Encoding: gzip;q=0", func() {
		unwanted := t.As(Agent).Send(ctx, Request{Path: ListPath, Header: http.Header{"Accept-Encoding": {"gzip;q=0, identity"}}})
		t.Expect(listed(unwanted, "Content-Encoding")).NotTo(ContainElement("gzip"), mismatch(unwanted.Subject(), "no gzip", "it"))
	})
}

func chk__http__trailingAndCase(ctx context.Context, t *T) {
	t.As(Agent).List(ctx).MustSucceed()
	unknown := []string{"/mcp/no-such-path", "/mcp/no/such/path.html"}
	if !t.Claims("per-tool") { // per-tool/unknown-404 judges those below /mcp/tools/
		unknown = append(unknown, "/mcp/tools/no-such-path", "/mcp/tools/list/no-such-path")
	}
	for _, path := range unknown {
		t.Row(Agent, "", path, func() {
			r := t.As(Agent).Send(ctx, Request{Path: path})
			t.Expect(r).To(HaveStatus(404))
			t.Expect(r).To(KeepEnvelope())
			posted := t.As(Agent).Send(ctx, Request{Method: http.MethodPost, Path: path, Body: strings.NewReader("{}"), Show: "{}"})
			t.Expect(posted).To(BeClientError())
			t.Expect(posted).To(KeepEnvelope())
		})
	}
	for _, path := range []string{ListPath + "/", "/mcp/no-such-path/", "/mcp/tools/LIST", "/mcp//tools//list", "/mcp/tools/list;x"} {
		t.Row(Agent, "", path, func() {
			r := t.As(Agent).Send(ctx, Request{Path: path})
			t.Expect(r).To(StayOnTheHost())
			if r.Status < 300 || r.Status > 399 {
				t.Expect(r).NotTo(BeHTML())
			}
		})
	}
	for _, path := range []string{"/mcp/..//elsewhere.invalid/", "/mcp/%2e%2e//elsewhere.invalid", "/mcp//elsewhere.invalid/%2e%2e"} {
		t.Row(Agent, "", path, func() { t.Expect(t.As(Agent).Send(ctx, Request{Path: path})).To(StayOnTheHost()) })
	}
}

func chk__http__keepAliveAfterError(ctx context.Context, t *T) {
	twin := t.As(Agent).Dial(ctx)
	defer twin.Close()
	twin.Ask(ctx, Request{Path: ListPath}).MustSucceed()
	if next := twin.Ask(ctx, Request{Path: ListPath}); next.Err != nil {
		NotTestable("the connection does not serve a second request after a success either: " + next.Outcome())
	}
	for _, c := range afterErrors {
		wire := t.As(Agent).Dial(ctx)
		ask := c.request
		if c.body != "" {
			ask.Body, ask.Show = strings.NewReader(c.body), c.body
		}
		if failed := wire.Ask(ctx, ask); failed.Status >= 400 && failed.Status < 500 {
			where := "on the connection of " + c.what
			if slices.Contains(listed(failed, "Connection"), "close") {
				where += ", which it ended with Connection: close"
			}
			t.Row(Agent, "", where, func() { t.Expect(wire.Ask(ctx, Request{Path: ListPath})).To(HaveStatus(200)) })
		}
		wire.Close()
	}
}

// That a slow client is cut off in bounded time is not judged: any bound that a bridge may set is longer than a run.
func chk__http__slowClient(ctx context.Context, t *T) {
	usual := t.As(Agent).List(ctx).MustSucceed()
	const clients = 32
	slow := []string{
		"GET " + ListPath + " HTTP/1.1\r\nHost: slow.invalid\r\nX-Slow: ",
		"POST " + InvokePath + " HTTP/1.1\r\nHost: slow.invalid\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"na",
	}
	wires := make([]*wire, clients)
	for i := range wires {
		wires[i] = t.As(Agent).Dial(ctx)
		defer wires[i].Close()
		t.Expect(wires[i].Write(slow[i%len(slow)])).To(Succeed(), "a slow client's first bytes")
	}
	limit := 2*time.Second + 10*usual.Took
	for _, more := range []string{"m", "o"} {
		for _, w := range wires {
			_ = w.Write(more) // it may have been cut off by now, which is right
		}
		t.Expect(t.As(Agent).Send(ctx, Request{Path: ListPath, Fresh: true})).To(ComeWithin(limit), "beside %d clients that send byte by byte", clients)
	}
}

// afterErrors are requests of every sort that is refused with a 4xx.
var afterErrors = []struct {
	what    string
	request Request
	body    string
}{
	{"a 404 of describe", Request{Path: DescribePath, Raw: "name=" + noSuchTool}, ""},
	{"a 400 of describe", Request{Path: DescribePath}, ""},
	{"a 404 of an unknown path", Request{Path: "/mcp/no-such-path"}, ""},
	{"a 405 of list", Request{Method: http.MethodPost, Path: ListPath}, "{}"},
	{"a 400 of invoke", Request{Method: http.MethodPost, Path: InvokePath}, `{"name":`},
	{"a 404 of invoke", Request{Method: http.MethodPost, Path: InvokePath}, `{"name":"` + noSuchTool + `","arguments":{}}`},
	{"a 405 of invoke", Request{Method: http.MethodPut, Path: InvokePath}, `{"name":"` + noSuchTool + `","arguments":{}}`},
	{"a 401 of list", Request{Path: ListPath, Header: asNobody}, ""},
	{"a 401 of invoke", Request{Method: http.MethodPost, Path: InvokePath, Header: asNobody}, `{"name":"` + noSuchTool + `","arguments":{}}`},
}

// AllowGET matches an answer whose Allow header names GET.
func AllowGET() OmegaMatcher {
	return Meet("an Allow header that names GET", func(a *Response) string {
		if slices.Contains(listed(a, "Allow"), "get") {
			return ""
		}
		return "Allow " + quoted(a.Header.Values("Allow"))
	})
}

// framing are the headers that say how a body travels, and when: HEAD may leave them out.
var framing = []string{"Date", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Trailer"}

// sameButEncoding tells whether the answer to HEAD varies by what GET's does, but for the encoding: RFC 9110 section
// 9.3.2 lets HEAD leave out what is decided while a body is made, and servers that compress decide it then.
func sameButEncoding(head, get *Response) bool {
	by := func(a *Response) []string {
		names := slices.DeleteFunc(listed(a, "Vary"), func(name string) bool { return name == "accept-encoding" })
		slices.Sort(names)
		return names
	}
	return slices.Equal(by(head), by(get))
}

// HaveTheHeadOf matches the answer to HEAD: the status and the headers of GET, as far as two GETs agree on them.
func HaveTheHeadOf(get, again *Response) OmegaMatcher {
	return Meet(fmt.Sprintf("GET's status %d and headers", get.Status), func(a *Response) string {
		if a.Err != nil || a.Status != get.Status {
			return a.Outcome()
		}
		for name, values := range inOrder(get.Header) {
			if slices.Contains(framing, name) || slices.Contains(ofTheMoment, name) || !slices.Equal(values, again.Header[name]) {
				continue
			}
			if name == "Vary" && sameButEncoding(a, get) {
				continue
			}
			if !slices.Equal(a.Header[name], values) {
				return fmt.Sprintf("%s %s where GET has %s", name, quoted(a.Header[name]), quoted(values))
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
	return Meet("Cache-Control with no-store, no-cache or private, or a Vary that names what identifies the caller", func(a *Response) string {
		if forbidsStoring(a) {
			return ""
		}
		identifies := []string{"*", "authorization"}
		if a.Sent.Get("Cookie") != "" {
			identifies = []string{"*", "cookie"}
		}
		if slices.ContainsFunc(listed(a, "Vary"), func(name string) bool { return slices.Contains(identifies, name) }) {
			return ""
		}
		return fmt.Sprintf("Cache-Control %s, Vary %s", quoted(a.Header.Values("Cache-Control")), quoted(a.Header.Values("Vary")))
	})
}

// InviteOthers matches an answer that says a shared cache may give it to anybody.
func InviteOthers() OmegaMatcher {
	return &responseMatcher{expected: "to invite shared caches", test: func(a *Response) (string, bool) {
		fault, kept := KeepFromOthers().(*responseMatcher).test(a)
		return fault, !kept && slices.ContainsFunc(listed(a, "Cache-Control"), func(directive string) bool {
			name, value, _ := strings.Cut(directive, "=")
			return name == "public" || (name == "s-maxage" || name == "max-age") && strings.Trim(value, "0") != ""
		})
	}}
}

// ForbidSniffing matches an answer that no browser may take for another type than it says.
func ForbidSniffing() OmegaMatcher {
	return Meet("X-Content-Type-Options: nosniff", func(a *Response) string {
		if slices.Contains(listed(a, "X-Content-Type-Options"), "nosniff") {
			return ""
		}
		return quoted(a.Header.Values("X-Content-Type-Options"))
	})
}

// DecodeTo matches an answer in gzip that decodes to the bytes.
func DecodeTo(plain []byte) OmegaMatcher {
	return Meet("gzip of the same bytes", func(a *Response) string {
		if !slices.Contains(listed(a, "Content-Encoding"), "gzip") {
			return "Content-Encoding " + quoted(a.Header.Values("Content-Encoding"))
		}
		r, err := gzip.NewReader(bytes.NewReader(a.Body))
		if err != nil {
			return "a body that is no gzip: " + err.Error()
		}
		decoded, err := io.ReadAll(io.LimitReader(r, maxResponse))
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
	return Meet("no redirect to another host", func(a *Response) string {
		location := a.Header.Get("Location")
		if a.Status < 300 || a.Status > 399 || location == "" {
			return ""
		}
		here, err := url.Parse(a.t.url + a.Path)
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
	return Meet(fmt.Sprintf("200 within %v", limit.Round(time.Millisecond)), func(a *Response) string {
		if a.Status == http.StatusOK && a.Took <= limit {
			return ""
		}
		return fmt.Sprintf("%s after %v", a.Outcome(), a.Took.Round(time.Millisecond))
	})
}
