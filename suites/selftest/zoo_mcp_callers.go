package selftest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// Faults of MCP that show with another caller, in another session, from another origin, or after the site has changed.
var mcpCallerMutants = mcp([]Mutant{
	{Name: "mcp-ping-unknown", Breaks: Clauses("mcp/initialize"), Origin: Imagined, Why: "A client that asks whether the server lives takes it for dead.",
		Front: onRPC("ping", func(m *rpc) { m.Fail(-32601, "Method not found") })},
	{Name: "mcp-empty-id-lost", Breaks: Clauses("mcp/initialize"), Origin: Module,
		Front: onRPC("", func(m *rpc) {
			if m.Response["id"] == "" {
				m.Response["id"] = nil
			}
		})},
	{Name: "mcp-id-zero-lost-in-errors", Breaks: Clauses("mcp/initialize"), Origin: Module,
		Front: onRPC("", func(m *rpc) {
			if fmtNumber(m.Response["id"]) == "0" && m.Response["error"] != nil {
				m.Response["id"] = nil
			}
		})},

	{Name: "mcp-session-keeps-its-list", Breaks: Clauses("fresh/notify"), Origin: Peer, Why: "Tools are registered when a session opens, and never again.",
		Front: keptLists(func(r *http.Request) string { return r.Header.Get("Mcp-Session-Id") })},
	{Name: "mcp-caller-keeps-their-list", Breaks: Clauses("fresh/notify", "mcp/parity"), Origin: Peer, Why: "One server for each caller, made once.",
		Front: keptLists(func(r *http.Request) string { return r.Header.Get("Authorization") })},
	{Name: "mcp-anonymous-as-agent", Breaks: Clauses("mcp/tools-list", "mcp/session", "access/no-oracle"), Origin: Peer, Why: "Who does not sign in on MCP gets the bridge's own account.",
		Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if toMCP(r) && r.Header.Get("Authorization") == "" && r.Header.Get("Cookie") == "" {
				r.Header.Set("Authorization", signedAs("agent"))
			}
			return false
		})},
	{Name: "mcp-outsiders-list", Breaks: Clauses("mcp/tools-list"), Origin: Imagined, Why: "The permission to discover is asked for on the three endpoints alone.",
		Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if toMCP(r) && caller(r) == "outsider" {
				r.Header.Set("Authorization", signedAs("agent"))
			}
			return false
		})},
	{Name: "mcp-calls-as-service", Breaks: Clauses("mcp/parity", "mcp/unknown-tool", "access/no-oracle"), Origin: Peer, Why: "The stateless revision came later, and calls with the bridge's own account.",
		Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if toMCP(r) && r.Header.Get("Mcp-Method") == "tools/call" && r.Header.Get("Authorization") != "" {
				r.Header.Set("Authorization", signedAs("service"))
			}
			return false
		})},
	{Name: "mcp-denied-tool-other-words", Breaks: Clauses("access/no-oracle"), Origin: Imagined,
		Wired: func(site *wire) front {
			return onRPC("tools/call", func(m *rpc) {
				name := fmt.Sprint(m.Params["name"])
				if attributes, shown := site.method(signedAs("admin"), name); m.Code() == "-32602" && shown && attributes["mcpTool"] != nil {
					m.Fail(-32602, "Access denied to "+name)
				}
			})
		},
		Free: Clauses("fresh/single-flight")},
	{Name: "mcp-failure-with-its-trace", Breaks: Clauses("invoke/no-trace-leak"), Origin: Peer, Why: "The model is told all that the site said.",
		Wired: func(site *wire) front {
			return onToolError("failed", func(m *rpc) {
				reply := site.call(m.Request.Header.Get("Authorization"), fmt.Sprint(m.Params["name"]), m.Params["arguments"])
				content, _ := m.Result()["content"].([]any)
				m.Result()["content"] = append(content, map[string]any{"type": "text", "text": string(encode(reply["error"]))})
			})
		}},

	{Name: "mcp-descriptions-cut", Breaks: Clauses("mcp/parity"), Origin: Peer,
		Front: onMCPTool(func(t tool) {
			if words, ok := t["description"].(string); ok {
				t["description"] = words[:min(len(words), 20)]
			}
		})},
	{Name: "mcp-all-read-only", Breaks: Clauses("mcp/parity"), Origin: Imagined, Why: "A client runs what it is told to be harmless without asking.",
		Front: onMCPTool(func(t tool) { t["annotations"] = map[string]any{"readOnlyHint": true} })},
	{Name: "mcp-arguments-through-float64", Breaks: Clauses("mcp/parity"), Origin: Peer,
		Front: onMCPCall(func(params map[string]any) { params["arguments"] = rounded(params["arguments"]) })},

	{Name: "mcp-any-later-version", Breaks: Clauses("mcp/bad-version-header", "mcp/stateless-2026"), Origin: Imagined, Why: "Versions are compared as text: what is later is taken for the latest.",
		Front: withHeader(func(h http.Header) {
			if h.Get("Mcp-Protocol-Version") <= "2026-07-28" {
				return
			}
			h.Set("Mcp-Protocol-Version", "2026-07-28")
			if h.Get("Mcp-Session-Id") != "" {
				h.Set("Mcp-Protocol-Version", "2025-11-25")
			}
		})},
	{Name: "mcp-origin-by-its-beginning", Breaks: Clauses("mcp/origin"), Origin: Peer,
		Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			host, _, _ := strings.Cut(r.Host, ":")
			if u, err := url.Parse(r.Header.Get("Origin")); toMCP(r) && err == nil && u.Host != "" && strings.HasPrefix(u.Host, host) {
				r.Header.Del("Origin")
			}
			return false
		})},
	{Name: "mcp-origin-by-its-beginning-with-scheme", Breaks: Clauses("mcp/origin"), Origin: Imagined,
		Front: onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			host, _, _ := strings.Cut(r.Host, ":")
			if toMCP(r) && strings.HasPrefix(r.Header.Get("Origin"), "http://"+host) {
				r.Header.Del("Origin")
			}
			return false
		})},
	{Name: "mcp-origin-unread-on-get", Breaks: Clauses("mcp/origin"), Origin: Peer, Why: "Only messages pass the guard, and the stream of notifications does not.",
		Front: unguarded(http.MethodGet)},
	{Name: "mcp-origin-unread-on-delete", Breaks: Clauses("mcp/origin"), Origin: Imagined, Why: "A page ends the sessions of its visitors.",
		Front: unguarded(http.MethodDelete)},
	{Name: "mcp-version-header-by-year", Breaks: Clauses("mcp/bad-version-header"), Origin: Imagined, Why: "Whatever looks like a date of the right year is taken for a revision.",
		Front: withHeader(func(h http.Header) {
			if v := h.Get("Mcp-Protocol-Version"); strings.HasPrefix(v, "2025-") {
				h.Set("Mcp-Protocol-Version", "2025-11-25")
			}
		})},
	{Name: "mcp-meta-keys-of-any-form", Breaks: Clauses("mcp/tools-list"), Origin: Peer,
		Front: onMCPTool(func(t tool) { t["_meta"] = map[string]any{"_internal": map[string]any{"tags": []any{}}} })},
	{Name: "mcp-prompts-promised", Breaks: Clauses("mcp/initialize"), Origin: Peer, Why: "The capabilities are those of the example that the server began as.",
		Front: onRPCResult("initialize", func(r map[string]any) { r["capabilities"].(map[string]any)["prompts"] = map[string]any{} })},
	{Name: "mcp-notifies-of-names-alone", Breaks: Clauses("fresh/notify"), Origin: Imagined, Why: "What is compared is the number of tools.", Front: onceAStream()},
	{Name: "mcp-arguments-taken-for-granted", Breaks: Clauses("mcp/parity"), Origin: Peer, Why: "A call without them ends in an exception.",
		Front: onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !toMCP(r) || r.Method != http.MethodPost || !small(r) {
				return false
			}
			body := drain(r)
			fill(r, body)
			params, ok := decode(body)["params"].(map[string]any)
			if !ok || decode(body)["method"] != "tools/call" || has(params, "arguments") {
				return false
			}
			http.Error(w, "KeyError: 'arguments'", http.StatusInternalServerError)
			return true
		})},
	{Name: "mcp-failures-tell-credentials", Breaks: Clauses("access/credentials-kept-secret"), Origin: Imagined, Why: "what went wrong is told with the request that went wrong",
		Front: onToolError("", func(m *rpc) {
			content, _ := m.Result()["content"].([]any)
			m.Result()["content"] = append(content, map[string]any{"type": "text", "text": "Authorization: " + m.Request.Header.Get("Authorization")})
		})},
	{Name: "mcp-denial-as-result", Breaks: Clauses("mcp/unknown-tool"), Origin: Imagined, Why: "What the site refuses is a failure like any other.", Front: deniedLikeFailed()},
	{Name: "mcp-origin-null", Breaks: Clauses("mcp/origin"), Origin: Peer, Why: "A sandboxed frame of any page has this origin.",
		Front: withHeader(func(h http.Header) {
			if h.Get("Origin") == "null" {
				h.Del("Origin")
			}
		})},
	{Name: "mcp-session-lends-its-calls", Breaks: Clauses("mcp/session"), Origin: Peer, Why: "The list is the sender's, the call is the owner's.",
		Front: lending(func(r *http.Request) bool {
			body := drain(r)
			fill(r, body)
			return decode(body)["method"] == "tools/call"
		})},
	{Name: "mcp-session-lends-to-nobody", Breaks: Clauses("mcp/session"), Origin: Peer, Why: "In a session credentials are optional.",
		Front: lending(func(r *http.Request) bool { return r.Header.Get("Authorization") == "" })},

	{Name: "mcp-result-type-missing-on-calls", Breaks: Clauses("mcp/stateless-2026"), Origin: Imagined,
		Front: onRPCResult("tools/call", func(result map[string]any) { delete(result, "resultType") })},
	{Name: "mcp-notifies-by-request", Breaks: Clauses("fresh/notify"), Origin: Imagined, Why: "A client answers it, and does not look at the list.",
		Front: onStream(replacing(`"method":"notifications/tools/list_changed"`, `"id":9,"method":"notifications/tools/list_changed"`))},

	{Name: "mcp-stdio-cuts-long-lines", Breaks: Clauses("mcp/stdio"), Origin: Peer, Why: "A scanner of lines takes 64 KiB unless it is told otherwise.",
		Stdout: func(w io.Writer) io.Writer { return cutLines{w} }},
	{Name: "mcp-stdio-failures-as-results", Breaks: Clauses("mcp/stdio"), Origin: Imagined,
		Stdout: func(w io.Writer) io.Writer { return rewriting{w, `"isError":true`, `"isError":false`} }},
	{Name: "mcp-stdio-unknown-tool-other-code", Breaks: Clauses("mcp/stdio"), Origin: Imagined,
		Stdout: func(w io.Writer) io.Writer { return rewriting{w, `"code":-32602`, `"code":-32603`} }},
})

// keptLists gives the first tools that came under a key for good; "" is no key.
func keptLists(key func(*http.Request) string) front {
	first := newTable[map[string]any]()
	return onRPC("tools/list", func(m *rpc) {
		k, result := key(m.Request), m.Result()
		if k == "" || result == nil {
			return
		}
		kept := first.keep(k+"\x00"+fmt.Sprint(m.Params["cursor"]), maps.Clone(result))
		result["tools"] = kept["tools"]
		delete(result, "nextCursor")
		if next, more := kept["nextCursor"]; more {
			result["nextCursor"] = next
		}
	})
}

// unguarded has requests by one method pass whatever page they come from.
func unguarded(method string) front {
	return onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if toMCP(r) && r.Method == method {
			r.Header.Del("Origin")
		}
		return false
	})
}

// onceAStream tells each stream of one change of the tools, and of no other.
func onceAStream() front {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			told := false
			onStream(func(event []byte) []byte {
				if !bytes.Contains(event, []byte("list_changed")) {
					return event
				}
				if told {
					return []byte(":\n\n")
				}
				told = true
				return event
			})(next).ServeHTTP(w, r)
		})
	}
}

// deniedLikeFailed makes a result of the error for a tool that the caller could run before.
func deniedLikeFailed() front {
	ran := newTable[bool]()
	return onRPC("tools/call", func(m *rpc) {
		key := caller(m.Request) + "\x00" + fmt.Sprint(m.Params["name"])
		if m.Result() != nil {
			ran.put(key, true)
		} else if before, _ := ran.get(key); before && m.Code() == "-32602" {
			m.Answer(map[string]any{"isError": true, "resultType": "complete", "content": []any{map[string]any{"type": "text", "text": "Access denied"}}})
		}
	})
}

// onMCPCall changes the params of tools/call before the bridge sees them.
func onMCPCall(change func(params map[string]any)) front {
	return onRequest(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !toMCP(r) || r.Method != http.MethodPost || !small(r) {
			return false
		}
		body := drain(r)
		message := decode(body)
		if params, ok := message["params"].(map[string]any); ok && message["method"] == "tools/call" {
			change(params)
			body = encode(message)
		}
		fill(r, body)
		return false
	})
}

// lending has those requests of a session that it concerns act as whoever opened it.
func lending(concerns func(*http.Request) bool) front {
	var owners sync.Map // Authorization by session id
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := r.Header.Get("Mcp-Session-Id")
			if owner, known := owners.Load(id); toMCP(r) && known && concerns(r) {
				r.Header.Set("Authorization", owner.(string))
			}
			if !toMCP(r) || id != "" || isStream(r) {
				next.ServeHTTP(w, r)
				return
			}
			x := answer(next, r, drain(r))
			if opened := x.Header.Get("Mcp-Session-Id"); opened != "" {
				owners.Store(opened, r.Header.Get("Authorization"))
			}
			x.send(w)
		})
	}
}

// cutLines loses what a line has beyond 64 KiB.
type cutLines struct{ io.Writer }

func (c cutLines) Write(b []byte) (int, error) {
	const longest = 64 << 10
	line := b
	if len(b) > longest {
		line = append(bytes.Clone(b[:longest]), '\n')
	}
	_, err := c.Writer.Write(line)
	return len(b), err
}
