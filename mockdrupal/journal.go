package mockdrupal

import (
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// Entry is one request that reached the site.
type Entry struct {
	Seq        int64       `json:"seq"`    // 1, 2, 3, … in the order of arrival
	Start      time.Time   `json:"start"`  // real time, wherever the site's clock stands
	End        time.Time   `json:"end"`    // zero while the request is under way
	User       string      `json:"user"`   // the account's name; "" when anonymous or refused
	Scheme     string      `json:"scheme"` // basic, bearer, cookie, or "" when no credentials were taken
	Conn       int64       `json:"conn"`   // number of the connection
	HTTPMethod string      `json:"http_method"`
	Path       string      `json:"path"`
	RawQuery   string      `json:"query"`
	Route      string      `json:"route"`      // jsonrpc, methods, method, login, …; "" when no route matched
	Header     http.Header `json:"header"`     // as received
	Body       []byte      `json:"body"`       // its first MaxBody bytes
	BodyBytes  int64       `json:"body_bytes"` // how many bytes there were
	Calls      []Call      `json:"calls"`      // the JSON-RPC calls in it, in order
	Status     int         `json:"status"`     // 0 when the connection ended without an answer
	BytesOut   int64       `json:"bytes_out"`  // bytes of the answer's body
	Fault      string      `json:"fault"`      // kind of the fault that was applied
}

// MaxBody is how many bytes of a request's body the journal keeps.
const MaxBody = 64 << 10

// Call is one JSON-RPC call of a request.
type Call struct {
	Method       string
	ID           fixtures.Raw // as sent; nil when there was none
	Params       fixtures.Raw // as sent, byte for byte; nil when there were none
	Ran          bool         // the method's code ran (it may have failed)
	Notification bool
}

// Journal keeps the requests that reached the site, in a bounded ring. It is safe for use by many goroutines.
type Journal struct {
	mu      sync.Mutex
	limit   int
	entries []*Entry // in order of arrival; those under way have a zero End
	last    int64
	bytes   int64 // of the bodies that the entries keep alive
	dropped int64
}

// maxJournalBytes bounds the bodies that the journal keeps alive: the oldest entries go first.
const maxJournalBytes = 128 << 20

const defaultJournalLimit = 10_000

func newJournal(limit int) *Journal {
	if limit <= 0 {
		limit = defaultJournalLimit
	}
	return &Journal{limit: limit}
}

func (j *Journal) begin(e *Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	e.Seq = j.last
	j.entries = append(j.entries, e)
	if excess := len(j.entries) - j.limit; excess > j.limit/4 { // in blocks, so that a full journal stays cheap
		j.drop(excess)
	}
}

// drop lets the n oldest entries go.
func (j *Journal) drop(n int) {
	for _, e := range j.entries[:n] {
		j.bytes -= e.BodyBytes
	}
	j.entries = slices.Delete(j.entries, 0, n)
	j.dropped += int64(n)
}

// body enters the request's body. Calls of the entry may point into it.
func (j *Journal) body(e *Entry, body []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.Body, e.BodyBytes = body[:min(len(body), MaxBody)], int64(len(body))
	if len(j.entries) == 0 || e.Seq < j.entries[0].Seq {
		return // dropped or cleared meanwhile
	}
	j.bytes += e.BodyBytes
	for j.bytes > maxJournalBytes && len(j.entries) > 1 && j.entries[0] != e {
		j.drop(1)
	}
}

func (j *Journal) finish(e *Entry, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.End = at
}

// edit changes an entry while others may read the journal.
func (j *Journal) edit(e *Entry, change func(*Entry)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(e)
}

// Entries returns copies of the requests that came after the one with this number (0: all), those under way included,
// in the order of arrival. The bytes in them are shared: read only.
func (j *Journal) Entries(after int64) []Entry {
	return j.Select(Filter{After: after})
}

// Filter picks entries of the journal. A zero field picks all.
type Filter struct {
	After  int64  // only entries with a higher number
	User   string // the account's name; "anonymous" for the anonymous ones
	Method string // a path.Match pattern that the id of at least one call matches
	Route  string
	Status int
	Fault  string
	Ran    bool // only requests of which a method ran
	Limit  int  // the last so many; 0: all
}

// Select returns copies of the entries that the filter picks, in the order of arrival.
func (j *Journal) Select(f Filter) []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	var picked []Entry
	first, _ := slices.BinarySearchFunc(j.window(), f.After+1, func(e *Entry, seq int64) int { return int(e.Seq - seq) })
	for _, e := range j.window()[first:] {
		if f.picks(e) {
			c := *e
			c.Calls = slices.Clone(e.Calls)
			picked = append(picked, c)
		}
	}
	if f.Limit > 0 && len(picked) > f.Limit {
		picked = picked[len(picked)-f.Limit:]
	}
	return picked
}

// window is what the journal shows: at most limit entries.
func (j *Journal) window() []*Entry {
	return j.entries[max(0, len(j.entries)-j.limit):]
}

func (f Filter) picks(e *Entry) bool {
	return (f.User == "" || f.User == e.User || f.User == fixtures.Anonymous && e.User == "") &&
		(f.Route == "" || f.Route == e.Route) &&
		(f.Status == 0 || f.Status == e.Status) &&
		(f.Fault == "" || f.Fault == e.Fault) &&
		(f.Method == "" || slices.ContainsFunc(e.Calls, func(c Call) bool { return matches(f.Method, c.Method) })) &&
		(!f.Ran || slices.ContainsFunc(e.Calls, func(c Call) bool { return c.Ran }))
}

// matches tells whether the id matches a path.Match pattern; method ids hold no slash as a rule, but * crosses it.
func matches(pattern, id string) bool {
	ok, err := path.Match(pattern, id)
	return err == nil && ok || pattern == "*"
}

// Last returns the number of the last request that arrived, 0 when there was none.
func (j *Journal) Last() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// Clear forgets all entries; numbering goes on.
func (j *Journal) Clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries, j.bytes, j.dropped = nil, 0, 0
}

// Dropped returns how many entries were let go because the journal was full.
func (j *Journal) Dropped() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.dropped + int64(len(j.entries)-len(j.window()))
}
