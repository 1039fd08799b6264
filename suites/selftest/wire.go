package selftest

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
)

// wire is a mutant's own way to the site, past the bridge.
type wire struct{ site string }

// call runs a method at the site under an Authorization header and gives the JSON-RPC answer; nil when there is none.
func (w *wire) call(authorization, method string, params any) map[string]any {
	body := encode(map[string]any{"jsonrpc": "2.0", "id": "mutant", "method": method, "params": params})
	req, err := http.NewRequest(http.MethodPost, w.site+"/jsonrpc", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil
	}
	return decode(reply)
}

// run answers an invoke with what the site says to it under an Authorization header, whatever the bridge said.
func (w *wire) run(x *exchange, authorization string) {
	arguments := decode(x.Sent)["arguments"]
	reply := w.call(authorization, x.invoked(), arguments)
	if result, ok := reply["result"]; ok {
		x.Set(http.StatusOK, map[string]any{"result": result})
		return
	}
	e, _ := reply["error"].(map[string]any)
	message, _ := e["message"].(string)
	x.Refuse(http.StatusInternalServerError, "execution_error", message)
}

// signedAs is the Authorization header of a built-in account.
func signedAs(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+user+"-pass"))
}

// hides tells whether the site shows an account a method that is no tool.
func (w *wire) hides(authorization, id string) bool {
	attributes, shown := w.method(authorization, id)
	return shown && attributes["mcpTool"] == nil
}

// method gives the attributes of a method as the site shows it to an account.
func (w *wire) method(authorization, id string) (attributes map[string]any, shown bool) {
	req, err := http.NewRequest(http.MethodGet, w.site+"/jsonrpc/methods", nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", authorization)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	index, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, false
	}
	methods, _ := decode(index)["data"].([]any)
	for _, m := range methods {
		if m, _ := m.(map[string]any); m["id"] == id {
			attributes, _ = m["attributes"].(map[string]any)
			return attributes, true
		}
	}
	return nil, false
}
