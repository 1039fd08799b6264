// Package journal records the requests that reached a site: who sent what, when, and what the site did with it. It is
// for checks that ask what a bridge did behind its front side. It is no log: it lives in memory, in a ring of a
// documented size, and counts what it dropped.
//
// Its invariant: entries are numbered 1, 2, 3, … in the order of arrival, no number is used twice, and credentials are
// stored only as hashes. A recorder begins an entry when a request arrives, edits it while the site works and ends it;
// readers get copies by number, of requests that are under way too.
package journal

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The size of a journal: it drops its oldest entries when it holds more than its limit of them, or when they hold more
// than MaxBytes. The newest entry always stays.
const (
	DefaultLimit = 32_768    // entries
	MaxBytes     = 128 << 20 // bytes of headers, bodies and calls, as Weight counts them
)

// Journal is the ring of entries. It is safe for use by many goroutines.
type Journal struct {
	mu      sync.Mutex
	limit   int
	ring    []*Record // the entry with number n is at n modulo the length
	first   int64     // number of the oldest entry that is kept; last+1 when none is
	last    int64
	bytes   int64 // of the entries that are kept
	dropped int64
}

// New returns an empty journal that keeps so many entries; 0: DefaultLimit.
func New(limit int) *Journal {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Journal{limit: limit, first: 1}
}

// Record is an entry that its request may still change.
type Record struct {
	entry  Entry
	bytes  int64 // that it counts against MaxBytes
	conn   *Conn // while this is the connection's last request
	before int64 // what the connection had taken when the request arrived
}

// Conn is a connection on which requests arrive. It counts the bytes of responses that the operating system took for
// it: what the client read, plus what fits into the send and receive buffers between the two (some hundred KiB where the
// client stopped reading). The zero value counts nothing, for a handler that does not own its connections.
type Conn struct {
	Number int64
	Net    net.Conn // nil where it is not the site's own
	taken  atomic.Int64
	last   *Record // guarded by the journal's mutex
}

// Took counts bytes that the connection took.
func (c *Conn) Took(n int) { c.taken.Add(int64(n)) }

// What an entry costs beside its texts, in bytes: measured generously.
const (
	entryBytes  = 512
	headerBytes = 64
	callBytes   = 96
)

// Begin records a request that has just arrived. Of its body nothing has been read.
func (j *Journal) Begin(r *http.Request, conn *Conn) *Record {
	rec := &Record{entry: Entry{Start: time.Now(), Conn: conn.Number, HTTPMethod: r.Method, Host: r.Host, Path: r.URL.Path,
		RawQuery: redactQuery(r.URL.RawQuery), Header: redactHeader(r.Header), Cookies: cookiesOf(r.Header)}}
	rec.bytes = int64(entryBytes + len(r.URL.Path) + len(r.URL.RawQuery))
	for name, values := range r.Header {
		for _, v := range values {
			rec.bytes += int64(headerBytes + len(name) + len(v))
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if conn.last != nil {
		conn.last.settle()
	}
	if rec.before = conn.taken.Load(); conn.Net != nil {
		conn.last, rec.conn = rec, conn
	}
	j.last++
	rec.entry.Seq = j.last
	j.makeRoom()
	j.ring[j.last%int64(len(j.ring))] = rec
	j.bytes += rec.bytes
	j.shrink(rec)
	return rec
}

// makeRoom lets the ring hold the entry with the number last, which is not in it yet.
func (j *Journal) makeRoom() {
	kept := int(j.last - j.first)
	if kept < len(j.ring) {
		return
	}
	if kept == j.limit {
		j.dropOldest()
		return
	}
	grown := make([]*Record, min(max(2*len(j.ring), 64), j.limit))
	for seq := j.first; seq < j.last; seq++ {
		grown[seq%int64(len(grown))] = j.ring[seq%int64(len(j.ring))]
	}
	j.ring = grown
}

// shrink drops the oldest entries while they hold too many bytes, and never the newest or the one that grows.
func (j *Journal) shrink(growing *Record) {
	for j.bytes > MaxBytes && j.first < j.last && j.first != growing.entry.Seq {
		j.dropOldest()
	}
}

func (j *Journal) dropOldest() {
	at := j.first % int64(len(j.ring))
	j.ring[at].settle() // else the connection would keep it alive
	j.bytes -= j.ring[at].bytes
	j.ring[at] = nil
	j.first++
	j.dropped++
}

// settle fixes how many bytes were taken for the request, because another one arrives on the connection or the entry is
// dropped.
func (r *Record) settle() {
	if r.conn != nil {
		r.entry.BytesTaken = r.conn.taken.Load() - r.before
		r.conn.last, r.conn = nil, nil
	}
}

// grow counts further bytes of an entry.
func (j *Journal) grow(r *Record, bytes int) {
	r.bytes += int64(bytes)
	if r.entry.Seq < j.first {
		return // dropped or cleared meanwhile
	}
	j.bytes += int64(bytes)
	j.shrink(r)
}

// Body records the request's body. Calls of the entry may point into it. With secret only its hash is kept.
func (j *Journal) Body(r *Record, body []byte, secret bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.entry.BodyBytes = int64(len(body))
	if secret && len(body) > 0 {
		r.entry.Body = []byte(Hash(string(body)))
		return
	}
	r.entry.Body = body[:min(len(body), MaxBody)]
	j.grow(r, len(body))
}

// Calls records the request's calls.
func (j *Journal) Calls(r *Record, calls []Call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.entry.Calls = calls
	j.grow(r, callBytes*len(calls))
}

// Edit changes an entry while others may read the journal.
func (j *Journal) Edit(r *Record, change func(*Entry)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&r.entry)
}

// End records that the request is over.
func (j *Journal) End(r *Record) { j.Edit(r, func(e *Entry) { e.End = time.Now() }) }

// View returns a copy of a record's entry as it is now.
func (j *Journal) View(r *Record) Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return r.copy()
}

func (r *Record) copy() Entry {
	e := r.entry
	e.Calls = slices.Clone(e.Calls)
	if r.conn != nil {
		e.BytesTaken = r.conn.taken.Load() - r.before
	}
	return e
}

// Entries returns copies of the requests that came after the one with this number (0: all), those under way included,
// in the order of arrival. The bytes in them are shared: read only. Lost reports how many are missing.
func (j *Journal) Entries(after int64) []Entry { return j.Select(Filter{After: after}) }

// Select returns copies of the entries that the filter selects, in the order of arrival.
func (j *Journal) Select(f Filter) []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	var selected []Entry
	for seq := max(f.After+1, j.first); seq <= j.last; seq++ {
		if r := j.ring[seq%int64(len(j.ring))]; f.selects(&r.entry) {
			selected = append(selected, r.copy())
		}
	}
	if f.Limit > 0 && len(selected) > f.Limit {
		selected = selected[len(selected)-f.Limit:]
	}
	return selected
}

// Last returns the number of the last request that arrived, 0 when there was none.
func (j *Journal) Last() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// Clear drops all entries, without counting them; numbering goes on.
func (j *Journal) Clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.first <= j.last {
		j.dropOldest()
	}
	j.ring, j.dropped = nil, 0
}

// Dropped returns how many entries were dropped because the journal was full, since it was last cleared.
func (j *Journal) Dropped() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.dropped
}

// Lost returns how many of the requests after the one with this number the journal no longer has. A reader that must
// have seen all requests of a while asks for it before it draws a conclusion.
func (j *Journal) Lost(after int64) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return max(0, j.first-1-after)
}
