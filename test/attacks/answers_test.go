package attacks

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// forever writes texts until nobody reads them.
func forever(w io.Writer, text func(n int) string) {
	for n := 0; ; n++ {
		if _, err := io.WriteString(w, text(n)); err != nil {
			return
		}
	}
}

// answer is what no server should send; n counts its requests. A raw one writes its own heads.
type answer struct {
	name  string
	serve func(w http.ResponseWriter, n int64)
	raw   func(net.Conn)
	list  bool // it is a list of tools
}

// send sends it.
func (a answer) send(w http.ResponseWriter, n int64) {
	if a.raw == nil {
		w.Header().Set("Content-Type", "application/json")
		a.serve(w, n)
		return
	}
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		defer c.Close()
		a.raw(c)
	}
}

// answers are what a bridge sends to a run, and a site or an authorization server to a bridge.
var answers = []answer{
	{name: "bodies without end", serve: func(w http.ResponseWriter, _ int64) {
		block := strings.Repeat("x", 1<<20)
		forever(w, func(int) string { return block })
	}},
	{name: "lists without end", serve: func(w http.ResponseWriter, _ int64) {
		io.WriteString(w, `{"tools":[`)
		forever(w, func(n int) string { return fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}},`, n) })
	}},
	{name: "small values", serve: func(w http.ResponseWriter, _ int64) {
		io.WriteString(w, `{"tools":[`+strings.Repeat("{},", 2<<20)+`{}]}`)
	}},
	{name: "many members", serve: func(w http.ResponseWriter, _ int64) {
		var b strings.Builder
		for i := range 500_000 {
			fmt.Fprintf(&b, `,"m%d":{"a":0}`, i)
		}
		io.WriteString(w, `{"tools":[]`+b.String()+"}")
	}},
	{name: "depth", serve: func(w http.ResponseWriter, _ int64) {
		io.WriteString(w, `{"tools":`+strings.Repeat("[", 3<<20)+strings.Repeat("]", 3<<20)+"}")
	}},
	{name: "a deep schema", serve: func(w http.ResponseWriter, _ int64) {
		io.WriteString(w, `{"tools":[{"name":"content.get","description":"d","inputSchema":`+strings.Repeat(`{"type":"object","properties":{"a":`, 4000)+`{}`+strings.Repeat(`}}`, 4000)+`}]}`)
	}},
	{name: "event streams without end", serve: func(w http.ResponseWriter, _ int64) {
		w.Header().Set("Content-Type", "text/event-stream")
		forever(w, func(n int) string {
			return fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":\"p%d\",\"method\":\"ping\"}\n\n", n)
		})
	}},
	{name: "2 GB compressed", serve: func(w http.ResponseWriter, _ int64) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		block := strings.Repeat(" ", 1<<20)
		for range 2000 {
			if _, err := io.WriteString(z, block); err != nil {
				return
			}
		}
		z.Close()
	}},
	{name: "pages without end", serve: func(w http.ResponseWriter, n int64) {
		fmt.Fprintf(w, `{"tools":[{"name":"t%d","description":"%s","inputSchema":{"type":"object"}}],"nextCursor":"c%d"}`, n, strings.Repeat("d", 100_000), n)
	}},
	{name: "many headers", list: true, serve: func(w http.ResponseWriter, _ int64) {
		for i := range 200 {
			w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("y", 250))
		}
		io.WriteString(w, `{"tools":[]}`)
	}},
	{name: "redirects without end", serve: func(w http.ResponseWriter, n int64) {
		w.Header().Set("Location", fmt.Sprint("/", n))
		w.WriteHeader(http.StatusTemporaryRedirect)
	}},
	{name: "commands for terminals and CI", list: true, serve: func(w http.ResponseWriter, _ int64) {
		w.Header().Set("X-Title", "::error::title")
		fmt.Fprintf(w, `{"tools":[{"name":"\u001b]0;title\u0007","description":"\n::error::x\n##vso[task.x]\u202e","inputSchema":{"type":"\u001b[31m"}}],"error":{"code":"\u001b[31m","message":"\n::error::x"}}`)
	}},
	{name: "heads without end", raw: func(c net.Conn) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		forever(c, func(n int) string { return fmt.Sprintf("X-%d: y\r\n", n) })
	}},
	{name: "1xx without end", raw: func(c net.Conn) {
		forever(c, func(int) string { return "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" })
	}},
	{name: "trailers without end", raw: func(c net.Conn) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
		forever(c, func(n int) string { return fmt.Sprintf("X-%d: y\r\n", n) })
	}},
	{name: "a byte at a time", raw: func(c net.Conn) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
		forever(c, func(int) string { time.Sleep(50 * time.Millisecond); return " " })
	}},
}
