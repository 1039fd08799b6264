package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"bridgecheck/bridge/catalog"
	"bridgecheck/bridge/discovery"
	"bridgecheck/bridge/fault"
	"bridgecheck/bridge/schema"
	"bridgecheck/bridge/upstream"
)

// mapping says what a JSON-RPC error is to the caller.
type mapping struct {
	when   func(*upstream.RPCError) bool
	code   fault.Code
	says   string            // the message; %t is the tool, %m the site's own words
	doubts discovery.Subject // in what the site's description and the site disagree: it is asked for anew; 0: nothing
}

// errorMap is read from the top; the last entry takes what is left.
var errorMap = []mapping{
	{(*upstream.RPCError).Denied, fault.AccessDenied, "Access denied: the site does not let this caller run %t.", discovery.Rights},
	{hasCode(upstream.CodeMethodNotFound), fault.ToolNotFound, `There is no tool named "%t".`, discovery.Tools},
	{(*upstream.RPCError).SchemaViolation, fault.InvalidParams, "The site refused the arguments of %t, which fit the schema that the bridge knew; the schema is fetched anew.", discovery.Tools},
	{missesParameter, fault.InvalidParams, "The site refused the arguments of %t, which fit the schema that the bridge knew: %m; the schema is fetched anew.", discovery.Tools},
	{hasCode(upstream.CodeInvalidParams), fault.InvalidParams, "The site refused the arguments of %t: %m", discovery.Tools},
	{func(*upstream.RPCError) bool { return true }, fault.ExecutionError, "The tool %t failed: %m", 0},
}

func missesParameter(e *upstream.RPCError) bool { return parameterOf(e) != "" }

func hasCode(code int) func(*upstream.RPCError) bool {
	return func(e *upstream.RPCError) bool { return e.Code == code }
}

// explain turns what the site said into a fault, and has the tools asked for anew where the site disagrees with them.
func (in *Invoker) explain(ctx context.Context, who upstream.Caller, tool *catalog.Tool, err error) error {
	var rpc *upstream.RPCError
	if !errors.As(err, &rpc) {
		if fault.Is(err, fault.AccessDenied, fault.AuthRequired) {
			in.Discovery.Doubt(ctx, who, discovery.Rights)
		}
		return siteFault(err)
	}
	for _, m := range errorMap {
		if !m.when(rpc) {
			continue
		}
		if m.doubts != 0 {
			in.Discovery.Doubt(ctx, who, m.doubts)
		}
		return m.fault(tool.Name, rpc)
	}
	return fault.From(err)
}

// siteFault words the site's HTTP refusals for a caller of a tool.
func siteFault(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.UpstreamError, "The site gave no usable answer.").Because(err)
	}
	return err
}

func (m mapping) fault(tool string, rpc *upstream.RPCError) *fault.Error {
	e := &fault.Error{Code: m.code, Cause: rpc}
	e.Message = strings.NewReplacer("%t", tool, "%m", siteSays(rpc)).Replace(m.says)
	if m.code == fault.AccessDenied || m.code == fault.ToolNotFound {
		return e // what is denied or gone must look like what never was
	}
	data := map[string]any{"jsonrpc_code": rpc.Code}
	if rpc.Data != nil && !phpText(rpc) {
		data["jsonrpc_data"] = rpc.Data
	}
	if p := parameterOf(rpc); p != "" {
		data["parameter"] = p
		data["expected"] = "a value that the site accepts"
		data["received"] = "one that it refused"
	}
	e.Data, _ = json.Marshal(data) // the map holds nothing that cannot be encoded
	return e
}

// siteSays is the site's own words, as far as they are meant for callers.
func siteSays(rpc *upstream.RPCError) string {
	words := rpc.Message
	if detail := rpc.DataText(); detail != "" && rpc.Code == upstream.CodeInvalidParams && !phpText(rpc) {
		words = detail
	}
	if words = strings.TrimSpace(words); words == "" {
		return "the site did not say why."
	}
	return words
}

// phpText tells whether an error's data is PHP's own text, which shows class names, paths and worse.
func phpText(rpc *upstream.RPCError) bool {
	return rpc.Code == upstream.CodeInternalError || rpc.SchemaViolation()
}

// named finds the parameter in Drupal's two ways of refusing one.
var named = regexp.MustCompile(`^(?:The (\S+) parameter does not conform|Missing required parameter: (\S+))`)

func parameterOf(rpc *upstream.RPCError) string {
	if m := named.FindStringSubmatch(rpc.DataText()); m != nil && rpc.Code == upstream.CodeInvalidParams {
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
		name := v.Parameter
		if name == "" {
			name = "the whole"
		}
		parts = append(parts, name+": expected "+v.Expected+", received "+v.Received)
	}
	return strings.Join(parts, "; ") + "."
}
