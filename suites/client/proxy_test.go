package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

const (
	nginxPage   = "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n<center><h1>413 Request Entity Too Large</h1></center>\r\n<hr><center>nginx/1.22.1</center>\r\n</body>\r\n</html>\r\n"
	apachePage  = "<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\">\n<html><head>\n<title>502 Proxy Error</title>\n</head><body>\n<h1>Proxy Error</h1>\n</body></html>\n"
	apache503   = "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \"http://www.w3.org/TR/html4/strict.dtd\">\n<html><head>\n<title>503 Service Unavailable</title>\n</head><body>\n<h1>Service Unavailable</h1>\n</body></html>\n"
	haproxyPage = "<html><body><h1>504 Gateway Time-out</h1>\nThe server didn't respond in time.\n</body></html>\n"
	varnishPage = "<!DOCTYPE html>\n<html>\n  <head>\n    <title>503 Backend fetch failed</title>\n  </head>\n  <body>\n    <h1>Error 503 Backend fetch failed</h1>\n    <p>Backend fetch failed</p>\n    <h3>Guru Meditation:</h3>\n    <p>XID: 32770</p>\n    <hr>\n    <p>Varnish cache server</p>\n  </body>\n</html>\n"
	envelope    = `{"error":{"code":"too_large","message":"The body is too large."}}`
)

// Who made a response is known by its status and body; a header that a bridge may send decides nothing.
func TestWhoMadeAResponse(t *testing.T) {
	for name, c := range map[string]struct {
		front     string // Server of the success before it; "": nothing shows a proxy
		method    string
		status    int
		body      string
		sent      int // bytes
		by        string
		permitted bool
	}{
		"nginx refuses 64 MiB":                        {"nginx", "POST", 413, nginxPage, 64 << 20, nginx, true},
		"nginx refuses 1.5 MiB":                       {"nginx", "POST", 413, nginxPage, 3 << 19, nginx, false},
		"nginx refuses 64 MiB, and hides its name":    {"", "POST", 413, nginxPage, 64 << 20, nginx, true},
		"the bridge refuses 64 MiB behind nginx":      {"nginx", "POST", 413, envelope, 64 << 20, "", false},
		"a page of its own for 64 MiB behind Envoy":   {"envoy", "POST", 413, "payload too large", 64 << 20, "Envoy", true},
		"the bridge's own page for 64 MiB":            {"", "POST", 413, "<html>too large</html>", 64 << 20, "", false},
		"Apache sees the end of a huge body":          {"Apache/2.4.62 (Debian)", "POST", 502, apachePage, 64 << 20, apache, true},
		"Apache gets no response to a usual request":  {"Apache/2.4.62 (Debian)", "POST", 502, apachePage, 60, apache, false},
		"Apache has marked the bridge as down":        {"Apache/2.4.62 (Debian)", "POST", 503, apache503, 60, apache, false},
		"HAProxy gives up":                            {"", "POST", 504, haproxyPage, 60, haproxy, false},
		"Varnish gets no response":                    {"", "GET", 503, varnishPage, 0, varnish, false},
		"Caddy gets no response":                      {"Caddy", "GET", 502, "", 0, caddy, false},
		"the bridge's 502 behind Caddy":               {"Caddy", "GET", 502, envelope, 0, "", false},
		"other JSON of the bridge behind Caddy":       {"Caddy", "GET", 502, `{"message":"no"}`, 0, "", false},
		"a HEAD with a body is refused":               {"varnish", "HEAD", 400, "", 40, varnish, true},
		"a bridge refuses a HEAD with a body":         {"", "HEAD", 400, "", 40, "", false},
		"the bridge's own 400 page under nginx":       {"nginx", "POST", 400, "<html>bad</html>", 40, "", false},
		"the bridge's 400 in the form of nginx":       {"nginx", "POST", 400, strings.ReplaceAll(strings.ReplaceAll(nginxPage, "413", "400"), "Too Large", "Bad"), 40, "", false},
		"nginx refuses long headers":                  {"nginx", "POST", 400, strings.ReplaceAll(nginxPage, "413", "400"), 40, nginx, false},
		"nginx limits requests":                       {"nginx", "GET", 503, strings.ReplaceAll(nginxPage, "413", "503"), 0, nginx, false},
		"HAProxy limits requests":                     {"", "GET", 429, "<html><body><h1>429 Too Many Requests</h1>\nYou have sent too many requests in a given amount of time.\n</body></html>\n", 0, haproxy, true},
		"the bridge limits requests behind nginx":     {"nginx", "GET", 429, envelope, 0, "", false},
		"and has no envelope":                         {"nginx", "GET", 429, "Too many requests", 0, "", false},
		"the bridge's 404 in the form of nginx":       {"nginx", "GET", 404, strings.ReplaceAll(nginxPage, "413", "404"), 0, "", false},
		"the bridge's 500 in the form of nginx":       {"nginx", "GET", 500, strings.ReplaceAll(nginxPage, "413", "500"), 0, "", false},
		"a page of another status than the response":  {"", "POST", 502, nginxPage, 64 << 20, "", false},
		"a page that contains the words of a gateway": {"", "POST", 413, "<p>" + nginxPage, 64 << 20, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			target := &Target{URL: "http://bridge.example"}
			if c.front != "" {
				target.NoteFront(&Response{Target: target, Status: 200, Header: http.Header{"Server": {c.front}}, Body: []byte(`{"tools":[]}`)})
			}
			a := &Response{Target: target, Method: c.method, Path: InvokePath, Status: c.status, Header: http.Header{}, Body: []byte(c.body), Unseen: c.sent}
			if c.front != "" {
				a.Header.Set("Server", c.front)
			}
			by := ""
			if p := a.MadeBy(); p != nil {
				by = p.Name
			}
			must.Expect(t, by == c.by && a.PermittedToProxy() == c.permitted,
				"made by %q, permitted: %v; want %q, %v", by, a.PermittedToProxy(), c.by, c.permitted)
			said := a.WhoMade()
			must.Expect(t, (said != "") == (c.by != "") && strings.Contains(said, c.by), "it says %q of %q", said, c.by)
		})
	}
}

// A proxy that was seen is named where something points at it, and one that was not is never named.
func TestSuspects(t *testing.T) {
	seen, unseen := &Target{}, &Target{}
	seen.NoteFront(&Response{Target: seen, Status: 200, Header: http.Header{"Via": {"1.1 varnish (Varnish/7.1)"}}})
	cached := &Response{Status: 200, Header: http.Header{"X-Varnish": {"5 3"}}, Body: []byte(`{}`)}
	for name, c := range map[string]struct {
		clause string
		a      *Response
		want   string // part of it; "": nothing is said
	}{
		"from the cache":     {"list/order-stable", cached, "X-Varnish: 5 3"},
		"cut off":            {"list/answers-json", &Response{Status: 200, Err: errors.New("the response was cut off")}, "may cut"},
		"a page":             {"errors/envelope", &Response{Status: 404, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<html>")}, "pages of its own"},
		"no challenge":       {"access/anonymous", &Response{Status: 401, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(envelope)}, "headers"},
		"a text":             {"errors/envelope", &Response{Status: 404, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte("not here")}, "pages of its own"},
		"another type":       {"list/answers-json", &Response{Status: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte(`{"tools":[]}`)}, "headers"},
		"a body breaks off":  {"invoke/large-body", &Response{Err: errors.New("broken pipe"), Unseen: 1 << 20}, "bodies"},
		"a call runs twice":  {"invoke/runs-once", &Response{Status: 500, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(envelope)}, "again"},
		"events are cut":     {"mcp/parity", &Response{Status: 200, Asked: 3, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: []byte("data: {\n\n")}, "may cut"},
		"a stream":           {"fresh/notify", nil, "do_stream"},
		"an envelope":        {"errors/code-stable", &Response{Status: 404, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(envelope)}, ""},
		"nothing points":     {"mapping/title-from-attribute", &Response{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"tools":[]}`)}, ""},
		"the call goes on":   {"upstream/cancel", nil, "pipe"},
		"a session is lost":  {"mcp/initialize", &Response{Path: "/mcp", Status: 400, Header: http.Header{}}, "Mcp-Session-Id"},
		"credentials are so": {"list/answers-json", &Response{Status: 401, Header: http.Header{"Content-Type": {"application/json"}, "Www-Authenticate": {"Basic"}}, Body: []byte(envelope), Sent: http.Header{"Authorization": {"Basic x"}}}, "Authorization"},
	} {
		t.Run(name, func(t *testing.T) {
			got := seen.Suspects(c.clause, c.a)
			must.Expect(t, (got != "") == (c.want != "") && strings.Contains(got, c.want), "it says %q, want %q", got, c.want)
			must.Equal(t, unseen.Suspects(c.clause, c.a), "", "what it suspects without a proxy")
		})
	}
}

// A request that is sent again has the response of the last time.
func TestTheLastResponseIsRead(t *testing.T) {
	bodies := []string{haproxyPage, `{"tools":[]}`}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, bodies[0]) //nolint:errcheck // the client has gone
		bodies = bodies[1:]
	}))
	defer server.Close()
	c, a := Client{Target: &Target{URL: server.URL, Transport: &http.Transport{}}}, &Response{}
	for _, want := range []bool{false, true} {
		c.Exchange(t.Context(), Request{Method: "GET", Path: ListPath}, a, time.Second)
		must.Expect(t, a.Err == nil && (a.Object() != nil) == want, "it is read as %v, %v", a.Object(), a.Err)
	}
}
