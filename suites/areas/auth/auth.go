// Package auth checks the authorization of the MCP endpoint: a bridge as a resource server of OAuth 2.1, in front of an
// authorization server. It knows tokens and challenges; what tools do is for other areas.
//
// Its invariant: a check that expects a refusal calls a tool with a right token before and after, in the same session.
package auth

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area auth.
var Checks = []check.Check{
	{ID: "auth/metadata", Sees: check.Front, Run: metadata},
	{ID: "auth/metadata-root", Sees: check.Front, Run: metadataRoot},
	{ID: "auth/challenge", Sees: check.Front, Run: challenged},
	{ID: "auth/challenge-metadata", Sees: check.Front, Run: challengeMetadata},
	{ID: "auth/challenge-no-error", Sees: check.Front, Run: challengeNoError},
	{ID: "auth/invalid-token", Sees: check.Front, Run: invalidToken},
	{ID: "auth/right-token", Sees: check.Front, Run: rightToken},
	{ID: "auth/scheme-case", Sees: check.Front, Run: schemeCase},
	{ID: "auth/own-account", Sees: check.Site, Run: ownAccount},
	{ID: "auth/every-request", ByMock: true, Sees: check.Front, Run: everyRequest},
	{ID: "auth/token-malformed", ByMock: true, Sees: check.Front, Run: forges(malformed)},
	{ID: "auth/token-signature", ByMock: true, Sees: check.Front, Run: forges(wrongSignature)},
	{ID: "auth/token-unsigned", ByMock: true, Sees: check.Front, Run: forges(unsigned)},
	{ID: "auth/token-key-confusion", ByMock: true, Sees: check.Front, Run: refuses(keyConfusion)},
	{ID: "auth/token-key-algorithm", ByMock: true, Sees: check.Front, Run: refuses(keyAlgorithm)},
	{ID: "auth/token-expired", ByMock: true, Sees: check.Front, Run: refuses(expired, "expired")},
	{ID: "auth/token-no-expiry", ByMock: true, Sees: check.Front, Run: refuses(noExpiry)},
	{ID: "auth/token-not-yet-valid", ByMock: true, Sees: check.Front, Run: refuses(notYetValid, "not_yet_valid")},
	{ID: "auth/token-issuer", ByMock: true, Sees: check.Front, Run: refuses(wrongIssuer, "other_issuer")},
	{ID: "auth/token-audience", ByMock: true, Sees: check.Front, Run: refuses(wrongAudience, "other_audience")},
	{ID: "auth/token-unknown-key", ByMock: true, Sees: check.Front, Run: forges(unknownKey)},
	{ID: "auth/token-own-key", ByMock: true, Sees: check.Front, Run: ownKey},
	{ID: "auth/token-critical", ByMock: true, Sees: check.Front, Run: refuses(critical)},
	{ID: "auth/expires-in-use", ByMock: true, Sees: check.Front, Run: expiresInUse},
	{ID: "auth/new-key", Sees: check.Front, Run: newKey},
	{ID: "auth/removed-key", ByMock: true, Sees: check.Front, Run: removedKey},
	{ID: "auth/server-down", ByMock: true, Sees: check.Front, Run: serverDown},
	{ID: "auth/server-hangs", Sees: check.Front, Costly: true, Run: serverHangs},
	{ID: "auth/metadata-issuer", ByMock: true, Sees: check.Front, Run: metadataIssuer},
	{ID: "auth/scope-enforced", Sees: check.Site, Run: scopeEnforced},
	{ID: "auth/insufficient-scope", Sees: check.Site, Run: insufficientScope},
	{ID: "auth/challenge-scope", Sees: check.Site, Run: challengeScope},
	{ID: "auth/no-passthrough", Sees: check.Journal, Run: noPassthrough},
	{ID: "auth/query-token", ByMock: true, Sees: check.Front, Run: queryToken},
	{ID: "auth/token-secret", Sees: check.Front, Run: tokenSecret},
}

// door is the MCP endpoint, opened by a right token: what is then refused for another token is refused for that alone.
type door struct {
	*check.T
	right  *check.Session // of the agent
	method string         // that runs without arguments; "": the run may call none
}

// open opens the endpoint with a right token, and calls a tool with it.
func open(ctx context.Context, t *check.T) *door {
	d, opened := newDoor(ctx, t)
	if !opened {
		check.BlockedBy(check.Finding{Subject: "no MCP session opens with a right token"}, "auth/right-token")
	}
	if r := d.use(ctx, d.right); !d.served(r) {
		check.BlockedBy(check.Mismatch(r.Subject(), "a result, with a right token", r.RPCOutcome()), "auth/right-token")
	}
	return d
}

func newDoor(ctx context.Context, t *check.T) (d *door, opened bool) {
	d = &door{T: t}
	if d.right, opened = t.As(check.Agent).AnyMCP(ctx); opened && t.Drupal != nil {
		d.method = scenario.Simplest(t)
	}
	return d, opened
}

// use calls the tool in a session, or lists the tools where the run may call none.
func (d *door) use(ctx context.Context, s *check.Session) *check.Response {
	if d.method == "" {
		return s.ListTools(ctx, "")
	}
	return s.CallTool(ctx, d.ToolName(d.method), check.Args{})
}

func (d *door) served(r *check.Response) bool {
	result := r.RPCResult()
	return result != nil && result["isError"] != true
}

// beServed matches the response to a request with a right token.
func (d *door) beServed() types.GomegaMatcher {
	return match.MatchRPCWhere("a result, with a right token", d.served)
}

// as is the agent's session as somebody else uses it, with other credentials.
func (d *door) as(creds check.Credentials) *check.Session {
	return &check.Session{Client: d.With(check.Agent, creds), Revision: d.right.Revision, ID: d.right.ID}
}

// own is a session that other right credentials of the agent open: a bridge may bind a session to the token that opened it.
func (d *door) own(ctx context.Context, creds check.Credentials) *check.Session {
	return d.With(check.Agent, creds).MCP(ctx, d.right.Revision)
}

// refuse is one row of a check: a token is refused, in the session and where it opens another, and nothing runs.
func (d *door) refuse(ctx context.Context, name, token string) {
	d.Row(check.Agent, "", name, func() {
		d.Mark()
		wrong := d.as(check.Credentials{Token: token})
		used := d.use(ctx, wrong)
		d.Expect(used).To(match.HaveStatus(http.StatusUnauthorized), "with a token: %s", name)
		d.Expect(used).To(match.HaveRunNothing(d.Upstream), "with a token: %s", name)
		opening := &check.Session{Client: wrong.Client, Revision: wrong.Revision}
		method, params := opening.Opening()
		d.Expect(opening.Call(ctx, method, params)).To(match.HaveStatus(http.StatusUnauthorized), "with a token: %s", name)
	})
}

// stillServes tests that the right token still works after wrong ones.
func (d *door) stillServes(ctx context.Context) {
	d.Row(check.Agent, "", "the right token, after wrong ones", func() { d.Expect(d.use(ctx, d.right)).To(d.beServed()) })
}

// table gives the tokens of a check, made by an authorization server.
type table func(d *door, as *authserver.Server) []row

// refuses makes a check of a table of tokens, each of which is refused. Without the authorization server the
// configuration may have such a token, by one of the names.
func refuses(made table, names ...string) func(context.Context, *check.T) {
	return func(ctx context.Context, t *check.T) {
		d := open(ctx, t)
		var rows []row
		for _, name := range names {
			if token := t.WrongTokens[name]; token != "" && t.Authority == nil {
				rows = append(rows, row{name + " of the configuration", token})
			}
		}
		switch {
		case t.Authority == nil && len(rows) == 0 && len(names) > 0:
			check.NotTestable("such a token can be made by the bridge's authorization server alone: give one in the configuration by wrong_tokens." + names[0])
		case len(rows) == 0:
			rows = made(d, d.authority())
		}
		d.refuseAll(ctx, rows)
	}
}

// forges is refuses for tokens that anybody can make who has seen a right one.
func forges(made table) func(context.Context, *check.T) {
	return func(ctx context.Context, t *check.T) {
		d, as := open(ctx, t), t.Authority
		if as == nil {
			as = d.stranger()
		}
		rows := made(d, as)
		for _, r := range rows { // of a call or a list, the site that gets the token may refuse it in place of the bridge
			d.Row(check.Agent, "", "with a token: "+r.name, func() {
				d.Expect(d.as(check.Credentials{Token: r.token}).Call(ctx, "ping", nil)).To(match.HaveStatus(http.StatusUnauthorized))
			})
		}
		d.refuseAll(ctx, rows)
	}
}

func (d *door) refuseAll(ctx context.Context, rows []row) {
	for _, r := range rows {
		d.refuse(ctx, r.name, r.token)
	}
	d.stillServes(ctx)
}

// authority is the authorization server of the run, without which no token can be made.
func (d *door) authority() *authserver.Server {
	if d.Authority == nil {
		check.NotTestable("no token can be made for the check: the bridge's authorization server is not the run's own; put the mock Drupal behind the bridge and start it by --exec")
	}
	return d.Authority
}

// stranger is another authorization server, which the bridge knows nothing of. It ends with the check.
func (d *door) stranger() *authserver.Server {
	other, err := d.Authority.Stranger()
	if err != nil {
		check.NotTestable("a second authorization server cannot be started: " + err.Error())
	}
	d.Cleanup(func(context.Context) { other.Close() })
	return other
}

func rightToken(ctx context.Context, t *check.T) {
	d, opened := newDoor(ctx, t)
	if !opened {
		t.Fail(check.Mismatch(d.right.Opened.Subject(), "a session, with a right token", d.right.Opened.RPCOutcome()))
	}
	t.Expect(d.use(ctx, d.right)).To(d.beServed())
	as := t.Authority
	if as == nil {
		return // the agent's token of the configuration works
	}
	claims := func(change map[string]any) string { return as.Issue(string(check.Agent), t.Resource(), change) }
	for _, r := range []row{
		{"the audience in a list", claims(map[string]any{"aud": []string{t.Resource()}})},
		{"the audience among others", claims(map[string]any{"aud": []string{"https://other.example/mcp", t.Resource()}})},
		{"valid since a minute", claims(map[string]any{"nbf": as.Ago(time.Minute)})},
		{"an exp and an iat with fractions", claims(map[string]any{"exp": float64(as.Ago(-time.Hour)) + 0.5, "iat": float64(as.Ago(time.Minute)) + 0.25})},
		{"claims that nobody knows", claims(map[string]any{"tenant": map[string]any{"id": 7}, "email": "agent@example.com"})},
		{"the type JWT", as.Sign(authserver.Token{Claims: as.Claims(string(check.Agent), t.Resource()), Header: map[string]any{"typ": "JWT"}})},
		{"no type", as.Sign(authserver.Token{Claims: as.Claims(string(check.Agent), t.Resource()), Header: map[string]any{"typ": nil}})},
	} {
		t.Row(check.Agent, "", r.name, func() {
			opened := t.With(check.Agent, check.Credentials{Token: r.token}).MCP(ctx, d.right.Revision)
			t.Expect(d.use(ctx, opened)).To(d.beServed(), "with a token: %s", r.name)
		})
	}
}

// openWithToken opens a door, and gives the token of the agent.
func openWithToken(ctx context.Context, t *check.T) (*door, string) {
	d := open(ctx, t)
	if d.right.Client.Creds.Token == "" {
		check.NotTestable("the agent has no bearer token")
	}
	return d, d.right.Client.Creds.Token
}

func schemeCase(ctx context.Context, t *check.T) {
	d, token := openWithToken(ctx, t)
	for _, scheme := range []string{"bearer", "BEARER"} {
		d.Row(check.Agent, "", "the scheme "+scheme, func() {
			d.Expect(d.use(ctx, d.own(ctx, check.Credentials{Header: map[string]string{"Authorization": scheme + " " + token}}))).To(d.beServed())
		})
	}
}

// everyRequest tests that a session which a token has opened serves nobody without one.
func everyRequest(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	without := d.as(check.Credentials{})
	post := func(id any, method string, params map[string]any) func() *check.Response {
		return func() *check.Response {
			return without.Send(ctx, without.Message(id, method, params), without.Headers(method, params))
		}
	}
	type request struct {
		name string
		send func() *check.Response
	}
	requests := []request{
		{"tools/list", post(901, "tools/list", map[string]any{})},
		{"ping", post(902, "ping", nil)},
		{"a notification", post(nil, "notifications/cancelled", map[string]any{"requestId": 999_999})},
		{"a method that nobody knows", post(903, "bridgecheck/unknown", nil)},
		{"a body that is no JSON", func() *check.Response {
			return without.Client.Send(ctx, check.Request{Method: http.MethodPost, Path: check.MCPPath, Header: without.Headers("tools/list", nil), Body: bytes.NewReader([]byte("{")), Show: "{"})
		}},
	}
	if d.method != "" {
		requests = append(requests, request{"tools/call", func() *check.Response { return d.use(ctx, without) }})
	}
	if d.right.ID != "" {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			requests = append(requests, request{method, func() *check.Response { return without.Client.Send(ctx, d.manage(method)) }})
		}
	}
	for _, r := range requests {
		d.Row(check.Anonymous, "", r.name+" without a token", func() {
			d.Mark()
			response := r.send()
			d.Expect(response).To(match.HaveStatus(http.StatusUnauthorized), r.name+" without a token")
			d.Expect(response).To(match.HaveRunNothing(d.Upstream), r.name+" without a token")
		})
	}
	d.stillServes(ctx)
}

// manage is GET or DELETE in the session: the stream of notifications, or the end of the session.
func (d *door) manage(method string) check.Request {
	h := d.right.Headers("", nil)
	if method == http.MethodGet {
		h.Set("Accept", "text/event-stream")
	}
	return check.Request{Method: method, Path: check.MCPPath, Header: h, Until: func([]byte) bool { return true }}
}

// queryToken sends the right token in each place but the header.
func queryToken(ctx context.Context, t *check.T) {
	d, token := openWithToken(ctx, t)
	without := d.as(check.Credentials{})
	method, params := "tools/list", map[string]any{}
	if d.method != "" {
		method, params = "tools/call", map[string]any{"name": d.ToolName(d.method), "arguments": map[string]any{}}
	}
	body := client.Encode(without.Message(911, method, params))
	for _, name := range []string{"access_token", "token", "bearer_token"} {
		d.Row(check.Agent, "", "in the query, as "+name, func() {
			d.Mark()
			r := without.Client.Send(ctx, check.Request{Method: http.MethodPost, Path: check.MCPPath, Raw: name + "=" + token,
				Header: without.Headers(method, params), Body: bytes.NewReader(body), Show: string(body)})
			d.Expect(r).To(match.HaveStatus(http.StatusUnauthorized), "the token in the query alone")
			d.Expect(r).To(match.HaveRunNothing(d.Upstream), "the token in the query alone")
		})
	}
	if s := d.right; s.ID != "" { // a stream is opened by another method, and maybe read by other code
		d.Row(check.Agent, "", "in the query of GET", func() {
			header := s.Headers("", nil)
			header.Set("Accept", "text/event-stream")
			d.Expect(without.Client.Send(ctx, check.Request{Path: check.MCPPath, Raw: "access_token=" + token, Header: header,
				Until: func([]byte) bool { return true }})).To(match.BeRefusedWith(401, 405), "the token in the query alone")
		})
	}
	d.stillServes(ctx)
}
