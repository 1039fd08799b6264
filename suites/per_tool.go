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

func chk__pertool__answers(ctx context.Context, t *T) {
	known, echo := t.knownMethod(), t.echoTool()
	for _, id := range []any{"abc", 7, "7"} {
		t.Row(Agent, known, fmt.Sprintf("by POST, with the id %#v", id), func() { t.Expect(t.As(Agent).CallAt(ctx, known, known, Args{}, id)).To(AnswerRPC(id)) })
		t.Row(Agent, known, fmt.Sprintf("by GET ?query=, with the id %#v", id), func() {
			t.Expect(t.As(Agent).AskAt(ctx, known, rpcBody(known, Args{}, id))).To(AnswerRPC(id))
		})
	}
	params := echo.arguments("é+&% {}")
	call := rpcBody(echo.ID, params, 1)
	for how, r := range inOrder(map[string]*Response{"by POST": t.As(Agent).PostAt(ctx, echo.ID, call), "by GET ?query=": t.As(Agent).AskAt(ctx, echo.ID, call)}) {
		t.Row(Agent, echo.ID, how, func() {
			t.Expect(r).To(AnswerRPC(1))
			t.Expect(r).To(GiveResult(string(encode(params))))
		})
	}
}

func chk__pertool__nameBinds(ctx context.Context, t *T) {
	known, other := t.knownMethod(), t.HiddenMethods()[0]
	t.As(Agent).CallAt(ctx, known, known, Args{}, 1).MustSucceed()
	for _, method := range []string{other, t.echoTool().ID} {
		for how, ask := range inOrder(map[string]func() *Response{
			"by POST":        func() *Response { return t.As(Agent).CallAt(ctx, known, method, Args{}, 1) },
			"by GET ?query=": func() *Response { return t.As(Agent).AskAt(ctx, known, rpcBody(method, Args{}, 1)) },
		}) {
			t.Row(Agent, method, how, func() {
				t.Drupal.Mark()
				r := ask()
				t.Expect(r).To(beRPCRefused(), "the method "+method+" at the tool "+known)
				t.Expect(r).To(HaveRun(method, 0), "the method "+method+" at the tool "+known)
			})
		}
	}
	t.Row(Agent, known, "no method", func() {
		t.Drupal.Mark()
		r := t.As(Agent).PostAt(ctx, known, []byte(`{"jsonrpc":"2.0","params":{},"id":1}`))
		t.Expect(r).To(beRPCRefused())
		t.Expect(r).To(HaveRun(known, 0))
	})
	t.Drupal.Mark()
	batch := fmt.Sprintf("[%s,%s]", rpcBody(known, Args{}, 1), rpcBody(other, Args{}, 2))
	sent := t.As(Agent).Send(ctx, Request{Method: http.MethodPost, Path: toolPath(known), Body: strings.NewReader(batch), Show: batch})
	t.Row(Agent, other, "a batch", func() { t.Expect(sent).To(HaveRun(other, 0)) })
}

func chk__pertool__scopes(ctx context.Context, t *T) {
	site := t.Drupal.Site().Clone()
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
		site.Roles = append(site.Roles, fixtures.Role{ID: scope, Permissions: t.Permissions(Agent)})
	}
	enough, less := t.With(Agent, Credentials{Token: all.Value}), t.With(Agent, Credentials{Token: some.Value})
	t.ChangeSite(ctx, site, func() bool { return enough.CallAt(ctx, scoped, scoped, Args{}, 1).RPCResultIs("done") })

	call := rpcBody(scoped, Args{}, 1)
	for how, send := range inOrder(map[string]func(Client) *Response{
		"by POST":        func(c Client) *Response { return c.PostAt(ctx, scoped, call) },
		"by GET ?query=": func(c Client) *Response { return c.AskAt(ctx, scoped, call) },
	}) {
		t.Row(Anonymous, scoped, "without a token, "+how, func() {
			anonymous := send(t.As(Anonymous))
			t.Expect(anonymous).To(BeRefusedWith(401))
			t.Expect(anonymous).To(challenge())
		})
		t.Row(Agent, scoped, "with too few scopes, "+how, func() {
			refused := send(less)
			t.Expect(refused).To(BeRefusedWith(403))
			t.Expect(refused).To(challenge("insufficient_scope", scopes[1]))
		})
	}
	if t.wrong() {
		return
	}
	t.Expect(len(t.Drupal.Runs(scoped))).To(BeNumerically("<=", len(t.accounted(scoped))), mismatch("refused calls", fmt.Sprintf("no run of %s", scoped), "one"))
}

func chk__pertool__unknown404(ctx context.Context, t *T) {
	known := t.knownMethod()
	t.As(Agent).CallAt(ctx, known, known, Args{}, 1).MustSucceed()
	for what, name := range inOrder(map[string]string{"a tool that nobody has": "no.such.tool", "a method that is no tool": t.HiddenMethods()[0]}) {
		for how, r := range inOrder(map[string]*Response{"by POST": t.As(Agent).CallAt(ctx, name, name, Args{}, 1), "by GET ?query=": t.As(Agent).AskAt(ctx, name, rpcBody(name, Args{}, 1))}) {
			t.Row(Agent, name, what+", "+how, func() {
				t.Expect(r).To(BeRefusedWith(404))
				t.Expect(r).To(BeProtocolError("-32601"))
			})
		}
	}
	denied := t.DeniedTool(Discoverer, Agent)
	t.Row(Discoverer, denied, "a tool that the caller may not run", func() {
		r := t.As(Discoverer).CallAt(ctx, denied, denied, Args{}, 1)
		t.Expect(r).To(BeRefusedWith(404))
		t.Expect(r).To(BeProtocolError("-32601"))
	})
}

func toolPath(name string) string { return "/mcp/tools/" + url.PathEscape(name) }

func rpcBody(method string, params Args, id any) []byte {
	return encode(map[string]any{"jsonrpc": "2.0", "method": method, "params": params, "id": id})
}

// CallAt posts a JSON-RPC call of a method to the endpoint of a tool.
func (c Client) CallAt(ctx context.Context, tool, method string, params Args, id any) *Response {
	return c.PostAt(ctx, tool, rpcBody(method, params, id))
}

// PostAt posts a body of any kind to the endpoint of a tool.
func (c Client) PostAt(ctx context.Context, tool string, body []byte) *Response {
	return c.Send(ctx, Request{Method: http.MethodPost, Path: toolPath(tool), Body: bytes.NewReader(body), Show: string(body)})
}

// AskAt sends a JSON-RPC call to the endpoint of a tool by GET, in ?query=.
func (c Client) AskAt(ctx context.Context, tool string, call []byte) *Response {
	return c.Send(ctx, Request{Path: toolPath(tool), Query: url.Values{"query": {string(call)}}})
}

// knownMethod is a plain tool of the site.
func (t *T) knownMethod() string {
	id := t.simplest()
	if id == "" {
		NotTestable("the site " + t.Drupal.Site().Name + " has no tool that runs without arguments")
	}
	return id
}

// RPCResultIs tells whether the answer is a JSON-RPC result of that text.
func (a *Response) RPCResultIs(text string) bool { return a.RPC()["result"] == text }

// accounted are the runs of a method that a caller with every scope asked for in this check.
func (t *T) accounted(method string) []*Response {
	t.mu.Lock()
	defer t.mu.Unlock()
	var answers []*Response
	for _, r := range t.exchanges {
		if r.answer.Status == http.StatusOK && strings.HasSuffix(r.answer.Path, method) {
			answers = append(answers, r.answer)
		}
	}
	return answers
}

// AnswerRPC matches a JSON-RPC response with a result and the request's id.
func AnswerRPC(id any) OmegaMatcher {
	want := must(exact.Parse(encode(id)))
	return Meet("a JSON-RPC 2.0 result with the id "+exact.Short(want), func(a *Response) string {
		_, result := a.Member("result")
		if a.Status != http.StatusOK || !result || a.Object()["jsonrpc"] != "2.0" || !exact.Equal(a.Object()["id"], want) {
			return a.Outcome()
		}
		return ""
	})
}

func beRPCRefused() OmegaMatcher {
	return Meet("a refusal", func(a *Response) string {
		if a.Status >= 400 && a.Status < 500 || a.RPCCode() != "" {
			return ""
		}
		return a.rpcOutcome()
	})
}

// challenge matches a WWW-Authenticate for bearer tokens that holds the words.
func challenge(words ...string) OmegaMatcher {
	return Meet("WWW-Authenticate: Bearer "+strings.Join(words, " "), func(a *Response) string {
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
