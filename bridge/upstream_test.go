package bridge_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// canary must never reach a caller.
const canary = "canary-7f3a /var/www/html Drupal\\\\node\\\\Node"

// What is no valid response to the call, or none at all, is tested by the upstream checks.
func TestWhatAResponseOfTheSiteBecomes(t *testing.T) {
	say := func(status int, body string) func(http.ResponseWriter, rpc) {
		return func(w http.ResponseWriter, c rpc) {
			w.WriteHeader(status)
			io.WriteString(w, strings.ReplaceAll(body, "ID", string(c.ID)))
		}
	}
	rpcError := func(id, rest string) string { return `{"jsonrpc":"2.0","id":` + id + `,"error":{` + rest + `}}` }
	s := newSite(t, echo)
	front := start(t, s)
	for name, c := range map[string]struct {
		response func(http.ResponseWriter, rpc)
		status   int
		code     string
		has      []string
	}{
		"a result":         {say(200, `{"jsonrpc":"2.0","id":ID,"result":{"n":1.0}}`), 200, "", []string{`{"result":{"n":1.0}}`}},
		"null":             {say(200, `{"jsonrpc":"2.0","id":ID,"result":null}`), 200, "", []string{`{"result":null}`}},
		"denial":           {say(200, rpcError("null", `"code":-32600,"message":"Invalid Request","data":"Access Denied: The 'x' permission is required."`)), 403, "access_denied", []string{"content.echo"}},
		"invalid request":  {say(400, rpcError("null", `"code":-32600,"message":"Invalid Request","data":"odd"`)), 500, "execution_error", []string{`"jsonrpc_data":"odd"`}},
		"gone":             {say(400, rpcError("ID", `"code":-32601,"message":"Method Not Found"`)), 404, "tool_not_found", []string{"content.echo"}},
		"invalid params":   {say(200, rpcError("null", `"code":-32602,"message":"Invalid Params","data":"no such entity"`)), 400, "invalid_params", []string{"no such entity", `"jsonrpc_code":-32602`}},
		"schema violation": {say(400, rpcError("null", `"code":-32602,"message":"Invalid Params","data":"The n parameter does not conform to the parameter schema. `+canary+`"`)), 400, "invalid_params", []string{`"parameter":"n"`, "refetched"}},
		"schema violation with a reason": {say(400, rpcError("null", `"code":-32602,"message":"Invalid Params","data":"The n parameter does not conform to the parameter schema. Adaptor `+canary+` received invalid input data: [{\u0022property\u0022:\u0022\u0022,\u0022pointer\u0022:\u0022\\/0\u0022,\u0022message\u0022:\u0022Double value found, but an integer is required\u0022}]."`)), 400, "invalid_params",
			[]string{`n/0: Double value found, but an integer is required`, `"parameter":"n"`}},
		"own code": {say(200, rpcError("null", `"code":-32050,"message":"Custom application error","data":{"n":9007199254740993}`)), 500, "execution_error",
			[]string{"Custom application error", `"jsonrpc_code":-32050`, `"jsonrpc_data":{"n":9007199254740993}`}},
		"exception": {say(200, rpcError("ID", `"code":-32603,"message":"Internal Error","data":"`+canary+`"`)), 500, "execution_error",
			[]string{"Internal Error", "-32603"}},
		"error with 500":    {say(500, rpcError("null", `"code":-32050,"message":"M"`)), 500, "execution_error", []string{"M"}},
		"error without id":  {say(200, `{"error":{"code":-1,"message":""}}`), 500, "execution_error", []string{"did not say why"}},
		"error for another": {say(200, rpcError("77777", `"code":-32602,"message":"M"`)), 502, "upstream_error", nil},
		"two results":       {say(200, `{"id":ID,"result":1,"result":2}`), 502, "upstream_error", nil},
		"result with 404":   {say(404, `{"id":ID,"result":1}`), 502, "upstream_error", nil},
		"maintenance":       {say(503, `<html></html>`), 503, "upstream_unavailable", nil},
		"forbidden":         {say(403, `<html>`+canary+`</html>`), 403, "access_denied", nil},
		"unauthorized":      {say(401, `{}`), 401, "authentication_required", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s.change(func() { s.response = func(w http.ResponseWriter, _ *http.Request, call rpc) { c.response(w, call) } })
			before := s.calls.Load()
			r := call(t, front, "agent", "content.echo", `{}`)
			must.Expect(t, r.Status == c.status && r.Code() == c.code, "got %d %.200s, want %d %s", r.Status, r.Body, c.status, c.code)
			for _, has := range c.has {
				must.Expect(t, strings.Contains(r.Body, has), "%s lacks %s", r.Body, has)
			}
			must.Expect(t, !strings.Contains(r.Body, "canary"), "leaks: %s", r.Body)
			must.Equal(t, s.calls.Load()-before, 1, "calls that the site got")
		})
	}
}

func TestASiteThatIsDownCostsNothingAndComesBack(t *testing.T) {
	s := newSite(t, echo)
	address := s.Listener.Addr().String()
	c := &clock{}
	front := start(t, s, func(o *bridge.Options) { o.Now = c.now })
	if r := call(t, front, "agent", "content.echo", "{}"); r.Status != 200 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	s.CloseClientConnections()
	s.Close()
	for i := range 10 {
		r := call(t, front, "agent", "content.echo", "{}")
		lost := i == 0 && r.Status == 502 // on a connection that was open until then: the call may have run
		must.Expect(t, lost || r.Status == 503 && r.Code() == "upstream_unavailable", "down, call %d: %d %s", i, r.Status, r.Body)
	}
	r := list(t, front, "stranger")
	must.Expect(t, r.Status == 503 && r.Header.Get("Retry-After") == "1",
		"a stranger's list with an open breaker: %d %v", r.Status, r.Header)
	send(t, front, "", "GET", "/readyz", "").expect(t, 503, "readyz")
	send(t, front, "", "GET", "/healthz", "").expect(t, 200, "healthz")
	l, err := net.Listen("tcp", address)
	must.Need(t, err == nil, "the port was taken meanwhile: %v", err)
	back := &http.Server{Handler: s}
	go back.Serve(l)
	defer back.Close()
	c.advance(time.Second)
	call(t, front, "agent", "content.echo", "{}").expect(t, 200, "back")
}

func TestCallsBeyondTheQueueAreTurnedAway(t *testing.T) {
	s := newSite(t, echo)
	release := make(chan struct{})
	var inside atomic.Int64
	front := start(t, s, func(o *bridge.Options) { o.MaxInFlight, o.MaxWaiting = 2, 1 })
	list(t, front, "agent")
	s.change(func() {
		s.response = func(w http.ResponseWriter, _ *http.Request, c rpc) {
			inside.Add(1)
			<-release
			fmt.Fprintf(w, `{"id":%s,"result":1}`, c.ID)
		}
	})
	statuses := make(chan int, 4)
	var once sync.Once
	for range 4 {
		go func() {
			r := call(t, front, "agent", "content.echo", "{}")
			must.Expect(t, r.Status != 503 || r.Code() == "overloaded" && r.Header.Get("Retry-After") != "",
				"overload: %s %v", r.Body, r.Header)
			if r.Status == 503 {
				once.Do(func() { close(release) })
			}
			statuses <- r.Status
		}()
	}
	count := map[int]int{}
	for range 4 {
		count[<-statuses]++
	}
	must.Expect(t, count[200] == 3 && count[503] == 1 && inside.Load() == 3,
		"statuses %v, %d calls at the site; want three served and one turned away", count, inside.Load())
}

func TestResultsAreCheckedAgainstTheOutputSchema(t *testing.T) {
	s := newSite(t, `{"id":"content.x","attributes":{"output":{"type":"object","properties":{"m":{"type":"object"}}},"mcpTool":{}}}`)
	result := ""
	s.response = func(w http.ResponseWriter, _ *http.Request, c rpc) {
		fmt.Fprintf(w, `{"id":%s,"result":%s}`, c.ID, result)
	}
	refuse := start(t, s, func(o *bridge.Options) { o.Output = "refuse" })
	pass := start(t, s)
	for _, c := range []struct {
		result, refuse string
		status         int
	}{{`{"m":{}}`, `{"result":{"m":{}}}`, 200}, {`{"m":[], "n":1.0}`, `{"result":{"m":{},"n":1.0}}`, 200}, {`[]`, `{"result":{}}`, 200}, {`"no"`, "", 500}, {`[1]`, "", 500}} {
		result = c.result
		r := call(t, refuse, "agent", "content.x", "{}")
		must.Expect(t, r.Status == c.status && (c.refuse == "" || r.Body == c.refuse) && (c.status != 500 || r.Code() == "execution_error"),
			"refuse %s: %d %s", c.result, r.Status, r.Body)
		r = call(t, pass, "agent", "content.x", "{}")
		must.Expect(t, r.Body == `{"result":`+c.result+`}`, "pass %s: %d %s", c.result, r.Status, r.Body)
	}
}
