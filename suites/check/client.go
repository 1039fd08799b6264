package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/authkind"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/patience"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// Client sends requests to the bridge as one caller; every exchange is recorded as evidence of the running check.
type Client struct {
	patience.Client
	T *T
}

// As returns a client that speaks as the identity. Without credentials for it, the running check is not testable.
func (t *T) As(who Identity) Client {
	creds, ok := t.CredentialsOf(who)
	if !ok {
		NotTestable(fmt.Sprintf("there are no credentials for %s", who))
	}
	return t.client(who, creds, patience.Wait)
}

// With returns a client that authenticates with credentials of the check's own making; name stands in the evidence. Where the
// bridge limits how often such credentials come, that is the response.
func (t *T) With(name Identity, creds Credentials) Client {
	for _, secret := range creds.Secrets() {
		if !t.isName(secret) { // a wrong password may be another's name, which messages need
			t.Redact.Add(secret)
		}
	}
	return t.client(name, creds, patience.NoWait)
}

func (t *T) client(who Identity, creds Credentials, policy patience.Policy) Client {
	return Client{T: t, Client: patience.Client{Client: client.Client{Target: t.Target, Who: who, Creds: creds, Base: t.base}, Scope: &t.Scope, Policy: policy}}
}

// isName reports whether a text is the name of an account of the site.
func (t *T) isName(text string) bool {
	if t.Drupal == nil {
		return false
	}
	_, ok := t.Drupal.Site().User(text)
	return ok
}

// CredentialsOf are those that the run was given for an identity, or those of its account at the site.
func (t *T) CredentialsOf(who Identity) (Credentials, bool) {
	if current, ok := t.Tokens[who]; ok {
		token := current()
		t.Redact.Add(token)
		return Credentials{Token: token}, true
	}
	if creds, ok := t.Credentials[who]; ok {
		return creds, true
	}
	if who == Anonymous {
		return Credentials{}, true
	}
	if t.Drupal == nil {
		return Credentials{}, false
	}
	user, ok := t.Drupal.Site().User(string(who))
	if !ok {
		return Credentials{}, false
	}
	if t.Claims(OAuth) && t.Authority != nil {
		return Credentials{Token: t.token(who)}, true
	}
	creds := Credentials{User: user.Name, Password: user.Password}
	for _, kind := range authkind.Kinds {
		if t.Claims("auth-" + kind.Name) {
			if claimed := credentialsOf(t.Drupal, user, kind); !claimed.Empty() {
				creds = claimed
				break
			}
		}
	}
	t.Redact.Add(creds.Secrets()...)
	return creds, true
}

// credentialsOf are an account's credentials of one kind; empty: it has none.
func credentialsOf(d *site.Drupal, user *fixtures.User, kind authkind.Kind) Credentials {
	switch kind.Name {
	case authkind.Basic:
		return Credentials{User: user.Name, Password: user.Password}
	case authkind.Bearer:
		if len(user.Tokens) > 0 {
			return Credentials{Token: user.Tokens[0].Value}
		}
	case authkind.Cookie:
		return Credentials{Cookie: d.Session(Identity(user.Name))}
	}
	return Credentials{}
}

// Callers are the identities that the run has credentials for.
func (t *T) Callers(wanted ...Identity) []Identity {
	return slices.DeleteFunc(wanted, func(who Identity) bool { return !t.Knows(who) })
}

// Knows reports whether the run has credentials for the identity.
func (t *T) Knows(who Identity) bool {
	_, ok := t.CredentialsOf(who)
	return ok
}

// Waiting returns the client that waits where the bridge limits how often it calls, as one of As does: its credentials are right.
func (c Client) Waiting() Client {
	c.Policy = patience.Wait
	return c
}

// WithoutWaiting returns the client that takes the bridge's 429 for the response.
func (c Client) WithoutWaiting() Client {
	c.Policy = patience.NoWait
	return c
}

// On returns the client that sends to another replica.
func (c Client) On(replica int) Client {
	c.Base = c.T.base
	if replica > 0 {
		c.Base = c.T.Replicas[replica].URL
	}
	return c
}

// Send sends any request under the client's policy and reads the response. A failure of the transport is kept in the response,
// for there are checks that expect one. Where the run ends meanwhile, so does the check.
func (c Client) Send(ctx context.Context, r Request) *Response {
	before, keep := c.remembered(r)
	if before != nil {
		return before
	}
	c.spend(r)
	a, err := c.Client.Send(ctx, r)
	keep(a)
	switch {
	case !c.T.inCheck:
	case errors.Is(err, patience.ErrRunEnded):
		c.T.cutShort()
	case err != nil: // the bridge is gone
		c.T.metGone.Store(true)
		c.T.Fail(Mismatch(a.Subject(), "a response", "none: "+err.Error()))
	}
	return a
}

// SendOnce sends a request by a means of the check's own, once.
func (c Client) SendOnce(ctx context.Context, r Request, exchange patience.Exchange) *Response {
	c.Policy, c.Exchange = patience.Once, exchange
	return c.Send(ctx, r)
}

// OpenStream opens a stream of events and goes on when it is open. It ends with ctx. Only the response of a stream that does not
// open is evidence.
func (c Client) OpenStream(ctx context.Context, r Request) (stream *http.Response, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.Policy = patience.Stream
	c.Exchange = func(_ context.Context, r Request, a *Response, limit time.Duration) (dropped bool) {
		late := time.AfterFunc(limit, func() { cancel(client.ErrTimeout) })
		defer late.Stop()
		req, err := c.NewRequest(ctx, r, a)
		if err == nil {
			stream, err = c.Transport.RoundTrip(req)
		}
		if err != nil {
			a.Err = client.NoResponse(ctx, err)
			return false
		}
		if a.Status, a.Header = stream.StatusCode, stream.Header; a.Status != http.StatusOK {
			a.Body, _ = io.ReadAll(io.LimitReader(stream.Body, KeptBody)) // of a refusal, as far as it came
		}
		return false
	}
	since := c.T.Upstream.Last()
	a := c.Send(ctx, r)
	if a.Status != http.StatusOK {
		c.T.record(a, since)
	}
	return stream, a.Err
}

// List asks for the first page, or the page of a cursor.
func (c Client) List(ctx context.Context, cursor ...string) *Response {
	if c.T.Alone() {
		return c.listAlone(ctx, strings.Join(cursor, ""))
	}
	r := Request{Path: ListPath}
	if len(cursor) > 0 {
		r.Query = url.Values{"cursor": cursor[:1]}
	}
	return c.Send(ctx, r)
}

// Describe asks for one tool.
func (c Client) Describe(ctx context.Context, name string) *Response {
	if c.T.Alone() {
		return c.describeAlone(ctx, name)
	}
	return c.Send(ctx, Request{Path: DescribePath, Query: url.Values{"name": {name}}})
}

// Invoke runs a tool. Arguments are Args, or json.RawMessage to send bytes as they are.
func (c Client) Invoke(ctx context.Context, name string, arguments any) *Response {
	if c.T.Alone() {
		return c.invokeAlone(ctx, name, arguments)
	}
	return c.InvokeBody(ctx, client.Encode(map[string]any{"name": name, "arguments": arguments}))
}

// InvokeBody posts a body of any kind to invoke, as application/json.
func (c Client) InvokeBody(ctx context.Context, body []byte) *Response {
	return c.Send(ctx, client.InvokeRequest(body))
}

// Call invokes as the call says.
func (t *T) Call(ctx context.Context, call Invocation) *Response {
	if t.Alone() {
		return t.As(call.Identity).Invoke(ctx, call.Tool, call.Object())
	}
	return t.As(call.Identity).InvokeBody(ctx, call.Body())
}

// MCP opens a session. Where that fails the session's Opened says how.
func (c Client) MCP(ctx context.Context, revision Revision) *Session {
	return client.OpenMCP(ctx, c, revision)
}

// ListedByMCP names the tools that MCP shows the caller now, in any claimed revision.
func (c Client) ListedByMCP(ctx context.Context) []string {
	if s, opened := c.AnyMCP(ctx); opened {
		return ListAllTools(ctx, s).Names()
	}
	return nil
}

// MCPBeside opens a session for a caller of a bridge that has both interfaces: one with MCP alone gets every call by it.
func (t *T) MCPBeside(ctx context.Context, who Identity) (s *Session, opened bool) {
	if t.Alone() || !t.Claims("mcp") {
		return nil, false
	}
	return t.As(who).AnyMCP(ctx)
}

// AnyMCP opens a session in one of the claimed revisions, in that which the bridge agrees to. Where none opens, the last one's
// Opened says why.
func (c Client) AnyMCP(ctx context.Context) (s *Session, opened bool) {
	revisions := []Revision{MCP2025November, MCP2025June}
	if c.T.Claims("mcp-2026") {
		revisions = append(revisions, MCP2026July)
	}
	for _, revision := range revisions {
		if s = c.MCP(ctx, revision); s.Opened.RPCResult() != nil {
			return s, true
		}
	}
	return s, false
}

// Session is the caller's session in a revision, for what neither ends it nor changes what it shows. Checks of a server of which no
// site is known share it: such a server may start a process for each.
func (c Client) Session(ctx context.Context, revision Revision) *Session {
	if !c.T.Foreign() {
		return c.MCP(ctx, revision)
	}
	return c.T.Environment.sessions.of(c, revision, func() *Session { return c.MCP(ctx, revision) })
}

// session is the caller's session in the running check, in any revision; where none opens, its Opened says why.
func (c Client) session(ctx context.Context) *Session {
	sessions := &c.T.sessions
	if c.T.Foreign() {
		sessions = &c.T.Environment.sessions
	}
	return sessions.of(c, "", func() *Session {
		s, _ := c.AnyMCP(ctx)
		return s
	})
}

// sessions are those that are open, by the caller and the revision asked for.
type sessions struct {
	mu   sync.Mutex
	open map[sessionKey]*Session
}

type sessionKey struct {
	who      Identity
	creds    string
	revision Revision
}

// sharedFor is how old a session may be that another check goes on with: a server may end one that is idle.
const sharedFor = 20 * time.Second

// of is the client's session in a revision. Where none is open, it opens one.
func (all *sessions) of(c Client, revision Revision, open func() *Session) *Session {
	key := sessionKey{c.Who, fmt.Sprint(c.Base, c.Creds), revision}
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := all.open[key]; s != nil && (s.Client.T == c.T || time.Since(s.Opened.At) < sharedFor) {
		s.Client = c
		return s
	}
	s := open()
	if s.Opened.RPCResult() != nil {
		if all.open == nil {
			all.open = map[sessionKey]*Session{}
		}
		all.open[key] = s
	}
	return s
}

// noSession is the response to a caller who gets no session: a refusal of whatever would have been sent.
func noSession(s *Session) *Response {
	return s.Opened.View(map[string]any{"error": map[string]any{"message": s.Opened.RPCOutcome()}})
}

func (c Client) listAlone(ctx context.Context, cursor string) *Response {
	s := c.session(ctx)
	if s.Opened.RPCResult() == nil {
		return noSession(s)
	}
	page := s.ListTools(ctx, cursor)
	if result := page.RPCResult(); result != nil {
		view := map[string]any{}
		for _, name := range []string{"tools", "nextCursor"} {
			if v, there := result[name]; there {
				view[name] = v
			}
		}
		return page.View(view)
	}
	return page.View(map[string]any{"error": map[string]any{"message": page.RPCOutcome()}})
}

// describeAlone finds the tool in the list, for MCP has no describe. Without it the response is the last page.
func (c Client) describeAlone(ctx context.Context, name string) *Response {
	page := c.ListAll(ctx).PageOf(name)
	tools := page.Tools()
	if i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name() == name }); i >= 0 {
		return page.View(map[string]any{"tool": map[string]any(tools[i])})
	}
	return page.View(map[string]any{"error": map[string]any{"code": "tool_not_found"}})
}

func (c Client) invokeAlone(ctx context.Context, name string, arguments any) *Response {
	s := c.session(ctx)
	if s.Opened.RPCResult() == nil {
		return noSession(s)
	}
	r := s.CallTool(ctx, name, arguments)
	result := r.RPCResult()
	if result == nil || result["isError"] == true {
		return r.View(map[string]any{"error": map[string]any{"message": r.RPCOutcome()}})
	}
	return r.View(map[string]any{"result": client.ValueOf(result)})
}
