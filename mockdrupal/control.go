package mockdrupal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/loopback"
	"github.com/bridgecheck/bridgecheck/mockdrupal/control"
	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/patch"
)

// controlError is a response of 4xx: what was wrong, and where.
type controlError struct {
	status int
	err    error
}

func (e *controlError) Error() string { return e.err.Error() }
func (e *controlError) Unwrap() error { return e.err }

func badControl(err error) error {
	if err == nil {
		return nil
	}
	return &controlError{http.StatusBadRequest, err}
}

func noSuch(format string, args ...any) error {
	return &controlError{http.StatusNotFound, fmt.Errorf(format, args...)}
}

// maxControl is the largest control request: a site file.
const maxControl = 256 << 20

// ControlHandler serves the control plane below /-/mock/: the site, the journal, faults, quirks, the clock. Callers
// send the token as `Authorization: Bearer TOKEN`; an empty token admits every program on this machine, for a listener
// that only this machine reaches. Web pages are kept out: see checkCaller. Bad input is refused with 4xx and
// {"error": what and where}; the site stays as it was.
func (d *Drupal) ControlHandler(token string) http.Handler {
	r := mux.NewRouter()
	for _, c := range d.controls() {
		r.Path(control.Prefix + c.path).Methods(c.verb).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := checkBody(r, c.yaml); err != nil {
				respond(w, nil, err)
				return
			}
			result, err := c.do(r)
			respond(w, result, err)
		})
	}
	r.NotFoundHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		respond(w, nil, noSuch("the control plane has no %s; its addresses are in docs/mock.md", r.URL.Path))
	})
	r.MethodNotAllowedHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		respond(w, nil, &controlError{http.StatusMethodNotAllowed, fmt.Errorf("%s is not possible at %s", r.Method, r.URL.Path)})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := checkCaller(req, token); err != nil {
			respond(w, nil, err)
			return
		}
		req.Body = http.MaxBytesReader(w, req.Body, maxControl)
		r.ServeHTTP(w, req)
	})
}

// ListenControl serves the control plane on an address of its own, until the server is closed. Without a token it accepts
// an address of this machine only. It fails when the address is taken.
func (d *Drupal) ListenControl(address, token string) (*http.Server, net.Addr, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, fmt.Errorf("the control plane cannot listen on %q: it needs HOST:PORT", address)
	}
	if token == "" && !loopback.Is(host) {
		return nil, nil, fmt.Errorf("the control plane on %s needs a token: without one it listens on 127.0.0.1 only", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("the control plane cannot listen on %s: %w", address, err)
	}
	d.controlURL.Store("http://" + listener.Addr().String())
	server := &http.Server{Handler: d.ControlHandler(token), ReadHeaderTimeout: time.Minute}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			d.log.Error("the control plane ended", "err", err)
		}
	}()
	return server, listener.Addr(), nil
}

// rawText is a result that is not JSON.
type rawText struct {
	contentType string
	body        []byte
}

func respond(w http.ResponseWriter, result any, err error) {
	status, contentType := http.StatusOK, exchange.JSONType
	var failed *controlError
	switch {
	case errors.As(err, &failed):
		if failed.status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="mock control"`)
		}
		status, result = failed.status, map[string]string{"error": err.Error()}
	case err != nil:
		status, result = http.StatusInternalServerError, map[string]string{"error": err.Error()}
	case result == nil:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	text, ok := result.(rawText)
	if ok {
		contentType = text.contentType
	} else {
		text.body, err = json.Marshal(result)
		if err != nil {
			status, text.body = http.StatusInternalServerError, []byte(`{"error":"the result cannot be written as JSON"}`)
		}
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(text.body) // a client that went away is no error of the site
}

// controlRoute is one address of the control plane.
type controlRoute struct {
	verb, path string
	do         func(*http.Request) (any, error)
	yaml       bool // its body may be YAML too
}

func (d *Drupal) controls() []controlRoute {
	return []controlRoute{
		{verb: "GET", path: "site", do: func(*http.Request) (any, error) {
			text, err := d.Site().YAML()
			return rawText{"application/yaml", text}, err
		}},
		{verb: "PUT", path: "site", do: d.replaceSite, yaml: true},
		{verb: "PATCH", path: "site", do: taking(func(p patch.Patch) (any, error) { return nil, badControl(d.Patch(p)) })},
		{verb: "GET", path: "journal", do: d.readJournal},
		{verb: "DELETE", path: "journal", do: func(*http.Request) (any, error) { d.Journal().Clear(); return nil, nil }},
		{verb: "GET", path: "runs/{method}", do: func(r *http.Request) (any, error) {
			id := mux.Vars(r)["method"]
			if _, ok := d.Site().Method(id); !ok {
				return nil, noSuch("the site has no method %q", id)
			}
			return map[string]int64{"runs": d.Runs(id)}, nil
		}},
		{verb: "GET", path: "fault-kinds", do: func(*http.Request) (any, error) { return fault.Kinds(), nil }},
		{verb: "GET", path: "faults", do: func(*http.Request) (any, error) { return d.Faults(), nil }},
		{verb: "POST", path: "faults", do: taking(func(f Fault) (any, error) {
			id, err := d.ArmNumbered(f)
			return map[string]int64{"id": id}, badControl(err)
		})},
		{verb: "DELETE", path: "faults", do: func(*http.Request) (any, error) { d.DisarmAll(); return nil, nil }},
		{verb: "DELETE", path: "faults/{id}", do: func(r *http.Request) (any, error) {
			id, err := strconv.ParseInt(mux.Vars(r)["id"], 10, 64)
			if err != nil || !d.Disarm(id) {
				return nil, noSuch("no fault has the number %s", mux.Vars(r)["id"])
			}
			return nil, nil
		}},
		{verb: "GET", path: "quirks", do: func(*http.Request) (any, error) { return d.ActiveQuirks(), nil }},
		{verb: "PUT", path: "quirks/{name}", do: d.switchQuirk(true)},
		{verb: "DELETE", path: "quirks/{name}", do: d.switchQuirk(false)},
		{verb: "GET", path: "clock", do: func(*http.Request) (any, error) { return map[string]time.Time{"now": d.Now()}, nil }},
		{verb: "POST", path: "clock", do: taking(func(c control.Advance) (any, error) {
			d.Advance(time.Duration(c.By))
			return map[string]time.Time{"now": d.Now()}, nil
		})},
		{verb: "PUT", path: "freeze", do: taking(d.freezeMethods)},
		{verb: "DELETE", path: "freeze", do: func(*http.Request) (any, error) { d.Freeze(""); return nil, nil }},
		{verb: "GET", path: "waiting", do: func(*http.Request) (any, error) { return map[string]int{"waiting": d.Waiting()}, nil }},
		{verb: "POST", path: "step", do: taking(func(s control.Step) (any, error) {
			if s.Count < 1 {
				return nil, badControl(fmt.Errorf("count: %d calls cannot go on; give 1 or more", s.Count))
			}
			return map[string]int{"stepped": d.Step(s.Count)}, nil
		})},
		{verb: "PUT", path: "flood", do: func(*http.Request) (any, error) { d.SetFlood(true); return nil, nil }},
		{verb: "DELETE", path: "flood", do: func(*http.Request) (any, error) { d.SetFlood(false); return nil, nil }},
		{verb: "DELETE", path: "caches", do: func(*http.Request) (any, error) { d.ClearCaches(); return nil, nil }},
	}
}

// taking handles a request by its body.
func taking[T any](handle func(v T) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		v, err := decode[T](r)
		if err != nil {
			return nil, err
		}
		return handle(v)
	}
}

// decode reads a JSON body strictly; an error names the member or the byte.
func decode[T any](r *http.Request) (v T, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return v, &controlError{http.StatusRequestEntityTooLarge, fmt.Errorf("reading the body: %w", err)}
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return v, badControl(fmt.Errorf("the body, up to byte %d: %s", dec.InputOffset(), strings.TrimPrefix(err.Error(), "json: ")))
	}
	if dec.More() {
		return v, badControl(fmt.Errorf("the body: more follows the JSON value, at byte %d", dec.InputOffset()))
	}
	return v, nil
}

func (d *Drupal) replaceSite(r *http.Request) (any, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, &controlError{http.StatusRequestEntityTooLarge, fmt.Errorf("reading the site: %w", err)}
	}
	site, err := fixtures.Parse("site", body)
	if err != nil {
		return nil, badControl(err)
	}
	d.SetSite(site)
	return nil, nil
}

func (d *Drupal) switchQuirk(on bool) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		if err := d.SetQuirk(mux.Vars(r)["name"], on); err != nil {
			return nil, &controlError{http.StatusNotFound, err}
		}
		return nil, nil
	}
}

func (d *Drupal) freezeMethods(f control.Freeze) (any, error) {
	if err := (patch.Selection{Methods: []string{f.Method}}).Check(d.Site().Methods, "freeze", "is on the site"); err != nil {
		return nil, badControl(err)
	}
	d.Freeze(f.Method)
	return nil, nil
}

func (d *Drupal) readJournal(r *http.Request) (any, error) {
	f := journal.Filter{}
	numbers := map[string]func(int64){
		"after":  func(n int64) { f.After = n },
		"status": func(n int64) { f.Status = int(n) },
		"limit":  func(n int64) { f.Limit = int(n) },
	}
	texts := map[string]*string{"user": &f.User, "method": &f.Method, "route": &f.Route, "fault": &f.Fault}
	for name, values := range r.URL.Query() {
		value := values[len(values)-1]
		switch {
		case numbers[name] != nil:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 {
				return nil, badControl(fmt.Errorf("%s: %q is no number", name, value))
			}
			numbers[name](n)
		case texts[name] != nil:
			*texts[name] = value
		case name == "ran":
			ran, err := strconv.ParseBool(value)
			if err != nil {
				return nil, badControl(fmt.Errorf("ran: %q is neither true nor false", value))
			}
			f.Ran = ran
		default:
			return nil, badControl(fmt.Errorf("the journal has no filter %q: it has after, user, method, route, status, fault, ran and limit", name))
		}
	}
	j := d.Journal()
	page := control.JournalPage{Entries: j.Select(f), Last: j.Last(), Dropped: j.Dropped(), Lost: j.Lost(f.After)}
	if page.Entries == nil {
		page.Entries = []journal.Entry{}
	}
	return page, nil
}
