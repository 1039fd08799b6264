package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// Revision is a revision of the MCP specification.
type Revision string

// The revisions that the server speaks. The first two have sessions; in the last every request stands alone.
const (
	June2025     Revision = "2025-06-18"
	November2025 Revision = "2025-11-25"
	July2026     Revision = "2026-07-28"
)

// revisions are those that the server speaks, the newest first.
var revisions = []Revision{July2026, November2025, June2025}

// The error codes of JSON-RPC and of MCP that are used here.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeRefused        = -32000 // the site or the bridge refuses; data.code says why
	codeHeaderMismatch = -32020
	codeNoVersion      = -32022
)

// message is a JSON-RPC message taken apart.
type message struct {
	id     []byte        // as it was written; nil on a notification and on a message that cannot be read
	method string        // "" on a response
	params jsondoc.Value // an object, split; the zero Value where there are none
	meta   jsondoc.Value // its _meta, likewise
}

// version is the revision that the message itself names, as messages of the stateless one do; "" where it names none.
func (m message) version() Revision { return Revision(m.metaText(metaVersion)) }

// metaText returns a member of _meta that is a string.
func (m message) metaText(name string) string {
	v, _ := m.meta.Get(name)
	text, _ := v.Text()
	return text
}

// param returns a parameter that is a string.
func (m message) param(name string) string {
	v, _ := m.params.Get(name)
	text, _ := v.Text()
	return text
}

// read takes a message apart. What is wrong with it is a protocol error; the id is there as far as it could be read.
func read(body []byte) (message, *protocolError) {
	var m message
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) { // before any of it is taken apart
		return m, protocolErrorf(codeInvalidRequest, "Send one message at a time: batches are not part of MCP any more.")
	}
	doc, err := jsondoc.Split(body)
	switch {
	case err != nil:
		return m, protocolErrorf(codeParse, "The message is not valid JSON: %s.", err)
	case doc.Kind != jsondoc.Object:
		return m, protocolErrorf(codeInvalidRequest, "The message is a JSON %s; it must be a JSON-RPC object.", doc.Kind)
	}
	if id, ok := doc.Get("id"); ok {
		if _, whole := id.Int(); id.Kind != jsondoc.String && !whole {
			return m, protocolErrorf(codeInvalidRequest, "The id must be a string or an integer.")
		}
		m.id = id.Raw
	}
	v, _ := doc.Get("jsonrpc")
	if text, _ := v.Text(); text != "2.0" {
		return m, protocolErrorf(codeInvalidRequest, `The member jsonrpc must be "2.0".`)
	}
	method, ok := doc.Get("method")
	if !ok {
		_, result := doc.Get("result")
		_, failure := doc.Get("error")
		if !result && !failure {
			return m, protocolErrorf(codeInvalidRequest, "The member method is missing.")
		}
		return message{}, nil // a response: the bridge sends no requests, so it expects none
	}
	if m.method, _ = method.Text(); m.method == "" {
		return m, protocolErrorf(codeInvalidRequest, "The member method must be a string that is not empty.")
	}
	m.params, err = object(doc, "params")
	if err == nil {
		m.meta, err = object(m.params, "_meta")
	}
	if err != nil {
		return m, protocolErrorf(codeInvalidParams, "%s", err)
	}
	return m, nil
}

// object returns a member that is an object, taken apart; the zero Value where it is absent.
func object(in jsondoc.Value, name string) (jsondoc.Value, error) {
	v, ok := in.Get(name)
	switch {
	case !ok:
		return jsondoc.Value{}, nil
	case v.Kind != jsondoc.Object:
		//lint:ignore ST1005 a sentence for the caller
		return jsondoc.Value{}, fmt.Errorf("The member %s is a JSON %s; it must be an object.", name, v.Kind)
	}
	return jsondoc.Split(v.Raw)
}

// protocolError is a JSON-RPC error.
type protocolError struct {
	code    int
	message string
	data    json.RawMessage // nil: none
	cause   *fault.Error    // of the bridge, where it has one: its status and headers go out over HTTP
}

func protocolErrorf(code int, format string, args ...any) *protocolError {
	return &protocolError{code: code, message: fmt.Sprintf(format, args...)}
}

// protocolCodes says which of the bridge's faults are protocol errors with a code of their own. A tool that the caller
// may not run must look like one that does not exist.
var protocolCodes = map[fault.Code]int{
	fault.ToolNotFound:  codeInvalidParams,
	fault.InvalidCursor: codeInvalidParams,
	fault.InternalError: codeInternal,
}

// protocolErrorOf words what went wrong in the bridge or at the site as a protocol error.
func protocolErrorOf(err error) *protocolError {
	f := fault.From(err)
	code, ok := protocolCodes[f.Code]
	if !ok {
		code = codeRefused
	}
	data := append(jsondoc.AppendString([]byte(`{"code":`), string(f.Code)), '}')
	return &protocolError{code: code, message: f.Message, data: data, cause: f}
}

// response is a JSON-RPC response with a result.
func response(id, result []byte) []byte {
	b := make([]byte, 0, len(id)+len(result)+40)
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), id...)
	b = append(append(b, `,"result":`...), result...)
	return append(b, '}')
}

// failure is a JSON-RPC response with an error; without an id where the request's could not be read.
func failure(id []byte, e *protocolError) []byte {
	b := []byte(`{"jsonrpc":"2.0"`)
	if id != nil {
		b = append(append(b, `,"id":`...), id...)
	}
	b = fmt.Appendf(b, `,"error":{"code":%d,"message":`, e.code)
	b = jsondoc.AppendString(b, e.message)
	if e.data != nil {
		b = append(append(b, `,"data":`...), e.data...)
	}
	return append(b, '}', '}')
}

// notification is a JSON-RPC notification.
func notification(method string, params []byte) []byte {
	b := jsondoc.AppendString([]byte(`{"jsonrpc":"2.0","method":`), method)
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}
