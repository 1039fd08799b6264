package selftest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf16"
)

// reencoded writes every JSON body in another form of the same document.
func reencoded(form func(v any) []byte) front {
	return onAnswer(everything, func(x *exchange) {
		if object := x.Object(); object != nil {
			x.Body = form(object)
		}
	})
}

// reversed writes the members of all objects in falling order of their names.
func reversed(v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		slices.Reverse(names)
		parts := make([]string, len(names))
		for i, name := range names {
			parts[i] = string(encode(name)) + ":" + string(reversed(v[name]))
		}
		return []byte("{" + strings.Join(parts, ",") + "}")
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = string(reversed(item))
		}
		return []byte("[" + strings.Join(parts, ",") + "]")
	}
	return encode(v)
}

func indented(v any) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, encode(v), "", "\t"); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// escaped writes strings with PHP's escapes.
func escaped(v any) []byte {
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

// drip is a response that leaves in small pieces. Long ones get larger pieces, so that a run ends.
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

func dripping(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			w = drip{w}
		}
		next.ServeHTTP(w, r)
	})
}

// overloaded refuses every nth request that comes while so many are under way.
func overloaded(busy, nth int64) front {
	var under, crowded atomic.Int64
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer under.Add(-1)
			if under.Add(1) <= busy || crowded.Add(1)%nth != 0 {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"error":{"code":"overloaded","message":"Too many requests are under way."}}`)
		})
	}
}

// atTheEnd changes last pages.
func atTheEnd(change func(p *page)) front {
	return onList(func(p *page) {
		if c, _ := p.Object["nextCursor"].(string); c == "" {
			change(p)
		}
	})
}

// recursored gives cursors out in another form and takes them back; to and from get the caller, too. from says "!" to a
// cursor that is not one.
func recursored(to, from func(r *http.Request, cursor string) string) front {
	rewrite := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c := r.URL.Query().Get("cursor"); toList(r) && c != "" {
				r.URL.RawQuery = url.Values{"cursor": {from(r, c)}}.Encode()
			}
			next.ServeHTTP(w, r)
		})
	}
	give := onList(func(p *page) {
		if c, _ := p.Object["nextCursor"].(string); c != "" {
			p.Object["nextCursor"] = to(p.Request, c)
		}
	})
	return func(next http.Handler) http.Handler { return give(rewrite(next)) }
}

// opaqueCursors are words that mean nothing to a caller, and where bound nothing in another caller's hands.
func opaqueCursors(bound bool) front {
	known := newTable[string]()
	word := func(r *http.Request, cursor string) string {
		who := ""
		if bound {
			who = caller(r)
		}
		var sum uint64 = 14695981039346656037
		for _, b := range []byte(who + "\x00" + cursor) {
			sum = (sum ^ uint64(b)) * 1099511628211
		}
		return "page-" + strconv.FormatUint(sum, 36)
	}
	return recursored(
		func(r *http.Request, cursor string) string {
			w := word(r, cursor)
			known.put(w, cursor)
			return w
		},
		func(r *http.Request, w string) string {
			if cursor, ok := known.get(w); ok && word(r, cursor) == w {
				return cursor
			}
			return "!"
		})
}

// prefixedCursors begin with characters that have to be percent-encoded.
func prefixedCursors(prefix string) front {
	return recursored(
		func(_ *http.Request, cursor string) string { return prefix + cursor },
		func(_ *http.Request, given string) string {
			if cursor, ok := strings.CutPrefix(given, prefix); ok {
				return cursor
			}
			return "!"
		})
}

// onBadCursor changes the refusals of cursors.
func onBadCursor(change func(x *exchange)) front {
	return onAnswer(toList, func(x *exchange) {
		if x.Status == http.StatusBadRequest {
			change(x)
		}
	})
}

// relisted pages the tools in an order of its own.
func relisted(compare func(a, b tool) int) front {
	return onAnswer(toList, func(x *exchange) {
		if x.Status != http.StatusOK {
			return
		}
		all := []any{}
		for cursor := ""; ; {
			p := x.Ask(http.MethodGet, x.Request.URL.Path+"?"+url.Values{"cursor": {cursor}}.Encode(), nil).Object()
			tools, _ := p["tools"].([]any)
			all = append(all, tools...)
			if cursor, _ = p["nextCursor"].(string); cursor == "" {
				break
			}
		}
		slices.SortStableFunc(all, func(a, b any) int { return compare(a.(tool), b.(tool)) })
		const size = 50
		from := min(offset(x.Request.URL.Query().Get("cursor")), len(all))
		to := min(from+size, len(all))
		answer := map[string]any{"tools": all[from:to]}
		if to < len(all) {
			answer["nextCursor"] = cursorAt(to)
		}
		x.Body = encode(answer)
	})
}

// withoutUsage changes the tools whose method has no usage, known by the reference's fallback.
func withoutUsage(change func(t tool)) front {
	return onTool(func(t tool) {
		if d := t["description"]; d == "" || d == t["name"] || d == t["title"] {
			change(t)
		}
	})
}

// strictArguments refuses arguments that the tool's schema does not name.
func strictArguments() front {
	return onCallBody(func(x *exchange, call map[string]any) {
		if x.Status != http.StatusOK {
			return
		}
		t, ok := x.tool(x.invoked())
		schema, _ := t["inputSchema"].(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		arguments, _ := call["arguments"].(map[string]any)
		for name := range arguments {
			if _, known := properties[name]; ok && !known {
				x.Refuse(http.StatusBadRequest, "invalid_params", fmt.Sprintf("The tool takes no argument %q.", name))
			}
		}
	})
}

// withSpares keeps a few connections to the site open before they are needed, and looks whether one is still open before
// it is used.
func withSpares(next http.RoundTripper) http.RoundTripper {
	spares := make(chan net.Conn, 4)
	var dialer net.Dialer
	next.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		go func() {
			one, err := net.DialTimeout(network, address, UpstreamTimeout)
			if err != nil {
				return
			}
			select {
			case spares <- one:
			default:
				one.Close()
			}
		}()
		for {
			select {
			case spare := <-spares:
				if isOpen(spare) {
					return spare, nil
				}
				spare.Close()
			default:
				return dialer.DialContext(ctx, network, address)
			}
		}
	}
	return next
}

// isOpen tells whether the other side of a connection that nothing was sent on has left it open.
func isOpen(conn net.Conn) bool {
	if conn.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	_, err := conn.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded) && conn.SetReadDeadline(time.Time{}) == nil
}

// asWebServersDo is what Apache does with its defaults, in front of a bridge in PHP.
func asWebServersDo(next http.Handler) http.Handler {
	answers := onAnswer(everything, func(x *exchange) {
		if x.Method == http.MethodGet {
			x.Header.Add("Vary", "Accept-Encoding")
		}
		if x.Status == http.StatusBadRequest {
			x.Header.Set("Connection", "close")
		}
	})(next)
	return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if len(r.RequestURI) < 8190 {
			return false
		}
		w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestURITooLong)
		w.Write([]byte("<!DOCTYPE HTML><html><head><title>414 Request-URI Too Long</title></head></html>")) //nolint:errcheck // the caller has gone
		return true
	})(answers)
}

// byReference moves the schema of each parameter among the definitions, and keeps its texts and default beside the
// reference, as Draft 7 wants it: around an allOf.
func byReference(schema, properties map[string]any) {
	definitions, ok := schema["definitions"].(map[string]any)
	if !ok {
		definitions = map[string]any{}
		schema["definitions"] = definitions
	}
	for i, name := range slices.Sorted(maps.Keys(properties)) {
		property, ok := properties[name].(map[string]any)
		if !ok || property["$schema"] != nil || strings.Contains(string(encode(property)), `"$ref"`) {
			continue // another dialect, or references into the tool's schema
		}
		key := fmt.Sprintf("parameter%d", i)
		definitions[key] = property
		outer := map[string]any{"allOf": []any{map[string]any{"$ref": "#/definitions/" + key}}}
		for _, beside := range []string{"description", "default"} {
			if v, there := property[beside]; there {
				outer[beside] = v
			}
		}
		properties[name] = outer
	}
}
