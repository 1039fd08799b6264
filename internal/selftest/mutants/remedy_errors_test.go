package mutants

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// errorRemedies are applied to describe, to errors and to HTTP itself.
func errorRemedies() []Remedy {
	return []Remedy{
		{Clause: "describe/answers-tool", Mutant: "describe-bare-tool", Front: front(onResponse(toDescribe, func(x *exchange) {
			if object := x.Object(); x.Status == http.StatusOK && object["tool"] == nil {
				x.Set(x.Status, map[string]any{"tool": object})
			}
		}))},
		{Clause: "describe/equals-list", Mutant: "describe-drops-annotations", Front: front(onDescribed(func(x *exchange, t tool) any {
			for _, listed := range (&exchange{Request: listRequest(x.Request), next: x.next}).all() {
				if listed.(tool)["name"] == t["name"] {
					return listed
				}
			}
			return t
		}))},
		{Clause: "describe/missing-name", Mutant: "describe-empty-name-404", Front: front(onResponse(toDescribe, func(x *exchange) {
			if x.described() == "" && !x.Request.URL.Query().Has("name[]") && !refusesCaller(x) {
				x.Refuse(http.StatusBadRequest, "missing_parameter", "The parameter name is missing.")
			}
		}))},
		{Clause: "describe/name-not-scalar", Mutant: "describe-name-list-500", Front: front(onResponse(toDescribe, func(x *exchange) {
			list := strings.Contains(x.Request.URL.RawQuery, "name[") || strings.Contains(x.Request.URL.RawQuery, "name%5B")
			if list && !refusesCaller(x) {
				x.Refuse(http.StatusBadRequest, "missing_parameter", "The parameter name is a list.")
			}
		}))},
		{Clause: "describe/unknown-404", Mutant: "describe-knows-constructor", Front: front(lookUp)},
		{Clause: "describe/hidden-404", Mutant: "describe-hidden-403", Front: front(lookUp)},
		{Clause: "describe/inaccessible-404", Mutant: "describe-denied-403", Front: front(lookUp)},
		{Clause: "describe/name-exact", Mutant: "describe-any-case", Front: front(lookUp)},
		{Clause: "access/no-oracle", Mutant: "denied-tool-other-words", Front: front(lookUp)},
		{Clause: "describe/reflects-safely", Mutant: "describe-error-as-html", Front: front(onRefusal(func(x *exchange) {
			x.Header.Set("Content-Type", "application/json")
		}))},
		{Clause: "errors/envelope", Mutant: "not-allowed-as-html", Front: front(onRefusal(func(x *exchange) {
			if errorOf(x) == nil {
				x.Refuse(x.Status, codeOf[x.Status], http.StatusText(x.Status)+".")
			}
		}))},
		{Clause: "errors/code-stable", Mutant: "method-not-allowed-other-code-on-invoke", Front: front(onError(func(x *exchange, e map[string]any) {
			if x.Status == http.StatusMethodNotAllowed {
				e["code"] = codeOf[x.Status]
			}
		}))},
		{Clause: "errors/status-agrees", Mutant: "invalid-arguments-with-200", Front: front(onResponse(allRequests, func(x *exchange) {
			if e := errorOf(x); e != nil && x.Status < 300 {
				for status, code := range codeOf {
					if code == e["code"] {
						x.Status = status
					}
				}
			}
		}))},
		{Clause: "errors/message-helps", Mutant: "message-names-no-parameter", Front: front(onError(func(x *exchange, e map[string]any) {
			if e["code"] != "missing_parameter" {
				return
			}
			e["message"] = "The parameter name is missing."
			if code, _ := hasName(x.Sent); toInvoke(x.Request) && code == "" {
				e["message"] = "The parameter arguments is missing."
			}
		}))},
		{Clause: "errors/precedence", Mutant: "shape-before-permission", Front: front(permissionFirst)},
		{Clause: "access/describe-403", Mutant: "describe-404-for-outsiders", Front: front(permissionFirst)},
		{Clause: "http/method-not-allowed", Mutant: "list-by-post", Front: front(allowOnly(toToolViews, http.MethodGet, http.MethodHead))},
		{Clause: "http/head", Mutant: "head-of-a-bad-request-200", Front: front(onResponse(toToolViews, func(*exchange) {}))}, // record sends a GET, the server drops the body
		{Clause: "http/no-shared-cache", Mutant: "list-cacheable-for-cdns", Front: front(onResponse(toToolViews, func(x *exchange) {
			x.Header.Set("Cache-Control", "private, no-store")
			x.Header.Del("CDN-Cache-Control")
		}))},
		{Clause: "http/nosniff", Mutant: "sniffable", Front: front(onResponse(allRequests, func(x *exchange) {
			x.Header.Set("X-Content-Type-Options", "nosniff")
		}))},
		{Clause: "http/content-negotiation", Mutant: "gzip-for-one-header-alone", Front: front(onResponse(toToolViews, func(x *exchange) {
			x.Header.Set("Vary", "Accept-Encoding") // writeTo compresses what record took uncompressed
		}))},
		{Clause: "http/trailing-and-case", Mutant: "unknown-path-posted-html", Front: front(onResponse(func(r *http.Request) bool {
			return strings.HasPrefix(r.URL.Path, "/mcp/") && !toToolViews(r) && !toInvoke(r) && !strings.HasPrefix(r.URL.Path, "/mcp/admin/")
		}, func(x *exchange) { x.Refuse(http.StatusNotFound, "not_found", "There is nothing at this path.") }))},
		{Clause: "http/keep-alive-after-error", Mutant: "closes-after-404", Front: front(onRefusal(func(x *exchange) { x.Header.Del("Connection") }))}, // record has read the body
		{Clause: "fresh/version", Mutant: "unversioned", Front: front(versioned)},
		{Clause: "filter/rate-limit", Mutant: "rate-limit-without-retry-after", Front: front(onRefusal(atStatus(http.StatusTooManyRequests, func(x *exchange) {
			x.Header.Set("Retry-After", "1")
		})))},
	}
}

// codeOf is the table from status to code, of the codes that a status alone decides and of those that a check plants.
var codeOf = map[int]string{
	http.StatusBadRequest: "invalid_params", http.StatusUnauthorized: "authentication_required", http.StatusForbidden: "access_denied",
	http.StatusNotFound: "not_found", http.StatusMethodNotAllowed: "method_not_allowed", http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusInternalServerError: "internal_error", http.StatusBadGateway: "upstream_error",
}

// refusesCaller reports whether the permission decides a response.
func refusesCaller(x *exchange) bool {
	return x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden
}

// listRequest is the request for the first page by the same caller.
func listRequest(r *http.Request) *http.Request {
	list := r.Clone(r.Context())
	list.URL = &url.URL{Path: siblingPath(r, "list")}
	return list
}

// permissionFirst refuses describe as list, before it reads the name.
func permissionFirst(next http.Handler) http.Handler {
	return onResponse(toDescribe, func(x *exchange) {
		if list := x.Send(http.MethodGet, siblingPath(x.Request, "list"), nil); refusesCaller(list) {
			x.Status, x.Header, x.Body = list.Status, list.Header, list.Body
		}
	})(next)
}

// versioned hashes the tools of the page, and gives 304 to a caller who has them.
func versioned(next http.Handler) http.Handler {
	return onResponse(toList, func(x *exchange) {
		if x.Status != http.StatusOK {
			return
		}
		version := fmt.Sprintf(`"%x"`, sha256.Sum256(x.Body))
		x.Header.Set("ETag", version)
		if slices.Contains(strings.Split(x.Request.Header.Get("If-None-Match"), ", "), version) {
			x.Status, x.Body = http.StatusNotModified, nil
			x.Header.Del("Content-Type")
		}
	})(next)
}
