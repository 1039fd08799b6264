package invoke

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/bridge/upstream"
)

// Rule maps a JSON-RPC error of the site to the error that the caller of a tool gets. The table of rules is what the documentation
// prints; what becomes of a site that does not respond in JSON-RPC is in upstream.
type Rule struct {
	When string // what the error is
	Code fault.Code
	Says string // the message; %t is the tool, %m the site's own words

	is     func(*upstream.RPCError) bool
	doubts discovery.Subject // in what the site's description and the site disagree: it is refetched; 0: nothing
}

// errorMap is read from the top; the last entry takes what is left.
var errorMap = []Rule{
	{"-32600 whose data begin with `Access Denied`", fault.AccessDenied, "Access denied: the site does not let this caller run %t.", (*upstream.RPCError).Denied, discovery.Rights},
	{"-32601", fault.ToolNotFound, `There is no tool named "%t".`, hasCode(upstream.CodeMethodNotFound), discovery.Tools},
	{"-32602, a violation of the site's own schema", fault.InvalidParams, "The site refused the arguments of %t, which fit the schema that the bridge knew: %m; the schema is refetched.", (*upstream.RPCError).SchemaViolation, discovery.Tools},
	{"-32602 whose data begin with `Missing required parameter`", fault.InvalidParams, "The site refused the arguments of %t, which fit the schema that the bridge knew: %m; the schema is refetched.", missesParameter, discovery.Tools},
	{"-32602, said by the method", fault.InvalidParams, "The site refused the arguments of %t: %m", hasCode(upstream.CodeInvalidParams), discovery.Tools},
	{"any other code", fault.ExecutionError, "The tool %t failed: %m", func(*upstream.RPCError) bool { return true }, 0},
}

// Rules returns the table, in the order in which it is read.
func Rules() []Rule { return slices.Clone(errorMap) }

func missesParameter(e *upstream.RPCError) bool { return parameterOf(e) != "" }

func hasCode(code int) func(*upstream.RPCError) bool {
	return func(e *upstream.RPCError) bool { return e.Code == code }
}

// explain turns what the site said into a fault, and has the tools refetched where the site disagrees with them.
func (in *Invoker) explain(ctx context.Context, who caller.Caller, tool *catalog.Tool, err error) error {
	var rpc *upstream.RPCError
	if !errors.As(err, &rpc) {
		if fault.Is(err, fault.AccessDenied, fault.AuthRequired) {
			in.Discovery.Doubt(ctx, who, discovery.Rights)
		}
		return err
	}
	for _, r := range errorMap {
		if !r.is(rpc) {
			continue
		}
		if r.doubts != 0 {
			in.Discovery.Doubt(ctx, who, r.doubts)
		}
		return r.fault(tool.Name, rpc)
	}
	return fault.From(err)
}

func (r Rule) fault(tool string, rpc *upstream.RPCError) *fault.Error {
	e := &fault.Error{Code: r.Code, Cause: rpc}
	e.Message = strings.NewReplacer("%t", tool, "%m", siteSays(rpc)).Replace(r.Says)
	if r.Code == fault.AccessDenied || r.Code == fault.ToolNotFound {
		return e // a denied or removed tool must look like one that never existed
	}
	data := map[string]any{"jsonrpc_code": rpc.Code}
	if rpc.Data != nil && !phpText(rpc) {
		data["jsonrpc_data"] = rpc.Data
	}
	if p := parameterOf(rpc); p != "" {
		data["parameter"] = p
		data["expected"] = "a value that the site accepts"
		data["received"] = "one that it refused"
		if rpc.SchemaViolation() {
			data["reason"] = violated(rpc)
		}
	}
	e.Data, _ = json.Marshal(data) // the map holds nothing that cannot be encoded
	return e
}

// siteSays is the site's own words, without those that callers must not see.
func siteSays(rpc *upstream.RPCError) string {
	if rpc.SchemaViolation() {
		return violated(rpc)
	}
	words := rpc.Message
	if detail := rpc.DataText(); detail != "" && rpc.Code == upstream.CodeInvalidParams && !phpText(rpc) {
		words = detail
	}
	if words = strings.TrimSpace(words); words == "" {
		return "the site did not say why."
	}
	return words
}

// violated says what of the arguments the site's own schema refuses, and why, as far as it may be shown: the validator's reasons,
// which stand among class names as JSON. "n: Double value found, but an integer is required".
func violated(rpc *upstream.RPCError) string {
	const most, longest = 3, 200
	parameter := cmp.Or(parameterOf(rpc), "a parameter")
	_, list, _ := strings.Cut(rpc.DataText(), "received invalid input data: ")
	var reasons []struct{ Pointer, Message string }
	if json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimSpace(list), ".")), &reasons) != nil || len(reasons) == 0 {
		return parameter
	}
	short := func(text string) string { return fault.Clip(strings.Join(strings.Fields(text), " "), longest) }
	var says []string
	for _, r := range reasons[:min(len(reasons), most)] {
		says = append(says, parameter+short(r.Pointer)+": "+short(r.Message))
	}
	if len(reasons) > most {
		says = append(says, "and more")
	}
	return strings.Join(says, ", ")
}

// phpText reports whether an error's data is PHP's own text, which shows class names, paths and worse.
func phpText(rpc *upstream.RPCError) bool {
	return rpc.Code == upstream.CodeInternalError || rpc.SchemaViolation()
}

// named finds the parameter in Drupal's two ways of refusing one.
var named = regexp.MustCompile(`^(?:The (\S+) parameter does not conform|Missing required parameter: (\S+))`)

// longestNamed bounds the name of a parameter that the site refuses, in bytes.
const longestNamed = 256

func parameterOf(rpc *upstream.RPCError) string {
	if m := named.FindStringSubmatch(rpc.DataText()); m != nil && rpc.Code == upstream.CodeInvalidParams && len(m[1]+m[2]) <= longestNamed {
		return m[1] + m[2]
	}
	return ""
}

// invalidArguments names every parameter that is wrong.
func invalidArguments(tool string, violations []schema.Violation) *fault.Error {
	e := fault.New(fault.InvalidParams, "The arguments of %s are not valid: %s", tool, sentence(violations))
	e.Data = violationData(violations)
	return e
}

// violationData is the first violation, and all of them under errors.
func violationData(violations []schema.Violation) json.RawMessage {
	data, _ := json.Marshal(struct {
		schema.Violation
		Errors []schema.Violation `json:"errors"`
	}{violations[0], violations})
	return data
}

// sentence words violations: "limit: expected at most 100, received number 500; …".
func sentence(violations []schema.Violation) string {
	const most = 10
	var parts []string
	for i, v := range violations {
		if i == most {
			parts = append(parts, "and more")
			break
		}
		name := cmp.Or(v.Parameter, "the whole")
		parts = append(parts, name+": expected "+v.Expected+", received "+v.Received)
	}
	return strings.Join(parts, "; ") + "."
}
