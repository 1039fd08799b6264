package mutants

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// throughTheModule is the site's JSON-RPC interface for a bridge that is connected to the module mcp alone: methods are that module's
// tools, and a call of one is tools/call.
func throughTheModule(site http.RoundTripper) http.RoundTripper {
	module := onSiteRequest(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		message := map[string]any{"jsonrpc": "2.0", "id": json.Number("1"), "method": "tools/list"}
		if isCall(r) {
			call := decode(readBody(r))
			params := map[string]any{"name": call["method"], "arguments": map[string]any{}}
			if call["params"] != nil {
				params["arguments"] = call["params"]
			}
			message["id"], message["method"], message["params"] = call["id"], "tools/call", params
		}
		r = r.Clone(r.Context())
		r.Method, r.URL.Path = http.MethodPost, route.MCPPostPath
		r.Header.Set("Content-Type", "application/json")
		setBody(r, encode(message))
		return next.RoundTrip(r)
	})(site)
	return onReply(toReply)(onDiscovery(toMethods)(module))
}

// toMethods makes the response to tools/list what the site shows of its methods.
func toMethods(reply map[string]any) {
	tools, ok := exact.Lookup(reply, "/result/tools")
	list, isList := tools.([]any)
	if !ok || !isList {
		return
	}
	methods := make([]any, len(list))
	for i, tool := range list {
		methods[i] = methodOfTool(tool.(map[string]any))
	}
	clear(reply)
	reply["data"], reply["meta"] = methods, map[string]any{"mcp": map[string]any{"discovery": true}}
}

func methodOfTool(tool map[string]any) any {
	input, params := tool["inputSchema"].(map[string]any), map[string]any{}
	properties, _ := input["properties"].(map[string]any)
	required, _ := input["required"].([]any)
	for name, schema := range properties {
		params[name] = map[string]any{"id": name, "attributes": map[string]any{"required": slices.Contains(required, any(name))},
			"schema": rooted(schema, "#/properties/"+strings.NewReplacer("~", "~0", "/", "~1", "%", "%25", " ", "%20").Replace(name))}
	}
	mark := map[string]any{}
	for _, name := range []string{"title", "annotations"} {
		if v, ok := tool[name]; ok {
			mark[name] = v
		}
	}
	attributes := map[string]any{"usage": tool["description"], "params": params, "mcpTool": mark}
	if output, ok := tool["outputSchema"]; ok {
		attributes["output"] = output
	}
	return map[string]any{"type": "JsonRpcMethod", "id": tool["name"], "attributes": attributes}
}

// rooted is the schema of a property whose references lead to places within it, as one of its own.
func rooted(schema any, place string) any {
	return mapValues(schema, func(v any) any {
		if object, ok := v.(map[string]any); ok {
			if ref, ok := object["$ref"].(string); ok && strings.HasPrefix(ref, place) {
				object["$ref"] = "#" + strings.TrimPrefix(ref, place)
			}
		}
		return v
	})
}

// toReply makes the response to tools/call that to a call of the method.
func toReply(reply map[string]any) {
	failed := func(code, message string, data any) {
		delete(reply, "result")
		reply["error"] = map[string]any{"code": json.Number(code), "message": message, "data": data}
	}
	if e, ok := reply["error"].(map[string]any); ok {
		switch data := fmt.Sprint(e["data"]); {
		case strings.HasPrefix(data, "Tool not found"), strings.Contains(data, "plugin does not exist"):
			failed("-32601", "Method Not Found", data)
		case strings.HasPrefix(data, "Access denied"):
			failed("-32600", "Invalid Request", "Access Denied: "+data)
		}
		return
	}
	result, _ := reply["result"].(map[string]any)
	said, _ := exact.Lookup(result, "/content/0/text")
	text, ok := said.(string)
	structured, has := result["structuredContent"]
	switch detail, invalid := strings.CutPrefix(text, "Invalid Params: "); {
	case !ok: // no result of a tool
	case result["isError"] == true && invalid:
		failed("-32602", "Invalid Params", detail)
	case result["isError"] == true:
		failed("-32000", text, nil)
	case has:
		reply["result"] = structured
	default:
		reply["result"], _ = exact.Parse([]byte(text))
	}
}
