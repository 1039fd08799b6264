package mcp

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/body"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/catalog"
)

// keepAlive is how often a silent stream is written to, so that no proxy closes it as idle.
const keepAlive = 25 * time.Second

// stream writes messages as server-sent events.
type stream struct {
	mu     sync.Mutex
	w      http.ResponseWriter
	within time.Duration // how long the client may take to accept a part of a message
	open   bool          // the headers are out
}

// send writes one message. A client that is gone is noticed by its context, not here.
func (s *stream) send(message []byte) { s.write("event: message\ndata: ", message, "\n\n") }

// ping sends what every client ignores.
func (s *stream) ping() { s.write(":", nil, "\n\n") }

func (s *stream) write(before string, message []byte, after string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		s.open = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("X-Accel-Buffering", "no") // or a proxy would hold messages back
		s.w.WriteHeader(http.StatusOK)
	}
	body.Extend(s.w, s.within)                                        // small as they are, they add up where nobody reads
	body.Write(s.w, s.within, []byte(before), message, []byte(after)) //nolint:errcheck // see send
	conn := http.NewResponseController(s.w)
	conn.Flush()                       //nolint:errcheck // a writer that cannot flush has nothing to hold back
	conn.SetWriteDeadline(time.Time{}) //nolint:errcheck // nor one that has no deadlines; a stream may be silent for long
}

// hold waits until ctx ends, the server is drained or the caller's token expires. It calls notify after each change of the
// caller's tools, and ping now and then. shown is the version that the client last received; nil: none.
func (s *Server) hold(ctx context.Context, who caller.Caller, shown *catalog.Version, notify, ping func()) {
	if expires := who.Grant.Expires; !expires.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, expires.Sub(s.o.Now()))
		defer cancel()
	}
	changed := make(chan struct{}, 1)
	defer s.o.Discovery.Subscribe(who, func(catalog.Changes, *catalog.Catalog) {
		select {
		case changed <- struct{}{}:
		default: // one notification says it for all changes so far
		}
	})()
	if v, refused := s.view(ctx, who); refused == nil && shown != nil && *shown != v.Catalog().Version {
		notify() // the tools changed before the subscription
	}
	silence := time.NewTicker(keepAlive)
	defer silence.Stop()
	for {
		select {
		case <-changed:
			notify()
		case <-silence.C:
			ping()
		case <-ctx.Done():
			return
		case <-s.drained.Done():
			return
		}
	}
}

// listChanged is the one notification that the server sends unasked.
const listChanged = "notifications/tools/list_changed"

// listen serves the notifications of a session.
func (s *Server) listen(x *exchange, sess *session) {
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	defer context.AfterFunc(sess.ctx, cancel)()
	st := x.stream()
	defer sess.enter(st)()
	defer func() { sess.use(s.o.Now()) }()
	st.ping() // shows the client that the stream is open
	shown := sess.listed.Load()
	if shown == nil && sess.adopted { // another replica knows: a notification too many costs a request, a missing one leaves an old list
		shown = new(catalog.Version)
	}
	s.hold(ctx, x.who, shown, func() {
		if sess.newest(st) {
			st.send(notification(listChanged, nil))
		}
	}, st.ping)
}

// subscription is a subscriptions/listen of the stateless revision.
type subscription struct {
	id    []byte // of the request, as it was written; a copy, for the message is gone before the subscription ends
	tools bool   // the client wants to know of changed tools
}

func subscriptionOf(m message) (subscription, *protocolError) {
	wanted, err := object(m.params, "notifications")
	if err != nil || wanted.Kind == "" {
		return subscription{}, protocolErrorf(codeInvalidParams, "The parameter notifications is missing; it must be an object such as {\"toolsListChanged\": true}.")
	}
	tools, _ := wanted.Get("toolsListChanged")
	return subscription{id: bytes.Clone(m.id), tools: tools.IsTrue()}, nil
}

// meta is the _meta of every message of the subscription.
func (sub subscription) meta() []byte {
	return append(append([]byte(`"_meta":{"io.modelcontextprotocol/subscriptionId":`), sub.id...), '}')
}

// acknowledged says which of the wanted notifications will come. It is the first message of the subscription.
func (sub subscription) acknowledged() []byte {
	params := append([]byte(`{`), sub.meta()...)
	params = append(params, `,"notifications":{`...)
	if sub.tools {
		params = append(params, `"toolsListChanged":true`...)
	}
	return notification("notifications/subscriptions/acknowledged", append(params, '}', '}'))
}

func (sub subscription) changed() []byte {
	return notification(listChanged, append(append([]byte(`{`), sub.meta()...), '}'))
}

// ended is the response that closes the subscription from this side.
func (sub subscription) ended() []byte {
	return response(sub.id, append(append([]byte(`{"resultType":"complete",`), sub.meta()...), '}'))
}

// subscribe serves a subscription. One that wants no notifications ends at once.
func (s *Server) subscribe(ctx context.Context, send func([]byte), ping func(), who caller.Caller, sub subscription) {
	send(sub.acknowledged())
	if sub.tools {
		s.hold(ctx, who, nil, func() { send(sub.changed()) }, ping)
	}
	if ctx.Err() == nil {
		send(sub.ended())
	}
}
