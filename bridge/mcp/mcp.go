// Package mcp is the bridge's second front: the Model Context Protocol, over Streamable HTTP and stdio, in the revisions
// 2025-06-18 and 2025-11-25, which have sessions, and 2026-07-28, which has none. It shows the same tools as the plain
// HTTP front, from the same catalog, and runs them by the same invoke. Its invariant: the credentials of a request alone
// decide its response; a session lends no credentials.
//
// The protocol is implemented here rather than taken from the official SDK. The SDK's server holds the tools itself: the
// bridge would need either one server for each set of tools that some caller sees (built again at each change, 150 ms for
// 1,000 tools), or a shared one whose responses to tools/list, tools/call and server/discover are all replaced by
// middleware. Then only the transport of the SDK is left, and it breaks clauses that the bridge must keep and that cannot
// be fixed from outside without reading each message twice: sdk_test.go lists them, and fails for each that the SDK fixes.
// The part of MCP that a server with tools alone needs is small, and faster without the SDK (BenchmarkToolsCallBesideSDK).
// The price is that a new revision has to be implemented here; the official conformance suite, the SDKs' clients and the
// Inspector test it against the specification (test/clients). The tests use the SDK's client.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/invoke"
	"github.com/bridgecheck/bridgecheck/bridge/oauth"
	"github.com/bridgecheck/bridgecheck/bridge/observe"
	"github.com/bridgecheck/bridgecheck/bridge/origin"
)

// Options are what a server is made of. All but Time, Guard, Observe and Refusals are needed.
type Options struct {
	Callers     caller.Callers
	Discovery   *discovery.Engine
	Invoker     *invoke.Invoker
	Sessions    *Sessions
	Origin      origin.Policy
	Guard       *oauth.Guard  // of tokens; nil: the site alone checks them
	Memory      *fair.Memory  // for what is long
	MaxBody     int64         // longest message, in bytes
	BodyTime    time.Duration // how long a message may take to arrive
	Time        time.Duration // how long a message may take in all, before its response; 0: any time
	WriteTime   time.Duration // how long a client may take to accept each part of a response, see body.Write
	SessionIdle time.Duration // how long a session may go unused
	Fresh       time.Duration // how long a client may take a list to be the same
	Now         func() time.Time
	Logger      *slog.Logger
	Observe     func(endpoint string, status int, took time.Duration) // receives every request, with the status that the tools API gives for the same failure; nil: none
	Refusals    *observe.Refusals                                     // nil: refusals are not recorded
}

// Server speaks MCP. It is an http.Handler for one endpoint.
type Server struct {
	o     Options
	forms forms
	info  []byte // Implementation, as JSON

	drained context.Context // ends when streams are to end
	drain   context.CancelFunc
}

// New makes a server.
func New(o Options) (*Server, error) {
	s := &Server{o: o, forms: newForms()}
	var err error
	s.info, err = json.Marshal(map[string]string{"name": "bridgecheck-bridge", "title": "Drupal tools", "version": version()})
	s.drained, s.drain = context.WithCancel(context.Background())
	return s, err
}

// Drain ends all streams, so that the requests that hold them end. New ones end at once.
func (s *Server) Drain() { s.drain() }

// releaseVersion is that of a release: the linker sets it. packaging/release says how.
var releaseVersion string

func version() string {
	if releaseVersion != "" {
		return releaseVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// request is one message that expects a response, with its caller and transport.
type request struct {
	message
	revision Revision
	who      caller.Caller
	header   http.Header        // of the stateless revision over HTTP; nil otherwise
	session  *session           // nil in the stateless revision
	notify   func([]byte)       // sends a notification ahead of the response; nil where there is no way
	failed   func(*fault.Error) // receives why a tool's call failed, which the result only words; nil: not reported
}

// method handles a request and gives the JSON of its result.
type method func(s *Server, ctx context.Context, r request) ([]byte, *protocolError)

// methods are what each era of the protocol has. initialize belongs to the transports, for it makes a session;
// subscriptions/listen likewise, for it is a stream.
var (
	sessionMethods = map[string]method{
		"ping":       func(*Server, context.Context, request) ([]byte, *protocolError) { return []byte("{}"), nil },
		"tools/list": (*Server).listTools,
		"tools/call": (*Server).callTool,
	}
	statelessMethods = map[string]method{
		"server/discover": (*Server).discover,
		"tools/list":      (*Server).listTools,
		"tools/call":      (*Server).callTool,
	}
)

// handle runs the method of a request. One that panics fails for this caller only.
func (s *Server) handle(ctx context.Context, r request) (result []byte, err *protocolError) {
	defer func() {
		if p := recover(); p != nil {
			s.o.Logger.ErrorContext(ctx, "mcp request panicked", "method", fault.Brief(r.method), "panic", p, "stack", string(debug.Stack()))
			result, err = nil, protocolErrorOf(fmt.Errorf("panic: %v", p))
		}
	}()
	methods := sessionMethods
	if r.revision == July2026 {
		methods = statelessMethods
	}
	run, ok := methods[r.method]
	if !ok {
		return nil, protocolErrorf(codeNoMethod, "This server has no method %q.", fault.Brief(r.method))
	}
	r.who.Trace = r.who.Trace.Within(r.metaText("traceparent"), r.metaText("tracestate"))
	result, err = run(s, ctx, r)
	if err == nil && r.revision == July2026 {
		result = complete(result, s.info)
	}
	return result, err
}

// complete marks a result as the stateless revision requires.
func complete(result, info []byte) []byte {
	head := append([]byte(`{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":`), info...)
	head = append(head, '}')
	if len(result) > len("{}") {
		head = append(head, ',')
	}
	return append(head, result[1:]...)
}

// capabilities are what every client receives.
const capabilities = `{"tools":{"listChanged":true}}`

// initialized is the result of initialize. A client that asks for a revision that is not spoken gets the newest one
// with sessions, and decides.
func (s *Server) initialized(m message) (Revision, []byte, *protocolError) {
	revision := Revision(m.param("protocolVersion"))
	if revision == "" {
		return "", nil, protocolErrorf(codeInvalidParams, "The parameter protocolVersion is missing; it must be a revision of MCP, such as %q.", November2025)
	}
	if revision != June2025 {
		revision = November2025
	}
	b := append([]byte(`{"protocolVersion":"`), revision...)
	b = append(append(b, `","capabilities":`+capabilities+`,"serverInfo":`...), s.info...)
	return revision, append(b, '}'), nil
}

// discover is the result of server/discover.
func (s *Server) discover(context.Context, request) ([]byte, *protocolError) {
	spoken, _ := json.Marshal(revisions) // strings
	b := append([]byte(`{"supportedVersions":`), spoken...)
	b = append(b, `,"capabilities":`+capabilities+`,`...)
	return append(s.cacheable(b), '}'), nil
}

// cacheable says how long a client may keep a result, and for which callers.
func (s *Server) cacheable(b []byte) []byte {
	b = append(b, `"ttlMs":`...)
	b = strconv.AppendInt(b, s.o.Fresh.Milliseconds(), 10)
	return append(b, `,"cacheScope":"private"`...)
}

// view is what the caller may see.
func (s *Server) view(ctx context.Context, who caller.Caller) (discovery.View, *protocolError) {
	v, err := s.o.Discovery.View(ctx, who)
	if err != nil {
		return v, protocolErrorOf(err)
	}
	return v, nil
}
