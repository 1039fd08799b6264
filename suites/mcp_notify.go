package suites

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/mcpschema"
)

// checks__mcp__mcp_notify are the checks of this file.
var checks__mcp__mcp_notify = []Check{
	{ID: "fresh/notify", Sees: Site, Run: chk__mcp__notify},
}

func chk__mcp__notify(ctx context.Context, t *T) {
	if t.DiscoveryTTL == 0 {
		NotTestable("it changes the site, and how long the bridge may show the old one is unknown: give --discovery-ttl")
	}
	streams := map[Revision]*listener{}
	for _, revision := range t.notifyingRevisions(ctx) {
		streams[revision] = t.As(Agent).listen(ctx, revision, toolChanges)
	}
	t.Expect(streams).NotTo(BeEmpty(), mismatch("a revision in which clients are told of changed tools", "one that declares listChanged", "none"))
	var deaf *listener
	if streams[MCP2026July] != nil {
		deaf = t.As(Agent).listen(ctx, MCP2026July, map[string]any{})
	}
	t.expire()
	early := within(ctx, t.lookAgain(), func() bool { return len(told(streams)) > 0 })
	t.Expect(early).To(BeFalse(), mismatch("nothing changed", "no "+listChanged, "one"))
	before := t.Drupal.Site()
	t.Drupal.mock.SetSite(t.Drupal.with(arrivalOld, ""))
	Cleanup(func(ctx context.Context) {
		t.Drupal.mock.SetSite(before)
		t.Await(ctx, func() bool { return !slices.Contains(t.As(Agent).listedByMCP(ctx), t.ToolName(arrival)) })
	})
	heard := t.Await(ctx, func() bool { return len(told(streams)) == len(streams) })
	if !heard {
		for revision := range inOrder(streams) {
			t.Expect(told(streams)).To(ContainElement(revision), mismatch("the tools changed", fmt.Sprintf("notifications/tools/list_changed within %v in %s", t.patience(), revision), "none"))
		}
	}
	for revision, l := range inOrder(streams) {
		for _, message := range l.messages() {
			if message["method"] == listChanged {
				t.Expect(message).NotTo(HaveKey("id"), mismatch(fmt.Sprintf("%s in %s", listChanged, revision), "a notification, which has no id", "a request"))
				t.Expect(mcpschema.Fault(string(revision), mcpschema.ListChanged, message)).To(BeEmpty(), mismatch(fmt.Sprintf("%s in %s", listChanged, revision), "a valid notification", ""))
			}
		}
		t.Expect(l.subscriptionFault()).To(BeEmpty(), "the stream of subscriptions/listen in %s", revision)
		t.Expect(t.Await(ctx, func() bool { return slices.Contains(l.session.ListAllTools(ctx).names(), t.ToolName(arrival)) })).
			To(BeTrue(), mismatch(fmt.Sprintf("%s in %s", listChanged, revision), "the changed tools in tools/list of that client", "the old ones"))
	}
	t.toldOfSchemas(ctx, streams)
	if deaf != nil {
		t.Expect(deaf.changes()).To(BeZero(), mismatch("subscriptions/listen that asked for nothing", fmt.Sprintf("no %s", listChanged), "one"))
	}
}

// toldOfSchemas changes the inputSchema of the arrived tool, and holds the streams to telling of that as well.
func (t *T) toldOfSchemas(ctx context.Context, streams map[Revision]*listener) {
	before := map[Revision]int{}
	for revision, l := range streams {
		before[revision] = l.changes()
	}
	untold := func() []Revision {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(streams)), func(r Revision) bool { return streams[r].changes() > before[r] })
	}
	t.Drupal.mock.SetSite(t.Drupal.with(arrivalNew, ""))
	all := func() bool { return len(untold()) == 0 }
	if !t.Await(ctx, all) {
		t.Await(ctx, all) // a look at the site that began before the change may have counted as one after it
	}
	missed := untold()
	t.Expect(missed).To(BeEmpty(), mismatch("a tool's inputSchema changed", fmt.Sprintf("one more notifications/tools/list_changed within %v in every revision", t.patience()), fmt.Sprintf("none in %v", missed)))
}

// toolChanges asks for the notifications of changed tools.
var toolChanges = map[string]any{"toolsListChanged": true}

// subscriptionKey is the member of `_meta` that says to which subscriptions/listen a message belongs.
const subscriptionKey = "io.modelcontextprotocol/subscriptionId"

// notifyingRevisions are the offered revisions in which clients are told of changed tools: a bridge may have some
// without a stream of notifications.
func (t *T) notifyingRevisions(ctx context.Context) []Revision {
	return slices.DeleteFunc(t.revisions(ctx), func(revision Revision) bool {
		return !t.As(Agent).MustMCP(ctx, revision).declaresListChanged()
	})
}

// declaresListChanged tells whether the bridge says that it tells of changed tools.
func (s *Session) declaresListChanged() bool {
	capabilities, _ := s.Opened.RPCResult()["capabilities"].(map[string]any)
	tools, _ := capabilities["tools"].(map[string]any)
	return tools["listChanged"] == true
}

// offersStream tells whether the bridge opens a stream for notifications in a revision with sessions, also to a page of
// the origin where one is given.
func (s *Session) offersStream(ctx context.Context, origin ...string) bool {
	resp, err := s.openStream(ctx, nil, origin...)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

const listChanged = "notifications/tools/list_changed"

// listedByMCP names the tools that MCP shows the caller now, in any revision.
func (c Client) listedByMCP(ctx context.Context) []string {
	for _, revision := range []Revision{MCP2025November, MCP2025June, MCP2026July} {
		if s := c.MCP(ctx, revision); s.Opened.RPCResult() != nil {
			return s.ListAllTools(ctx).names()
		}
	}
	return nil
}

// lookAgain is the time in which a bridge that polls has looked at the site once more.
func (t *T) lookAgain() time.Duration {
	const slack = 400 * time.Millisecond
	if t.advance != nil {
		return slack
	}
	return t.DiscoveryTTL + slack
}

// told lists the revisions in which a client heard of a changed list.
func told(streams map[Revision]*listener) []Revision {
	var heard []Revision
	for revision, l := range inOrder(streams) {
		if l.changes() > 0 {
			heard = append(heard, revision)
		}
	}
	return heard
}

// listener collects the notifications of a stream.
type listener struct {
	session *Session
	id      any // of subscriptions/listen; nil in the revisions with sessions
	body    chan []byte
	all     []byte
}

// subscriptionID is the id of the suites' subscriptions/listen.
const subscriptionID = 4711

// openStream asks for the stream on which the revision's notifications come, which ends with ctx: by a request of its
// own, or by subscriptions/listen with what is wanted; as a page of the origin would, where one is given.
func (s *Session) openStream(ctx context.Context, wanted map[string]any, origin ...string) (*http.Response, error) {
	method, h, message := http.MethodGet, s.headers("", nil), []byte(nil)
	h.Set("Accept", "text/event-stream")
	if s.Revision.stateless() {
		params := map[string]any{"notifications": wanted}
		method, h, message = http.MethodPost, s.headers("subscriptions/listen", params), encode(s.message(subscriptionID, "subscriptions/listen", params))
		h.Set("Content-Type", "application/json")
	}
	req, err := http.NewRequestWithContext(ctx, method, s.Client.t.url+MCPPath, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	s.Client.creds.apply(req.Header)
	for name, values := range h {
		req.Header[name] = values
	}
	for _, page := range origin {
		req.Header.Set("Origin", page)
	}
	s.Client.t.keepPace()
	return s.Client.t.transport.RoundTrip(req)
}

// listen opens the stream of notifications, waits until it stands, and lists the tools once more. The stream ends with
// the check.
func (c Client) listen(ctx context.Context, revision Revision, wanted map[string]any) *listener {
	s := c.MustMCP(ctx, revision)
	s.MustListTools(ctx)
	streaming, cancel := context.WithCancel(ctx)
	Cleanup(func(context.Context) { cancel() })
	resp, err := s.openStream(streaming, wanted)
	if err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fail(mismatch(fmt.Sprintf("the stream of notifications in %s", revision), "200 with text/event-stream", fmt.Sprint(statusOf(resp), err)))
	}
	l := &listener{session: s, body: make(chan []byte, 256)}
	if revision.stateless() {
		l.id = subscriptionID
	}
	go func() {
		defer close(l.body)
		defer resp.Body.Close()
		for {
			chunk := make([]byte, 8<<10)
			n, err := resp.Body.Read(chunk)
			if n > 0 {
				l.body <- chunk[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	s.MustListTools(ctx)
	return l
}

func statusOf(resp *http.Response) string {
	if resp == nil {
		return "no answer: "
	}
	return resp.Status + " "
}

// messages are those that came so far.
func (l *listener) messages() []map[string]any {
	for {
		select {
		case chunk, open := <-l.body:
			l.all = append(l.all, chunk...)
			if open {
				continue
			}
		default:
		}
		return events(l.all)
	}
}

// changes counts the notifications of a changed list so far.
func (l *listener) changes() int {
	n := 0
	for _, m := range l.messages() {
		if m["method"] == listChanged {
			n++
		}
	}
	return n
}

// subscriptionFault says what is wrong with the messages of a subscription: the first must acknowledge it, and each
// must say to which it belongs; "" in the revisions with sessions.
func (l *listener) subscriptionFault() string {
	if l.id == nil {
		return ""
	}
	for i, m := range l.messages() {
		carrier, _ := m["params"].(map[string]any)
		if m["method"] == nil { // the response, with which it ends
			carrier, _ = m["result"].(map[string]any)
		}
		meta, _ := carrier["_meta"].(map[string]any)
		switch {
		case i == 0 && m["method"] != acknowledged:
			return "expected " + acknowledged + " first, got " + exact.Short(m)
		case !exact.Equal(json.Number(fmt.Sprint(l.id)), meta[subscriptionKey]):
			return fmt.Sprintf("expected %s %v on every message, got %s", subscriptionKey, l.id, exact.Short(m))
		}
	}
	return ""
}

const acknowledged = "notifications/subscriptions/acknowledged"
