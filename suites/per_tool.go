package suites

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// scoped is the method that the checks of scopes add to the site, and the scopes that it asks for.
const scoped = "content.scoped"

var scopes = []string{"content:read", "content:write"}

// checks__pertool__per_tool are the checks of this file.
var checks__pertool__per_tool = []Check{
	{ID: "per-tool/answers", Sees: Site, Run: chk__pertool__answers},
	{ID: "per-tool/name-binds", Sees: Site, Run: chk__pertool__nameBinds},
	{ID: "per-tool/scopes", Sees: Site, Run: chk__pertool__scopes},
	{ID: "per-tool/unknown-404", Sees: Site, Run: chk__pertool__unknown404},
}

func chk__pertool__answers(ctx context.Context, b *Bridge) {
	known, echo := b.knownMethod(), b.echoTool()
	for _, id := range []any{"abc", 7, "7"} {
		b.Row(Agent, known, fmt.Sprintf("by POST, with the id %#v", id), func() { b.Expect(b.As(Agent).CallAt(ctx, known, known, Args{}, id)).To(AnswerRPC(id)) })
		b.Row(Agent, known, fmt.Sprintf("by GET ?query=, with the id %#v", id), func() {
			b.Expect(b.As(Agent).AskAt(ctx, known, rpcBody(known, Args{}, id))).To(AnswerRPC(id))
		})
	}
	params := echo.arguments("é+&% {}")
	call := rpcBody(echo.ID, params, 1)
	for how, r := range inOrder(map[string]*Answer{"by POST": b.As(Agent).PostAt(ctx, echo.ID, call), "by GET ?query=": b.As(Agent).AskAt(ctx, echo.ID, call)}) {
		b.Row(Agent, echo.ID, how, func() {
			b.Expect(r).To(AnswerRPC(1))
			b.Expect(r).To(GiveResult(string(encode(params))))
		})
	}
}

func chk__pertool__nameBinds(ctx context.Context, b *Bridge) {
	known, other := b.knownMethod(), b.HiddenMethods()[0]
	b.As(Agent).CallAt(ctx, known, known, Args{}, 1).MustSucceed()
	for _, method := range []string{other, b.echoTool().ID} {
		for how, ask := range inOrder(map[string]func() *Answer{
			"by POST":        func() *Answer { return b.As(Agent).CallAt(ctx, known, method, Args{}, 1) },
			"by GET ?query=": func() *Answer { return b.As(Agent).AskAt(ctx, known, rpcBody(method, Args{}, 1)) },
		}) {
			b.Row(Agent, method, how, func() {
				b.Drupal.Mark()
				r := ask()
				b.Expect(r).To(beRPCRefused(), "the method "+method+" at the tool "+known)
				b.Expect(r).To(HaveRun(method, 0), "the method "+method+" at the tool "+known)
			})
		}
	}
	b.Row(Agent, known, "no method", func() {
		b.Drupal.Mark()
		r := b.As(Agent).PostAt(ctx, known, []byte(`{"jsonrpc":"2.0","params":{},"id":1}`))
		b.Expect(r).To(beRPCRefused())
		b.Expect(r).To(HaveRun(known, 0))
	})
	b.Drupal.Mark()
	batch := fmt.Sprintf("[%s,%s]", rpcBody(known, Args{}, 1), rpcBody(other, Args{}, 2))
	sent := b.As(Agent).Send(ctx, Request{Method: http.MethodPost, Path: toolPath(known), Body: strings.NewReader(batch), Show: batch})
	b.Row(Agent, other, "a batch", func() { b.Expect(sent).To(HaveRun(other, 0)) })
}

func chk__pertool__scopes(ctx context.Context, b *Bridge) {
	site := b.Drupal.Site().Clone()
	site.Methods = append(site.Methods, fixtures.Method{ID: scoped, Usage: "Asks for scopes", Access: []string{fixtures.AccessContent}, Output: fixtures.Raw(`{"type":"string"}`),
		MCP:       &fixtures.Tool{Title: "Scoped", Annotations: fixtures.Raw(`{"auth":{"level":"required","scopes":["content:read","content:write"]}}`)},
		Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw(`"done"`)}})
	all, some := fixtures.Token{Value: "scoped-all", Scopes: scopes}, fixtures.Token{Value: "scoped-some", Scopes: scopes[:1]}
	for i := range site.Users {
		if site.Users[i].Name == string(Agent) {
			site.Users[i].Tokens = append(site.Users[i].Tokens, all, some)
		}
	}
	for _, scope := range scopes {
		site.Roles = append(site.Roles, fixtures.Role{ID: scope, Permissions: b.Permissions(Agent)})
	}
	enough, less := b.With(Agent, Credentials{Token: all.Value}), b.With(Agent, Credentials{Token: some.Value})
	b.ChangeSite(ctx, site, func() bool { return enough.CallAt(ctx, scoped, scoped, Args{}, 1).RPCResultIs("done") })

	call := rpcBody(scoped, Args{}, 1)
	for how, send := range inOrder(map[string]func(Client) *Answer{
		"by POST":        func(c Client) *Answer { return c.PostAt(ctx, scoped, call) },
		"by GET ?query=": func(c Client) *Answer { return c.AskAt(ctx, scoped, call) },
	}) {
		b.Row(Anonymous, scoped, "without a token, "+how, func() {
			anonymous := send(b.As(Anonymous))
			b.Expect(anonymous).To(BeRefusedWith(401))
			b.Expect(anonymous).To(challenge())
		})
		b.Row(Agent, scoped, "with too few scopes, "+how, func() {
			refused := send(less)
			b.Expect(refused).To(BeRefusedWith(403))
			b.Expect(refused).To(challenge("insufficient_scope", scopes[1]))
		})
	}
	if b.wrong() {
		return
	}
	b.Expect(len(b.Drupal.Runs(scoped))).To(BeNumerically("<=", len(b.accounted(scoped))), mismatch("refused calls", fmt.Sprintf("no run of %s", scoped), "one"))
}

func chk__pertool__unknown404(ctx context.Context, b *Bridge) {
	known := b.knownMethod()
	b.As(Agent).CallAt(ctx, known, known, Args{}, 1).MustSucceed()
	for what, name := range inOrder(map[string]string{"a tool that nobody has": "no.such.tool", "a method that is no tool": b.HiddenMethods()[0]}) {
		for how, r := range inOrder(map[string]*Answer{"by POST": b.As(Agent).CallAt(ctx, name, name, Args{}, 1), "by GET ?query=": b.As(Agent).AskAt(ctx, name, rpcBody(name, Args{}, 1))}) {
			b.Row(Agent, name, what+", "+how, func() {
				b.Expect(r).To(BeRefusedWith(404))
				b.Expect(r).To(BeProtocolError("-32601"))
			})
		}
	}
	denied := b.DeniedTool(Discoverer, Agent)
	b.Row(Discoverer, denied, "a tool that the caller may not run", func() {
		r := b.As(Discoverer).CallAt(ctx, denied, denied, Args{}, 1)
		b.Expect(r).To(BeRefusedWith(404))
		b.Expect(r).To(BeProtocolError("-32601"))
	})
}

func toolPath(name string) string { return "/mcp/tools/" + url.PathEscape(name) }

func rpcBody(method string, params Args, id any) []byte {
	return encode(map[string]any{"jsonrpc": "2.0", "method": method, "params": params, "id": id})
}

// CallAt posts a JSON-RPC call of a method to the endpoint of a tool.
func (c Client) CallAt(ctx context.Context, tool, method string, params Args, id any) *Answer {
	return c.PostAt(ctx, tool, rpcBody(method, params, id))
}

// PostAt posts a body of any kind to the endpoint of a tool.
func (c Client) PostAt(ctx context.Context, tool string, body []byte) *Answer {
	return c.Send(ctx, Request{Method: http.MethodPost, Path: toolPath(tool), Body: bytes.NewReader(body), Show: string(body)})
}

// AskAt sends a JSON-RPC call to the endpoint of a tool by GET, in ?query=.
func (c Client) AskAt(ctx context.Context, tool string, call []byte) *Answer {
	return c.Send(ctx, Request{Path: toolPath(tool), Query: url.Values{"query": {string(call)}}})
}

// knownMethod is a plain tool of the site.
func (b *Bridge) knownMethod() string {
	id := b.simplest()
	if id == "" {
		NotTestable("the site " + b.Drupal.Site().Name + " has no tool that runs without arguments")
	}
	return id
}

// RPCResultIs tells whether the answer is a JSON-RPC result of that text.
func (a *Answer) RPCResultIs(text string) bool { return a.RPC()["result"] == text }

// accounted are the runs of a method that a caller with every scope asked for in this check.
func (b *Bridge) accounted(method string) []*Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	var answers []*Answer
	for _, r := range b.exchanges {
		if r.answer.Status == http.StatusOK && strings.HasSuffix(r.answer.Path, method) {
			answers = append(answers, r.answer)
		}
	}
	return answers
}

// AnswerRPC matches a JSON-RPC response with a result and the request's id.
func AnswerRPC(id any) OmegaMatcher {
	want := must(exact.Parse(encode(id)))
	return Meet("a JSON-RPC 2.0 result with the id "+exact.Short(want), func(a *Answer) string {
		_, result := a.Member("result")
		if a.Status != http.StatusOK || !result || a.Object()["jsonrpc"] != "2.0" || !exact.Equal(a.Object()["id"], want) {
			return a.Outcome()
		}
		return ""
	})
}

func beRPCRefused() OmegaMatcher {
	return Meet("a refusal", func(a *Answer) string {
		if a.Status >= 400 && a.Status < 500 || a.RPCCode() != "" {
			return ""
		}
		return a.rpcOutcome()
	})
}

// challenge matches a WWW-Authenticate for bearer tokens that holds the words.
func challenge(words ...string) OmegaMatcher {
	return Meet("WWW-Authenticate: Bearer "+strings.Join(words, " "), func(a *Answer) string {
		header := strings.Join(a.Header.Values("WWW-Authenticate"), ", ")
		if !strings.Contains(strings.ToLower(header), "bearer") {
			return "WWW-Authenticate " + exact.Short(header)
		}
		for _, w := range words {
			if !strings.Contains(header, w) {
				return "WWW-Authenticate " + exact.Short(header)
			}
		}
		return ""
	})
}
