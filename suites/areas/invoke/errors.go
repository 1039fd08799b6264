package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/input/traps"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

func hidden404(ctx context.Context, t *check.T) {
	t.As(check.Agent).Invoke(ctx, scenario.KnownTool(ctx, t), check.Args{}).MustSucceed()
	if r := t.As(check.Agent).Invoke(ctx, scenario.NoSuchTool, check.Args{}); r.Status != http.StatusNotFound {
		check.BlockedBy(check.Finding{Subject: "an unknown tool is not refused with 404"}, "invoke/unknown-404")
	}

	for _, hidden := range scenario.HiddenMethods(t) {
		t.For(check.Agent, hidden, func() {
			t.Drupal.Mark()
			r := t.As(check.Agent).Invoke(ctx, hidden, check.Args{})
			t.Expect(r).To(match.BeUnknown(scenario.DiffersFromUnknown(ctx, scenario.InvokeWith(t.As(check.Agent), check.Args{}), r, hidden)))
			t.Expect(r).To(match.HaveRunNothing(t.Upstream))
		})
	}
}

func denied(ctx context.Context, t *check.T) {
	denied := scenario.DeniedTool(t, check.Discoverer, check.Agent)
	t.As(check.Agent).Invoke(ctx, denied, check.Args{}).MustSucceed()

	t.For(check.Discoverer, denied, func() {
		t.Drupal.Mark()
		r := t.As(check.Discoverer).Invoke(ctx, denied, check.Args{})
		t.Expect(r).To(match.BeRefusedWith(403, 404))
		t.Expect(r).To(match.HaveRunNothing(t.Upstream))
	})

	t.Row(check.Agent, denied, "a denial for want of two permissions", func() {
		defer t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Failure, Route: route.JSONRPC,
			Body: `{"code":-32600,"message":"Invalid Request","data":"Access Denied: The following permissions are required: 'access content' AND 'edit own content'."}`})()
		t.Expect(t.As(check.Agent).Invoke(ctx, denied, check.Args{})).To(match.BeRefusedWith(403, 404))
	})
	for row, stale := range check.InOrder(map[string]bool{
		"after the permission is revoked": false,
		// A bridge that caches nothing meets the site's own denial only here.
		"after the permission is revoked, while discovery still shows the tool": true,
	}) {
		who := t.Drupal.NewUser(t.Permissions(check.Agent)...)
		t.As(who).List(ctx)
		t.As(who).Invoke(ctx, denied, check.Args{}).MustSucceed()
		if stale {
			t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Stale, Route: route.Methods, User: string(who)})
		}
		t.Drupal.Permit(who, fixtures.UseJSONRPC, fixtures.DiscoverTools)
		t.Row(who, denied, row, func() {
			t.Drupal.Mark()
			r := t.As(who).Invoke(ctx, denied, check.Args{})
			t.Expect(r).To(match.BeRefusedWith(403, 404))
			t.Expect(r).To(match.HaveRunNothing(t.Upstream))
		})
	}
}

func deniedClear(ctx context.Context, t *check.T) {
	denied := scenario.DeniedTool(t, check.Discoverer, check.Agent)
	t.As(check.Agent).Invoke(ctx, denied, check.Args{}).MustSucceed()
	if !slices.Contains(t.As(check.Discoverer).MustListAll(ctx).Names(), denied) {
		check.BlockedBy(check.Finding{Subject: "the caller does not see the tool"}, "access/discovery-broad")
	}

	r := t.As(check.Discoverer).Invoke(ctx, denied, check.Args{})
	t.Expect(r).To(match.BeRefused(403, "access_denied"))
	t.Expect(r).To(mentionAny("access", "permission", "permitted", "denied", "denies", "allowed", "may not", "forbidden", "authori"))
}

func executionError500(ctx context.Context, t *check.T) {
	t.As(check.Agent).Invoke(ctx, scenario.KnownTool(ctx, t), check.Args{}).MustSucceed()

	failing := scenario.Sampled(t, scenario.Failing(t))
	responses := scenario.InvokeEach(ctx, t, check.Agent, failing)
	for i, tool := range failing {
		t.For(check.Agent, tool.Name, func() {
			r := responses.Response(i)
			t.Expect(r).To(match.BeRefused(500, "execution_error"))
			t.Expect(r).To(match.HaveMessageWith(tool.Fails().Message))
		})
	}
	untyped := untypedTools(ctx, t)
	if len(untyped) == 0 {
		return
	}
	tool := untyped[0]
	restoreBehaviours(t)
	setBehaviour(t.Drupal, tool.ID, fixtures.Behaviour{Kind: fixtures.Fail, Error: wordedError})
	t.Row(check.Agent, tool.Name, "a message that programs change", func() {
		r := t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments)
		t.Expect(r).To(match.BeRefused(500, "execution_error"))
		t.Expect(r).To(match.HaveMessageWith(wordedError.Message))
	})
	for _, e := range []*fixtures.RPCError{{Code: 404, Message: "a code that is a status, too"}, {Message: "the code of no error"},
		{Code: -32700, Message: "Parse error"}, {Code: -32000}, {Code: -32000, Message: "Node not found"},
		{Code: -32600, Message: "Invalid Request", Data: fixtures.Raw(`"The parameter page must not be set."`)}} {
		setBehaviour(t.Drupal, tool.ID, fixtures.Behaviour{Kind: fixtures.Fail, Error: e})
		t.Row(check.Agent, tool.Name, fmt.Sprintf("the site returns %d with the message %q", e.Code, e.Message), func() {
			r := t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments)
			t.Expect(r).To(match.BeRefused(500, "execution_error"))
			t.Expect(r).To(match.KeepEnvelope())
		})
	}
	setBehaviour(t.Drupal, tool.ID, fixtures.Behaviour{Kind: fixtures.Fail, Error: &fixtures.RPCError{Code: rpcMethodNotFound, Message: "Method not found"}})
	t.Row(check.Agent, tool.Name, "the site returns -32601", func() {
		t.Expect(t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(match.BeRefused(404, "tool_not_found"))
	})
	setBehaviour(t.Drupal, tool.ID, tool.Behaviour)
	t.Await(ctx, func() bool { // a bridge may hide for a TTL what the site said it lacks, and other checks call it
		return t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments).Status != http.StatusNotFound
	})
}

// rpcMethodNotFound is the JSON-RPC code of a method that the site does not have.
const rpcMethodNotFound = -32601

func errorDataKept(ctx context.Context, t *check.T) {
	tested := 0
	failing := slices.DeleteFunc(scenario.Samples(t, check.Agent, fixtures.Fail), func(s scenario.Sample) bool { return s.Fails().Code != scenario.RPCInvalidParams })
	failing = append(failing, scenario.Sampled(t, scenario.Failing(t))...)
	responses := scenario.InvokeEach(ctx, t, check.Agent, failing)
	for i, tool := range failing {
		r := responses.Response(i)
		if r.Status != http.StatusInternalServerError && (r.Status != http.StatusBadRequest || tool.Fails().Code != scenario.RPCInvalidParams) {
			continue // invoke/execution-error-500 and invoke/semantic-invalid-400 test that
		}
		tested++
		t.For(check.Agent, tool.Name, func() { t.Expect(r).To(keepErrorData(tool.Fails())) })
	}
	if tested == 0 {
		check.BlockedBy(check.Finding{Subject: "no method that fails gets 500"}, "invoke/execution-error-500")
	}
	untyped := untypedTools(ctx, t)
	if len(untyped) == 0 {
		return
	}
	t.Row(check.Agent, untyped[0].Name, "the site's validator refuses an argument", func() {
		defer respondWith(t, fixtures.RPCError{Code: scenario.RPCInvalidParams, Message: "Invalid Params",
			Data: fixtures.Raw(`"The content-kind parameter does not conform to the parameter schema. [content-kind] CANARY-5b1e must be of type string"`)})()
		r := t.As(check.Agent).Invoke(ctx, untyped[0].Name, untyped[0].Arguments)
		t.Expect(r).NotTo(holdAny([]string{"CANARY-5b1e"}))
	})
	restoreBehaviours(t)
	for what, e := range check.InOrder(map[string]fixtures.RPCError{"data that programs change": *wordedError,
		"an empty text as data": {Code: -32050, Message: "Nothing to say", Data: fixtures.Raw(`""`)},
		"an empty list as data": {Code: -32050, Message: "Nothing to list", Data: fixtures.Raw(`[]`)}}) {
		setBehaviour(t.Drupal, untyped[0].ID, fixtures.Behaviour{Kind: fixtures.Fail, Error: &e})
		t.Row(check.Agent, untyped[0].Name, what, func() {
			if r := t.As(check.Agent).Invoke(ctx, untyped[0].Name, untyped[0].Arguments); r.Status == http.StatusInternalServerError {
				t.Expect(r).To(keepErrorData(e))
			}
		})
	}
}

// wordedError is an error whose message and data programs change on their way.
var wordedError = &fixtures.RPCError{Code: -32050, Message: traps.Said, Data: fixtures.Raw(traps.ErrorData)}

func semanticInvalid400(ctx context.Context, t *check.T) {
	t.As(check.Agent).Invoke(ctx, scenario.KnownTool(ctx, t), check.Args{}).MustSucceed()
	tested := 0
	for _, tool := range scenario.Samples(t, check.Agent, fixtures.Fail) {
		if tool.Fails().Code == scenario.RPCInvalidParams {
			tested++
			t.For(check.Agent, tool.Name, func() {
				r := t.As(check.Agent).Invoke(ctx, tool.Name, tool.Arguments)
				t.Expect(r).To(match.BeRefused(400, "invalid_params"))
				t.Expect(r).To(match.KeepEnvelope())
			})
		}
	}
	if tested == 0 {
		check.NotTestable("the site " + t.Drupal.Site().Name + " has no tool that returns -32602 itself")
	}
}

func noTraceLeak(ctx context.Context, t *check.T) {
	t.Mark()
	t.As(check.Agent).Invoke(ctx, scenario.KnownTool(ctx, t), check.Args{}).MustSucceed()
	addresses := scenario.LocalAddresses(t)
	for _, refusal := range scenario.SendRefusals(ctx, t) {
		t.Row(refusal.Who, "", refusal.What, func() {
			t.Expect(refusal.Response).NotTo(match.HoldTrace())
			if refusal.Response.Status != http.StatusUnauthorized { // a challenge may name where one logs in
				t.Expect(refusal.Response).NotTo(scenario.NameTheSite(addresses))
			}
		})
	}
	known := check.AsAgent(scenario.KnownTool(ctx, t))
	for _, sent := range oddErrors {
		t.Row(check.Agent, known.Tool, "the site sends the error "+sent, func() {
			defer t.Upstream.Arm(mockdrupal.Fault{Kind: fault.Status, Status: http.StatusOK, Route: route.JSONRPC, ContentType: "application/json",
				Body: `{"jsonrpc":"2.0","id":null,"error":` + sent + `}`})()
			t.Expect(t.Call(ctx, known)).NotTo(match.HoldTrace())
		})
	}
	for _, f := range []scenario.SiteFailure{
		{Name: "invalid JSON", Fault: mockdrupal.Fault{Kind: fault.Garbage}},
		{Name: "an error page", Fault: mockdrupal.Fault{Kind: fault.HTML, Status: http.StatusBadGateway}},
		{Name: "half of a response", Fault: mockdrupal.Fault{Kind: fault.Cut}}, // of which a client of HTTP has its own words
	} {
		t.Row(check.Agent, known.Tool, "the site sends "+f.Name, func() {
			f.Fault.Route = route.JSONRPC
			defer t.Upstream.Arm(f.Fault)()
			t.Expect(t.Call(ctx, known)).NotTo(scenario.NameTheSite(addresses))
		})
	}
	scenario.WaitRecovered(ctx, t, known) // what a bridge refuses itself has no trace
	tested := 0
	leaking := slices.DeleteFunc(scenario.Samples(t, check.Agent, fixtures.Throw, fixtures.Fail),
		func(s scenario.Sample) bool { return len(canaries(s.Method)) == 0 })
	leaking = scenario.Sampled(t, leaking)
	asAgent, asAdmin := scenario.InvokeEach(ctx, t, check.Agent, leaking), scenario.InvokeEach(ctx, t, check.Admin, leaking)
	for i, tool := range leaking {
		planted := canaries(tool.Method)
		r := asAgent.Response(i)
		if !r.IsError() {
			continue // invoke/execution-error-500 tests that
		}
		tested++
		t.For(check.Agent, tool.Name, func() {
			t.Expect(r).NotTo(holdAny(planted))
			if t.Claims("mcp") {
				if r := callByMCP(ctx, t.As(check.Agent), tool.Name, tool.Arguments); r != nil {
					t.Expect(r).NotTo(holdAny(planted), "over MCP")
				}
			}
		})
		t.For(check.Admin, tool.Name, func() { t.Expect(asAdmin.Response(i)).NotTo(holdAny(planted)) })
	}
	if tested == 0 {
		check.BlockedBy(check.Finding{Subject: "no method that throws an exception gets an error"}, "invoke/execution-error-500")
	}
}

// keepErrorData matches a refusal that keeps the JSON-RPC error's code and data in its own data. PHP's own text in
// the data of a -32603 must be withheld.
func keepErrorData(e fixtures.RPCError) OmegaMatcher {
	expected := fmt.Sprintf("error.data.jsonrpc_code %d", e.Code)
	withheld := e.Code == scenario.RPCInternalError
	if e.Data != nil && !withheld {
		expected += " and jsonrpc_data " + exact.Cut(string(e.Data), 100)
	}
	return match.Conform(expected, func(r *check.Response) string {
		data, _ := errorData(r).(map[string]any)
		if exact.Diff(json.Number(strconv.Itoa(e.Code)), data["jsonrpc_code"]) != "" {
			return "error.data " + exact.Short(errorData(r))
		}
		kept, there := data["jsonrpc_data"]
		switch {
		case withheld && there && kept != nil:
			return "PHP's own text in jsonrpc_data: " + exact.Short(kept)
		case withheld || e.Data == nil:
			return ""
		}
		want, err := exact.Parse(e.Data)
		if err != nil {
			return ""
		}
		if d := exact.Diff(want, kept); d != "" {
			return "a different jsonrpc_data " + d
		}
		return ""
	})
}

// canaries returns the words in a method's exception, or in the data of its internal error, that only the site can have
// written: paths, classes, addresses, credentials, and words with CANARY in them.
func canaries(m *fixtures.Method) []string {
	text := m.Behaviour.Text
	if e := m.Behaviour.Error; e != nil && e.Code == scenario.RPCInternalError {
		text = string(e.Data)
	}
	var found []string
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n\t\"'(),;<>", r) }) {
		if strings.Contains(word, "CANARY") || len(word) > 8 && strings.ContainsAny(word, `/\:@=#`) {
			found = append(found, word)
		}
	}
	return found
}

func holdAny(words []string) OmegaMatcher {
	return match.ContainAnyOf(words, "to contain an internal text of the site")
}

// oddErrors are errors of the site whose members have types and names that a bridge may not expect: its own exception is no text for
// callers either.
var oddErrors = []string{`{"code":-32602,"message":"Invalid params","data":{"toString":1,"length":-1,"__proto__":null}}`,
	`{"code":-32600,"message":"Invalid Request","data":{"toString":1}}`, `{"code":"-32000","message":null,"data":[null]}`, `{"code":-32000,"message":{"a":[]}}`, `"text"`, `[]`,
	`{"code":-32603,"message":"Internal error","data":{"class":"Drupal\\Core\\Database\\DatabaseException","trace":["#0 /var/www/core/lib/Drupal.php(12): query()"]}}`}

// mentionAny matches a refusal whose message contains one of the words, in any case.
func mentionAny(words ...string) OmegaMatcher {
	return match.MatchWhere("a message with one of "+strings.Join(words, ", "), func(r *check.Response) bool {
		message := strings.ToLower(r.Message())
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(message, w) })
	})
}
