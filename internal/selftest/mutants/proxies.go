package mutants

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// brokenProxies are the reference behind a proxy that breaks it, and bridges that pretend to be behind one, as far as they
// belong to an area. All show themselves as nginx does.
func brokenProxies(area string) []Mutant {
	all := []Mutant{
		{Name: "proxy-buffers-streams", Breaks: Clauses("fresh/notify"), MayFail: Clauses("mcp/stateless-2026"), MCP: true, Origin: Peer, Why: "proxy_buffering on, the default of nginx", Middleware: asNginx(through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if !isStream(r) {
				next.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(&heldBody{ResponseWriter: w}, r)
		}))},
		{Name: "proxy-caches-by-path", Breaks: Clauses("access/no-cross-talk", "access/list-403", "access/describe-403", "access/anonymous", "access/filtered-by-method", "access/no-oracle", "access/per-credential", "describe/inaccessible-404"),
			MayFail: Clauses("list/pages-cover-all-once", "http/head", "fresh/ttl-expiry", "fresh/invalidate", "fresh/stale-on-error", "fresh/version", "upstream/timeout", "upstream/down-and-up"), Origin: Peer, Why: "the key of the cache lacks the caller", Middleware: asNginx(cachedByPath())},
		{Name: "proxy-cuts-bodies", Breaks: Clauses("list/answers-json"), Origin: Peer, Why: "a temporary file that cannot be written", Middleware: asNginx(onResponse(toToolViews, func(x *exchange) {
			const most = 8 << 10
			x.Header.Set("Content-Length", fmt.Sprint(len(x.Body)))
			x.Body = x.Body[:min(len(x.Body), most)]
		}))},
		{Name: "proxy-replaces-404", Breaks: Clauses("errors/envelope", "describe/unknown-404", "describe/name-not-scalar", "describe/reflects-safely", "invoke/unknown-404", "invoke/execution-error-500", "http/trailing-and-case"), Origin: Peer, Why: "proxy_intercept_errors and error_page",
			Middleware: asNginx(onRefusal(atStatus(http.StatusNotFound, func(x *exchange) { nginxPage(x.Header, &x.Body, x.Status) })))},
		{Name: "proxy-gives-up-early", Breaks: Clauses("upstream/timeout"), Origin: Peer, Why: "proxy_read_timeout is shorter than the bridge waits for its site", Middleware: asNginx(givesUpEarly)},
		{Name: "proxy-drops-mcp-session", Breaks: Clauses("mcp/initialize", "mcp/tools-list", "mcp/unknown-tool", "mcp/invalid-arguments",
			"mcp/execution-error", "mcp/undeclared-argument", "mcp/empty-map"), MayFail: Clauses("mapping/language"), MCP: true, Origin: Peer, Why: "only known headers are passed on",
			Middleware: asNginx(through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				r.Header.Del("Mcp-Session-Id")
				next.ServeHTTP(&withoutHeader{ResponseWriter: w, name: "Mcp-Session-Id"}, r)
			}))},
		{Name: "proxy-decodes-paths", Breaks: Clauses("per-tool/answers"), Claims: "per-tool", Origin: Peer, Why: "a path behind the name in proxy_pass", SiteMiddleware: func(site *siteClient) middleware {
			return func(next http.Handler) http.Handler {
				return asNginx(beforeBridge(func(r *http.Request) {
					if path, err := url.PathUnescape(r.URL.Path); err == nil {
						r.URL.Path, r.URL.RawPath = path, ""
					}
				}))(endpoints{}.middleware(site)(next))
			}
		}},
		{Name: "html-errors-as-if-by-nginx", Breaks: Clauses("errors/envelope", "list/cursor-malformed", "describe/missing-name", "describe/unknown-404", "describe/name-not-scalar", "describe/reflects-safely",
			"invoke/malformed-json", "invoke/body-not-object", "invoke/missing-name", "invoke/missing-arguments", "invoke/invalid-arguments-400", "invoke/invalid-arguments-named", "invoke/unknown-404",
			"invoke/execution-error-500", "invoke/error-data-kept", "invoke/semantic-invalid-400", "http/trailing-and-case"), Origin: Imagined, Why: "a header and the form of a page do not make a fault of the bridge the proxy's", Middleware: asNginx(onRefusal(func(x *exchange) {
			if slices.Contains([]int{400, 404, 500}, x.Status) {
				nginxPage(x.Header, &x.Body, x.Status)
			}
		}))},
		{Name: "failures-as-if-by-nginx", Breaks: Clauses("errors/envelope", "upstream/id-mismatch", "upstream/http-error", "upstream/timeout", "upstream/huge-answer", "upstream/result-status", "upstream/error-any-status"), Origin: Imagined, Why: "as above, where the site fails", Middleware: asNginx(onRefusal(func(x *exchange) {
			if x.Status >= http.StatusBadGateway {
				nginxPage(x.Header, &x.Body, x.Status)
			}
		}))},
		{Name: "closes-after-404-as-if-by-apache", Breaks: Clauses("http/keep-alive-after-error"), Origin: Imagined,
			Why:        "Apache closes after a 400, and after no 404",
			Middleware: chain(serverHeader("Apache/2.4.62 (Debian)"), onRefusal(atStatus(http.StatusNotFound, setHeader("Connection", "close"))))},
	}
	return slices.DeleteFunc(all, func(m Mutant) bool { return !strings.HasPrefix(m.Breaks[0], area+"/") })
}

// rightProxies are the reference behind a proxy that does what it may.
func rightProxies() []Mutant {
	return []Mutant{
		{Name: "one-endpoint-a-tool-behind-nginx", Why: "a proxy that passes paths on as they come", Claims: "per-tool", SiteMiddleware: func(site *siteClient) middleware {
			return asNginx(endpoints{}.middleware(site))
		}},
		{Name: "behind-nginx", Why: "a proxy may refuse what is too large, and a GET or HEAD with a body, in its own words", Middleware: asNginx(onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			const most = 8 << 20
			status := 0
			switch {
			case r.ContentLength > most || r.ContentLength < 0 && toInvoke(r):
				status = http.StatusRequestEntityTooLarge
			case (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.ContentLength > 0:
				status = http.StatusBadRequest
			default:
				return false
			}
			var body []byte
			nginxPage(w.Header(), &body, status)
			w.Header().Set("Connection", "close")
			w.WriteHeader(status)
			w.Write(body) //nolint:errcheck // the caller has gone
			return true
		}))},
		{Name: "behind-apache", Why: "a bridge that closes the connection of a body that is too large is a 502 at the proxy, which closes after a 400",
			Middleware: chain(serverHeader("Apache/2.4.62 (Debian)"), chain(
				throughWhere(func(r *http.Request) bool { return r.ContentLength > maxBuffered || r.ContentLength < 0 && toInvoke(r) }, apacheProxyError),
				onRefusal(atStatus(http.StatusBadRequest, setHeader("Connection", "close")))))},
	}
}

// asNginx puts nginx's name on every response.
func asNginx(change middleware) middleware { return chain(serverHeader("nginx/1.22.1"), change) }

func serverHeader(name string) middleware {
	return through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		w.Header().Set("Server", name)
		next.ServeHTTP(w, r)
	})
}

// apacheProxyError is the page of Apache for a bridge that does not respond.
func apacheProxyError(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
	w.WriteHeader(http.StatusBadGateway)
	io.WriteString(w, "<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\">\n<html><head>\n<title>502 Proxy Error</title>\n</head><body>\n<h1>Proxy Error</h1>\n</body></html>\n") //nolint:errcheck // the caller has gone
}

// nginxPage makes a response the error page of nginx.
func nginxPage(h http.Header, body *[]byte, status int) {
	title := fmt.Sprintf("%d %s", status, http.StatusText(status))
	*body = []byte("<html>\r\n<head><title>" + title + "</title></head>\r\n<body>\r\n<center><h1>" + title + "</h1></center>\r\n<hr><center>nginx/1.22.1</center>\r\n</body>\r\n</html>\r\n")
	h.Set("Content-Type", "text/html")
}

// heldBody sends the header at once, and the body when it is complete.
type heldBody struct {
	http.ResponseWriter
	body bytes.Buffer
}

func (h *heldBody) Write(p []byte) (int, error) { return h.body.Write(p) }
func (h *heldBody) Flush()                      { http.NewResponseController(h.ResponseWriter).Flush() } //nolint:errcheck // the caller has gone

// cachedByPath gives every caller the first response to GET of a path and query.
func cachedByPath() middleware {
	kept := newMemory[exchange]()
	return onResponse(toToolViews, func(x *exchange) {
		if x.Method != http.MethodGet {
			return
		}
		before, hit := kept.get(x.Request.URL.RequestURI())
		switch {
		case hit:
			x.Status, x.Header, x.Body = before.Status, before.Header.Clone(), before.Body
			x.Header.Set("X-Cache", "HIT")
		case x.Status == http.StatusOK:
			kept.put(x.Request.URL.RequestURI(), exchange{Status: x.Status, Header: x.Header.Clone(), Body: x.Body})
		}
	})
}

// givesUpEarly responds in place of a bridge that waits for its site.
var givesUpEarly = throughWhere(func(r *http.Request) bool { return toInvoke(r) && isSmall(r) }, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
	held, done := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(done)
		next.ServeHTTP(held, r)
	}()
	select {
	case <-done:
		maps.Copy(w.Header(), held.Header())
		w.WriteHeader(held.Code)
		w.Write(held.Body.Bytes()) //nolint:errcheck // the caller has gone
	case <-time.After(testbed.UpstreamTimeout * 3 / 5):
		var body []byte
		nginxPage(w.Header(), &body, http.StatusGatewayTimeout)
		w.WriteHeader(http.StatusGatewayTimeout)
		w.Write(body) //nolint:errcheck // the caller has gone
	}
})

// withoutHeader takes a header out of a response.
type withoutHeader struct {
	http.ResponseWriter
	name string
}

func (w *withoutHeader) WriteHeader(status int) {
	w.Header().Del(w.name)
	w.ResponseWriter.WriteHeader(status)
}

func (w *withoutHeader) Write(p []byte) (int, error) {
	w.Header().Del(w.name)
	return w.ResponseWriter.Write(p)
}

func (w *withoutHeader) Unwrap() http.ResponseWriter { return w.ResponseWriter }
