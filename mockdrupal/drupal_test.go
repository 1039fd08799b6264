package mockdrupal_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// smallSite is a site of a few methods, for tests that need no more.
func smallSite() *fixtures.Site {
	return &fixtures.Site{
		Name: "small", Title: "Small", Extensions: true,
		Auth:  fixtures.Auth{JSONRPC: []string{"basic", "bearer"}},
		Roles: []fixtures.Role{{ID: "agent", Permissions: []string{fixtures.UseJSONRPC, fixtures.DiscoverTools}}},
		Users: []fixtures.User{
			{UID: 1, Name: "admin", Password: "admin-pass"},
			{UID: 2, Name: "agent", Password: "agent-pass", Roles: []string{"agent"}, Tokens: []fixtures.Token{{Value: "agent-token"}}},
			{UID: 3, Name: "outsider", Password: "outsider-pass"},
			{UID: 4, Name: "blocked", Password: "blocked-pass", Roles: []string{"agent"}, Blocked: true},
		},
		Methods: []fixtures.Method{
			{ID: "test.echo", Usage: "Echoes", MCP: &fixtures.Tool{Title: "Echo"}, Behaviour: fixtures.Behaviour{Kind: fixtures.Echo}},
			{ID: "test.count", Usage: "Counts", Behaviour: fixtures.Behaviour{Kind: fixtures.Count}},
			{ID: "test.admin", Usage: "Guarded", Access: []string{"administer site configuration"}, Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw(`"secret"`)}},
			{ID: "test.whoami", Usage: "Who", Behaviour: fixtures.Behaviour{Kind: fixtures.WhoAmI}},
			{ID: "test.throw", Usage: "Throws", Behaviour: fixtures.Behaviour{Kind: fixtures.Throw, Text: "boom"}},
		},
	}
}

// start runs a mock of the site until the test ends.
func start(t testing.TB, site *fixtures.Site, o mockdrupal.Options) *mockdrupal.Server {
	t.Helper()
	d := must.Get(mockdrupal.New(site, o))(t)
	s := must.Get(d.Listen("127.0.0.1:0"))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// call posts a body to /jsonrpc as a user ("" for anonymous) and returns status and body.
func call(t testing.TB, s *mockdrupal.Server, user, body string) (int, string) {
	t.Helper()
	r, _ := http.NewRequest("POST", s.URL+"/jsonrpc", strings.NewReader(body))
	if user != "" {
		r.SetBasicAuth(user, user+"-pass")
	}
	res, err := http.DefaultClient.Do(r)
	must.Assert(t, err == nil, "POST /jsonrpc as %q: %v", user, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	must.Assert(t, err == nil, "reading the response: %v", err)
	return res.StatusCode, string(b)
}

// Whatever a request is, the site and its control plane respond, and only a method that throws is a failure of the site.
func FuzzRequest(f *testing.F) {
	const basic, asJSON = "\r\nAuthorization: Basic YWdlbnQ6YWdlbnQtcGFzcw==", "\r\nContent-Type: application/json"
	for _, request := range []struct{ head, body string }{
		{"GET /jsonrpc/methods HTTP/1.1\r\nAccept-Language: de" + basic, ""},
		{"GET /jsonrpc/methods/test.echo HTTP/1.1\r\nAuthorization: Bearer agent-token", ""},
		{"POST /jsonrpc HTTP/1.1" + basic, `[{"jsonrpc":"2.0","id":1,"method":"test.echo","params":{"a":[1.0,"\ud83d"]}},{"jsonrpc":"2.0","method":"test.count"}]`},
		{"GET /jsonrpc?query=%7B%22jsonrpc%22%3A%222.0%22%7D HTTP/1.1" + basic, ""},
		{"POST /user/login?_format=json HTTP/1.1" + asJSON, `{"name":"agent","pass":"agent-pass"}`},
		{"POST /oauth/token HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded", "grant_type=client_credentials&client_id=x&client_secret=%00"},
		{"GET /mcp/tools/list?cursor=NTA HTTP/1.1" + basic, ""},
		{"POST /session/token HTTP/1.1\r\nCookie: SESSa=b\r\nX-HTTP-Method-Override: GET", ""},
		{"PATCH /-/mock/site HTTP/1.1" + asJSON, `{"disable":{"methods":["test.*"]},"methods":{"test.echo":{"usage":"x"}}}`},
		{"PUT /-/mock/site HTTP/1.1\r\nContent-Type: application/yaml", "methods: [{id: a, usage: x, behaviour: echo}]"},
		{"POST /-/mock/faults HTTP/1.1" + asJSON, `{"kind":"delay","delay":"1s","count":1}`},
		{"GET /-/mock/journal?after=1&limit=2&method=test.*&ran=true HTTP/1.1", ""},
		{"POST /-/mock/clock HTTP/1.1" + asJSON, `{"advance":"1h"}`},
		{"PUT /-/mock/quirks/x HTTP/1.1" + asJSON, `{}`},
		{"PUT /-/mock/freeze HTTP/1.1" + asJSON, `{"method":"test.echo"}`},
	} {
		f.Add([]byte(request.head), []byte(request.body))
	}
	f.Fuzz(func(t *testing.T, head, body []byte) {
		r, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(head), strings.NewReader("\r\nHost: 127.0.0.1\r\n\r\n"))))
		if err != nil {
			t.Skip() // net/http refuses it before the site sees it
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body, r.ContentLength, r.RemoteAddr = io.NopCloser(bytes.NewReader(body)), int64(len(body)), "127.0.0.1:1234"
		site := must.Get(mockdrupal.New(smallSite(), mockdrupal.Options{}))(t)
		var handler http.Handler = site
		control := strings.HasPrefix(r.URL.Path, "/-/mock/")
		if control {
			handler = site.ControlHandler("")
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if control && (w.Code >= 500 || strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") && !json.Valid(w.Body.Bytes())) {
			t.Errorf("the control plane responds with %d %s", w.Code, w.Body)
		}
		must.Expect(t, control || len(site.Journal().Entries(0)) == 1,
			"the journal has %d entries of one request", len(site.Journal().Entries(0)))
	})
}
