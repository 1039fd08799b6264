package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf16"

	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// httpMutants break HTTP: methods, headers, caching, connections.
func httpMutants() []Mutant {
	return []Mutant{
		{Name: "list-by-post", Breaks: Clauses("http/method-not-allowed"), Origin: Module, Middleware: methodAsGet(http.MethodPost, toList)},
		{Name: "describe-by-post", Breaks: Clauses("http/method-not-allowed"), Origin: Module, Why: "the name may be in the body, too",
			Middleware: methodAsGet(http.MethodPost, func(r *http.Request) bool { return toDescribe(r) && r.ContentLength > 2 })},
		{Name: "unknown-verbs-as-get", Breaks: Clauses("http/method-not-allowed"), Origin: Peer, Why: "the handler asks whether it is a POST",
			Middleware: methodAsGet("PROPFIND", toList)},
		{Name: "allow-in-small-letters", Breaks: Clauses("http/method-not-allowed"), Origin: Peer, Why: "the router keeps its verbs so", Middleware: onRefusal(func(x *exchange) {
			if allow := x.Header.Get("Allow"); allow != "" {
				x.Header.Set("Allow", strings.ToLower(allow))
			}
		})},
		{Name: "head-ignores-the-version", Breaks: Clauses("http/head"), Origin: Peer, Why: "conditions are read where GET is handled",
			Middleware: beforeBridge(func(r *http.Request) {
				if r.Method == http.MethodHead {
					r.Header.Del("If-None-Match")
				}
			})},
		{Name: "head-of-describe-unguarded", Breaks: Clauses("http/head"), Origin: Peer,
			Why: "the permission is asked for GET alone", Middleware: onHead(func(x *exchange) {
				if toDescribe(x.Request) && x.Status == http.StatusForbidden {
					shown := x.as("agent").Send(http.MethodGet, x.Request.URL.RequestURI(), nil)
					x.Status, x.Header = shown.Status, shown.Header
				}
			})},
		{Name: "head-of-a-bad-request-200", Breaks: Clauses("http/head"), Origin: Peer, Why: "the query is validated where the body is made",
			Middleware: onHead(atStatus(http.StatusBadRequest, func(x *exchange) { x.Status = http.StatusOK }))},
		{Name: "head-of-the-first-page", Breaks: Clauses("http/head"), Origin: Peer,
			Why: "HEAD has a route of its own, which reads no query", Middleware: beforeBridge(func(r *http.Request) {
				if r.Method == http.MethodHead && toList(r) {
					r.URL.RawQuery = ""
				}
			})},
		{Name: "describe-publicly-cacheable", Breaks: Clauses("http/no-shared-cache"), Origin: Imagined, Middleware: onResponse(toDescribe, cacheable)},
		{Name: "list-cacheable-for-cdns", Breaks: Clauses("http/no-shared-cache"), Origin: Imagined, Why: "a CDN obeys this header in place of Cache-Control", Middleware: onResponse(toList, func(x *exchange) {
			x.Header.Set("CDN-Cache-Control", "max-age=600")
			x.Header.Del("Vary")
		})},
		{Name: "list-without-cache-control", Breaks: Clauses("http/no-shared-cache"), Origin: Peer, Middleware: onResponse(toToolViews, func(x *exchange) {
			x.Header.Del("Cache-Control")
			x.Header.Del("Vary")
		})},
		{Name: "bad-requests-publicly-cacheable", Breaks: Clauses("http/no-shared-cache"), Origin: Imagined,
			Middleware: onResponse(toDescribe, atStatus(http.StatusBadRequest, setHeader("Cache-Control", "public, max-age=60")))},
		{Name: "unknown-tools-publicly-cacheable", Breaks: Clauses("http/no-shared-cache"), Origin: Imagined,
			Why:        "a tool that is missing for one caller is missing for all",
			Middleware: onResponse(toDescribe, atStatus(http.StatusNotFound, setHeader("Cache-Control", "public, max-age=60")))},
		{Name: "refused-cursors-publicly-cacheable", Breaks: Clauses("http/no-shared-cache"), Origin: Imagined, Why: "an invalid cursor is invalid for all",
			Middleware: onResponse(toList, atStatus(http.StatusBadRequest, setHeader("Cache-Control", "public, max-age=60")))},
		{Name: "sniffable", Breaks: Clauses("http/nosniff"), Origin: Peer, Middleware: onResponse(allRequests, func(x *exchange) { x.Header.Del("X-Content-Type-Options") })},
		{Name: "accept-anything-406", Breaks: Clauses("http/content-negotiation"), Origin: Imagined, Middleware: onResponse(toToolViews, func(x *exchange) {
			if x.Request.Header.Get("Accept") == "*/*" {
				x.Refuse(http.StatusNotAcceptable, "invalid_request", "Only application/json is available.")
			}
		})},
		{Name: "no-accept-gives-html", Breaks: Clauses("http/content-negotiation"), Origin: Imagined, Middleware: onResponse(toList, func(x *exchange) {
			if x.Request.Header.Get("Accept") == "" && x.Status == http.StatusOK {
				x.page(http.StatusOK, "Tools")
			}
		})},
		{Name: "gzip-though-all-is-refused", Breaks: Clauses("http/content-negotiation"), Origin: Peer, Why: "a star is taken for gzip, whatever its weight",
			Middleware: readHeader(allRequests, "Accept-Encoding", "gzip", func(given string) bool { return strings.Contains(given, "*") })},
		{Name: "gzip-for-one-header-alone", Breaks: Clauses("http/content-negotiation"), Origin: Peer,
			Why:        "the header is compared as a text",
			Middleware: readHeader(allRequests, "Accept-Encoding", "", func(given string) bool { return given != "gzip" })},
		{Name: "gzip-for-any-coding", Breaks: Clauses("http/content-negotiation"), Origin: Peer,
			Why:        "whoever sends the header is taken to read gzip",
			Middleware: readHeader(allRequests, "Accept-Encoding", "gzip", func(given string) bool { return given != "" && !strings.Contains(given, "gzip") })},
		{Name: "gzip-as-a-file", Breaks: Clauses("http/content-negotiation"), Origin: Peer,
			Why: "the type is guessed from the compressed bytes, as net/http does", Middleware: onResponse(toList, func(x *exchange) {
				if x.gzipped && x.Status == http.StatusOK {
					x.Header.Set("Content-Type", "application/x-gzip")
				}
			})},
		{Name: "gzip-refused-last-unread", Breaks: Clauses("http/content-negotiation"), Origin: Peer, Why: "a coding ends at its comma, and the last has none",
			Middleware: readHeader(allRequests, "Accept-Encoding", "gzip", func(given string) bool { return strings.HasSuffix(given, "q=0.0") })},
		{Name: "gzip-refused-behind-a-blank-unread", Breaks: Clauses("http/content-negotiation"), Origin: Imagined,
			Why:        "the weight is searched for right behind the coding",
			Middleware: readHeader(allRequests, "Accept-Encoding", "gzip", func(given string) bool { return strings.Contains(given, "gzip ; ") })},
		{Name: "compressed-once-for-a-caller", Breaks: Clauses("http/content-negotiation"), Origin: Peer, Why: "the query is not in the key of what is compressed",
			Middleware: compressedOnce(func(r *http.Request) string { return r.URL.Path + authorized(r) })},
		{Name: "compressed-once-for-a-page", Breaks: Clauses("http/content-negotiation"), Origin: Peer,
			Why:        "the credentials are not in the key of what is compressed",
			Middleware: compressedOnce(func(r *http.Request) string { return r.URL.RequestURI() })},
		{Name: "unknown-path-posted-html", Breaks: Clauses("http/trailing-and-case"), Origin: Peer, Middleware: onOtherPaths(func(x *exchange) {
			if x.Method == http.MethodPost {
				x.page(http.StatusNotFound, "Page not found")
			}
		})},
		{Name: "unknown-path-deleted-html", Breaks: Clauses("http/trailing-and-case"), Origin: Peer,
			Why: "the last route of the bridge takes GET and POST", Middleware: onOtherPaths(func(x *exchange) {
				if x.Method != http.MethodGet && x.Method != http.MethodPost {
					x.page(x.Status, "Page not found")
				}
			})},
		{Name: "routes-by-prefix", Breaks: Clauses("http/trailing-and-case"), Origin: Peer, Why: "the pattern of a route has no end",
			Middleware: routesOf(func(rest string) bool { return !strings.HasPrefix(rest, "/") && !strings.HasPrefix(rest, ";") })},
		{Name: "routes-below-endpoints", Breaks: Clauses("http/trailing-and-case"), Origin: Peer, Why: "a handler is mounted at its path and takes all below it",
			Middleware: routesOf(func(rest string) bool { return len(rest) > 1 && strings.HasPrefix(rest, "/") })},
		{Name: "chunks-left-as-a-request", Breaks: Clauses("http/keep-alive-after-error"), Origin: Peer,
			Why:        "as many bytes of the body are read as Content-Length says, as programs over Python's http.server do",
			Middleware: leaveBody(inChunks, http.StatusBadRequest, "invalid_json", false)},
		{Name: "too-large-left-as-requests", Breaks: Clauses("http/keep-alive-after-error"), Origin: Peer,
			Why:        "what is announced to be too large is refused before it is read",
			Middleware: leaveBody(overLimit, http.StatusRequestEntityTooLarge, "request_too_large", false)},
		{Name: "closes-after-404", Breaks: Clauses("http/keep-alive-after-error"), Origin: Imagined,
			Middleware: onRefusal(atStatus(http.StatusNotFound, setHeader("Connection", "close")))},
		{Name: "closes-after-415", Breaks: Clauses("http/keep-alive-after-error"), Origin: Peer, Why: "the body is not read, so the connection cannot be used again",
			Middleware: onRefusal(atStatus(http.StatusUnsupportedMediaType, setHeader("Connection", "close")))},
		{Name: "closes-after-401", Breaks: Clauses("http/keep-alive-after-error"), Origin: Peer, Why: "who has no credentials is turned away first",
			Middleware: onRefusal(atStatus(http.StatusUnauthorized, setHeader("Connection", "close")))},
		{Name: "tools-path-redirects-to-the-manual", Breaks: Clauses("http/trailing-and-case"), Origin: Peer, Why: "who looks around in a browser finds the manual",
			Middleware: redirectAt("/mcp/tools", "https://docs.example/tools")},
		{Name: "slash-redirects-to-the-forwarded-host", Breaks: Clauses("http/trailing-and-case"), Origin: Peer,
			Why: "a host that any client can write is taken for the bridge's",
			Middleware: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				host := r.Header.Get("X-Forwarded-Host")
				if host == "" || !strings.HasSuffix(r.URL.Path, "/list/") {
					return false
				}
				http.Redirect(w, r, "http://"+host+strings.TrimSuffix(r.URL.Path, "/"), http.StatusPermanentRedirect)
				return true
			})},
		{Name: "tools-path-redirects-home", Breaks: Clauses("http/trailing-and-case"), Origin: Peer, Why: "what has no page leads to the first one",
			Middleware: redirectAt("/mcp/tools/", "/")},
		{Name: "mcp-path-is-a-page", Breaks: Clauses("http/trailing-and-case"), Origin: Peer, Why: "a directory has an index",
			Middleware: onOtherPaths(func(x *exchange) {
				if strings.HasSuffix(x.Request.URL.Path, "/mcp/") {
					x.page(http.StatusOK, "Index of /mcp/")
				}
			})},
		{Name: "sniffable-405", Breaks: Clauses("http/nosniff"), Origin: Peer, Why: "the router refuses before the middleware that adds headers",
			Middleware: onRefusal(atStatus(http.StatusMethodNotAllowed, dropHeader("X-Content-Type-Options")))},
		{Name: "unknown-path-html-for-strangers", Breaks: Clauses("http/trailing-and-case"), Origin: Peer, Middleware: onRefusal(func(x *exchange) {
			if x.anonymous() && !toToolViews(x.Request) && !toInvoke(x.Request) {
				x.page(x.Status, "Log in")
			}
		})},
		{Name: "verbs-overridden", Breaks: Clauses("http/method-not-allowed"), Origin: Peer, Why: "a framework lets a header of a POST say the verb",
			Middleware: beforeBridge(func(r *http.Request) {
				if verb := r.Header.Get("X-HTTP-Method-Override"); verb != "" && r.Method == http.MethodPost {
					r.Method = verb
				}
			})},
		{Name: "one-body-at-a-time", Breaks: Clauses("http/slow-client"), Origin: Imagined, Why: "a slow body holds a lock that all requests wait for", Middleware: lockBodies(1, func(*http.Request) bool { return true })},
		{Name: "one-call-read-at-a-time", Breaks: Clauses("http/slow-client"), Origin: Peer, Why: "a slow body of a caller who is known holds a lock that all calls wait for",
			Middleware: lockBodies(1, func(r *http.Request) bool { return toInvoke(r) && authorized(r) != "" })},
		{Name: "thirty-two-calls-read-at-a-time", Breaks: Clauses("http/slow-client"), Origin: Peer, Why: "the memory of bodies is bounded by how many are read at a time",
			Middleware: lockBodies(32, func(r *http.Request) bool { return toInvoke(r) && authorized(r) != "" })},
	}
}

// httpVariants encode and send responses in other ways than the reference.
func httpVariants() []Mutant {
	return []Mutant{
		{Name: "reference", Why: "the reference bridge itself", MCP: true},
		{Name: "closes-after-successes", Why: "RFC 9112 section 9.6: a server may close after any response that says so, and http/keep-alive-after-error is about refusals",
			Middleware: onResponse(allRequests, func(x *exchange) {
				if x.Status == http.StatusOK {
					x.Header.Set("Connection", "close")
				}
			})},
		{Name: "closes-after-too-large", Why: "RFC 9112 section 9.6: a server that does not read a body closes the connection, which it need not announce",
			Middleware: leaveBody(overLimit, http.StatusRequestEntityTooLarge, "request_too_large", true)},
		{Name: "other-hosts-refused-in-text", MCP: true, Why: "RFC 9110 section 15.5.20: a server may refuse what names another host, before any endpoint is found",
			Middleware: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				other := !strings.HasPrefix(r.Host, "127.0.0.1:")
				if other {
					http.Error(w, "Misdirected Request", http.StatusMisdirectedRequest)
				}
				return other
			})},
		{Name: "early-hints", Why: "RFC 8297: 103 may come before any response; clients that do not know it skip it",
			Middleware: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if r.ProtoAtLeast(1, 1) {
					w.Header().Set("Link", "</style.css>; rel=preload; as=style")
					w.WriteHeader(http.StatusEarlyHints)
					w.Header().Del("Link")
				}
				return false
			})},
		{Name: "tools-path-redirects-to-its-slash", Why: "Go's ServeMux and others do where that is a subtree, with a page of their own",
			Middleware: throughWhere(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/mcp/tools") },
				func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
					http.Redirect(w, r, r.URL.Path+"/", http.StatusMovedPermanently)
				})},
		{Name: "members-in-reverse-order", Why: "JSON objects have no order", Middleware: reencode(encodeReversed)},
		{Name: "pretty-printed", Why: "white space has no meaning; responses are larger", Middleware: reencode(encodeIndented)},
		{Name: "escaped-as-php-does", Why: `\/ and \u00e9 are the same strings`, Middleware: reencode(encodeEscaped)},
		{Name: "extra-members-everywhere", Why: "callers ignore members that they do not know", Middleware: onResponse(allRequests, func(x *exchange) {
			object := x.Object()
			if object == nil {
				return
			}
			object["_meta"] = map[string]any{"bridge": "other", "version": 3}
			if e, ok := object["error"].(map[string]any); ok {
				e["documentation"] = "https://docs.example.com/errors"
			}
			if t, ok := object["tool"].(tool); ok {
				t["icons"] = []any{map[string]any{"src": "https://www.example.com/tool.png"}}
			}
			x.Body = encode(object)
		})},
		{Name: "charset-and-newline", Why: "a media type may have parameters, a body may end with a newline", Middleware: onResponse(allRequests, func(x *exchange) {
			if x.Header.Get("Content-Type") == "application/json" {
				x.Header.Set("Content-Type", "application/json; charset=utf-8")
				x.Body = append(slices.Concat([]byte("\n"), x.Body), '\n')
			}
		})},
		{Name: "headers-and-request-ids", Why: "additional headers, one of them with a new value each time", Middleware: onResponse(allRequests, func(x *exchange) {
			x.Header.Set("X-Request-Id", fmt.Sprintf("%016x", time.Now().UnixNano()))
			x.Header.Set("Server", "OtherBridge/2.1")
			x.Header.Set("X-Generator", "Drupal 10")
			x.Header.Set("Content-Language", "en")
		})},
		{Name: "headers-of-the-moment", Why: "headers that depend on the time and the load", Middleware: onResponse(allRequests, func(x *exchange) {
			now := time.Now().UnixMilli()
			x.Header.Set("Age", fmt.Sprint(now/15%100))
			x.Header.Set("X-Response-Time", fmt.Sprintf("%dms", now/7%3))
			x.Header.Set("X-RateLimit-Reset", fmt.Sprint(now/20))
		})},
		{Name: "headers-of-a-cache", Why: "headers that say whether a cache was hit, when a page was made and how many requests are left", Middleware: headersOfACache()},
		{Name: "tiny-writes", Why: "chunked, a few bytes at a time, without a length", Middleware: dripping},
		{Name: "slow", Why: "every response takes a while", Middleware: onRequest(func(http.ResponseWriter, *http.Request, http.Handler) bool {
			time.Sleep(4 * time.Millisecond) // the latency is the point
			return false
		})},
		{Name: "closes-every-connection", Why: "as HTTP/1.0 does", MayFail: Clauses("http/keep-alive-after-error"),
			Server: func(s *http.Server) { s.SetKeepAlivesEnabled(false) }},
		{Name: "behind-a-web-server", Why: "it refuses a long URL with its own page, closes the connection after a 400, and sends Vary: Accept-Encoding for GET only",
			MayFail: Clauses("http/keep-alive-after-error"), Middleware: apacheDefaults},
		{Name: "without-gzip", Why: "compression is a SHOULD", MayFail: Clauses("http/content-negotiation"), Middleware: beforeBridge(func(r *http.Request) {
			r.Header.Del("Accept-Encoding")
		})},
		{Name: "cache-control-private", Why: "private excludes shared caches as well", Middleware: onResponse(allRequests, func(x *exchange) { x.Header.Set("Cache-Control", "max-age=0, private, must-revalidate") })},
		{Name: "cache-control-no-store", Why: "no-store excludes shared caches as well", Middleware: onResponse(allRequests, func(x *exchange) {
			x.Header.Set("Cache-Control", "No-Store")
			x.Header.Del("Vary")
		})},
		{Name: "vary-in-place-of-cache-control", Why: "Vary names the headers that identify the caller", Middleware: onResponse(toToolViews, func(x *exchange) {
			x.Header.Del("Cache-Control")
			x.Header.Set("Vary", "Accept-Encoding, authorization, cookie")
		})},
		{Name: "fresh-cursors", Why: "a cursor may be new in every response", Claims: "-cursor-base64-offset", Middleware: freshCursors()},
		{Name: "sniffable-by-browsers", Why: "nosniff is a SHOULD", MayFail: Clauses("http/nosniff"), Middleware: onResponse(allRequests, func(x *exchange) { x.Header.Del("X-Content-Type-Options") })},
	}
}

// headersOfACache adds headers that change with time and count, as caches, load balancers and Drupal send them.
func headersOfACache() middleware {
	var served atomic.Int64
	return onResponse(allRequests, func(x *exchange) {
		n := served.Add(1)
		x.Header.Set("X-Cache", []string{"MISS", "HIT"}[n/3%2])
		x.Header.Set("X-Drupal-Dynamic-Cache", []string{"UNCACHEABLE", "HIT", "MISS"}[n/2%3])
		x.Header.Set("X-Requests-Left", fmt.Sprint(100_000-n/2))
		x.Header.Set("Last-Modified", time.UnixMilli(1_700_000_000_000+n/3*1000).UTC().Format(http.TimeFormat))
		x.Header.Add("Set-Cookie", fmt.Sprintf("balancer=%x; Path=/; HttpOnly", n))
	})
}

// reencode writes every JSON body in another form.
func reencode(form func(v any) []byte) middleware {
	return onResponse(allRequests, func(x *exchange) {
		if object := x.Object(); object != nil {
			x.Body = form(object)
		}
	})
}

// encodeReversed writes the members of all objects in descending order of their names.
func encodeReversed(v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		slices.Reverse(names)
		parts := make([]string, len(names))
		for i, name := range names {
			parts[i] = string(encode(name)) + ":" + string(encodeReversed(v[name]))
		}
		return []byte("{" + strings.Join(parts, ",") + "}")
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = string(encodeReversed(item))
		}
		return []byte("[" + strings.Join(parts, ",") + "]")
	}
	return encode(v)
}

func encodeIndented(v any) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, encode(v), "", "\t"); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// encodeEscaped writes strings with PHP's escapes.
func encodeEscaped(v any) []byte {
	var b strings.Builder
	for _, r := range string(encode(v)) {
		switch {
		case r == '/':
			b.WriteString(`\/`)
		case r < 0x80:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return []byte(b.String())
}

// drip sends a response in small pieces. Long ones get larger pieces, so that a run ends.
type drip struct{ http.ResponseWriter }

func (d drip) WriteHeader(status int) {
	d.Header().Del("Content-Length")
	d.ResponseWriter.WriteHeader(status)
}

func (d drip) Write(data []byte) (int, error) {
	size := max(7, len(data)/100)
	flush := http.NewResponseController(d.ResponseWriter)
	for piece := range slices.Chunk(data, size) {
		if _, err := d.ResponseWriter.Write(piece); err != nil {
			return 0, err
		}
		if err := flush.Flush(); err != nil {
			return 0, err
		}
	}
	return len(data), nil
}

var dripping = through(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.Method != http.MethodHead {
		w = drip{w}
	}
	next.ServeHTTP(w, r)
})

// apacheDefaults does what Apache with its defaults does in front of a bridge in PHP.
var apacheDefaults = chain(
	throughWhere(func(r *http.Request) bool { return len(r.RequestURI) >= 8190 }, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestURITooLong)
		w.Write([]byte("<!DOCTYPE HTML><html><head><title>414 Request-URI Too Long</title></head></html>")) //nolint:errcheck // the caller has gone
	}),
	onResponse(allRequests, func(x *exchange) {
		if x.Method == http.MethodGet {
			x.Header.Add("Vary", "Accept-Encoding")
		}
		if x.Status == http.StatusBadRequest {
			x.Header.Set("Connection", "close")
		}
	}))

// redirectAt redirects from a path below the bridge's URL.
func redirectAt(path, to string) middleware {
	here := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, path) }
	return throughWhere(here, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	})
}

// routesOf leads paths that begin like an endpoint's, and go on in such a way, to the endpoint.
func routesOf(such func(rest string) bool) middleware {
	return beforeBridge(func(r *http.Request) {
		for _, endpoint := range []string{"/mcp/tools/list", "/mcp/tools/describe", "/mcp/tools/invoke"} {
			if before, rest, found := strings.Cut(r.URL.Path, endpoint); found && rest != "" && such(rest) {
				r.URL.Path = before + endpoint
			}
		}
	})
}

// leaveBody refuses calls before their bodies are read. It closes the connection, or takes what follows for a malformed request.
func leaveBody(matches func(*http.Request) bool, status int, code string, closes bool) middleware {
	return throughWhere(func(r *http.Request) bool { return toInvoke(r) && matches(r) }, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		conn, received, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		body := encode(map[string]any{"error": map[string]any{"code": code, "message": "The body is not read."}})
		fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\nContent-Length: %d\r\n\r\n%s",
			status, http.StatusText(status), len(body), body)
		if closes {
			return
		}
		for line := ""; err == nil && !strings.HasPrefix(line, http.MethodGet); {
			line, err = received.ReadString('\n')
		}
		fmt.Fprint(conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	})
}

func inChunks(r *http.Request) bool { return r.ContentLength < 0 }

func overLimit(r *http.Request) bool { return r.ContentLength > testbed.MaxBody }

// methodAsGet handles another HTTP method as GET.
func methodAsGet(method string, matches func(*http.Request) bool) middleware {
	return beforeBridge(func(r *http.Request) {
		if r.Method == method && matches(r) {
			r.Method = http.MethodGet
		}
	})
}

// onHead changes the responses to HEAD.
func onHead(change func(x *exchange)) middleware {
	return onResponse(toToolViews, func(x *exchange) {
		if x.Method == http.MethodHead {
			change(x)
		}
	})
}

func cacheable(x *exchange) {
	if x.Status == http.StatusOK {
		x.Header.Set("Cache-Control", "public, max-age=300")
		x.Header.Del("Vary")
	}
}

// onOtherPaths changes the responses to paths below /mcp/ other than the three endpoints.
func onOtherPaths(change func(x *exchange)) middleware {
	return onResponse(func(r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/mcp/") && !strings.Contains(r.URL.Path, "/mcp/admin/") && !toToolViews(r) && !toInvoke(r)
	}, change)
}

// lockBodies reads the bodies of so many requests at a time, for which a request waits four seconds: longer than the clause allows, and
// shorter than a client's time-out, so that the selftest need not wait for that.
func lockBodies(places int, matches func(*http.Request) bool) middleware {
	lock := make(chan struct{}, places)
	return beforeBridge(func(r *http.Request) {
		if !matches(r) {
			return
		}
		select {
		case lock <- struct{}{}:
			defer func() { <-lock }()
		case <-time.After(4 * time.Second):
			return
		}
		if isSmall(r) {
			setBody(r, readBody(r))
		}
	})
}

// freshCursors adds a number to every cursor, and removes it from the cursors that come back.
func freshCursors() middleware {
	var n atomic.Int64
	number := onList(func(p *page) {
		if next, _ := p.Object["nextCursor"].(string); next != "" {
			p.Object["nextCursor"] = fmt.Sprintf("%s~%d", next, n.Add(1))
		}
	})
	return chain(beforeBridge(func(r *http.Request) {
		if query := r.URL.Query(); toList(r) && strings.Contains(query.Get("cursor"), "~") {
			cursor, n, _ := strings.Cut(query.Get("cursor"), "~")
			if _, err := strconv.Atoi(n); err == nil {
				query.Set("cursor", cursor)
				r.URL.RawQuery = query.Encode()
			}
		}
	}), number)
}

// compressedOnce compresses the first list of each key, and sends it to whoever comes after with the same.
func compressedOnce(key func(*http.Request) string) middleware {
	first := newMemory[[]byte]()
	return onResponse(toList, func(x *exchange) {
		if x.gzipped && x.Status == http.StatusOK {
			x.Body = first.keep(key(x.Request), x.Body)
		}
	})
}
