package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/body"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/observe"
)

// The members of _meta that every request of the stateless revision carries.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
)

// ServeHTTP speaks Streamable HTTP.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	observe.Identify(h, r.Header)
	x := &exchange{s: s, w: w, r: r}
	status := s.serve(x)
	if x.failed != nil { // JSON-RPC's errors and results go out with 200
		status = x.failed.Status()
	}
	took := time.Since(start)
	var err error
	if x.failed != nil {
		err = x.failed
		s.o.Refusals.Record(r, status, err)
	}
	observe.Log(s.o.Logger, r, status, took, err)
	if s.o.Observe != nil {
		s.o.Observe("/mcp", status, took)
	}
}

// exchange is one HTTP request and the way to respond to it. Its methods that respond give the status that was sent.
type exchange struct {
	s   *Server
	w   http.ResponseWriter
	r   *http.Request
	who caller.Caller

	lease    *fair.Lease  // of the memory for this exchange
	limit    *time.Timer  // cancels the request when its time is over; nil: it has any time
	accepted bool         // the site lets the caller in
	failed   *fault.Error // why it failed, as far as that is the bridge's or the site's to say
}

func (x *exchange) fail(f *fault.Error) { x.failed = f }

func (s *Server) serve(x *exchange) int {
	err := s.o.Origin.Check(x.r)
	if err != nil {
		x.w.Header().Set("Connection", "close") // rather than read the body
		return x.refuseFault(nil, err)
	}
	if x.who, err = s.o.Callers.From(x.r); err != nil {
		return x.refuseFault(nil, err)
	}
	switch x.r.Method {
	case http.MethodPost:
		return s.post(x)
	case http.MethodGet, http.MethodDelete:
		switch version := Revision(x.r.Header.Get(versionHeader)); {
		case version != "" && !slices.Contains(revisions, version):
			return x.refuse(http.StatusBadRequest, nil, unsupported(version))
		case version != July2026:
			return s.withSession(x, message{}, func(sess *session) int { return s.manage(x, sess) })
		}
	}
	x.w.Header().Set("Allow", "POST, GET, DELETE")
	return x.refuse(http.StatusMethodNotAllowed, nil, protocolErrorf(codeInvalidRequest, "%s is not allowed here.", fault.Brief(x.r.Method)))
}

// post handles a message.
func (s *Server) post(x *exchange) int {
	if kind, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return x.refuse(http.StatusUnsupportedMediaType, nil, protocolErrorf(codeInvalidRequest, "The body must be sent as application/json."))
	}
	if !x.accepts("application/json") && !x.accepts("text/event-stream") {
		return x.refuse(http.StatusNotAcceptable, nil, protocolErrorf(codeInvalidRequest, "The client must accept application/json and text/event-stream."))
	}
	if s.o.Time > 0 {
		ctx, end := context.WithCancelCause(x.r.Context())
		defer end(nil)
		limit := time.AfterFunc(s.o.Time, func() { end(context.DeadlineExceeded) })
		defer limit.Stop()
		x.r, x.limit = x.r.WithContext(ctx), limit
	}
	ctx, lease := s.o.Memory.Lease(x.r.Context(), x.who.Holder())
	x.r, x.lease = x.r.WithContext(ctx), lease
	defer x.lease.Release()
	sent, status, wrong := x.body()
	if wrong != nil {
		return x.refuse(status, nil, wrong)
	}
	m, status, wrong := x.read(sent)
	if wrong != nil {
		return x.refuse(status, m.id, wrong)
	}
	switch version := Revision(x.r.Header.Get(versionHeader)); {
	case version == July2026 || m.version() != "":
		return s.stateless(x, m, version)
	case version != "" && !slices.Contains(revisions, version):
		return x.refuse(http.StatusBadRequest, m.id, unsupported(version))
	case m.method == "initialize" && m.id != nil:
		return s.initialize(x, m)
	}
	return s.withSession(x, m, func(sess *session) int { return s.inSession(x, sess, m) })
}

// stateless handles a message of the revision without sessions.
func (s *Server) stateless(x *exchange, m message, version Revision) int {
	if m.id == nil {
		method := x.r.Header.Get("Mcp-Method")
		switch {
		case version != July2026:
			return x.refuse(http.StatusBadRequest, nil, unsupported(version))
		case method != "" && method != m.method:
			return x.refuse(http.StatusBadRequest, nil, mismatch("Mcp-Method", method, m.method))
		}
		return x.accept()
	}
	own, capable := m.meta.Get(metaCapabilities)
	switch {
	case m.version() == "":
		return x.refuse(http.StatusBadRequest, m.id, protocolErrorf(codeInvalidParams, "The parameter _meta must hold %s.", metaVersion))
	case m.version() != version:
		return x.refuse(http.StatusBadRequest, m.id, mismatch(versionHeader, string(version), string(m.version())))
	case version != July2026:
		return x.refuse(http.StatusBadRequest, m.id, unsupported(version))
	case !capable || own.Kind != "object":
		return x.refuse(http.StatusBadRequest, m.id, protocolErrorf(codeInvalidParams, "The parameter _meta must hold %s, an object.", metaCapabilities))
	}
	if wrong := agree(x.r.Header, m); wrong != nil {
		return x.refuse(http.StatusBadRequest, m.id, wrong)
	}
	if m.method == "subscriptions/listen" {
		sub, wrong := subscriptionOf(m)
		if wrong == nil {
			_, wrong = s.view(x.r.Context(), x.who) // a caller who may see nothing has nothing to listen for
		}
		if wrong != nil {
			return x.refuseStateless(m.id, wrong)
		}
		x.lease.Release() // the stream may last, and keeps nothing of the message
		if x.limit != nil {
			x.limit.Stop()
		}
		st := x.stream()
		s.subscribe(x.r.Context(), st.send, st.ping, x.who, sub)
		return http.StatusOK
	}
	return s.respond(x.r.Context(), x, request{message: m, revision: July2026, who: x.who, header: x.r.Header})
}

// unsupported is the error for a revision that is not spoken.
func unsupported(version Revision) *protocolError {
	e := protocolErrorf(codeNoVersion, "This server does not speak the revision %q.", fault.Brief(string(version)))
	e.data, _ = json.Marshal(map[string]any{"supported": revisions, "requested": version}) // strings
	return e
}

// refuses are the faults that open no session: the site does not accept the caller (Drupal denies access to an account that it
// does not know), or it is not asked about credentials for now.
var refuses = map[fault.Code]bool{fault.AuthRequired: true, fault.AccessDenied: true, fault.RateLimited: true}

// initialize opens a session. Credentials that the site refuses open none.
func (s *Server) initialize(x *exchange, m message) int {
	revision, result, wrong := s.initialized(m)
	if wrong != nil {
		return x.refuseInSession(m.id, wrong)
	}
	if _, refused := s.view(x.r.Context(), x.who); refused != nil && refuses[refused.cause.Code] {
		return x.refuseInSession(m.id, refused)
	}
	opened, err := s.o.Sessions.open(revision, x.who, s.o.Now())
	if err != nil {
		return x.refuseFault(m.id, err)
	}
	x.w.Header().Set(sessionHeader, opened.id)
	return x.result(nil, response(m.id, result))
}

// withSession goes on with the session that the request names, if it is the caller's.
func (s *Server) withSession(x *exchange, m message, next func(*session) int) int {
	id := x.r.Header.Get(sessionHeader)
	if id == "" {
		return x.refuse(http.StatusBadRequest, m.id,
			protocolErrorf(codeInvalidRequest, "The header Mcp-Session-Id is missing; open a session with initialize first."))
	}
	sess, err := s.o.Sessions.find(id, x.who, s.o.Now(), s.o.SessionIdle)
	switch {
	case err != nil:
		return x.refuseFault(m.id, err)
	case sess == nil:
		return x.refuse(http.StatusNotFound, m.id, protocolErrorf(codeInvalidRequest, "There is no such session; open one with initialize."))
	}
	return next(sess)
}

// manage handles GET, which listens for notifications, and DELETE, which ends the session.
func (s *Server) manage(x *exchange, sess *session) int {
	if x.r.Method == http.MethodDelete {
		s.o.Sessions.close(sess)
		x.w.WriteHeader(http.StatusNoContent)
		return http.StatusNoContent
	}
	if !x.accepts("text/event-stream") {
		return x.refuse(http.StatusNotAcceptable, nil, protocolErrorf(codeInvalidRequest, "The client must accept text/event-stream."))
	}
	s.listen(x, sess)
	return http.StatusOK
}

// inSession handles a message of a session.
func (s *Server) inSession(x *exchange, sess *session, m message) int {
	if m.id == nil {
		if m.method == "notifications/cancelled" {
			sess.flights.cancel(m)
		}
		return x.accept()
	}
	lasting := context.WithoutCancel(x.r.Context()) // a client that disconnects cancels nothing (MCP 2025-11-25, Transports)
	if s.o.Time > 0 {
		var end context.CancelFunc
		lasting, end = context.WithTimeout(lasting, s.o.Time)
		defer end()
	}
	ctx, done := sess.flights.start(lasting, m.id)
	defer done()
	return s.respond(ctx, x, request{message: m, revision: sess.revision, who: x.who, session: sess})
}

// respond runs a request and sends its response: as JSON, or as the last event of a stream where notifications came
// before it.
func (s *Server) respond(ctx context.Context, x *exchange, r request) int {
	st := x.stream()
	r.failed = x.fail
	if x.accepts("text/event-stream") {
		r.notify = st.send
	}
	result, wrong := s.handle(ctx, r)
	switch {
	case wrong != nil && st.open:
		if wrong.cause != nil {
			x.fail(wrong.cause)
		}
		st.send(failure(r.id, wrong))
		return http.StatusOK
	case wrong != nil && r.revision == July2026:
		return x.refuseStateless(r.id, wrong)
	case wrong != nil:
		return x.refuseInSession(r.id, wrong)
	case ctx.Err() != nil && x.r.Context().Err() == nil:
		return x.accept() // cancelled by its client, which expects no response
	}
	return x.result(st, response(r.id, result))
}

// result sends a response, on the stream where one is open or the client takes nothing else.
func (x *exchange) result(st *stream, response []byte) int {
	switch {
	case st != nil && st.open:
		st.send(response)
	case x.accepts("application/json"):
		x.json(http.StatusOK, response)
	default:
		x.stream().send(response)
	}
	return http.StatusOK
}

// refuseInSession sends an error as the revisions with sessions require: with 200, except where HTTP has a status of its own for it.
func (x *exchange) refuseInSession(id []byte, e *protocolError) int {
	status := http.StatusOK
	if e.cause != nil && refuses[e.cause.Code] {
		status = e.cause.Status()
	}
	return x.refuse(status, id, e)
}

// statelessStatus are the statuses that the stateless revision gives to errors.
var statelessStatus = map[int]int{
	codeNoMethod: http.StatusNotFound, codeInvalidParams: http.StatusBadRequest,
	codeHeaderMismatch: http.StatusBadRequest, codeNoVersion: http.StatusBadRequest,
}

// refuseStateless sends an error as the stateless revision requires.
func (x *exchange) refuseStateless(id []byte, e *protocolError) int {
	if status, ok := statelessStatus[e.code]; ok {
		return x.refuse(status, id, e)
	}
	return x.refuseInSession(id, e)
}

// refuse sends an error with a status.
func (x *exchange) refuse(status int, id []byte, e *protocolError) int {
	if e.cause != nil {
		if e.cause.Code == fault.AuthRequired || len(e.cause.Challenge) > 0 {
			x.w.Header()["Www-Authenticate"] = x.s.o.Guard.Challenge(e.cause)
		}
		if e.cause.RetryAfter > 0 {
			x.w.Header().Set("Retry-After", e.cause.WaitSeconds())
		}
		x.fail(e.cause)
	}
	x.json(status, failure(id, e))
	body.Drain(x.w, x.r, x.s.o.BodyTime)
	return status
}

// refuseFault sends what err is, with its status.
func (x *exchange) refuseFault(id []byte, err error) int {
	f := fault.From(err)
	return x.refuse(f.Status(), id, protocolErrorOf(f))
}

func (x *exchange) json(status int, message []byte) {
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(message)))
	x.w.WriteHeader(status)
	body.Write(x.w, x.s.o.WriteTime, message) //nolint:errcheck // the client went away: nobody would see the error
}

// stream is the response as server-sent events; nothing is sent yet.
func (x *exchange) stream() *stream { return &stream{w: x.w, within: x.s.o.WriteTime} }

func (x *exchange) accept() int {
	x.w.WriteHeader(http.StatusAccepted)
	return http.StatusAccepted
}

// accepts reads the Accept header; without one everything is taken.
func (x *exchange) accepts(kind string) bool {
	values := x.r.Header.Values("Accept")
	if len(values) == 0 {
		return true
	}
	family, _, _ := strings.Cut(kind, "/")
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, _, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case kind, family + "/*", "*/*":
			return true
		}
	}
	return false
}

// body reads the message, in bounded size, memory and time. An error comes with its status.
func (x *exchange) body() ([]byte, int, *protocolError) {
	read, err := body.Read(x.w, x.r, x.s.o.MaxBody, x.s.o.BodyTime, x)
	var over *http.MaxBytesError
	var refused *fault.Error
	switch {
	case err == nil:
		return read, 0, nil
	case errors.As(err, &over):
		return nil, http.StatusRequestEntityTooLarge, protocolErrorf(codeInvalidRequest, "The body is longer than %d bytes.", x.s.o.MaxBody)
	case errors.As(err, &refused):
		return nil, refused.Status(), protocolErrorOf(refused)
	case errors.Is(err, fair.ErrNoMemory):
		e := fault.New(fault.Overloaded, "Too many large messages; retry in 1 s.").Because(err)
		e.RetryAfter = time.Second
		return nil, e.Status(), protocolErrorOf(e)
	}
	return nil, http.StatusBadRequest, protocolErrorf(codeInvalidRequest, "The body did not arrive whole, or not in time.")
}

// read parses a message when it is its turn. An error comes with its status.
func (x *exchange) read(sent []byte) (message, int, *protocolError) {
	done, err := x.s.o.Invoker.Turn(x.r.Context(), x.who, len(sent))
	if err != nil {
		f := fault.From(err)
		return message{}, f.Status(), protocolErrorOf(f)
	}
	defer done()
	m, wrong := read(sent)
	return m, http.StatusBadRequest, wrong
}

// Grow reserves memory for a long message, which is read only from callers that the site accepts.
func (x *exchange) Grow(bytes int64) error {
	if !x.accepted {
		if err := x.acceptable(); err != nil {
			return err
		}
		x.accepted = true
	}
	return x.lease.Grow(bytes)
}

// acceptable returns a fault where the site refuses the caller. A site that fails refuses no caller.
func (x *exchange) acceptable() error {
	if _, refused := x.s.view(x.r.Context(), x.who); refused != nil && refuses[refused.cause.Code] {
		return refused.cause
	}
	return nil
}
