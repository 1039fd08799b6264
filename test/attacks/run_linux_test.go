package attacks

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
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

// bridges are what a run tests and no bridge should be. A raw one writes its own heads.
var bridges = []struct {
	name  string
	serve func(w http.ResponseWriter, n int64)
	raw   func(net.Conn)
}{
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
	{name: "many headers", serve: func(w http.ResponseWriter, _ int64) {
		for i := range 200 {
			w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("y", 250))
		}
		io.WriteString(w, `{"tools":[]}`)
	}},
	{name: "redirects without end", serve: func(w http.ResponseWriter, n int64) {
		w.Header().Set("Location", fmt.Sprint("/", n))
		w.WriteHeader(http.StatusTemporaryRedirect)
	}},
	{name: "commands for terminals and CI", serve: func(w http.ResponseWriter, _ int64) {
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

// A bridge sends what it likes to the run that tests it: the run ends in its time, with a report, and holds little.
func TestBridges(t *testing.T) {
	const (
		most    = 300 // MiB
		limit   = 20 * time.Second
		atMost  = 2 * limit // on a machine that is busy with others
		reports = 16 << 20  // bytes of all files
	)
	limitMemory(t)
	for _, attack := range bridges {
		t.Run(attack.name, func(t *testing.T) {
			var n atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				attack.serve(w, n.Add(1))
			}))
			url := "http://" + server.Listener.Addr().String()
			if attack.raw == nil {
				server.Start()
				defer server.Close()
				defer server.CloseClientConnections()
			} else {
				defer server.Listener.Close()
				go func() {
					for {
						c, err := server.Listener.Accept()
						if err != nil {
							return
						}
						go func() {
							defer c.Close()
							c.Read(make([]byte, 4096))
							attack.raw(c)
						}()
					}
				}()
			}
			dir := t.TempDir()
			cmd := exec.Command(binary, "run", "--url", url, "--run-timeout", limit.String(), "--report-dir", dir)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			cmd.Env = append(os.Environ(), "GITHUB_ACTIONS=true")
			began := time.Now()
			cmd.Run()
			took := time.Since(began)
			peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
			t.Logf("exit code %d after %s, with %d requests; the run held %d MiB of %d", cmd.ProcessState.ExitCode(), took, n.Load(), peak, most)
			if code := cmd.ProcessState.ExitCode(); code != 1 && code != 3 && code != 4 || strings.Contains(said.String(), "goroutine ") {
				t.Errorf("exit code %d: %.2000s", code, said.String())
			}
			if took > atMost || peak > most {
				t.Errorf("the run took %s, want %s at most, and held %d MiB, want %d", took, atMost, peak, most)
			}
			size := 0
			files, _ := filepath.Glob(filepath.Join(dir, "*"))
			for _, file := range files {
				text, _ := os.ReadFile(file)
				size += len(text)
				harmless(t, filepath.Base(file), string(text))
			}
			harmless(t, "output", said.String())
			if size > reports {
				t.Errorf("the report has %d bytes, want %d at most", size, reports)
			}
		})
	}
}

// harmless asserts that a text does nothing to a terminal, and nothing to CI but by the program's own commands.
func harmless(t *testing.T, name, text string) {
	t.Helper()
	for _, harm := range []string{"\x1b]", "\x07", "\u202e", "\n::error::x", "\n##vso[task.x]", "\n::error::title"} {
		if at := strings.Index(text, harm); at >= 0 {
			t.Errorf("%s has %q: %q", name, harm, text[max(at-50, 0):min(at+50, len(text))])
		}
	}
}
