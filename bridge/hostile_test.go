package bridge_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// badMethods are descriptions of one method that are wrong in ways that no schema can say.
var badMethods = map[string]string{
	"a member twice":        `{"id":"content.bad","attributes":{"usage":"a","usage":"b","mcpTool":{}}}`,
	"half a surrogate":      `{"id":"content.bad","attributes":{"usage":"\ud800","mcpTool":{}}}`,
	"invalid UTF-8":         "{\"id\":\"content.bad\",\"attributes\":{\"usage\":\"\xff\",\"mcpTool\":{}}}",
	"a control character":   "{\"id\":\"content.bad\",\"attributes\":{\"usage\":\"\x01\",\"mcpTool\":{}}}",
	"an endless number":     `{"id":"content.bad","attributes":{"mcpTool":{},"params":{"p":{"schema":{"maximum":1e1000000000}}}}}`,
	"no depth to its depth": `{"id":"content.bad","attributes":{"mcpTool":{},"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}}`,
	"no literal":            `{"id":"content.bad","attributes":{"mcpTool":tru}}`,
	"a schema bomb":         `{"id":"content.bad","attributes":{"mcpTool":{},"params":{"p":{"schema":` + schemaBomb + `}}}}`,
}

// schemaBomb applies some four million schemas to every value.
var schemaBomb = func() string {
	s := `{"$ref":"#/definitions/a0","definitions":{"a22":{"type":"string"}`
	for i := 21; i >= 0; i-- {
		s += fmt.Sprintf(`,"a%d":{"oneOf":[{"$ref":"#/definitions/a%d"},{"$ref":"#/definitions/a%d"}]}`, i, i+1, i+1)
	}
	return s + `}}`
}()

func TestABrokenDescriptionCostsItselfOnly(t *testing.T) {
	for name, bad := range badMethods {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, method("content.a"), bad, method("content.b"))
			front := start(t, s, func(o *bridge.Options) { o.AdminTokens = []caller.Secret{"operator"} })
			r := list(t, front, "agent")
			must.Expect(t, r.Status == 200 && strings.Count(r.Body, `"inputSchema"`) == 2 && !strings.Contains(r.Body, "content.bad"),
				"%d %.300s", r.Status, r.Body)
			d := send(t, front, "", "GET", "/mcp/admin/diagnostics", "", "Authorization", "Bearer operator")
			must.Expect(t, strings.Contains(d.Body, `"method":"content.bad"`), "diagnostics: %d %s", d.Status, d.Body)
			call(t, front, "agent", "content.bad", `{"p":1}`).expect(t, 404, "invoke")
		})
	}
}

func TestALazilyDescribedMethodThatIsBrokenCostsItselfOnly(t *testing.T) {
	for name, bad := range map[string]http.HandlerFunc{
		"not found":  http.NotFound,
		"forbidden":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) },
		"a page":     func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
		"another":    func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, method("content.other")) },
		"twice":      func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, badMethods["a member twice"]) },
		"no methods": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `[]`) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, method("content.a"), method("content.bad"))
			down := false
			mux := http.NewServeMux()
			mux.HandleFunc("/jsonrpc/methods/{id}", func(w http.ResponseWriter, r *http.Request) {
				if id := r.PathValue("id"); id == "content.bad" || down {
					bad(w, r)
				} else {
					io.WriteString(w, method(id))
				}
			})
			mux.Handle("/", s)
			s.Config.Handler = mux
			lazily := func(o *bridge.Options) { o.LazySchemas = true }
			front := start(t, s, lazily)
			r := list(t, front, "agent")
			must.Expect(t, r.Status == 200 && strings.Count(r.Body, `"inputSchema"`) == 2, "%d %s", r.Status, r.Body)
			call(t, front, "agent", "content.bad", `{"x":1}`).expect(t, 200, "invoke")
			down = name == "forbidden"
			r = list(t, start(t, s, lazily), "agent")
			must.Expect(t, !down || r.Status != 200, "a site that describes nothing: %d %s", r.Status, r.Body)
		})
	}
}

// Whatever a caller sends, the response is JSON, in time, and the next request is served.
func TestHostileRequests(t *testing.T) {
	s := newSite(t, echo)
	front := start(t, s)
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
	}{
		"encoded slash":          {"GET", "/mcp%2Ftools%2Flist", "", nil, 200},
		"double slash":           {"GET", "//mcp/tools/list", "", nil, 404},
		"dots":                   {"GET", "/mcp/../mcp/tools/list", "", nil, 404},
		"a path of NULs":         {"GET", "/mcp/%00", "", nil, 404},
		"a name of NULs":         {"GET", "/mcp/tools/describe?name=%00", "", nil, 404},
		"a broken escape":        {"GET", "/mcp/tools/describe?name=%zz", "", nil, 400},
		"a semicolon":            {"GET", "/mcp/tools/describe?name=a;b", "", nil, 400},
		"two names":              {"GET", "/mcp/tools/describe?name=a&name=b", "", nil, 400},
		"a name of no UTF-8":     {"GET", "/mcp/tools/describe?name=%ff", "", nil, 400},
		"two cursors":            {"GET", "/mcp/tools/list?cursor=&cursor=NTA", "", nil, 400},
		"a byte order mark":      {"POST", "/mcp/tools/invoke", "\xef\xbb\xbf{}", nil, 400},
		"a method of its own":    {"BREW", "/mcp/tools/list", "", nil, 405},
		"TRACE":                  {"TRACE", "/mcp/tools/invoke", "", nil, 405},
		"OPTIONS":                {"OPTIONS", "/mcp/tools/invoke", "", nil, 204},
		"HEAD of nothing":        {"HEAD", "/mcp/nothing", "", nil, 404},
		"another host":           {"GET", "/mcp/tools/list", "", []string{"Host", "evil.example"}, 403},
		"forwarded":              {"GET", "/mcp/tools/list", "", []string{"X-Forwarded-Host", "evil.example", "X-Original-URL", "/admin"}, 200},
		"a huge language":        {"GET", "/mcp/tools/list", "", []string{"Accept-Language", strings.Repeat("x", 4000)}, 200},
		"an odd request id":      {"GET", "/mcp/tools/list", "", []string{"X-Request-Id", "<script>"}, 200},
		"ranges":                 {"GET", "/mcp/tools/list", "", []string{"Range", "bytes=0-1"}, 200},
		"any tag":                {"GET", "/mcp/tools/list", "", []string{"If-None-Match", "*"}, 304},
		"zipped":                 {"POST", "/mcp/tools/invoke", "\x1f\x8b\x08\x00", []string{"Content-Encoding", "gzip"}, 400},
		"form by another origin": {"POST", "/mcp/tools/invoke", `{"name":"content.echo","arguments":{}}`, []string{"Content-Type", "", "Origin", "https://evil.example"}, 403},
		"a name twice":           {"POST", "/mcp/tools/invoke", `{"name":"content.echo","name":"x","arguments":{}}`, nil, 400},
		"an argument twice":      {"POST", "/mcp/tools/invoke", `{"name":"content.echo","arguments":{"n":1,"n":2}}`, nil, 400},
		"an escaped duplicate":   {"POST", "/mcp/tools/invoke", `{"name":"content.echo","arguments":{"n":1,"\u006e":2}}`, nil, 400},
		"endless digits":         {"POST", "/mcp/tools/invoke", `{"name":"content.echo","arguments":{"n":` + strings.Repeat("9", 100_000) + `}}`, nil, 400},
		"an endless exponent":    {"POST", "/mcp/tools/invoke", `{"name":"content.echo","arguments":{"n":1e1000000000}}`, nil, 400},
		"no depth to its depth":  {"POST", "/mcp/tools/invoke", `{"name":"content.echo","arguments":{"any":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}}`, nil, 400},
		"prototypes":             {"POST", "/mcp/tools/invoke", `{"name":"__proto__","arguments":{"__proto__":{"x":1}}}`, nil, 404},
		"a batch":                {"POST", "/mcp/tools/invoke", `[{"name":"content.echo","arguments":{}}]`, nil, 400},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.calls.Load()
			r := send(t, front, "agent", c.method, c.path, c.body, c.headers...)
			must.Expect(t, r.Status == c.status && (r.Status < 400 || c.method == "HEAD" || r.Code() != "") && s.calls.Load() == before,
				"%d %.200s after %d calls, want %d", r.Status, r.Body, s.calls.Load()-before, c.status)
			r = call(t, front, "agent", "content.echo", `{"n":7}`)
			must.Expect(t, r.Body == `{"result":{"n":7}}`, "afterwards: %d %s", r.Status, r.Body)
		})
	}
}
