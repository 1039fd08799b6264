package suites

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
	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// JSON-RPC codes that mean something to a bridge.
const (
	rpcDenied         = -32600
	rpcMethodNotFound = -32601
	rpcInvalidParams  = -32602
	rpcInternalError  = -32603
)

// Who is refused, and how a method fails.
// checks__invoke__invoke_errors are the checks of this file.
var checks__invoke__invoke_errors = []Check{
	{ID: "invoke/hidden-404", Sees: Site, Run: chk__invoke__hidden404},
	{ID: "invoke/denied", Sees: Site, Run: chk__invoke__denied},
	{ID: "invoke/denied-clear", Sees: Site, Run: chk__invoke__deniedClear},
	{ID: "invoke/execution-error-500", Sees: Site, Run: chk__invoke__executionError500},
	{ID: "invoke/error-data-kept", Sees: Site, Run: chk__invoke__errorDataKept},
	{ID: "invoke/semantic-invalid-400", Sees: Site, Run: chk__invoke__semanticInvalid400},
	{ID: "invoke/no-trace-leak", Sees: Site, Run: chk__invoke__noTraceLeak},
}

func chk__invoke__hidden404(ctx context.Context, t *T) {
	t.As(Agent).Invoke(ctx, t.KnownTool(ctx), Args{}).MustSucceed()
	if r := t.As(Agent).Invoke(ctx, noSuchTool, Args{}); r.Status != http.StatusNotFound {
		NotTestable("an unknown tool is not refused with 404 to begin with (invoke/unknown-404 judges that)")
	}

	for _, hidden := range t.HiddenMethods() {
		t.For(Agent, hidden, func() {
			t.Drupal.Mark()
			r := t.As(Agent).Invoke(ctx, hidden, Args{})
			t.Expect(r).To(BeUnknown(t.As(Agent).invoking(Args{}), ctx, hidden))
			t.Expect(r).To(HaveRunNothing())
		})
	}
}

func chk__invoke__denied(ctx context.Context, t *T) {
	denied := t.DeniedTool(Discoverer, Agent)
	t.As(Agent).Invoke(ctx, denied, Args{}).MustSucceed()

	t.For(Discoverer, denied, func() {
		t.Drupal.Mark()
		r := t.As(Discoverer).Invoke(ctx, denied, Args{})
		t.Expect(r).To(BeRefusedWith(403, 404))
		t.Expect(r).To(HaveRunNothing())
	})

	who := t.Drupal.NewUser(t.Permissions(Agent)...)
	t.As(who).List(ctx)
	t.As(who).Invoke(ctx, denied, Args{}).MustSucceed()
	t.Drupal.Permit(who, fixtures.UseJSONRPC, fixtures.DiscoverTools)
	t.Row(who, denied, "after the permission went", func() {
		t.Drupal.Mark()
		r := t.As(who).Invoke(ctx, denied, Args{})
		t.Expect(r).To(BeRefusedWith(403, 404))
		t.Expect(r).To(HaveRunNothing())
	})
}

func chk__invoke__deniedClear(ctx context.Context, t *T) {
	denied := t.DeniedTool(Discoverer, Agent)
	t.As(Agent).Invoke(ctx, denied, Args{}).MustSucceed()
	if !slices.Contains(t.As(Discoverer).MustListAll(ctx).Names(), denied) {
		NotTestable("the caller does not see the tool (access/discovery-broad judges that)")
	}

	r := t.As(Discoverer).Invoke(ctx, denied, Args{})
	t.Expect(r).To(BeRefused(403, "access_denied"))
	t.Expect(r).To(SpeakOf("access", "permission", "permitted", "denied", "denies", "allowed", "may not", "forbidden", "authori"))
}

func chk__invoke__executionError500(ctx context.Context, t *T) {
	t.As(Agent).Invoke(ctx, t.KnownTool(ctx), Args{}).MustSucceed()

	for _, tool := range t.failing() {
		t.For(Agent, tool.Name, func() {
			r := t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments)
			t.Expect(r).To(BeRefused(500, "execution_error"))
			t.Expect(r).To(SayInMessage(tool.fails().Message))
		})
	}
}

func chk__invoke__errorDataKept(ctx context.Context, t *T) {
	judged := 0
	for _, tool := range t.failing() {
		r := t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments)
		if r.Status != http.StatusInternalServerError {
			continue // invoke/execution-error-500 judges that
		}
		judged++
		t.For(Agent, tool.Name, func() { t.Expect(r).To(KeepErrorData(tool.fails())) })
	}
	if judged == 0 {
		NotTestable("no failing method is answered with 500 (invoke/execution-error-500 judges that)")
	}
}

func chk__invoke__semanticInvalid400(ctx context.Context, t *T) {
	t.As(Agent).Invoke(ctx, t.KnownTool(ctx), Args{}).MustSucceed()
	judged := 0
	for _, tool := range t.samples(Agent, fixtures.Fail) {
		if tool.fails().Code == rpcInvalidParams {
			judged++
			t.For(Agent, tool.Name, func() {
				t.Expect(t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments)).To(BeRefused(400, "invalid_params"))
			})
		}
	}
	if judged == 0 {
		NotTestable("the site " + t.Drupal.Site().Name + " has no tool that answers -32602 itself")
	}
}

func chk__invoke__noTraceLeak(ctx context.Context, t *T) {
	t.As(Agent).Invoke(ctx, t.KnownTool(ctx), Args{}).MustSucceed()
	judged := 0
	for _, tool := range t.samples(Agent, fixtures.Throw, fixtures.Fail) {
		planted := canaries(tool.Method)
		if len(planted) == 0 {
			continue
		}
		r := t.As(Agent).Invoke(ctx, tool.Name, tool.Arguments)
		if !r.IsError() {
			continue // invoke/execution-error-500 judges that
		}
		judged++
		t.For(Agent, tool.Name, func() {
			t.Expect(r).NotTo(HoldAny(planted))
			if t.Claims("mcp") {
				if told := t.As(Agent).callByMCP(ctx, tool.Name, tool.Arguments); told != nil {
					t.Expect(told).NotTo(HoldAny(planted), "over MCP")
				}
			}
		})
		t.For(Admin, tool.Name, func() { t.Expect(t.As(Admin).Invoke(ctx, tool.Name, tool.Arguments)).NotTo(HoldAny(planted)) })
	}
	if judged == 0 {
		NotTestable("no method that throws a text is answered with an error (invoke/execution-error-500 judges that)")
	}
}

// invoking gives the function that invokes a tool by name with the arguments.
func (c Client) invoking(arguments any) func(ctx context.Context, name string) *Response {
	return func(ctx context.Context, name string) *Response { return c.Invoke(ctx, name, arguments) }
}

// fails is the JSON-RPC error with which the method fails: its own, or what Drupal makes of an exception.
func (s sample) fails() fixtures.RPCError {
	if s.Behaviour.Kind == fixtures.Throw {
		return fixtures.RPCError{Code: rpcInternalError, Message: "Internal Error"}
	}
	return *s.Behaviour.Error
}

// failing lists the agent's tools that fail with a code that says nothing but that they failed.
func (t *T) failing() []sample {
	return slices.DeleteFunc(t.mustFind(Agent, fixtures.Fail, fixtures.Throw), func(s sample) bool {
		switch s.fails().Code {
		case rpcDenied, rpcMethodNotFound, rpcInvalidParams:
			return true
		}
		return false
	})
}

// KeepErrorData matches a refusal that keeps the JSON-RPC error's code and data in its own data. What PHP wrote into
// the data of a -32603 is to be withheld.
func KeepErrorData(e fixtures.RPCError) OmegaMatcher {
	expected := fmt.Sprintf("error.data.jsonrpc_code %d", e.Code)
	withheld := e.Code == rpcInternalError
	if e.Data != nil && !withheld {
		expected += " and jsonrpc_data " + exact.Cut(string(e.Data), 100)
	}
	return Meet(expected, func(a *Response) string {
		data, _ := a.ErrorData().(map[string]any)
		if exact.Diff(json.Number(strconv.Itoa(e.Code)), data["jsonrpc_code"]) != "" {
			return "error.data " + exact.Short(a.ErrorData())
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
			return "another jsonrpc_data " + d
		}
		return ""
	})
}

// canaries are the words in a method's exception, or in the data of its internal error, that only the site can have
// written: paths, classes, addresses, credentials, and words that say so themselves.
func canaries(m *fixtures.Method) []string {
	text := m.Behaviour.Text
	if e := m.Behaviour.Error; e != nil && e.Code == rpcInternalError {
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

// HoldAny matches an answer that holds one of the words, as they stand or as JSON escapes them, in a header or its body.
func HoldAny(words []string) OmegaMatcher {
	return &responseMatcher{expected: "to hold what the site said to itself", test: func(a *Response) (string, bool) {
		for _, word := range words {
			if HoldsText(a, word) {
				return fmt.Sprintf("%q in it: %s", word, a.Outcome()), true
			}
		}
		return "", false
	}}
}

// anything is the body as JSON, nil where it is none.
func (a *Response) anything() any {
	v, err := a.JSON()
	if err != nil {
		return nil
	}
	return v
}

// SpeakOf matches a refusal whose message has one of the words in it, in any case.
func SpeakOf(words ...string) OmegaMatcher {
	return matching("a message with one of "+strings.Join(words, ", "), func(a *Response) bool {
		message := strings.ToLower(a.Message())
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(message, w) })
	})
}
