package fault

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// inPlace responds to the calls of a request in place of the site, as a JSON-RPC server does: each with its id and one more
// member. The journal has the calls; no method runs.
func inPlace(member string, value func(*action, journal.Call) []byte) func(*action) {
	return func(v *action) {
		calls := v.Calls()
		v.NoteCalls(calls)
		if v.fault.Delay > 0 && !v.pause(v.fault.Delay) {
			v.Done = true
			return
		}
		var all [][]byte
		for _, call := range calls {
			if call.ID != nil {
				all = append(all, bytes.Join([][]byte{[]byte(`{"jsonrpc":"2.0","id":`), call.ID, []byte(`,"` + member + `":`), value(v, call), []byte("}")}, nil))
			}
		}
		body := bytes.Join(all, []byte(","))
		switch {
		case len(all) == 0:
			v.Response = exchange.NewResponse(http.StatusNoContent, exchange.JSONType, nil)
			return
		case php.Elements(v.Message()) != nil:
			body = bytes.Join([][]byte{[]byte("["), body, []byte("]")}, nil)
		}
		v.Response = exchange.NewResponse(cmp.Or(v.fault.Status, http.StatusOK), exchange.JSONType, body)
	}
}

func chosenBody(v *action, _ journal.Call) []byte { return []byte(v.fault.Body) }

func paramsOf(_ *action, call journal.Call) []byte {
	if call.Params == nil {
		return []byte("{}")
	}
	return call.Params
}

// aJSONBody is needed by the kinds whose body becomes a part of the response.
func aJSONBody(f Fault) error {
	if !json.Valid([]byte(f.Body)) {
		return errors.New(`needs a body that is JSON, such as "pong" in quotes, or {"code":-32000,"message":"No"}`)
	}
	return nil
}
