package bridge_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestAnOldListStandsInForASiteThatFails(t *testing.T) {
	bodies := map[string]http.HandlerFunc{
		"status 500":   func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) },
		"a page":       func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>") },
		"cut JSON":     func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"data":[`) },
		"no data":      func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{}`) },
		"null data":    func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"data":null}`) },
		"reset":        func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
		"not found":    func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) },
		"rate limited": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(429) },
		"hang":         func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	for name, broken := range bodies {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, method("content.x"))
			c := &clock{}
			front := start(t, s, func(o *bridge.Options) {
				o.Now, o.UpstreamTimeout, o.StaleAfter = c.now, 300*time.Millisecond, 20*time.Millisecond
			})
			good := list(t, front, "agent")
			s.change(func() { s.list = broken })
			c.advance(61 * time.Second)
			stale := list(t, front, "agent")
			if stale.Status != 200 || stale.Body != good.Body || !strings.HasPrefix(stale.Header.Get("Warning"), "110") || stale.Header.Get("Age") != "61" {
				t.Errorf("stale: %d %v %s", stale.Status, stale.Header, stale.Body)
			}
			r := list(t, front, "stranger")
			must.Expect(t, (r.Status == 502 || r.Status == 503) && r.Code() != "", "stranger: %d %s", r.Status, r.Body)
			c.advance(2 * time.Hour)
			r = list(t, front, "agent")
			must.Expect(t, r.Status != 200, "after the age limit: %d", r.Status)
			s.change(func() { s.list = nil })
			r = list(t, front, "stranger")
			must.Expect(t, r.Status == 200 && r.Header.Get("Warning") == "", "back: %d %v %s", r.Status, r.Header, r.Body)
		})
	}
}

func TestARefusalReplacesTheOldList(t *testing.T) {
	s := newSite(t, method("content.x"))
	c := &clock{}
	front := start(t, s, func(o *bridge.Options) { o.Now = c.now })
	list(t, front, "agent")
	s.change(func() { s.list = func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(403) } })
	c.advance(61 * time.Second)
	list(t, front, "agent").expect(t, 403, "without the permission")
	before := s.discoveries.Load()
	list(t, front, "agent")
	must.Expect(t, s.discoveries.Load() == before, "a refusal is not remembered")
	s.change(func() { s.list = nil })
	c.advance(5 * time.Second)
	r := list(t, front, "agent")
	must.Expect(t, r.Status == 200, "with it again: %d", r.Status)
}

func TestWhatTheSiteContradictsIsRefetched(t *testing.T) {
	for name, failure := range map[string]string{
		"schema": `"code":-32602,"message":"Invalid Params","data":"The n parameter does not conform to the parameter schema. x"`,
		"gone":   `"code":-32601,"message":"Method Not Found"`,
		"denied": `"code":-32600,"message":"Invalid Request","data":"Access Denied: x"`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, echo)
			c := &clock{}
			front := start(t, s, func(o *bridge.Options) { o.Now = c.now })
			list(t, front, "agent")
			s.change(func() {
				s.methods = []string{method("content.other")}
				s.response = func(w http.ResponseWriter, _ *http.Request, c rpc) {
					fmt.Fprintf(w, `{"id":%s,"error":{%s}}`, c.ID, failure)
				}
			})
			call(t, front, "agent", "content.echo", "{}")
			if r := list(t, front, "agent"); !strings.Contains(r.Body, "content.other") || s.discoveries.Load() != 2 {
				t.Errorf("list after %d discoveries: %s", s.discoveries.Load(), r.Body)
			}
			s.change(func() { s.methods = []string{echo} })
			c.advance(61 * time.Second)
			for range 10 {
				call(t, front, "agent", "content.echo", "{}")
			}
			n := s.discoveries.Load()
			must.Expect(t, n <= 4, "%d discoveries: a failing call may not send the bridge to the site each time", n)
		})
	}
}

func TestModuleAsSource(t *testing.T) {
	mux := http.NewServeMux()
	s := newSite(t)
	mux.HandleFunc("/mcp/tools/list", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cursor") == "" {
			io.WriteString(w, `{"tools":[{"name":"a","description":"A","title":"T","inputSchema":{"type":"object","properties":[]},"annotations":[]}],"nextCursor":"MQ=="}`)
			return
		}
		io.WriteString(w, `{"tools":[{"name":"b","description":"B","inputSchema":{"type":"object","properties":[{"type":"string"}],"required":[0]}},
			{"name":"c","description":"C","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}]}`)
	})
	mux.Handle("/", s)
	s.Config.Handler = mux
	front := start(t, s, func(o *bridge.Options) { o.Source = bridge.SourceModule })
	r := list(t, front, "agent")
	for _, has := range []string{`{"name":"a","title":"T","description":"A","inputSchema":{"type":"object","properties":{}}}`, `"required":["0"]`, `"name":"c"`} {
		must.Expect(t, strings.Contains(r.Body, has), "list lacks %s: %s", has, r.Body)
	}
	r = call(t, front, "agent", "b", `{"0":"x"}`)
	must.Expect(t, r.Body == `{"result":["x"]}`, "invoke: %d %s", r.Status, r.Body)
	r = call(t, front, "agent", "c", `{}`)
	must.Expect(t, r.Status == 400, "invalid arguments: %d %s", r.Status, r.Body)
}

func TestLazySchemasAreFetchedWhenNeeded(t *testing.T) {
	const n = 120
	s := newSite(t)
	var described, atOnce, most atomic.Int64
	maximum := atomic.Int64{}
	maximum.Store(5)
	mux := http.NewServeMux()
	mux.HandleFunc("/jsonrpc/methods/{id}", func(w http.ResponseWriter, r *http.Request) {
		described.Add(1)
		most.Store(max(most.Load(), atOnce.Add(1)))
		defer atOnce.Add(-1)
		if r.PathValue("id") == "content.bad" {
			io.WriteString(w, `{"id":"content.bad","attributes":{"params":{"p":{"schema":{"$ref":"http://x/"}}}}}`)
			return
		}
		fmt.Fprintf(w, `{"id":%q,"attributes":{"usage":"whole","params":{"n":{"schema":{"type":"integer","maximum":%d}}}}}`, r.PathValue("id"), maximum.Load())
	})
	mux.Handle("/", s)
	s.Config.Handler = mux
	for i := range n {
		s.methods = append(s.methods, method(fmt.Sprintf("content.m%d", i)))
	}
	s.methods = append(s.methods, method("content.bad"))
	c := &clock{}
	front := start(t, s, func(o *bridge.Options) { o.LazySchemas, o.Now = true, c.now })

	first := list(t, front, "agent")
	if got := described.Load(); got != 50 || strings.Count(first.Body, `"maximum":5`) != 50 || most.Load() > 8 {
		t.Errorf("the first page took %d descriptions, %d at once, and shows %.200s", got, most.Load(), first.Body)
	}
	list(t, front, "other")
	call(t, front, "agent", "content.m3", `{"n":1}`)
	must.Equal(t, described.Load(), 50, "what is fetched, known before")
	r := call(t, front, "agent", "content.m100", `{"n":9}`)
	must.Expect(t, r.Status == 400 && described.Load() == 51, "a tool that nobody saw: %d %s after %d", r.Status, r.Body, described.Load())
	call(t, front, "agent", "content.bad", `{"x":1}`).expect(t, 200, "a tool whose schema cannot be translated")
	maximum.Store(9)
	c.advance(301 * time.Second)
	call(t, front, "agent", "content.m3", `{"n":9}`).expect(t, 200, "after the discovery TTL")
	if second := list(t, front, "agent"); second.Header.Get("ETag") == first.Header.Get("ETag") || !strings.Contains(second.Body, `"maximum":9`) {
		t.Error("the list does not show the new schemas under a new version")
	}
}

func TestTheSiteIsAskedForNewsOnly(t *testing.T) {
	s := newSite(t)
	var unchanged atomic.Int64
	s.list = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"v1"` {
			unchanged.Add(1)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		io.WriteString(w, `{"data":[`+echo+`]}`)
	}
	c := &clock{}
	front := start(t, s, func(o *bridge.Options) { o.Now = c.now })
	first := list(t, front, "agent")
	for range 2 {
		c.advance(61 * time.Second)
		r := list(t, front, "agent")
		must.Expect(t, r.Body == first.Body && r.Header.Get("Warning") == "", "%d %v %s", r.Status, r.Header, r.Body)
	}
	if list(t, front, "other"); unchanged.Load() != 2 || s.discoveries.Load() != 4 {
		t.Errorf("%d of %d discoveries were for news", unchanged.Load(), s.discoveries.Load())
	}
}

func TestASiteSlowerThanTheTTLIsNotStale(t *testing.T) {
	c := &clock{}
	s := newSite(t)
	s.list = func(w http.ResponseWriter, r *http.Request) {
		c.advance(2 * time.Minute) // the site takes its time
		io.WriteString(w, `{"data":[`+echo+`]}`)
	}
	front := start(t, s, func(o *bridge.Options) { o.Now = c.now })
	for i := range 2 {
		if r := list(t, front, "agent"); r.Status != 200 || r.Header.Get("Warning") != "" || s.discoveries.Load() != int64(i+1) {
			t.Errorf("%d %v after %d discoveries", r.Status, r.Header, s.discoveries.Load())
		}
	}
}

func TestAnInvalidationWhileTheSiteRespondsIsNotLost(t *testing.T) {
	s := newSite(t, method("content.old"))
	arrived, release := make(chan struct{}), make(chan struct{})
	s.list = func(w http.ResponseWriter, r *http.Request) {
		body := `{"data":[` + method("content.old") + `,{"id":"cache.rebuild"}]}`
		if s.discoveries.Load() > 2 {
			body = `{"data":[` + method("content.new") + `]}`
		}
		if user, _, _ := r.BasicAuth(); user == "agent" && s.discoveries.Load() == 2 {
			close(arrived)
			<-release
		}
		io.WriteString(w, body)
	}
	front := start(t, s)
	list(t, front, "admin")
	got := make(chan reply)
	go func() { got <- list(t, front, "agent") }()
	<-arrived
	send(t, front, "admin", "POST", "/mcp/admin/invalidate", "").expect(t, 200, "invalidate")
	close(release)
	r := <-got
	must.Expect(t, strings.Contains(r.Body, "content.new") && r.Header.Get("Warning") == "", "%d %v %s", r.Status, r.Header, r.Body)
}
