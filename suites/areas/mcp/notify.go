package mcp

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

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/mcpschema"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func notify(ctx context.Context, t *check.T) {
	if t.TTL() == 0 {
		check.NotTestable("the check changes the site, and how long the bridge may cache its tools is unknown: give --discovery-ttl")
	}
	streams := map[check.Revision]*listener{}
	for _, revision := range notifyingRevisions(ctx, t) {
		streams[revision] = listen(ctx, t.As(check.Agent), revision, toolChanges)
	}
	t.Expect(streams).NotTo(BeEmpty(), check.Mismatch("the revisions that the bridge offers", "one that declares listChanged", "none"))
	var unsubscribed *listener
	if streams[check.MCP2026July] != nil {
		unsubscribed = listen(ctx, t.As(check.Agent), check.MCP2026July, map[string]any{})
	}
	t.ExpireCaches()
	early := check.Within(ctx, lookAgain(t), func() bool { return len(notified(streams)) > 0 })
	t.Expect(early).To(BeFalse(), check.Mismatch("nothing changed", "no "+scenario.ListChanged, "one"))
	before := t.Drupal.Site()
	t.Drupal.Mock.SetSite(scenario.WithArrival(t.Drupal, scenario.ArrivalOld, ""))
	t.Cleanup(func(ctx context.Context) {
		t.Drupal.Mock.SetSite(before)
		t.Await(ctx, func() bool {
			return !slices.Contains(t.As(check.Agent).ListedByMCP(ctx), t.ToolName(scenario.Arrival))
		})
	})
	received := t.Await(ctx, func() bool { return len(notified(streams)) == len(streams) })
	if !received {
		for revision := range check.InOrder(streams) {
			t.Expect(notified(streams)).To(ContainElement(revision), check.Mismatch("the tools changed", fmt.Sprintf("notifications/tools/list_changed within %v in %s", t.ChangeLimit(), revision), "none"))
		}
	}
	for revision, l := range check.InOrder(streams) {
		for _, message := range l.Messages() {
			if message["method"] == scenario.ListChanged {
				t.Expect(message).NotTo(HaveKey("id"), check.Mismatch(fmt.Sprintf("%s in %s", scenario.ListChanged, revision), "a notification, which has no id", "a request"))
				t.Expect(mcpschema.Fault(string(revision), mcpschema.ListChanged, message)).To(BeEmpty(),
					check.Mismatch(fmt.Sprintf("%s in %s", scenario.ListChanged, revision), "a valid notification", ""))
			}
		}
		t.Expect(l.subscriptionFault()).To(BeEmpty(), "the stream of subscriptions/listen in %s", revision)
		t.Expect(t.Await(ctx, func() bool {
			return slices.Contains(check.ListAllTools(ctx, l.session).Names(), t.ToolName(scenario.Arrival))
		})).
			To(BeTrue(), check.Mismatch(fmt.Sprintf("%s in %s", scenario.ListChanged, revision), "the changed tools in tools/list of that client", "the old ones"))
	}
	notifiesOfSchemas(ctx, t, streams)
	if unsubscribed != nil {
		t.Expect(unsubscribed.Changes()).To(BeZero(), check.Mismatch("subscriptions/listen without any notification requested", fmt.Sprintf("no %s", scenario.ListChanged), "one"))
	}
}

// notifiesOfSchemas changes the inputSchema of the arrived tool: every stream must notify of that, too.
func notifiesOfSchemas(ctx context.Context, t *check.T, streams map[check.Revision]*listener) {
	before := map[check.Revision]int{}
	for revision, l := range streams {
		before[revision] = l.Changes()
	}
	missing := func() []check.Revision {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(streams)), func(r check.Revision) bool { return streams[r].Changes() > before[r] })
	}
	t.Drupal.Mock.SetSite(scenario.WithArrival(t.Drupal, scenario.ArrivalNew, ""))
	all := func() bool { return len(missing()) == 0 }
	if !t.Await(ctx, all) {
		t.Await(ctx, all) // a fetch that began before the change may have counted as one after it
	}
	missed := missing()
	t.Expect(missed).To(BeEmpty(), check.Mismatch("a tool's inputSchema changed", fmt.Sprintf("one more notifications/tools/list_changed within %v in every revision", t.ChangeLimit()), fmt.Sprintf("none in %v", missed)))
}

// toolChanges requests the notifications of changed tools.
var toolChanges = map[string]any{"toolsListChanged": true}

// subscriptionKey is the member of `_meta` with the id of the subscriptions/listen that a message belongs to.
const subscriptionKey = "io.modelcontextprotocol/subscriptionId"

// notifyingRevisions are the offered revisions in which the bridge notifies clients of changed tools: a bridge may have
// some without a stream of notifications.
func notifyingRevisions(ctx context.Context, t *check.T) []check.Revision {
	return slices.DeleteFunc(revisions(ctx, t), func(revision check.Revision) bool {
		return !declaresListChanged(MustMCP(ctx, t.As(check.Agent), revision))
	})
}

// declaresListChanged reports whether the bridge declares that it notifies clients of changed tools.
func declaresListChanged(s *check.Session) bool {
	capabilities, _ := s.Opened.RPCResult()["capabilities"].(map[string]any)
	tools, _ := capabilities["tools"].(map[string]any)
	return tools["listChanged"] == true
}

// offersStream reports whether the bridge opens a stream for notifications in a revision with sessions; where an origin is
// given, to a web page of that origin.
func offersStream(ctx context.Context, s *check.Session, origin ...string) bool {
	resp, err := s.Client.OpenStream(ctx, streamRequest(s, nil, origin...))
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// lookAgain is the time within which a bridge that polls has fetched the site's methods once more.
func lookAgain(t *check.T) time.Duration {
	const slack = 400 * time.Millisecond
	if t.Advance != nil {
		return slack
	}
	return t.TTL() + slack
}

// notified lists the revisions in which a client received a notification of a changed list.
func notified(streams map[check.Revision]*listener) []check.Revision {
	var received []check.Revision
	for revision, l := range check.InOrder(streams) {
		if l.Changes() > 0 {
			received = append(received, revision)
		}
	}
	return received
}

// listener collects the notifications of a stream.
type listener struct {
	session *check.Session
	id      any // of subscriptions/listen; nil in the revisions with sessions
	*scenario.Stream
}

// subscriptionID is the id of the suites' subscriptions/listen.
const subscriptionID = 4711

// streamRequest opens the stream on which the revision sends notifications: by GET, or by subscriptions/listen with the
// notifications wanted. Where an origin is given, the request is that of a web page of it.
func streamRequest(s *check.Session, wanted map[string]any, origin ...string) check.Request {
	r := check.Request{Path: check.MCPPath, Header: s.Headers("", nil)}
	if s.Revision.Stateless() {
		params := map[string]any{"notifications": wanted}
		message := client.Encode(s.Message(subscriptionID, "subscriptions/listen", params))
		r.Method, r.Header, r.Body, r.Show = http.MethodPost, s.Headers("subscriptions/listen", params), bytes.NewReader(message), string(message)
	} else {
		r.Header.Set("Accept", "text/event-stream")
	}
	for _, page := range origin {
		r.Header.Set("Origin", page)
	}
	return r
}

// listen opens the stream of notifications, waits until it is open, and lists the tools once more. The stream ends with
// the check.
func listen(ctx context.Context, c check.Client, revision check.Revision, wanted map[string]any) *listener {
	s := MustMCP(ctx, c, revision)
	MustListTools(ctx, s)
	stream, fault := scenario.OpenStream(ctx, c, streamRequest(s, wanted))
	if stream == nil {
		c.T.Fail(check.Mismatch(fmt.Sprintf("the stream of notifications in %s", revision), "200 with text/event-stream", fault))
	}
	l := &listener{session: s, Stream: stream}
	if revision.Stateless() {
		l.id = subscriptionID
	}
	MustListTools(ctx, s)
	return l
}

// subscriptionFault says what is wrong with the messages of a subscription: the first must acknowledge it, and each must
// have the id of the subscription; "" when nothing is, and in the revisions with sessions.
func (l *listener) subscriptionFault() string {
	if l.id == nil {
		return ""
	}
	for i, m := range l.Messages() {
		carrier, _ := m["params"].(map[string]any)
		if m["method"] == nil { // the response, which ends the stream
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
