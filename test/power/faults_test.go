package power

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// wrong is what goes wrong before the bridge, or in its response. Each reports whether it changed anything.
type wrong struct {
	name   string
	before func(m *moment) bool
	after  func(m *moment) bool
}

// cutShort takes the last character of the first text in a value.
func cutShort(v any) (any, bool) {
	done := false
	v = everywhere(v, func(v any) any {
		if s, ok := v.(string); ok && !done && s != "" {
			runes := []rune(s)
			done, v = true, string(runes[:len(runes)-1])
		}
		return v
	})
	return v, done
}

// lacks is a fault that loses a member of each tool.
func lacks(name string, member func(tool document) (document, string)) wrong {
	return wrong{name: name, after: func(m *moment) bool {
		done := false
		for _, tool := range m.tools() {
			of, name := member(tool)
			_, there := of[name]
			delete(of, name)
			done = done || there
		}
		return done
	}}
}

func wrongs() []wrong {
	return []wrong{
		{name: "a tool is lost", after: func(m *moment) bool {
			tools, _ := m.page()["tools"].([]any)
			if len(tools) == 0 {
				return false
			}
			m.page()["tools"] = tools[:len(tools)-1]
			return true
		}},
		lacks("required is lost", func(tool document) (document, string) { return objectIn(tool, "inputSchema"), "required" }),
		lacks("a property is lost", func(tool document) (document, string) {
			properties := objectIn(objectIn(tool, "inputSchema"), "properties")
			for _, name := range slices.Sorted(maps.Keys(properties)) {
				return properties, name
			}
			return properties, ""
		}),
		lacks("annotations are lost", func(tool document) (document, string) { return tool, "annotations" }),
		lacks("outputSchema is lost", func(tool document) (document, string) { return tool, "outputSchema" }),
		{name: "descriptions are cut", after: func(m *moment) bool {
			done := false
			for _, tool := range m.tools() {
				v, cut := cutShort(tool["description"])
				tool["description"], done = v, done || cut
			}
			return done
		}},
		{name: "nextCursor is lost", after: func(m *moment) bool {
			_, there := m.page()["nextCursor"]
			delete(m.page(), "nextCursor")
			return there
		}},
		{name: "a result's text is cut", after: func(m *moment) bool {
			v, _ := m.result()
			v, cut := cutShort(v)
			if cut {
				m.setResult(v)
			}
			return cut
		}},
		{name: "a result is null", after: func(m *moment) bool {
			v, there := m.result()
			if there && v != nil {
				m.setResult(nil)
			}
			return there && v != nil
		}},
		{name: "an error is a success", after: func(m *moment) bool {
			if result := objectIn(m.got, "result"); result["isError"] == true {
				delete(result, "isError")
				return true
			}
			failed := m.rec.Code >= 400 && m.got != nil && !m.isMCP()
			if failed {
				m.rec.Code = http.StatusOK
			}
			return failed
		}},
		{name: "a success is an error", after: func(m *moment) bool {
			if m.rec.Code != http.StatusOK || m.op() == "" || m.got == nil || m.got["error"] != nil {
				return false
			}
			m.got = document{"error": document{"code": "internal_error", "message": "It failed."}}
			if m.isMCP() {
				m.got = document{"jsonrpc": "2.0", "id": m.sent["id"], "error": document{"code": json.Number("-32603"), "message": "It failed."}}
			} else {
				m.rec.Code = http.StatusInternalServerError
			}
			return true
		}},
		{name: "an error has another code", after: func(m *moment) bool {
			e := objectIn(m.got, "error")
			if e["code"] == nil || m.isMCP() { // which MCP leaves open for most errors
				return false
			}
			e["code"] = "failed"
			return true
		}},
		{name: "an error has another status", after: func(m *moment) bool {
			failed := m.rec.Code >= 400
			if failed {
				m.rec.Code = http.StatusTeapot
			}
			return failed
		}},
		{name: "a response has another id", after: func(m *moment) bool {
			there := m.isMCP() && m.got["id"] != nil
			if there {
				m.got["id"] = "another"
			}
			return there
		}},
		{name: "an argument's text is cut", before: func(m *moment) bool {
			v, cut := cutShort(m.args())
			if cut {
				maps.Copy(m.args(), v.(document))
			}
			return cut
		}},
		{name: "an argument is lost", before: func(m *moment) bool {
			for _, name := range slices.Sorted(maps.Keys(m.args())) {
				delete(m.args(), name)
				return true
			}
			return false
		}},
		{name: "it is done as admin", before: func(m *moment) bool {
			if m.who == "admin" || m.op() == "" {
				return false
			}
			m.r.SetBasicAuth("admin", "admin-pass")
			return true
		}},
		{name: "it is done as nobody", before: func(m *moment) bool {
			known := m.r.Header.Get("Authorization")+m.r.Header.Get("Cookie") != "" && m.op() != ""
			m.r.Header.Del("Authorization")
			m.r.Header.Del("Cookie")
			return known
		}},
		{name: twice, before: func(m *moment) bool { return m.isCall() }},
	}
}

const twice = "a call is made twice"

// past is what a bridge remembers.
type past struct {
	mu             sync.Mutex
	total          int
	same, of, last map[string]int // requests by caller and request, and by caller; the last status by caller
	invoked        map[string]bool
	failed, empty  time.Time
	inFlight       atomic.Int32
}

// under is a fault that shows under a condition; shown counts how often it did.
func under(f wrong, c condition, shown *atomic.Int32) func(http.Handler) http.Handler {
	p := &past{same: map[string]int{}, of: map[string]int{}, last: map[string]int{}, invoked: map[string]bool{}}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength < 0 || r.ContentLength > largest || r.Header.Get("Accept") == "text/event-stream" || r.Header.Get("Mcp-Method") == "subscriptions/listen" {
				next.ServeHTTP(w, r)
				return
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				next.ServeHTTP(w, r)
				return
			}
			r = r.Clone(r.Context())
			m := p.moment(r, body)
			defer p.inFlight.Add(-1)
			if f.before != nil && c.holds(m) {
				was := written(m.sent)
				if f.before(m) {
					shown.Add(1)
				}
				if now := written(m.sent); m.sent != nil && now != was {
					body = []byte(now)
				}
				if f.name == twice && m.isCall() {
					again := r.Clone(r.Context())
					again.Body = io.NopCloser(bytes.NewReader(body))
					next.ServeHTTP(httptest.NewRecorder(), again)
				}
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			m.rec = httptest.NewRecorder()
			next.ServeHTTP(m.rec, r)
			out := m.rec.Body.Bytes()
			zipped := m.rec.Header().Get("Content-Encoding") == "gzip" && r.Method != http.MethodHead
			if z, err := gzip.NewReader(bytes.NewReader(out)); zipped && err == nil {
				out, _ = io.ReadAll(z)
			}
			m.got, _ = parsed(out)
			if f.after != nil && r.Method != http.MethodHead && c.holds(m) {
				was := written(m.got)
				if f.after(m) {
					shown.Add(1)
				}
				if now := written(m.got); m.got != nil && now != was {
					out = []byte(now)
				}
			}
			p.note(m)
			if zipped {
				var b bytes.Buffer
				z := gzip.NewWriter(&b)
				z.Write(out) //nolint:errcheck // to memory
				z.Close()
				out = b.Bytes()
			}
			maps.Copy(w.Header(), m.rec.Header())
			if bodiless := m.rec.Code == http.StatusNoContent || m.rec.Code == http.StatusNotModified || r.Method == http.MethodHead; !bodiless {
				w.Header().Set("Content-Length", strconv.Itoa(len(out)))
			}
			w.WriteHeader(m.rec.Code)
			w.Write(out) //nolint:errcheck // the caller has gone
		})
	}
}

func (p *past) moment(r *http.Request, body []byte) *moment {
	m := &moment{r: r, body: body, concurrent: p.inFlight.Add(1)}
	if m.who, _, _ = r.BasicAuth(); m.who == "" {
		m.who = r.Header.Get("Authorization") + r.Header.Get("Cookie")
	}
	m.sent, _ = parsed(body)
	request := m.who + r.Method + r.URL.String() + string(body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total++
	p.of[m.who]++
	p.same[request]++
	m.total, m.ofWho, m.nth, m.lastStatus, m.invoked = p.total, p.of[m.who], p.same[request], p.last[m.who], p.invoked[m.who]
	m.sinceFail, m.sinceEmpty = time.Since(p.failed), time.Since(p.empty)
	return m
}

func (p *past) note(m *moment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[m.who] = m.rec.Code
	p.invoked[m.who] = p.invoked[m.who] || m.isCall()
	if m.rec.Code >= 500 {
		p.failed = time.Now()
	}
	if strings.HasSuffix(m.r.URL.Path, "/invalidate") {
		p.empty = time.Now()
	}
}

// TestFaultsUnderConditionsAreFound puts faults that depend on a condition into the reference bridge. CONDITIONS=n tests n cells,
// chosen by SEED; one that shows in a run must fail a clause.
func TestFaultsUnderConditionsAreFound(t *testing.T) {
	must.Need(t, os.Getenv("CONDITIONS") != "", "SKIPPED: make conditions runs it: a cell takes a run")
	n, err := strconv.Atoi(os.Getenv("CONDITIONS"))
	must.Assert(t, err == nil, "CONDITIONS=%s: want a number", os.Getenv("CONDITIONS"))
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("SEED"), "1"), 10, 64)
	must.Assert(t, err == nil, "SEED=%s: want a number", os.Getenv("SEED"))
	type cell struct {
		wrong
		condition
	}
	var all []cell
	for _, f := range wrongs() {
		for _, c := range conditions() {
			if f.before == nil || !c.after {
				all = append(all, cell{f, c})
			}
		}
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	t.Logf("%d cells", len(all))
	for _, c := range all[:min(n, len(all))] {
		t.Run(c.wrong.name+", "+c.condition.name, func(t *testing.T) {
			t.Parallel()
			var shown atomic.Int32
			found := ""
			o := engine.Options{Contract: contract.Draft, Skip: []string{"load"}}
			o.Pass.StopAfter = func(r reports.Result) string {
				if r.Verdict == reports.Fail || r.Verdict == reports.Warn {
					found = r.ID
				}
				return found
			}
			report := must.Get(selftest.Run(t.Context(), mutants.Mutant{Name: "condition", Middleware: under(c.wrong, c.condition, &shown), MCP: true}, o, nil))(t)
			for _, r := range report.Results { // what one check noticed of another clause stands in the report alone
				if found == "" && (r.Verdict == reports.Fail || r.Verdict == reports.Warn) {
					found = r.ID
				}
			}
			must.Need(t, shown.Load() > 0, "SKIPPED: the run never meets it")
			must.Expect(t, found != "", "it showed %d times, and no clause fails", shown.Load())
			t.Logf("%s fails; it showed %d times", found, shown.Load())
		})
	}
}
