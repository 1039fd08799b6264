package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// The JSON-RPC codes that mean the same on every Drupal site. What a caller receives for each is decided in invoke.
const (
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
)

// RPCError is a JSON-RPC error as the site gave it. Drupal loses the id of most of them, and sends them with HTTP 200,
// 400 or 500.
type RPCError struct {
	Code    int
	Message string
	Data    json.RawMessage // nil: none
}

// Error is the text for the log.
func (e *RPCError) Error() string { return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message) }

// Denied reports whether the site refused the caller. Drupal's denial is an invalid request whose data says so.
func (e *RPCError) Denied() bool {
	return e.Code == CodeInvalidRequest && strings.HasPrefix(e.DataText(), "Access Denied")
}

// SchemaViolation reports whether the site found the parameters to break its own schema, in PHP's words.
func (e *RPCError) SchemaViolation() bool {
	text := e.DataText()
	return e.Code == CodeInvalidParams &&
		(strings.Contains(text, "does not conform to the parameter schema") || strings.Contains(text, "received invalid input data"))
}

// DataText is the error's data where that is a string, else "".
func (e *RPCError) DataText() string {
	var s string
	if json.Unmarshal(e.Data, &s) != nil {
		return ""
	}
	return s
}

// encodeRequest writes a JSON-RPC request around the parameters' own bytes. Empty ones are left out: a method that
// declares none at all refuses even {}.
func encodeRequest(method string, params []byte, id string) []byte {
	b := make([]byte, 0, len(method)+len(params)+len(id)+64)
	b = append(b, `{"jsonrpc":"2.0","method":`...)
	b = jsondoc.AppendString(b, method)
	if !jsondoc.HoldsNothing(params) {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(append(append(b, `,"id":`...), id...), '}')
}

// decodeResponse takes a JSON-RPC response apart. A result counts only with the request's own id and nothing else beside
// it; an error counts whatever its id, for Drupal drops it. The result's bytes are given as they came.
func decodeResponse(body []byte, id string) ([]byte, error) {
	v, err := jsondoc.Split(body)
	if err != nil {
		return nil, badResponse(fmt.Errorf("the response is not JSON: %w", err))
	}
	if v.Kind != jsondoc.Object {
		return nil, badResponse(fmt.Errorf("the response is a JSON %s, not an object", v.Kind))
	}
	gotID, _ := v.Get("id")
	result, hasResult := v.Get("result")
	failure, hasError := v.Get("error")
	switch {
	case hasResult && hasError:
		return nil, badResponse(errors.New("the response holds a result and an error"))
	case hasError:
		return nil, decodeError(failure.Raw, string(gotID.Raw), id)
	case !hasResult:
		return nil, badResponse(errors.New("the response holds neither result nor error"))
	case string(gotID.Raw) != id:
		return nil, badResponse(fmt.Errorf("the result's id is %.40q, not %s", gotID.Raw, id))
	}
	return result.Raw, nil
}

// decodeError reads the error member. An id that is neither the request's nor null belongs to another request.
func decodeError(raw []byte, gotID, id string) error {
	v, err := jsondoc.Split(raw)
	if err != nil || v.Kind != jsondoc.Object {
		return badResponse(errors.New("the response's error is no object"))
	}
	if gotID != id && gotID != "" && gotID != "null" {
		return badResponse(fmt.Errorf("the error's id is %.40q, not %s", gotID, id))
	}
	code, _ := v.Get("code")
	n, ok := code.Int()
	if !ok {
		return badResponse(errors.New("the response's error has no code"))
	}
	message, _ := v.Get("message")
	text, _ := message.Text()
	e := &RPCError{Code: n, Message: fault.Clip(text, longestMessage)}
	if data, ok := v.Get("data"); ok && data.Kind != jsondoc.Null {
		switch words, isText := data.Text(); {
		case len(data.Raw) <= longestData:
			e.Data = append(json.RawMessage(nil), data.Raw...)
		case isText:
			e.Data = jsondoc.AppendString(nil, fault.Clip(words, longestMessage))
		default:
			e.Data = fmt.Appendf(nil, `"%d bytes, which are too many for an error"`, len(data.Raw))
		}
	}
	return e
}

// An error's text is for people: neither callers nor logs get more of the site's words. In bytes.
const longestMessage, longestData = 4 << 10, 64 << 10
