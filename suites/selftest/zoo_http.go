package selftest

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

var httpMutants = []Mutant{
	{Name: "list-by-post", Breaks: Clauses("http/method-not-allowed"), Origin: Module, Front: asGet(http.MethodPost, toList)},
	{Name: "describe-by-post", Breaks: Clauses("http/method-not-allowed"), Origin: Module, Front: asGet(http.MethodPost, toDescribe)},
	{Name: "list-by-patch", Breaks: Clauses("http/method-not-allowed"), Origin: Imagined, Front: asGet(http.MethodPatch, toList)},
	{Name: "allow-missing", Breaks: Clauses("http/method-not-allowed"), Origin: Peer, Why: "as gorilla/mux answers", Front: onRefusal(func(x *exchange) { x.Header.Del("Allow") })},
	{Name: "allow-names-post", Breaks: Clauses("http/method-not-allowed"), Origin: Imagined, Front: onRefusal(func(x *exchange) {
		if x.Status == http.StatusMethodNotAllowed && toToolViews(x.Request) {
			x.Header.Set("Allow", "POST")
		}
	})},
	{Name: "delete-404", Breaks: Clauses("http/method-not-allowed"), Origin: Imagined, Front: onRefusal(func(x *exchange) {
		if x.Method == http.MethodDelete && toToolViews(x.Request) {
			x.Refuse(http.StatusNotFound, "not_found", "There is nothing here.")
		}
	})},

	{Name: "head-405", Breaks: Clauses("http/head"), Origin: Peer, Why: "as gorilla/mux answers", Front: onHead(func(x *exchange) {
		x.Refuse(http.StatusMethodNotAllowed, "method_not_allowed", "Use GET.")
		x.Header.Set("Allow", "GET")
	})},
	{Name: "head-204", Breaks: Clauses("http/head"), Origin: Imagined, Front: onHead(func(x *exchange) { x.Status = http.StatusNoContent })},
	{Name: "head-other-type", Breaks: Clauses("http/head"), Origin: Imagined, Front: onHead(func(x *exchange) { x.Header.Set("Content-Type", "text/plain; charset=utf-8") })},
	{Name: "head-describe-always-200", Breaks: Clauses("http/head"), Origin: Imagined, Front: onHead(func(x *exchange) {
		if toDescribe(x.Request) {
			x.Status = http.StatusOK
		}
	})},

	{Name: "head-open-to-outsiders", Breaks: Clauses("http/head"), Origin: Imagined, Why: "only GET asks for the permission", Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method == http.MethodHead && caller(r) == "outsider" {
			r.Header.Set("Authorization", signedAs("agent"))
		}
		return false
	})},

	{Name: "list-publicly-cacheable", Breaks: Clauses("http/no-shared-cache"), Origin: Imagined, Front: onAnswer(toList, cacheable)},
	{Name: "describe-publicly-cacheable", Breaks: Clauses("http/no-shared-cache"), Origin: Imagined, Front: onAnswer(toDescribe, cacheable)},
	{Name: "page-two-publicly-cacheable", Breaks: Clauses("http/no-shared-cache"), Origin: Imagined, Front: onAnswer(toList, func(x *exchange) {
		if x.Request.URL.Query().Get("cursor") != "" {
			cacheable(x)
		}
	})},
	{Name: "refusals-publicly-cacheable", Breaks: Clauses("http/no-shared-cache"), Origin: Imagined, Why: "who may see a tool is told by a cache that there is none", Front: onAnswer(toToolViews, func(x *exchange) {
		if x.Status >= 400 {
			x.Header.Set("Cache-Control", "public, max-age=60")
			x.Header.Del("Vary")
		}
	})},
	{Name: "list-without-cache-control", Breaks: Clauses("http/no-shared-cache"), Origin: Peer, Front: onAnswer(toToolViews, func(x *exchange) {
		x.Header.Del("Cache-Control")
		x.Header.Del("Vary")
	})},

	{Name: "sniffable", Breaks: Clauses("http/nosniff"), Origin: Peer, Front: onAnswer(everything, func(x *exchange) { x.Header.Del("X-Content-Type-Options") })},
	{Name: "sniffable-errors", Breaks: Clauses("http/nosniff"), Origin: Imagined, Front: onRefusal(func(x *exchange) { x.Header.Del("X-Content-Type-Options") })},

	{Name: "accept-anything-406", Breaks: Clauses("http/content-negotiation"), Origin: Imagined, Front: onAnswer(toToolViews, func(x *exchange) {
		if x.Request.Header.Get("Accept") == "*/*" {
			x.Refuse(http.StatusNotAcceptable, "invalid_request", "Ask for application/json.")
		}
	})},
	{Name: "no-accept-gives-html", Breaks: Clauses("http/content-negotiation"), Origin: Imagined, Front: onAnswer(toList, func(x *exchange) {
		if x.Request.Header.Get("Accept") == "" && x.Status == http.StatusOK {
			x.page(http.StatusOK, "Tools")
		}
	})},
	{Name: "never-gzips", Breaks: Clauses("http/content-negotiation"), Origin: Imagined, Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		r.Header.Del("Accept-Encoding")
		return false
	})},
	{Name: "gzip-of-other-bytes", Breaks: Clauses("http/content-negotiation"), Origin: Imagined, Why: "the compressed copy is an old one", Front: onAnswer(toList, func(x *exchange) {
		if tools, _ := x.Object()["tools"].([]any); x.gzipped && len(tools) > 1 {
			x.Set(http.StatusOK, map[string]any{"tools": tools[1:]})
		}
	})},
	{Name: "gzip-though-refused", Breaks: Clauses("http/content-negotiation"), Origin: Peer, Why: "the header is searched for the word", Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			r.Header.Set("Accept-Encoding", "gzip")
		}
		return false
	})},
	{Name: "gzip-unasked", Breaks: Clauses("http/content-negotiation"), Origin: Imagined, Front: onAnswer(toList, func(x *exchange) {
		if x.Request.Header.Get("Accept") == "*/*" && x.Status == http.StatusOK {
			var packed bytes.Buffer
			zip := gzip.NewWriter(&packed)
			zip.Write(x.Body) //nolint:errcheck // a buffer takes all
			zip.Close()       //nolint:errcheck // likewise
			x.Body = packed.Bytes()
			x.Header.Set("Content-Encoding", "gzip")
		}
	})},

	{Name: "unknown-path-html", Breaks: Clauses("http/trailing-and-case"), Origin: Module, Front: onElsewhere(func(x *exchange) { x.page(http.StatusNotFound, "Page not found") })},
	{Name: "unknown-path-posted-html", Breaks: Clauses("http/trailing-and-case"), Origin: Peer, Front: onElsewhere(func(x *exchange) {
		if x.Method == http.MethodPost {
			x.page(http.StatusNotFound, "Page not found")
		}
	})},
	{Name: "unknown-path-redirect", Breaks: Clauses("http/trailing-and-case"), Origin: Imagined, Front: onElsewhere(func(x *exchange) {
		x.Header.Set("Location", "https://www.example.com"+x.Request.URL.Path)
		x.Set(http.StatusMovedPermanently, map[string]any{})
	})},
	{Name: "unknown-path-lists", Breaks: Clauses("http/trailing-and-case"), Origin: Imagined, Front: onElsewhere(func(x *exchange) {
		*x = *x.Ask(http.MethodGet, "/mcp/tools/list", nil)
	})},

	{Name: "closes-after-errors", Breaks: Clauses("http/keep-alive-after-error"), Origin: Peer, Front: onRefusal(func(x *exchange) { x.Header.Set("Connection", "close") })},
	{Name: "closes-after-404", Breaks: Clauses("http/keep-alive-after-error"), Origin: Imagined, Front: onRefusal(func(x *exchange) {
		if x.Status == http.StatusNotFound {
			x.Header.Set("Connection", "close")
		}
	})},

	{Name: "one-body-at-a-time", Breaks: Clauses("http/slow-client"), Origin: Imagined, Why: "a slow body holds a lock that all wait for", Front: oneBodyAtATime()},
}

// asGet takes another verb for GET.
func asGet(method string, matches func(*http.Request) bool) front {
	return onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method == method && matches(r) {
			r.Method = http.MethodGet
		}
		return false
	})
}

// onHead changes the answers to HEAD.
func onHead(change func(x *exchange)) front {
	return onAnswer(toToolViews, func(x *exchange) {
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

// onElsewhere changes the answers to paths below /mcp/ that are none of the three.
func onElsewhere(change func(x *exchange)) front {
	return onAnswer(func(r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/mcp/") && !strings.Contains(r.URL.Path, "/mcp/admin/") && !toToolViews(r) && !toInvoke(r)
	}, change)
}

// oneBodyAtATime reads bodies under one lock.
func oneBodyAtATime() front {
	var mu sync.Mutex
	return onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		mu.Lock()
		defer mu.Unlock()
		if small(r) {
			fill(r, drain(r))
		}
		return false
	})
}
