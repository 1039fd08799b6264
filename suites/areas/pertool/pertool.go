// Package pertool checks bridges with one endpoint per tool, whose bodies are JSON-RPC.
package pertool

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/traps"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// Checks of the area per-tool.
var Checks = []check.Check{
	{ID: "per-tool/answers", Sees: check.Site, Run: respondsInRPC, WithoutSite: allowedRespondsInRPC},
	{ID: "per-tool/name-binds", Sees: check.Site, Run: nameBinds, WithoutSite: allowedNameBinds},
	{ID: "per-tool/scopes", Sees: check.Site, Run: scopes, WithoutSite: allowedScopes},
	{ID: "per-tool/unknown-404", Sees: check.Site, Run: unknown404, WithoutSite: allowedUnknown404},
}

// scopeNames are the scopes that the method requires which the check of scopes adds to the site.
var scopeNames = []string{"content:read", "content:write"}

func respondsInRPC(ctx context.Context, t *check.T) {
	known, echo := knownMethod(t), scenario.EchoTool(t)
	for _, id := range traps.IDs {
		t.Row(check.Agent, known, fmt.Sprintf("with the id %#v", id), func() {
			t.Expect(CallAt(ctx, t.As(check.Agent), known, known, check.Args{}, id)).To(BeRPCResult(id))
		})
	}
	for _, id := range []any{"abc", 7, "7"} {
		for _, by := range ways {
			t.Row(check.Agent, known, fmt.Sprintf("%s, with the id %#v", by.name, id), func() {
				t.Expect(by.send(ctx, t.As(check.Agent), known, rpcBody(known, check.Args{}, id))).To(BeRPCResult(id))
			})
		}
	}
	params := echo.Arguments("é+&% {}")
	for _, by := range ways {
		t.Row(check.Agent, echo.ID, by.name, func() {
			r := by.send(ctx, t.As(check.Agent), echo.ID, rpcBody(echo.ID, params, 1))
			t.Expect(r).To(BeRPCResult(1))
			t.Expect(r).To(match.GiveResult(string(client.Encode(params))))
		})
	}
	if t.Front() != nil {
		escapedName(ctx, t)
	}
}

// escapedName calls a tool whose name has a percent sign, as a proxy that decodes paths loses it. Only a bridge that shows such
// a name is asked.
func escapedName(ctx context.Context, t *check.T) {
	const id = "content.half%2Fhalf"
	site := t.Drupal.Site().Clone()
	site.Methods = append(site.Methods, fixtures.Method{ID: id, Usage: "Has a percent sign in its name", Access: []string{fixtures.AccessContent}, Output: fixtures.Raw(`{"type":"string"}`),
		MCP: &fixtures.Tool{Title: "Half"}, Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw(`"done"`)}})
	t.Replace(ctx, site)
	if !t.Await(ctx, func() bool { return slices.Contains(t.As(check.Agent).ListAll(ctx).Names(), id) }) {
		return
	}
	t.Row(check.Agent, id, "a name with a percent sign", func() { t.Expect(CallAt(ctx, t.As(check.Agent), id, id, check.Args{}, 1)).To(BeRPCResult(1)) })
}

func nameBinds(ctx context.Context, t *check.T) {
	known, other := knownMethod(t), scenario.HiddenMethods(t)[0]
	CallAt(ctx, t.As(check.Agent), known, known, check.Args{}, 1).MustSucceed()
	for _, method := range []string{other, scenario.EchoTool(t).ID} {
		for _, by := range ways {
			t.Row(check.Agent, method, by.name, func() {
				t.Drupal.Mark()
				r := by.send(ctx, t.As(check.Agent), known, rpcBody(method, check.Args{}, 1))
				t.Expect(r).To(beRPCRefused(), "the method "+method+" at the tool "+known)
				t.Expect(r).To(match.HaveRun(t.Upstream, method, 0), "the method "+method+" at the tool "+known)
			})
		}
	}
	t.Row(check.Agent, known, "no method", func() {
		t.Drupal.Mark()
		r := PostAt(ctx, t.As(check.Agent), known, []byte(`{"jsonrpc":"2.0","params":{},"id":1}`))
		t.Expect(r).To(beRPCRefused())
		t.Expect(r).To(match.HaveRun(t.Upstream, known, 0))
	})
	t.Drupal.Mark()
	batch := fmt.Sprintf("[%s,%s]", rpcBody(known, check.Args{}, 1), rpcBody(other, check.Args{}, 2))
	sent := t.As(check.Agent).Send(ctx, check.Request{Method: http.MethodPost, Path: toolPath(known), Body: strings.NewReader(batch), Show: batch})
	t.Row(check.Agent, other, "a batch", func() { t.Expect(sent).To(match.HaveRun(t.Upstream, other, 0)) })
}

func scopes(ctx context.Context, t *check.T) {
	scoped := scenario.OddID(t) + "scoped" + strings.Repeat("x", 100) + "."
	site := t.Drupal.Site().Clone()
	site.Methods = append(site.Methods, fixtures.Method{ID: scoped, Usage: "Asks for scopes", Access: []string{fixtures.AccessContent}, Output: fixtures.Raw(`{"type":"string"}`),
		MCP:       &fixtures.Tool{Title: "Scoped", Annotations: fixtures.Raw(`{"auth":{"level":"required","scopes":["content:read","content:write"]}}`)},
		Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw(`"done"`)}})
	all, some := fixtures.Token{Value: "scoped-all", Scopes: scopeNames}, fixtures.Token{Value: "scoped-some", Scopes: scopeNames[:1]}
	for i := range site.Users {
		if site.Users[i].Name == string(check.Agent) {
			site.Users[i].Tokens = append(site.Users[i].Tokens, all, some)
		}
	}
	for _, scope := range scopeNames {
		site.Roles = append(site.Roles, fixtures.Role{ID: scope, Permissions: t.Permissions(check.Agent)})
	}
	enough, less := t.With(check.Agent, check.Credentials{Token: all.Value}).Waiting(), t.With(check.Agent, check.Credentials{Token: some.Value}).Waiting()
	t.ChangeSite(ctx, site, func() bool { return RPCResultIs(CallAt(ctx, enough, scoped, scoped, check.Args{}, 1), "done") })

	call := rpcBody(scoped, check.Args{}, 1)
	for _, by := range ways {
		t.Row(check.Anonymous, scoped, "without a token, "+by.name, func() {
			anonymous := by.send(ctx, t.As(check.Anonymous), scoped, call)
			t.Expect(anonymous).To(match.BeRefusedWith(401))
			t.Expect(anonymous).To(challenge())
		})
		t.Row(check.Agent, scoped, "with too few scopes, "+by.name, func() {
			refused := by.send(ctx, less, scoped, call)
			t.Expect(refused).To(match.BeRefusedWith(403))
			t.Expect(refused).To(challenge("insufficient_scope", scopeNames[1]))
		})
	}
	if t.HasFindings() {
		return
	}
	t.Expect(len(t.Drupal.Runs(scoped))).To(BeNumerically("<=", len(accounted(t, scoped))),
		check.Mismatch("refused calls", fmt.Sprintf("no run of %s", scoped), "one"))
}

func unknown404(ctx context.Context, t *check.T) {
	known := knownMethod(t)
	CallAt(ctx, t.As(check.Agent), known, known, check.Args{}, 1).MustSucceed()
	for what, name := range check.InOrder(map[string]string{"an unknown tool": "no.such.tool", "a method that is no tool": scenario.HiddenMethods(t)[0]}) {
		for _, by := range ways {
			t.Row(check.Agent, name, what+", "+by.name, func() {
				r := by.send(ctx, t.As(check.Agent), name, rpcBody(name, check.Args{}, 1))
				t.Expect(r).To(match.BeRefusedWith(404))
				t.Expect(r).To(match.BeProtocolError("-32601"))
			})
		}
	}
	denied := scenario.DeniedTool(t, check.Discoverer, check.Agent)
	t.Row(check.Discoverer, denied, "a tool that the caller may not run", func() {
		r := CallAt(ctx, t.As(check.Discoverer), denied, denied, check.Args{}, 1)
		t.Expect(r).To(match.BeRefusedWith(404))
		t.Expect(r).To(match.BeProtocolError("-32601"))
	})
}

func toolPath(name string) string { return "/mcp/tools/" + url.PathEscape(name) }

func rpcBody(method string, params check.Args, id any) []byte {
	return client.Encode(map[string]any{"jsonrpc": "2.0", "method": method, "params": params, "id": id})
}

// ways are the ways to send a call to the endpoint of a tool.
var ways = []struct {
	name string
	send func(ctx context.Context, c check.Client, tool string, call []byte) *check.Response
}{{"by POST", PostAt}, {"by GET ?query=", AskAt}}

// CallAt posts a JSON-RPC call of a method to the endpoint of a tool.
func CallAt(ctx context.Context, c check.Client, tool, method string, params check.Args, id any) *check.Response {
	return PostAt(ctx, c, tool, rpcBody(method, params, id))
}

// PostAt posts a body to the endpoint of a tool.
func PostAt(ctx context.Context, c check.Client, tool string, body []byte) *check.Response {
	return c.Send(ctx, check.Request{Method: http.MethodPost, Path: toolPath(tool), Body: bytes.NewReader(body), Show: string(body)})
}

// AskAt sends a JSON-RPC call to the endpoint of a tool by GET, in ?query=.
func AskAt(ctx context.Context, c check.Client, tool string, call []byte) *check.Response {
	return c.Send(ctx, check.Request{Path: toolPath(tool), Query: url.Values{"query": {string(call)}}})
}

// knownMethod is a tool of the site that runs without arguments.
func knownMethod(t *check.T) string {
	id := scenario.Simplest(t)
	if id == "" {
		check.NotTestable("the site " + t.Drupal.Site().Name + " has no tool that runs without arguments")
	}
	return id
}

// RPCResultIs reports whether the response is a JSON-RPC response with that text as its result.
func RPCResultIs(a *check.Response, text string) bool { return a.RPC()["result"] == text }

// accounted are this check's successful calls of a method, which explain its runs.
func accounted(t *check.T, method string) []*check.Response {
	return slices.DeleteFunc(t.Responses(), func(r *check.Response) bool { return r.Status != http.StatusOK || !strings.HasSuffix(r.Path, method) })
}

// BeRPCResult matches a JSON-RPC response with a result and the request's id.
func BeRPCResult(id any) OmegaMatcher {
	want := exact.MustParse(client.Encode(id))
	return match.MatchWhere("a JSON-RPC 2.0 result with the id "+exact.Short(want), func(a *check.Response) bool {
		_, result := a.Member("result")
		return a.Status == http.StatusOK && result && a.Object()["jsonrpc"] == "2.0" && exact.Equal(a.Object()["id"], want)
	})
}

func beRPCRefused() OmegaMatcher {
	return match.MatchRPCWhere("a refusal", func(a *check.Response) bool {
		return a.Status >= 400 && a.Status < 500 || a.RPCCode() != ""
	})
}

// challenge matches a WWW-Authenticate for bearer tokens that contains the words.
func challenge(words ...string) OmegaMatcher {
	return match.ConformHeader("WWW-Authenticate", "WWW-Authenticate: Bearer "+strings.Join(words, " "), func(a *check.Response) string {
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
