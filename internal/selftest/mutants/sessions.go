package mutants

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// sessionMutants mishandle calls with a session cookie, which a browser sends without being asked to.
func sessionMutants() []Mutant {
	return []Mutant{
		{Name: "cors-trusts-null", Breaks: Clauses("access/cors"), Origin: Peer, Why: "null is in the list, for pages opened from a file",
			Middleware: permitting(func(origin, _ string) bool { return origin == "null" })},
		{Name: "cors-origin-by-its-beginning", Breaks: Clauses("access/cors"), Origin: Peer,
			Middleware: permitting(func(origin, host string) bool { return strings.HasPrefix(origin, "https://"+host) })},
		{Name: "session-calls-of-types-that-begin-alike", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "the header is compared by its beginning",
			Middleware: readHeader(toSessionCall, "Content-Type", "application/json", func(given string) bool { return strings.HasPrefix(given, "application/json") })},
		{Name: "session-calls-without-a-type", Breaks: Clauses("access/csrf"), Origin: Module, Why: "a Blob sent by a script on another site has no type",
			Middleware: readHeader(toSessionCall, "Content-Type", "application/json", func(given string) bool { return given == "" })},
		{Name: "session-calls-from-a-sandbox", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "null is handled as no Origin",
			Middleware: readHeader(toSessionCall, "Origin", "", func(given string) bool { return given == "null" })},
		{Name: "session-calls-of-types-that-end-alike", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "any type of JSON is taken",
			Middleware: readHeader(toSessionCall, "Content-Type", "application/json", func(given string) bool { return strings.HasSuffix(given, "/json") })},
		{Name: "session-calls-of-scripts", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "X-Requested-With is taken for a token",
			Middleware: onSessionCall(func(r *http.Request) {
				if r.Header.Get("X-Requested-With") != "" {
					r.Header.Del("Origin")
				}
			})},
		{Name: "session-origin-by-its-beginning", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "a host that starts with the Host is accepted, and where that has no port, others do",
			Middleware: onSessionCall(func(r *http.Request) {
				if u, err := url.Parse(r.Header.Get("Origin")); err == nil && strings.HasPrefix(u.Host, r.Host) {
					r.Header.Del("Origin")
				}
			})},
		{Name: "session-origin-by-its-end", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "a host that ends with the bridge's host name is accepted",
			Middleware: onSessionCall(func(r *http.Request) {
				host, _, _ := strings.Cut(r.Host, ":")
				if u, err := url.Parse(r.Header.Get("Origin")); err == nil && strings.HasSuffix(u.Host, host) {
					r.Header.Del("Origin")
				}
			})},
		{Name: "session-origin-by-the-end-of-its-name", Breaks: Clauses("access/csrf"), Origin: Peer, Why: "a name that ends with the Host's is accepted",
			Middleware: onSessionCall(func(r *http.Request) {
				if endsLikeHost(r) {
					r.Header.Del("Origin")
				}
			})},
		{Name: "sessions-not-forwarded", Breaks: Clauses("access/credentials-forwarded", "access/no-cross-talk"), Origin: Peer, Why: "only the Authorization header is copied to the call, so that a session runs as anonymous",
			Transport: onCall(func(r *http.Request, _ map[string]any) { r.Header.Del("Cookie") })},
		{Name: "revoked-sessions-run", Breaks: Clauses("access/permission-revoked", "access/credentials-forwarded"), Origin: Imagined,
			Why: "what a session was allowed to run once stays allowed",
			SiteMiddleware: runOnceAllowed(func(x *exchange) string {
				if x.Request.Header.Get("Origin") != "" || x.Request.Header.Get("Content-Type") != "application/json" {
					return ""
				}
				return x.Request.Header.Get("Cookie")
			})},
		{Name: "first-cookie-is-the-session", Breaks: Clauses("access/credentials-forwarded"), Origin: Peer, Why: "a browser sends other cookies, too",
			Middleware: beforeBridge(func(r *http.Request) {
				if first, _, several := strings.Cut(r.Header.Get("Cookie"), ";"); several {
					r.Header.Set("Cookie", first)
				}
			})},
		{Name: "no-session-beside-an-odd-cookie", Breaks: Clauses("access/credentials-forwarded"), Origin: Peer,
			Why: "Python's SimpleCookie reads none where one has a value like JSON",
			Middleware: beforeBridge(func(r *http.Request) {
				if strings.Contains(r.Header.Get("Cookie"), "{") {
					r.Header.Del("Cookie")
				}
			})},
		{Name: "cookies-before-credentials", Breaks: Clauses("access/credentials-forwarded"), Origin: Peer, Why: "any cookie is taken for a session, and a session replaces the Authorization",
			Middleware: beforeBridge(func(r *http.Request) {
				if r.Header.Get("Cookie") != "" {
					r.Header.Del("Authorization")
				}
			})},
		{Name: "password-cut-at-a-colon", Breaks: Clauses("access/credentials-forwarded", "access/bad-credentials"), Origin: Peer, Why: "the credentials are split at each colon",
			Middleware: onPassword(func(password string) string { return strings.Split(password, ":")[0] })},
		{Name: "version-before-permission", Breaks: Clauses("access/list-403"), Origin: Peer, Why: "a cache in front of the bridge responds to If-None-Match", Middleware: revalidateFirst()},
	}
}

// inASCII writes ? for what is not ASCII.
func inASCII(text string) string {
	return strings.Map(func(c rune) rune {
		if c > 0x7e {
			return '?'
		}
		return c
	}, text)
}

// onPassword changes the password of HTTP Basic authentication.
func onPassword(change func(string) string) middleware {
	return beforeBridge(func(r *http.Request) {
		if user, password, ok := r.BasicAuth(); ok && change(password) != password {
			r.SetBasicAuth(user, change(password))
		}
	})
}

// revalidateFirst responds with 304 to the version of any caller's list.
func revalidateFirst() middleware {
	versions := newSet()
	return onResponse(toList, func(x *exchange) {
		if version := x.Header.Get("ETag"); version != "" {
			versions.add(version)
		}
		if versions.has(x.Request.Header.Get("If-None-Match")) && x.Status == http.StatusForbidden {
			x.Status, x.Body = http.StatusNotModified, nil
			x.Header.Del("Content-Type")
		}
	})
}

// onSessionCall changes invokes that authenticate by a session cookie.
func onSessionCall(change func(r *http.Request)) middleware {
	return beforeBridge(func(r *http.Request) {
		if toSessionCall(r) {
			change(r)
		}
	})
}

func toSessionCall(r *http.Request) bool {
	return toInvoke(r) && strings.HasPrefix(r.Header.Get("Cookie"), "SESS")
}

// keepCallerDuringDiscovery sends a call with the credentials of the last call that came while its caller was discovered.
func keepCallerDuringDiscovery() middleware {
	var last atomic.Value
	var seen sync.Map
	return onRequest(func(_ http.ResponseWriter, r *http.Request, next http.Handler) bool {
		credentials := authorized(r)
		if !toInvoke(r) || credentials == "" {
			return false
		}
		last.Store(credentials)
		if _, known := seen.LoadOrStore(credentials, true); !known {
			list := r.Clone(r.Context())
			list.Method, list.URL.Path, list.Body = http.MethodGet, "/mcp/tools/list", http.NoBody
			next.ServeHTTP(httptest.NewRecorder(), list)
			r.Header.Set("Authorization", last.Load().(string))
		}
		return false
	})
}

// keepCallerDuringBody sends a call with the credentials of the last request that came until its body had arrived.
func keepCallerDuringBody() middleware {
	var last atomic.Value
	return beforeBridge(func(r *http.Request) {
		last.Store(authorized(r))
		if !toInvoke(r) || !isSmall(r) {
			return
		}
		setBody(r, readBody(r))
		if credentials := last.Load().(string); credentials != "" {
			r.Header.Set("Authorization", credentials)
		}
	})
}

// shareProblems gives the refusal of invalid arguments that of another invoke that is validated meanwhile.
func shareProblems() middleware {
	var last atomic.Value
	return onCode("invalid_params", func(x *exchange) {
		last.Store(x.Body)
		time.Sleep(time.Millisecond)
		x.Body = last.Load().([]byte)
	})
}

// mcpCallerMutants mix MCP callers up, or break notifications and stdio.
func mcpCallerMutants() []Mutant {
	return []Mutant{
		{Name: "mcp-id-zero-lost-in-errors", MCP: true, Breaks: Clauses("mcp/initialize"), Origin: Module,
			Middleware: onRPC("", func(m *rpc) {
				if numberText(m.Response["id"]) == "0" && m.Response["error"] != nil {
					m.Response["id"] = nil
				}
			})},
		{Name: "mcp-anonymous-as-agent", MCP: true, Breaks: Clauses("mcp/tools-list", "mcp/session", "access/no-oracle"), Origin: Peer, Why: "anonymous MCP callers get the bridge's own account",
			Middleware: actAs("agent", func(r *http.Request) bool { return toMCP(r) && authorized(r) == "" && r.Header.Get("Cookie") == "" })},
		{Name: "mcp-calls-as-service", MCP: true, Breaks: Clauses("mcp/parity", "mcp/unknown-tool", "access/no-oracle"), Origin: Peer, Why: "the stateless revision was added later and calls with the bridge's own account",
			Middleware: actAs("service", func(r *http.Request) bool {
				return toMCP(r) && r.Header.Get("Mcp-Method") == "tools/call" && authorized(r) != ""
			})},
		{Name: "mcp-calls-in-a-variable", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer, Why: "the message that is handled is kept in a variable of the server", Middleware: shareCall()},
		{Name: "mcp-text-in-ascii", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer, Why: "structuredContent is right, and the text that models read has passed another encoder",
			Middleware: onCallResult(func(result map[string]any) {
				if _, structured := result["structuredContent"]; structured {
					result["content"] = mapValues(result["content"], onStrings(inASCII))
				}
			})},
		{Name: "mcp-numerals-are-numbers", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer, Why: "an SDK makes of the arguments what the schema declares",
			Middleware: onMCPCall(func(params map[string]any) {
				arguments := objectIn(params, "arguments")
				if text, ok := arguments["nid"].(string); ok && json.Valid([]byte(text)) {
					arguments["nid"] = json.Number(text)
				}
			})},
		{Name: "mcp-arguments-in-a-text", MCP: true, Breaks: Clauses("mcp/parity"), Origin: Peer, Why: "models send the arguments as JSON in a text",
			Middleware: onMCPCall(func(params map[string]any) {
				if text, ok := params["arguments"].(string); ok {
					params["arguments"] = decode([]byte(text))
				}
			})},
		{Name: "mcp-any-later-version", MCP: true, Breaks: Clauses("mcp/bad-version-header", "mcp/stateless-2026"), Origin: Imagined, Why: "versions are compared as text: an unknown later one is accepted",
			Middleware: withHeader(func(h http.Header) {
				if h.Get("Mcp-Protocol-Version") <= "2026-07-28" {
					return
				}
				h.Set("Mcp-Protocol-Version", "2026-07-28")
				if h.Get("Mcp-Session-Id") != "" {
					h.Set("Mcp-Protocol-Version", "2025-11-25")
				}
			})},
		{Name: "mcp-origin-by-the-end-of-its-name", MCP: true, Breaks: Clauses("mcp/origin"), Origin: Peer, Why: "a name that ends with the Host's is accepted",
			Middleware: beforeBridge(func(r *http.Request) {
				if toMCP(r) && endsLikeHost(r) {
					r.Header.Del("Origin")
				}
			})},
		{Name: "mcp-origin-by-its-beginning", MCP: true, Breaks: Clauses("mcp/origin"), Origin: Peer,
			Middleware: beforeBridge(func(r *http.Request) {
				if u, err := url.Parse(r.Header.Get("Origin")); toMCP(r) && err == nil && strings.HasPrefix(u.Host, r.Host) {
					r.Header.Del("Origin")
				}
			})},
		{Name: "mcp-origin-unread-on-get", MCP: true, Breaks: Clauses("mcp/origin"), Origin: Peer, Why: "only POST checks the origin, the stream of notifications does not",
			Middleware: headerUnread(http.MethodGet, "Origin")},
		{Name: "mcp-origin-unread-on-delete", MCP: true, Breaks: Clauses("mcp/origin"), Origin: Imagined, Why: "only the handler of messages checks the origin: a page can end sessions",
			Middleware: headerUnread(http.MethodDelete, "Origin")},
		{Name: "mcp-version-header-unread-on-get", MCP: true, Breaks: Clauses("mcp/bad-version-header"), Origin: Peer, Why: "only messages have a version",
			Middleware: headerUnread(http.MethodGet, "Mcp-Protocol-Version")},
		{Name: "mcp-version-header-unread-on-delete", MCP: true, Breaks: Clauses("mcp/bad-version-header"), Origin: Peer, Why: "only messages have a version",
			Middleware: headerUnread(http.MethodDelete, "Mcp-Protocol-Version")},
		{Name: "mcp-version-header-unread-of-notifications", MCP: true, Breaks: Clauses("mcp/bad-version-header"), Origin: Peer,
			Why: "what has no response is not refused",
			Middleware: beforeBridge(func(r *http.Request) {
				if toMessage(r) && !has(decode(peekBody(r)), "id") {
					r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
				}
			})},
		{Name: "mcp-version-header-by-its-beginning", MCP: true, Breaks: Clauses("mcp/bad-version-header"), Origin: Peer,
			Middleware: readHeader(toMCP, "Mcp-Protocol-Version", "2025-11-25", func(given string) bool { return strings.HasPrefix(given, "2025-11-25") })},
		{Name: "mcp-version-header-by-year", MCP: true, Breaks: Clauses("mcp/bad-version-header"), Origin: Imagined, Why: "every date of the right year is accepted as a revision",
			Middleware: readHeader(toMCP, "Mcp-Protocol-Version", "2025-11-25", func(given string) bool { return strings.HasPrefix(given, "2025-") })},
		{Name: "mcp-meta-keys-of-any-form", MCP: true, Breaks: Clauses("mcp/tools-list"), Origin: Peer,
			Middleware: onMCPTool(func(t tool) { t["_meta"] = map[string]any{"_internal": map[string]any{"tags": []any{}}} })},
		{Name: "mcp-prompts-promised", MCP: true, Breaks: Clauses("mcp/initialize"), Origin: Peer, Why: "the capabilities were copied from an example",
			Middleware: onRPCResult("initialize", func(r map[string]any) { r["capabilities"].(map[string]any)["prompts"] = map[string]any{} })},
		{Name: "mcp-origin-null", MCP: true, Breaks: Clauses("mcp/origin"), Origin: Peer, Why: "a sandboxed frame on any page has the origin null",
			Middleware: readHeader(toMCP, "Origin", "", func(given string) bool { return given == "null" })},
		{Name: "mcp-session-lends-its-calls", MCP: true, Breaks: Clauses("mcp/session", "access/bad-credentials"),
			MayFail: Clauses("access/credentials-forwarded"), Origin: Peer, Why: "the list uses the sender's credentials, the call those of the session's owner",
			Middleware: actAsSessionOwner(func(r *http.Request, _ string) bool { return decode(peekBody(r))["method"] == "tools/call" })},
		{Name: "mcp-session-lends-to-nobody", MCP: true, Breaks: Clauses("mcp/session"), Origin: Peer, Why: "requests in a session need no credentials",
			Middleware: actAsSessionOwner(func(r *http.Request, _ string) bool { return authorized(r) == "" })},
		{Name: "mcp-stdio-names-what-it-leaves-out", MCP: true, Breaks: Clauses("mcp/stdio"), Origin: Peer, Why: "the warning is printed as the others are",
			Stdout: func(w io.Writer) io.Writer { return logOnStdout{w, `"good.last"`} }},
		{Name: "mcp-stdio-cuts-long-lines", MCP: true, Breaks: Clauses("mcp/stdio"), Origin: Peer, Why: "a line scanner reads 64 KiB by default",
			Stdout: func(w io.Writer) io.Writer { return lineLimiter{w} }},
	}
}

// headerUnread leaves a header of the requests with one HTTP method unread.
func headerUnread(method, name string) middleware {
	return readHeader(toMCPBy(method), name, "", func(string) bool { return true })
}

// cancelByID ends a call where any caller cancels a request of its id.
func cancelByID() middleware {
	var flights sync.Map // the headers of a call that is under way, by its id
	return onRequest(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		if !toMessage(r) {
			return false
		}
		message := decode(peekBody(r))
		switch message["method"] {
		case "notifications/cancelled":
			if call, ok := flights.Load(numberText(objectIn(message, "params")["requestId"])); ok {
				for _, name := range []string{"Authorization", "Cookie", "Mcp-Session-Id"} {
					r.Header[name] = call.(http.Header)[name]
				}
			}
		case "tools/call":
			id := numberText(message["id"])
			flights.Store(id, r.Header.Clone())
			defer flights.Delete(id)
			next.ServeHTTP(w, r)
			return true
		}
		return false
	})
}

// onMCPCall changes the params of tools/call before the bridge sees them.
func onMCPCall(change func(params map[string]any)) middleware {
	return beforeBridge(func(r *http.Request) {
		if !toMessage(r) {
			return
		}
		message := decode(peekBody(r))
		if params, ok := message["params"].(map[string]any); ok && message["method"] == "tools/call" {
			change(params)
			setBody(r, encode(message))
		}
	})
}

// lineLimiter drops what a line has beyond 64 KiB.
type lineLimiter struct{ io.Writer }

func (c lineLimiter) Write(b []byte) (int, error) {
	const longest = 64 << 10
	line := b
	if len(b) > longest {
		line = append(bytes.Clone(b[:longest]), '\n')
	}
	_, err := c.Writer.Write(line)
	return len(b), err
}

// permitting lets pages of the origins that it trusts read every response with the caller's credentials.
func permitting(trusted func(origin, host string) bool) middleware {
	return onResponse(allRequests, func(x *exchange) {
		if origin := x.Request.Header.Get("Origin"); origin != "" && trusted(origin, (&url.URL{Host: x.Request.Host}).Hostname()) {
			x.Header.Set("Access-Control-Allow-Origin", origin)
			x.Header.Set("Access-Control-Allow-Credentials", "true")
			x.Header.Add("Vary", "Origin")
		}
	})
}

// endsLikeHost reports whether the host of the Origin ends with the Host, as to a parser of URLs that takes no name which ends with an
// address.
func endsLikeHost(r *http.Request) bool {
	u, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && strings.HasSuffix(u.Host, r.Host) && net.ParseIP(strings.Split(r.Host, ":")[0]) == nil
}
