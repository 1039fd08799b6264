package attacks

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// hostileList has the site list what an attack writes to mallory.
func (s *site) hostileList(write func(io.Writer)) {
	others := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, _ := r.BasicAuth(); user != "mallory" || r.URL.Path != "/jsonrpc/methods" {
			others.ServeHTTP(w, r)
			return
		}
		write(w)
	})
}

// repeated is a list of items until it is so many bytes long; each %07d is replaced by its number.
func repeated(item string, size int) func(io.Writer) {
	return func(w io.Writer) {
		io.WriteString(w, `{"data":[`)
		var b bytes.Buffer
		for n, written := 0, 0; written < size; n++ {
			if n > 0 {
				b.WriteByte(',')
			}
			before, after, numbered := strings.Cut(item, "%07d")
			if b.WriteString(before); numbered {
				fmt.Fprintf(&b, "%07d%s", n, after)
			}
			if b.Len() > 64<<10 {
				m, err := w.Write(b.Bytes())
				if err != nil {
					return
				}
				written += m
				b.Reset()
			}
		}
		w.Write(b.Bytes())
		io.WriteString(w, `],"meta":{"mcp":{"discovery":true}}}`)
	}
}

const smallMethod = `{"id":"content.m%07d","attributes":{"usage":"A method","params":{"v":{"schema":{"type":"string"}}},"mcpTool":{}}}`

// lists are lists of methods that no site has. tools says whether the caller has any.
var lists = []struct {
	name  string
	write func(io.Writer)
	tools bool
}{
	{"an ordinary list", repeated(smallMethod, 10_000), true},
	{"120 MB of empty objects", repeated(`{}`, 120<<20), false},
	{"tools, and 100 MB of empty objects", func(w io.Writer) {
		io.WriteString(w, `{"data":[`+strings.ReplaceAll(smallMethod, "%07d", "1")+`,`)
		var list bytes.Buffer
		repeated(`{}`, 100<<20)(&list)
		w.Write(list.Bytes()[len(`{"data":[`):])
	}, true},
	{"97 MB of methods", repeated(smallMethod, 97<<20), true},
	{"97 MB of large methods", repeated(strings.Replace(smallMethod, "A method", strings.Repeat("x", 30<<10), 1), 97<<20), true},
	{"one method of 100 MB", func(w io.Writer) {
		io.WriteString(w, `{"data":[{"id":"`)
		for range 100 {
			w.Write(bytes.Repeat([]byte("x"), 1<<20))
		}
		io.WriteString(w, `"}]}`)
	}, false},
	{"100 MB of brackets", func(w io.Writer) {
		io.WriteString(w, `{"data":[`)
		for range 100 {
			w.Write(bytes.Repeat([]byte("["), 1<<20))
		}
	}, false},
	{"100 MB beside the list", func(w io.Writer) {
		io.WriteString(w, `{"meta":[`)
		for range 100 {
			w.Write(bytes.Repeat([]byte("{},"), 1<<20/3))
		}
		io.WriteString(w, `{}],"data":[]}`)
	}, false},
	{"a broken method, and a list without a name in it", func(w io.Writer) {
		io.WriteString(w, `{"data":[`+strings.ReplaceAll(smallMethod, "%07d", "1")+`,{"id":"x","":[{}}}],"meta":{"mcp":{"discovery":true}}}`)
	}, true},
	{"many members beside the list", func(w io.Writer) {
		var b bytes.Buffer
		for i := range 1_000_000 {
			fmt.Fprintf(&b, `"%d":0,`, i)
		}
		io.WriteString(w, `{`+b.String()+`"data":[]}`)
	}, false},
}

// A site lists what it likes to one caller: the bridge holds little of it, and others are served.
func TestLists(t *testing.T) {
	limitMemory(t)
	for _, attack := range lists {
		t.Run(attack.name, func(t *testing.T) {
			s := newSite(t)
			s.hostileList(attack.write)
			p := start(t, s)
			p.besides(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
				defer cancel()
				status, body := p.send(ctx, "127.0.0.1", "mallory", "GET", "/mcp/tools/list", "", nil)
				has := status == 200 && strings.Contains(body, `"content.m`)
				must.Expect(t, has == attack.tools && status != 0, "the caller gets %d %.300s", status, body)
			})
			p.quiet(64 << 10)
			p.bounded(250)
		})
	}
}

// A site takes any credential, and shows each caller something else: what is kept of all of them together is bounded.
func TestManyCallers(t *testing.T) {
	limitMemory(t)
	basic := func(long int) func(int) string {
		return func(i int) string {
			return "Basic " + base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "mallory%d%s:x", i, strings.Repeat("x", long)))
		}
	}
	bearer := func(long int) func(int) string {
		return func(i int) string { return fmt.Sprint("Bearer ", i, "x", strings.Repeat("x", long)) }
	}
	usual := repeated(smallMethod, 1)
	for _, attack := range []struct {
		name       string
		callers    int
		credential func(i int) string
		list       func(w http.ResponseWriter, user string)
		status     int
	}{
		{"as callers come", 3000, basic(10), nil, 200},
		{"a list of 1 MB for each", 200, basic(10), func(w http.ResponseWriter, user string) {
			repeated(strings.Replace(smallMethod, "A method", user+strings.Repeat("x", 1000), 1), 1<<20)(w)
		}, 200},
		{"an ETag of 60 KB for each", 3000, basic(10), func(w http.ResponseWriter, user string) {
			w.Header().Set("ETag", `"`+user+strings.Repeat("x", 60<<10)+`"`)
			usual(w)
		}, 200},
		{"passwords of 1 KB", 3000, basic(1000), nil, 200},
		{"passwords of 40 KB", 1500, basic(40 << 10), nil, 401},
		{"tokens of 15 KB", 4000, bearer(15 << 10), nil, 200},
		{"tokens of 60 KB", 1500, bearer(60 << 10), nil, 401},
	} {
		t.Run(attack.name, func(t *testing.T) {
			s := newSite(t)
			others := s.Config.Handler
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				user, _, named := r.BasicAuth()
				switch {
				case named && !strings.HasPrefix(user, "mallory"):
					others.ServeHTTP(w, r)
				case attack.list != nil:
					attack.list(w, user)
				default:
					usual(w)
				}
			})
			p := start(t, s)
			p.besides(func() {
				var next atomic.Int64
				crowd(8, func(int) {
					for i := next.Add(1); i <= int64(attack.callers); i = next.Add(1) {
						header := http.Header{"Authorization": {attack.credential(int(i))}}
						if status, body := p.send(context.Background(), "127.0.0.1", "", "GET", "/mcp/tools/list", "", header); status != attack.status {
							t.Errorf("a caller gets %d %.300s", status, body)
							return
						}
					}
				})()
			})
			p.bounded(peerLimit)
		})
	}
}

// A list that does not end ends with the bridge.
func TestListWithoutEnd(t *testing.T) {
	s := newSite(t)
	arriving := make(chan struct{}, 1)
	s.hostileList(func(w io.Writer) {
		io.WriteString(w, `{"data":[`)
		for {
			if _, err := io.WriteString(w, strings.Repeat(`{},`, 100)); err != nil {
				return
			}
			select {
			case arriving <- struct{}{}:
			default:
			}
			time.Sleep(time.Millisecond)
		}
	})
	p := start(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go p.send(ctx, "127.0.0.1", "mallory", "GET", "/mcp/tools/list", "", nil)
	<-arriving
	began := time.Now()
	p.cmd.Process.Signal(syscall.SIGTERM)
	cancel()
	ended := make(chan struct{})
	go func() { p.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
		p.ended.Store(true)
		t.Logf("it took %s", time.Since(began))
	case <-time.After(15 * time.Second):
		t.Error("the bridge reads on after SIGTERM")
	}
}
