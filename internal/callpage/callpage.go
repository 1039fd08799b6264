// Package callpage serves one page on which a person calls the tools of a bridge as any caller and sees both sides of each exchange.
//
// It sends nothing and judges nothing: whoever calls it brings the tools and a function that calls one. Its invariant: nothing is
// sent or changed for a request that lacks the token of the address, came to another host or from another page, nor for a GET.
package callpage

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/surface"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/patch"
	"github.com/bridgecheck/bridgecheck/mockdrupal/recorder"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

//go:embed page.gohtml page.css page.js
var assets embed.FS

// The ways of a call to the bridge. HTTP is any request.
const (
	REST = "REST"
	MCP  = "MCP"
	HTTP = "HTTP"
)

// Options are what the page shows.
type Options struct {
	Token  string   // in the address of the page, http://HOST/TOKEN/
	Hosts  []string // host:port that the page has
	Title  string   // the target
	Ways   []string // that the bridge has
	Redact func(string) string
	Site   *recorder.Recorder // journal and faults of what stands behind the bridge; nil: it is not seen
	Mock   *mockdrupal.Drupal // the site itself; nil: it cannot be changed
	Report *reports.Report    // whose failures are shown; nil: none
	// List also says, by caller, what is wrong with lists that cannot be read.
	List func(context.Context) (*surface.Surface, map[string]string, error)
	Call func(context.Context, Call) (Sent, error)
}

// Sent is what came of a call: the evidence of its result, and the clauses that it shows.
type Sent struct {
	reports.Result
	Clauses []check.Shown
}

// shown are exchanges, of which one is open.
type shown struct {
	Evidence []reports.Exchange
	Open     int
	Site     bool // it was seen
}

// Call is what a person sends.
type Call struct {
	Caller    string          `json:"caller"`
	Way       string          `json:"way"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Request   *Request        `json:"request"`  // of HTTP, in place of tool and arguments
	Clause    string          `json:"clause"`   // of the report, from which the request comes
	Exchange  int             `json:"exchange"` // of its evidence
}

// server has one call at a time under way: what reaches the site meanwhile is of that call.
type server struct {
	Options
	pages   *template.Template
	methods []fixtures.Method // of the site as it was at the start
	calling sync.Mutex
	listed  sync.Mutex // over what follows
	seen    *surface.Surface
	broken  map[string]string
	problem string // why the tools could not be listed again; "": they could
}

// Handler lists the tools and serves the page.
func Handler(ctx context.Context, o Options) (http.Handler, error) {
	s := &server{Options: o}
	var err error
	if s.seen, s.broken, err = o.List(ctx); err != nil {
		return nil, err
	}
	if s.Mock != nil {
		s.methods = s.Mock.Site().Methods
	}
	visible := func(text string) string { return terminal.Visible(o.Redact(text)) }
	s.pages, err = template.New("").Funcs(template.FuncMap{"visible": visible, "body": body, "json": text, "list": list}).ParseFS(assets, "*.gohtml")
	if err != nil {
		return nil, fmt.Errorf("read the page of the console: %w", err)
	}
	mux, base := http.NewServeMux(), "/"+o.Token+"/"
	mux.HandleFunc("GET "+base+"{$}", s.page)
	mux.Handle("GET "+base+"page.css", http.StripPrefix(base, http.FileServerFS(assets)))
	mux.Handle("GET "+base+"page.js", http.StripPrefix(base, http.FileServerFS(assets)))
	mux.HandleFunc("POST "+base+"list", s.listAgain)
	mux.HandleFunc("POST "+base+"send", s.send)
	mux.HandleFunc("POST "+base+"site", s.change)
	mux.HandleFunc("GET "+base+"journal", s.stream)
	return s.guard(base, http.NewCrossOriginProtection().Handler(mux)), nil
}

// guard lets only requests for this page through. The token is part of the path, for a cookie would go to every port of this machine.
func (s *server) guard(base string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.URL.Path[:min(len(base), len(r.URL.Path))]
		if !slices.Contains(s.Hosts, r.Host) || subtle.ConstantTimeCompare([]byte(given), []byte(base)) != 1 {
			http.Error(w, "open the address that bridgecheck console printed", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func (s *server) write(w http.ResponseWriter, name string, data any) {
	var b bytes.Buffer
	if err := s.pages.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(b.Bytes()) //nolint:errcheck // the reader is gone
}

func (s *server) listAgain(w http.ResponseWriter, r *http.Request) {
	s.calling.Lock()
	defer s.calling.Unlock()
	seen, broken, err := s.List(r.Context())
	s.listed.Lock()
	defer s.listed.Unlock()
	s.problem = ""
	if err != nil {
		s.problem = err.Error()
	} else {
		s.seen, s.broken = seen, broken
	}
	http.Redirect(w, r, "./?"+r.URL.RawQuery, http.StatusSeeOther)
}

// maxCall bounds what the page sends, in bytes.
const maxCall = 1 << 20

func (s *server) send(w http.ResponseWriter, r *http.Request) {
	var call Call
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCall))
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	whole := kind == "application/json" && err == nil && strict(string(text), &call) == nil && call.Caller != ""
	if !whole || call.Way != HTTP && (call.Tool == "" || call.Arguments == nil || !slices.Contains(s.Ways, call.Way)) {
		http.Error(w, "a call is a JSON object of at most 1 MiB with caller, way ("+strings.Join(s.Ways, " or ")+"), tool and arguments", http.StatusBadRequest)
		return
	}
	s.calling.Lock()
	defer s.calling.Unlock()
	var sent Sent
	if call.Way == HTTP {
		err = s.complete(r.Context(), &call)
	}
	if err == nil {
		sent, err = s.Call(r.Context(), call)
	}
	if err != nil {
		sent = Sent{Result: reports.Result{Message: err.Error()}}
	}
	s.write(w, "result", map[string]any{"Sent": sent, "Shown": shown{sent.Evidence, len(sent.Evidence) - 1, s.Site != nil}})
}

// view is what the page shows for an address.
type view struct {
	Options
	Callers []callerView
	Caller  string // who is chosen
	Tools   []*toolView
	Chosen  *toolView // nil: no tool is
	Form    field
	Behind  *siteView // nil: the site is not seen
	Failed  []reports.Result
	Failure *failureView // nil: none is chosen
	Old     shown        // of that clause
	Given   *Call        // what the form begins with; nil: nothing
	Query   template.URL
	Problem string // why the tools could not be listed again; "": they could
}

type callerView struct {
	surface.Caller
	Tools  int
	Broken string // what is wrong with the list; "": nothing that keeps it from being read
}

// toolView is a tool as the chosen caller sees it, or as another does if that one does not.
type toolView struct {
	Name, Title, Description string
	Shown                    map[string]any
	Hidden                   bool     // the chosen caller is not shown it
	Others                   []string // callers who are shown it, if the chosen one is not
	Differs                  []string // callers who are shown it otherwise
}

func (s *server) page(w http.ResponseWriter, r *http.Request) { s.write(w, "page", s.view(r)) }

func (s *server) view(r *http.Request) view {
	s.listed.Lock()
	seen, broken, problem := s.seen, s.broken, s.problem
	s.listed.Unlock()
	query := r.URL.Query()
	v := view{Options: s.Options, Caller: query.Get("caller"), Behind: s.site(), Problem: problem}
	for _, c := range seen.Callers {
		n := 0
		for _, t := range seen.Tools {
			if slices.Contains(t.Callers, c.Name) {
				n++
			}
		}
		v.Callers = append(v.Callers, callerView{c, n, broken[c.Name]})
	}
	v.Failed, v.Failure = s.failed(), s.failure(query, v.Callers)
	if v.Failure != nil {
		v.Caller = cmp.Or(v.Caller, v.Failure.Evidence[v.Failure.At].Identity)
		v.Old = shown{v.Failure.Evidence, v.Failure.At, slices.ContainsFunc(v.Failed, func(r reports.Result) bool {
			return slices.ContainsFunc(r.Evidence, func(e reports.Exchange) bool { return len(e.Drupal) > 0 })
		})}
	}
	if !slices.ContainsFunc(v.Callers, func(c callerView) bool { return c.Name == v.Caller }) {
		v.Caller = mostShown(v.Callers)
	}
	v.Tools = toolsOf(seen, v.Caller)
	if name := query.Get("tool"); name != "" {
		if v.Failure != nil {
			v.Given = v.Failure.Call
		}
		v.Chosen = &toolView{Name: name, Hidden: true} // a bridge may have a tool that it shows to nobody
		if i := slices.IndexFunc(v.Tools, func(t *toolView) bool { return t.Name == name }); i >= 0 {
			v.Chosen = v.Tools[i]
		}
		v.Form = formOf(v.Chosen.Shown["inputSchema"])
	}
	query.Set("caller", v.Caller)
	v.Query = template.URL(query.Encode())
	return v
}

// mostShown is the caller who is shown the most tools.
func mostShown(callers []callerView) string {
	return slices.MaxFunc(callers, func(a, b callerView) int { return a.Tools - b.Tools }).Name
}

// toolsOf are the tools of all callers, each once, as one of them sees it where it does.
func toolsOf(seen *surface.Surface, caller string) []*toolView {
	var all []*toolView
	for _, t := range seen.Tools {
		mine := slices.Contains(t.Callers, caller)
		if last := len(all) - 1; last < 0 || all[last].Name != t.Name() {
			all = append(all, &toolView{Name: t.Name(), Hidden: true})
		}
		v := all[len(all)-1]
		switch {
		case mine:
			v.Differs, v.Others, v.Hidden = append(v.Differs, v.Others...), nil, false
		case v.Hidden:
			v.Others = append(v.Others, t.Callers...)
		default:
			v.Differs = append(v.Differs, t.Callers...)
		}
		if mine || v.Shown == nil {
			v.Shown = t.Shown
			v.Title, _ = t.Shown["title"].(string)
			v.Description, _ = t.Shown["description"].(string)
		}
	}
	return all
}

// body is a message's body to read: JSON is indented.
func body(m reports.Message) string {
	var b bytes.Buffer
	switch {
	case m.Encoding != "":
		return "(" + m.Encoding + ") " + m.Body
	case json.Indent(&b, []byte(m.Body), "", "  ") == nil:
		return b.String()
	}
	return m.Body
}

// text is a value as JSON.
func text(v any) (string, error) {
	switch v := v.(type) {
	case json.RawMessage:
		return string(v), nil
	case patch.Patch, fault.Fault:
		data, err := json.Marshal(v)
		return string(data), err
	}
	data, err := exact.Write(v)
	return string(data), err
}

func list(names []string) string { return strings.Join(names, ", ") }
