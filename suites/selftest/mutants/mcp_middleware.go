package mutants

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// toMCP matches requests to the MCP endpoint.
func toMCP(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/mcp") }

// rpc is one MCP request with the bridge's response to it.
type rpc struct {
	*exchange
	Method   string
	Params   map[string]any
	Response map[string]any // {jsonrpc, id, result or error}
}

// Result returns the result of the response; nil without one.
func (m *rpc) Result() map[string]any {
	result, _ := m.Response["result"].(map[string]any)
	return result
}

// Code returns the error code of the response; "" without an error.
func (m *rpc) Code() string {
	failure, _ := m.Response["error"].(map[string]any)
	return numberText(failure["code"])
}

// Succeed replaces the response by a result.
func (m *rpc) Succeed(result any) {
	m.Status = http.StatusOK
	m.Response = map[string]any{"jsonrpc": "2.0", "id": m.Response["id"], "result": result}
}

// Fail replaces the response by an error.
func (m *rpc) Fail(code int, message string) {
	m.Response = map[string]any{"jsonrpc": "2.0", "id": m.Response["id"], "error": map[string]any{"code": code, "message": message}}
}

// Resend sends the request to the bridge again, changed, and returns the response.
func (m *rpc) Resend(change func(message map[string]any)) map[string]any {
	message := decode(m.Sent)
	change(message)
	return decode(m.Send(http.MethodPost, m.Request.URL.Path, encode(message)).Body)
}

// onRPC changes the responses to one method of MCP; "" is every method. A notification has no response to change.
func onRPC(method string, change func(m *rpc)) middleware {
	return onResponse(toMCP, func(x *exchange) {
		sent := decode(x.Sent)
		name, _ := sent["method"].(string)
		response := x.Object()
		if name == "" || response == nil || method != "" && method != name {
			return
		}
		params, _ := sent["params"].(map[string]any)
		m := &rpc{exchange: x, Method: name, Params: params, Response: response}
		change(m)
		m.Set(m.Status, m.Response)
	})
}

// onRPCResult changes the good results of one method.
func onRPCResult(method string, change func(result map[string]any)) middleware {
	return onRPC(method, func(m *rpc) {
		if result := m.Result(); result != nil {
			change(result)
		}
	})
}

// onMCPTool changes every tool of tools/list.
func onMCPTool(change func(t tool)) middleware {
	return onRPCResult("tools/list", func(result map[string]any) {
		tools, _ := result["tools"].([]any)
		for _, t := range tools {
			change(t.(tool))
		}
	})
}

// onCallResult changes the results of tools/call that are no errors.
func onCallResult(change func(result map[string]any)) middleware {
	return onRPCResult("tools/call", func(result map[string]any) {
		if result["isError"] != true {
			change(result)
		}
	})
}

// onToolError changes the results of tools/call with isError whose text contains a text.
func onToolError(text string, change func(m *rpc)) middleware {
	return onRPC("tools/call", func(m *rpc) {
		if m.Result()["isError"] == true && strings.Contains(string(m.Body), text) {
			change(m)
		}
	})
}

// withHeader changes the headers of requests to MCP before the bridge sees them.
func withHeader(change func(h http.Header)) middleware {
	return onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if toMCP(r) {
			change(r.Header)
		}
		return false
	})
}

// onStream changes each write to a stream of events.
func onStream(change func(event []byte) []byte) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if toMCP(r) && isStream(r) {
				w = &eventWriter{ResponseWriter: w, change: change}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// replaceInEvent returns a change of events that replaces a text by another one.
func replaceInEvent(old, now string) func(event []byte) []byte {
	return func(event []byte) []byte { return bytes.ReplaceAll(event, []byte(old), []byte(now)) }
}

// eventWriter changes the writes to a stream.
type eventWriter struct {
	http.ResponseWriter
	change func([]byte) []byte
}

func (w *eventWriter) Write(b []byte) (int, error) {
	_, err := w.ResponseWriter.Write(w.change(b))
	return len(b), err
}

// Unwrap allows the bridge to flush.
func (w *eventWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// logOnStdout writes a log line to stdout before each message.
type logOnStdout struct{ io.Writer }

func (c logOnStdout) Write(b []byte) (int, error) {
	_, err := c.Writer.Write(append([]byte("[debug] a message goes out\n"), b...))
	return len(b), err
}

// stdoutReplacer replaces text on stdout.
type stdoutReplacer struct {
	io.Writer
	old, now string
}

func (w stdoutReplacer) Write(b []byte) (int, error) {
	_, err := w.Writer.Write(bytes.ReplaceAll(b, []byte(w.old), []byte(w.now)))
	return len(b), err
}

func numberText(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}
