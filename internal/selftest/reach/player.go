package reach

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"time"
)

// player puts recorded exchanges through a change.
type player struct {
	exchanges []*exchange
	through   func(*played) (changed bool) // puts one through the change
	kept      func(*exchange) bool         // the bridge remembers the response for other clauses; nil: none
	strangers atomic.Int64                 // requests of the change's own, past the bridge
	patience  time.Duration                // with the change, for all exchanges: one that waits for another waits for ever
	pause     time.Duration                // that the change may take for one exchange: what takes longer may be late on purpose

	only    map[int]bool  // the clauses that are played; nil: all
	seen    map[int]bool  // by exchange
	touched map[int]bool  // by clause
	late    map[int]bool  // by exchange that comes out as it was: the change, or a busy machine, took its time
	lost    bool          // the change does something else than to pass on the requests
	within  time.Duration // what the change has taken for the exchanges so far
}

// played is an exchange on its way through the change.
type played struct {
	*exchange
	index   int
	sent    *http.Request  // the request as it enters the change
	body    *watched       // of the request, unless it has none
	entered io.ReadCloser  // the body that it enters the change with
	writer  *watchedWriter // of the response, where a handler is changed
	met     int            // how often the request came out at the other end
	changed bool           // it came out otherwise
}

// playedKey is the key of the exchange in the context of its request.
type playedKey struct{}

// preflight is the clause of what is exchanged before all clauses.
const preflight = 0

// hasTools reports whether the preflight takes a response for one of a bridge. It looks at nothing else, so that a list that
// says something else ends it as this one does.
func (e *exchange) hasTools() bool { return e.status == http.StatusOK && hasTools(e.response) }

func hasTools(body []byte) bool {
	var object map[string]json.RawMessage
	err := json.Unmarshal(body, &object)
	_, has := object["tools"]
	return err == nil && has
}

// play returns the clauses that the change touches, by index; all where that is not certain. set is one of inFront and behind.
// Clauses with an exchange that was late are played again, without the others: a busy machine does not hold up the same ones
// each time, and a change that takes its time for a clause does so whatever came before.
func (p *player) play(set func()) (touched map[int]bool, all bool) {
	touched = map[int]bool{}
	for before := map[int]bool(nil); ; before = p.late {
		again, lost := p.playOnce(set)
		if lost {
			return nil, true
		}
		maps.Copy(touched, again)
		maps.DeleteFunc(p.late, func(i int, _ bool) bool {
			return touched[p.exchanges[i].clause] || before != nil && !before[i]
		})
		if len(p.late) == 0 || len(p.late) == len(before) {
			break
		}
		p.only = map[int]bool{}
		for i := range p.late {
			p.only[p.exchanges[i].clause] = true
		}
	}
	for i := range p.late {
		e := p.exchanges[i]
		touched[e.clause] = true
		all = all || p.keeps(e)
	}
	return touched, all || touched[preflight]
}

// playOnce is play for the clauses of only, with the exchanges that were late in place of touched ones.
func (p *player) playOnce(set func()) (touched map[int]bool, all bool) {
	p.seen, p.touched, p.late = map[int]bool{}, map[int]bool{}, map[int]bool{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { p.lost = p.lost || recover() != nil }()
		set()
		for i := range p.exchanges {
			p.one(i)
			if p.touched[preflight] || p.lost { // every check rests on how it ends
				p.lost = true
				return
			}
		}
	}()
	select {
	case <-done:
		return p.touched, p.lost || p.strangers.Load() > 0
	case <-time.After(p.patience):
		return nil, true
	}
}

// one puts one exchange through the change, unless its clause is touched already and will be tested.
func (p *player) one(i int) {
	e := p.exchanges[i]
	if p.seen[i] || p.touched[e.clause] || p.only != nil && !p.only[e.clause] && e.clause != preflight {
		return
	}
	p.seen[i] = true
	x := &played{exchange: e, index: i, body: &watched{Reader: bytes.NewReader(e.body)}, writer: &watchedWriter{header: http.Header{}}}
	ctx, cancel := context.WithCancel(context.WithValue(e.request.Context(), playedKey{}, x))
	defer cancel()
	x.sent = e.request.Clone(ctx)
	if x.entered = http.NoBody; len(e.body) > 0 || e.odd && e.request.ContentLength != 0 {
		x.entered = x.body
	}
	x.sent.Body = x.entered
	began, within := time.Now(), p.within
	changed := p.through(x)
	own := time.Since(began) - (p.within - within)
	p.within += own
	if changed || x.changed || x.met != 1 || p.strangers.Swap(0) > 0 {
		p.touched[e.clause] = true
		p.lost = p.lost || p.keeps(e)
	} else if own > p.pause {
		p.late[i] = true
	}
}

// keeps reports whether the bridge remembers the response to an exchange for other clauses.
func (p *player) keeps(e *exchange) bool { return p.kept != nil && p.kept(e) }

// meet is where requests come out of the change: the exchanges that began while this one lasted go through it now. It is nil
// for a request that was not recorded, or came out before.
func (p *player) meet(r *http.Request) *played {
	x, ok := r.Context().Value(playedKey{}).(*played)
	if !ok {
		p.lost = true
		return nil
	}
	if x.met++; x.met > 1 {
		return nil
	}
	x.changed = !x.isRequest(r)
	for i := x.index + 1; i < len(p.exchanges) && p.exchanges[i].begin < x.end; i++ {
		p.one(i)
	}
	return x
}

// stranger takes the requests that the change sends past the bridge.
func (p *player) stranger(*http.Request) (*http.Response, error) {
	p.strangers.Add(1)
	return nil, errNoResponse
}

var errNoResponse = errors.New("there is no response to this request")

// isRequest reports whether a request that comes out is the one that went in; of an odd exchange itself, with its body unread.
func (x *played) isRequest(r *http.Request) bool {
	was := x.request
	if r.Method != was.Method || r.URL.String() != was.URL.String() || r.Host != was.Host || r.ContentLength != was.ContentLength ||
		!sameHeader(r.Header, was.Header) || r.Context().Done() != x.sent.Context().Done() {
		return false
	}
	if x.odd {
		return r == x.sent && r.Body == x.entered && !x.body.read
	}
	if r.Body == nil {
		return len(x.exchange.body) == 0
	}
	body, err := io.ReadAll(r.Body)
	return err == nil && bytes.Equal(body, x.exchange.body)
}

func sameHeader(a, b http.Header) bool { return maps.EqualFunc(a, b, slices.Equal) }

// inFront puts exchanges through a change in front of the bridge.
func (p *player) inFront(change func(bridge http.Handler) http.Handler) {
	handler := change(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := p.meet(r)
		switch {
		case x == nil:
			w.WriteHeader(http.StatusLoopDetected)
		case x.odd:
			x.changed = x.changed || w != http.ResponseWriter(x.writer)
		default:
			maps.Copy(w.Header(), x.header.Clone())
			w.WriteHeader(x.status)
			w.Write(x.response) //nolint:errcheck // it is memory
		}
	}))
	p.through = func(x *played) (changed bool) {
		w := x.writer
		handler.ServeHTTP(w, x.sent)
		switch {
		case x.odd:
			return w.touched || w.status != 0 || len(w.header) > 0 || x.body.read
		case x.clause == preflight && x.hasTools():
			return w.touched || w.status != x.status || !hasTools(w.body.Bytes())
		}
		return w.touched || w.status != x.status || !sameHeader(w.sent, x.header) || !bytes.Equal(w.body.Bytes(), x.response)
	}
}

// behind puts exchanges through a change between the bridge and its site.
func (p *player) behind(change func(site http.RoundTripper) http.RoundTripper) {
	given := map[*played]*http.Response{}
	p.kept = func(e *exchange) bool { return e.request.Method == http.MethodGet } // the list of methods
	transport := change(roundTripper(func(r *http.Request) (*http.Response, error) {
		x := p.meet(r)
		switch {
		case x == nil:
			return nil, errNoResponse
		case x.err != nil:
			return nil, x.err
		}
		given[x] = &http.Response{
			Status: fmt.Sprintf("%d %s", x.status, http.StatusText(x.status)), StatusCode: x.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: x.header.Clone(), Body: &watched{Reader: bytes.NewReader(x.response)}, ContentLength: x.length, Request: r,
		}
		return given[x], nil
	}))
	p.through = func(x *played) (changed bool) {
		response, err := transport.RoundTrip(x.sent)
		own := given[x]
		delete(given, x)
		switch {
		case x.err != nil:
			return err != x.err //nolint:errorlint // it has to be this one
		case err != nil || own == nil:
			return true
		case x.odd:
			return response != own || x.body.read || !isUnread(own.Body)
		}
		body, err := io.ReadAll(response.Body)
		return err != nil || response.StatusCode != x.status || response.ContentLength != x.length ||
			!sameHeader(response.Header, x.header) || !bytes.Equal(body, x.response)
	}
}

// watched is a body that notes whether it is read.
type watched struct {
	io.Reader
	read bool
}

func (w *watched) Read(p []byte) (int, error) {
	w.read = true
	return w.Reader.Read(p)
}

func (w *watched) Close() error { return nil }

func isUnread(body io.ReadCloser) bool {
	w, ok := body.(*watched)
	return ok && !w.read
}

// watchedWriter keeps a response, and notes whether anything but writing is done.
type watchedWriter struct {
	header  http.Header
	status  int
	sent    http.Header
	body    bytes.Buffer
	touched bool
}

func (w *watchedWriter) Header() http.Header { return w.header }

func (w *watchedWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
	} else {
		w.touched = true
	}
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.body.Write(p)
}

// Unwrap is what http.ResponseController calls for everything that this writer cannot do.
func (w *watchedWriter) Unwrap() http.ResponseWriter {
	w.touched = true
	return httptest.NewRecorder()
}
