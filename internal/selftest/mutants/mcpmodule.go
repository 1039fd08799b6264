package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// rpcReply is what the module mcp responds with.
type rpcReply struct {
	ID     json.RawMessage
	Result *struct {
		Tools   []moduleTool
		Content []struct{ Text string }
		IsError bool
		Value   json.RawMessage `json:"structuredContent"`
	}
	Error *struct {
		Code    int
		Message string
		Data    any
	}
}

// moduleTool is a tool of the module mcp.
type moduleTool struct {
	Name, Title, Description  string
	Annotations, OutputSchema json.RawMessage
	InputSchema               struct {
		Properties map[string]any
		Required   []string
	}
}

// throughTheModule is the site's JSON-RPC interface for a bridge that is connected to the module mcp alone: methods are that module's
// tools, and a call of one is tools/call.
func throughTheModule(site http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/jsonrpc/methods" {
			return ask(site, r, "1", "tools/list", nil, func(reply rpcReply) any {
				if reply.Result == nil {
					return nil
				}
				methods := []any{}
				for _, tool := range reply.Result.Tools {
					methods = append(methods, tool.method())
				}
				return map[string]any{"data": methods, "links": map[string]any{}, "meta": map[string]any{"mcp": map[string]any{"discovery": true}}}
			})
		}
		var call struct {
			ID, Params json.RawMessage
			Method     string
		}
		if r.Body == nil || r.URL.Path != "/jsonrpc" {
			return site.RoundTrip(r)
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &call)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the bridge's call: %w", err)
		}
		if call.Params == nil {
			call.Params = json.RawMessage("{}")
		}
		return ask(site, r, string(call.ID), "tools/call", map[string]any{"name": call.Method, "arguments": call.Params}, rpcReply.outcome)
	})
}

// ask sends a request to the module as r is sent, and gives what is made of its reply. A response that is none stays as it is.
func ask(site http.RoundTripper, r *http.Request, id, method string, params any, made func(rpcReply) any) (*http.Response, error) {
	message := map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method}
	if params != nil {
		message["params"] = params
	}
	body := encode(message)
	asked := r.Clone(r.Context())
	asked.Method, asked.URL.Path, asked.Body, asked.ContentLength = http.MethodPost, route.MCPPostPath, io.NopCloser(bytes.NewReader(body)), int64(len(body))
	asked.Header.Set("Content-Type", "application/json")
	response, err := site.RoundTrip(asked)
	if err != nil {
		return nil, err
	}
	var reply rpcReply
	var again any
	text, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	read := json.NewDecoder(bytes.NewReader(text))
	read.UseNumber()
	if err == nil && read.Decode(&reply) == nil {
		again = made(reply)
	}
	if again != nil {
		text = encode(again)
		response.Header.Del("Content-Length")
		response.ContentLength = int64(len(text))
		response.Body.Close()
		response.Body = io.NopCloser(bytes.NewReader(text))
		return response, nil
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), response.Body), response.Body}
	return response, nil
}

// outcome is the reply to a call as JSON-RPC has it on /jsonrpc; nil where the reply is none.
func (r rpcReply) outcome() any {
	failed := func(code int, message string, data any) any {
		return map[string]any{"jsonrpc": "2.0", "id": r.ID, "error": map[string]any{"code": code, "message": message, "data": data}}
	}
	switch {
	case r.Error != nil && r.Error.Code == -32603:
		data := fmt.Sprint(r.Error.Data)
		switch {
		case strings.HasPrefix(data, "Tool not found"), strings.Contains(data, "plugin does not exist"):
			return failed(-32601, "Method Not Found", data)
		case strings.HasPrefix(data, "Access denied"):
			return failed(-32600, "Invalid Request", "Access Denied: "+data)
		}
		return nil
	case r.Error != nil || r.Result == nil || len(r.Result.Content) == 0:
		return nil
	case r.Result.IsError:
		if detail, is := strings.CutPrefix(r.Result.Content[0].Text, "Invalid Params: "); is {
			return failed(-32602, "Invalid Params", detail)
		}
		return failed(-32000, r.Result.Content[0].Text, nil)
	}
	value := r.Result.Value
	if value == nil {
		value = json.RawMessage(r.Result.Content[0].Text)
	}
	return map[string]any{"jsonrpc": "2.0", "id": r.ID, "result": value}
}

// method is the tool as a method of /jsonrpc/methods.
func (t moduleTool) method() any {
	params := map[string]any{}
	for name, schema := range t.InputSchema.Properties {
		attributes := map[string]any{}
		for _, required := range t.InputSchema.Required {
			if required == name {
				attributes["required"] = true
			}
		}
		escaped := strings.NewReplacer("~", "~0", "/", "~1", "%", "%25", " ", "%20").Replace(name)
		params[name] = map[string]any{"id": name, "attributes": attributes, "schema": rooted(schema, "#/properties/"+escaped)}
	}
	tool := map[string]any{}
	if t.Title != "" {
		tool["title"] = t.Title
	}
	if t.Annotations != nil {
		tool["annotations"] = t.Annotations
	}
	attributes := map[string]any{"usage": t.Description, "params": params, "mcpTool": tool}
	if t.OutputSchema != nil {
		attributes["output"] = t.OutputSchema
	}
	return map[string]any{"type": "JsonRpcMethod", "id": t.Name, "attributes": attributes, "links": map[string]any{}}
}

// rooted is the schema of a property whose references lead to places within it, as one of its own.
func rooted(schema any, place string) any {
	switch v := schema.(type) {
	case map[string]any:
		for name, member := range v {
			if ref, ok := member.(string); ok && name == "$ref" && strings.HasPrefix(ref, place) {
				v[name] = "#" + strings.TrimPrefix(ref, place)
			} else {
				v[name] = rooted(member, place)
			}
		}
	case []any:
		for i := range v {
			v[i] = rooted(v[i], place)
		}
	}
	return schema
}
