package suites

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"bridgecheck/suites/mcpschema"
)

var _ = Area("mcp", func(b *Bridge) {
	b.Check("fresh/notify", func(ctx SpecContext) {
		if b.DiscoveryTTL == 0 {
			NotTestable("it changes the site, and how long the bridge may show the old one is unknown: give --discovery-ttl")
		}
		streams := map[Revision]*listener{}
		for _, revision := range b.revisions(ctx) {
			streams[revision] = b.As(Agent).listen(ctx, revision)
		}
		b.expire()
		Consistently(func() []Revision { return told(streams) }).WithContext(ctx).WithTimeout(b.lookAgain()).WithPolling(20*time.Millisecond).
			Should(BeEmpty(), "nothing changed: expected no notifications/tools/list_changed, got one")
		before := b.Drupal.Site()
		b.Drupal.mock.SetSite(b.Drupal.with(arrivalOld, ""))
		DeferCleanup(func(ctx SpecContext) {
			b.Drupal.mock.SetSite(before)
			b.Await(ctx, func() bool { return !contains(b.As(Agent).listedByMCP(ctx), b.ToolName(arrival)) })
		})
		heard := b.Await(ctx, func() bool { return len(told(streams)) == len(streams) })
		if !heard {
			for revision := range streams {
				Expect(told(streams)).To(ContainElement(revision), "the tools changed: expected notifications/tools/list_changed within %v in %s, got none", b.patience(), revision)
			}
		}
		for revision, l := range streams {
			for _, message := range events(l.all) {
				if message["method"] == listChanged {
					Expect(mcpschema.Fault(string(revision), mcpschema.ListChanged, message)).To(BeEmpty(), "%s in %s: expected a valid notification", listChanged, revision)
				}
			}
		}
	})
})

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
func (b *Bridge) lookAgain() time.Duration {
	const slack = 400 * time.Millisecond
	if b.advance != nil {
		return slack
	}
	return b.DiscoveryTTL + slack
}

// told lists the revisions in which a client heard of a changed list.
func told(streams map[Revision]*listener) []Revision {
	var heard []Revision
	for revision, l := range streams {
		if l.changes() > 0 {
			heard = append(heard, revision)
		}
	}
	return heard
}

// listener collects the notifications of a stream.
type listener struct {
	body chan []byte
	all  []byte
}

// listen opens the stream on which the revision's notifications come, waits until it stands, and lists the tools once
// more. The stream ends with the check.
func (c Client) listen(ctx context.Context, revision Revision) *listener {
	s := c.MustMCP(ctx, revision)
	s.MustListTools(ctx)
	streaming, cancel := context.WithCancel(ctx)
	DeferCleanup(cancel)
	method, h, message := http.MethodGet, s.headers("", nil), []byte(nil)
	h.Set("Accept", "text/event-stream")
	if revision.stateless() {
		params := map[string]any{"notifications": map[string]any{"toolsListChanged": true}}
		method, h, message = http.MethodPost, s.headers("subscriptions/listen", params), encode(s.message(4711, "subscriptions/listen", params))
		h.Set("Content-Type", "application/json")
	}
	req, err := http.NewRequestWithContext(streaming, method, c.bridge.url+MCPPath, strings.NewReader(string(message)))
	if err != nil {
		NotTestable("the stream of notifications does not open: " + err.Error())
	}
	c.creds.apply(req.Header)
	for name, values := range h {
		req.Header[name] = values
	}
	resp, err := c.bridge.transport.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		Fail(mismatch(fmt.Sprintf("the stream of notifications in %s", revision), "200 with text/event-stream", fmt.Sprint(statusOf(resp), err)))
	}
	l := &listener{body: make(chan []byte, 256)}
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

// changes counts the notifications of a changed list so far.
func (l *listener) changes() int {
	for {
		select {
		case chunk, open := <-l.body:
			l.all = append(l.all, chunk...)
			if open {
				continue
			}
		default:
		}
		break
	}
	n := 0
	for _, m := range events(l.all) {
		if m["method"] == listChanged {
			n++
		}
	}
	return n
}
