package check

import (
	"cmp"
	"iter"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// How rows go side by side.
const (
	slowRow          = 150 * time.Millisecond // of two rows in succession, from which those after them go side by side
	firstConcurrency = 4
	maxConcurrency   = 16 // of all processes that test the bridge: a site that takes long may have few
	maxNotFaster     = 3  // tables for which going side by side helps nothing: those after them do not
)

// Table gives the responses to the rows of a table, where a row is one request and changes nothing: Response sends them one
// after the other, as they are asked for. Where the bridge takes long for each, the rows that follow go side by side, more of
// them as long as they take no longer, and their responses are kept. A part (T.For, T.Row) that finds such a response not as
// expected sends the row again by itself and is tested once more; so is each row of which it is not certain what it caused at
// the site. What must not be in a response and is counts at once.
type Table struct {
	t           *T
	rows        int
	send        func(row int) *Response
	slow        int           // rows in succession that took long, one after the other
	alone       time.Duration // the longest of them
	concurrency int           // rows that go side by side; 0: one after the other
	ahead       map[int]*exchange
	key         func(row int) string // of a row that other checks look at, too; nil: there are none
}

// Table makes the table of so many rows; send sends one.
func (t *T) Table(rows int, send func(row int) *Response) *Table {
	return &Table{t: t, rows: rows, send: send, ahead: map[int]*exchange{}}
}

// Shared lets checks that look at the same rows share their responses: the key of a row says who asks what. What the run has asked
// before of the site as it is counts as it came.
func (b *Table) Shared(key func(row int) string) *Table {
	b.key = key
	return b
}

// Response is the response to a row. Rows are asked for in order; some may be left out. Until the next Mark, what the site
// shows is what the row caused.
func (b *Table) Response(row int) *Response {
	if b.ahead[row] == nil && b.concurrency > 0 {
		b.goAhead(row)
	}
	e := b.ahead[row]
	if e == nil {
		return b.recall(row)
	}
	if !e.shown {
		e.shown = true
		b.t.show(e)
		b.t.besides[e.Response] = func() { b.replace(e.Response, row) }
	}
	return e.Response
}

// recall is the response that the run has, or sends the row by itself.
func (b *Table) recall(row int) *Response {
	if b.key == nil {
		return b.sendAlone(row)
	}
	t, key := b.t, b.t.URL+" "+b.key(row)
	if e := t.asked[key]; e != nil && !t.Upstream.Faulty() && sameFor(e.Response.Who, e.site, t.Drupal.Snapshot()) {
		e.site = t.Drupal.Snapshot() // the next one compares fast
		again := *e.Response
		t.show(&exchange{Response: &again, since: e.since, until: e.until, site: e.site, caused: e.caused})
		return &again
	}
	since := t.Upstream.Last()
	r := b.sendAlone(row)
	e := &exchange{Response: r, since: since, until: t.Upstream.Last(), site: t.Drupal.Snapshot(), caused: t.calls(since)}
	if failed := r.Status == http.StatusInternalServerError && r.Code() == "execution_error"; failed || !e.unserved() { // that a method failed is a response, too
		if t.asked == nil {
			t.asked = map[string]*exchange{}
		}
		t.asked[key] = e
	}
	return r
}

// calls are the requests to the site that called a method, since a position of its journal.
func (t *T) calls(since int64) []mockdrupal.Entry {
	all := []mockdrupal.Entry{}
	for _, entry := range t.Upstream.Entries(since) {
		if len(entry.Calls) > 0 {
			all = append(all, entry)
		}
	}
	return all
}

// sendAlone sends a row by itself.
func (b *Table) sendAlone(row int) *Response {
	b.t.Mark()
	r := b.send(row)
	if r.Err != nil || r.Took < slowRow {
		b.slow, b.alone = 0, 0
		return r
	}
	b.slow++
	b.alone = max(b.alone, r.Took)
	if b.slow == 2 && b.t.notFaster < maxNotFaster {
		b.concurrency = min(max(b.t.concurrency, firstConcurrency), b.most())
	}
	return r
}

// replace sends a row by itself, and puts the new response in place of the one that came beside others.
func (b *Table) replace(a *Response, row int) {
	r := b.sendAlone(row)
	t := b.t
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exchanges = slices.DeleteFunc(t.exchanges, func(e *exchange) bool { return e.Response == a })
	for _, e := range t.exchanges {
		if e.Response == r {
			e.Response = a
		}
	}
	*a = *r
}

// most is how many rows of this process go side by side at most.
func (b *Table) most() int { return max(1, maxConcurrency/max(1, b.t.Sharers)) }

// goAhead sends a row and those that follow it side by side.
func (b *Table) goAhead(row int) {
	t := b.t
	sent := make([]*exchange, min(b.concurrency, b.rows-row))
	since, began := t.Upstream.Last(), time.Now()
	t.Unrecorded(func() {
		AtOnce(len(sent), func(i int) {
			from := t.Upstream.Last()
			r := b.send(row + i)
			sent[i] = &exchange{Response: r, since: from, until: t.Upstream.Last(), site: t.Drupal.Snapshot()}
		})
	})
	took := time.Since(began)
	unserved := slices.ContainsFunc(sent, (*exchange).unserved)
	if unserved {
		t.notFaster++
	}
	if unserved || !t.attribute(sent, since) {
		b.concurrency = 0
		return
	}
	for i, e := range sent {
		b.ahead[row+i] = e
	}
	switch {
	case took <= b.alone*7/2: // discovery may come before a call, too
		b.concurrency = min(2*b.concurrency, b.most())
		t.concurrency = b.concurrency
	case b.concurrency > firstConcurrency:
		b.concurrency /= 2
		t.concurrency = b.concurrency
	default:
		t.notFaster++
		b.concurrency = 0
	}
}

// unserved reports whether the bridge did not serve a request, which it may have done for the others beside it.
func (e *exchange) unserved() bool {
	return e == nil || e.Response.Err != nil || e.Response.Status == http.StatusTooManyRequests || e.Response.Status >= http.StatusInternalServerError
}

// attribute gives each exchange the requests to the site that it caused, by the tool and the arguments; false where it is not
// certain whose one is.
func (t *T) attribute(sent []*exchange, since int64) bool {
	if t.Upstream == nil {
		return true
	}
	if t.Upstream.Recorder.Journal().Lost(since) > 0 {
		return false
	}
	for _, e := range sent {
		e.caused = []mockdrupal.Entry{}
	}
	for _, entry := range t.Upstream.Entries(since) {
		if len(entry.Calls) == 0 {
			continue // discovery serves all that wait for it
		}
		var owner *exchange
		for _, call := range entry.Calls {
			who := t.callerOf(call, sent)
			if who == nil || owner != nil && owner != who {
				return false
			}
			owner = who
		}
		owner.caused = append(owner.caused, entry)
	}
	return true
}

// callerOf is the exchange that asked for a call, of several equal ones that which caused least so far; nil: none did.
func (t *T) callerOf(call mockdrupal.Call, sent []*exchange) *exchange {
	params, err := exact.Parse(call.Params)
	if err != nil && call.Params != nil {
		return nil
	}
	var who *exchange
	for _, e := range sent {
		tool, arguments := e.Response.Invoked()
		if tool != t.ToolName(call.Method) || who != nil && len(who.caused) <= len(e.caused) {
			continue
		}
		if asked, err := exact.Parse(arguments); err == nil && (exact.Equal(asked, params) || isEmpty(asked) && isEmpty(params)) {
			who = e
		}
	}
	return who
}

// isEmpty reports whether arguments or params hold nothing.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// show makes an exchange the latest of the check, and what it caused at the site all that the check sees of it.
func (t *T) show(e *exchange) {
	t.Mark()
	t.Upstream.Show(e.caused)
	if t.besides == nil {
		t.besides = map[*Response]func(){}
	}
	t.keep(e)
}

// InOrder goes over a map by its sorted keys: requests in another order are another case, and give another verdict.
func InOrder[M ~map[K]V, K cmp.Ordered, V any](m M) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
