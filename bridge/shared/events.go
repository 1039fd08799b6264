package shared

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"golang.org/x/time/rate"
)

const (
	kept       = "10000" // events that the stream holds
	field      = "e"     // of an entry: the event
	batch      = 100     // entries of one read
	blockTime  = time.Second
	readTime   = 3 * time.Second // for a read of the stream, with blockTime
	longest    = 4 << 10         // bytes of a sealed event
	maxAge     = 2 * time.Minute // of an event that is passed on, by this replica's clock, either way
	maxWriters = 10_000          // replicas, each start of them, that are told apart
)

// How often a store makes this replica work: reads of the stream, and doubts of all lists, each a discovery for every list
// that is asked for. A doubt that comes too early is made up for later.
var (
	readsEvery, readsAtOnce   = rate.Every(50 * time.Millisecond), 100
	doubtsEvery, doubtsAtOnce = rate.Every(5 * time.Second), 5
)

// Event is what a replica reports to the others. The stream keeps events, so that a replica that reconnects misses none.
type Event struct {
	Kind    Kind      `json:"kind"`              //
	Subject []byte    `json:"subject,omitempty"` // of a change, the caller's identity; of an end, the session's id
	Version string    `json:"version,omitempty"` // of the tools that the caller has now
	Until   time.Time `json:"until,omitzero"`    // how long an end has to be remembered
}

// written is an event as it is sealed. Anybody who can write to the store can replay a sealed event, also much later.
type written struct {
	Event
	From   string    `json:"from"` // the replica
	Number uint64    `json:"number"`
	At     time.Time `json:"at"`
}

// Kind is what an event is about.
type Kind string

// The kinds.
const (
	Invalidated Kind = "invalidated" // an administrator made all lists doubtful
	Changed     Kind = "changed"     // the tools of a caller changed
	Ended       Kind = "ended"       // a client ended its session
)

// Handler receives the events of other replicas. Its methods are called one at a time and must not block for long.
type Handler interface {
	Heard(Event)
	Reconnected() // after a time in which events may have been lost in either direction
}

// Publish reports to the other replicas. While the store is down nobody receives it: what is cached expires all the same.
func (s *Store) Publish(e Event) error {
	plain, err := json.Marshal(written{e, s.from, s.number.Add(1), time.Now()})
	if err != nil {
		return err
	}
	stream := s.key("events", nil)
	sealed := s.keys.Load().Seal(plain, []byte(stream))
	return s.do("publish", func(ctx context.Context, c *client) error {
		_, err := c.do(ctx, small, "XADD", stream, "MAXLEN", "~", kept, "*", field, string(sealed))
		return err
	})
}

// reader is what this replica has read of the stream.
type reader struct {
	last        string // entry; "": none
	writers     map[string]*writer
	reads       *rate.Limiter
	doubts      *rate.Limiter
	doubt       *Event // that waits for doubts
	reconnected bool   // which waits for doubts, too
}

// writer is what was read of one replica: the greatest number, and which of the 64 up to it.
type writer struct {
	number, seen uint64
	at           time.Time // of the latest event
}

func newReader() reader {
	return reader{writers: map[string]*writer{}, reads: rate.NewLimiter(readsEvery, readsAtOnce), doubts: rate.NewLimiter(doubtsEvery, doubtsAtOnce)}
}

// latest looks up the last entry that is there now. A script gives its id alone, however large it is.
var latest = newScript(`local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]; return last and last[1] or '0-0'`)

func (s *Store) latest(c *connection) error {
	ctx, cancel := context.WithTimeout(c.ctx, dialTime)
	defer cancel()
	v, err := c.events.run(ctx, latest, []string{s.key("events", nil)}, nil)
	if err == nil && v.kind != '$' {
		err = odd("not the id of an entry")
	}
	s.reader.last = string(v.text)
	return err
}

// follow reads events until the store fails.
func (s *Store) follow(c *connection) error {
	stream := s.key("events", nil)
	for {
		s.doubt()
		began := time.Now()
		if err := s.after(c, stream); err != nil {
			return cmp.Or(context.Cause(c.ctx), err)
		}
		if time.Since(began) > 2*readTime { // it was stopped, and what it reads now may be too old
			return errors.New("this replica was held up")
		}
		if err := s.reader.reads.Wait(c.ctx); err != nil {
			return cmp.Or(context.Cause(c.ctx), err)
		}
	}
}

// doubt passes on that all lists are doubtful.
func (s *Store) doubt() {
	r := &s.reader
	switch {
	case !r.reconnected && r.doubt == nil || !r.doubts.Allow():
		return
	case r.reconnected:
		s.o.Handler.Reconnected()
	default:
		s.o.Handler.Heard(*r.doubt)
	}
	r.reconnected, r.doubt = false, nil
}

// after reads the events after the last, and passes them on; none if there are none for blockTime.
func (s *Store) after(c *connection, name string) error {
	ctx, cancel := context.WithTimeout(c.ctx, readTime)
	defer cancel()
	block := strconv.FormatInt(blockTime.Milliseconds(), 10)
	v, err := c.events.do(ctx, stream, "XREAD", "COUNT", strconv.Itoa(batch), "BLOCK", block, "STREAMS", name, s.reader.last)
	if err != nil || v.kind == 0 {
		return err
	}
	if v.kind != '*' || len(v.items) != 1 || len(v.items[0].items) != 2 || string(v.items[0].items[0].text) != name {
		return odd("not the entries of a stream")
	}
	for _, entry := range v.items[0].items[1].items {
		if len(entry.items) != 2 || len(entry.items[0].text) == 0 {
			return odd("not an entry of a stream")
		}
		s.reader.last = string(entry.items[0].text)
		if fields := entry.items[1].items; len(fields) == 2 && string(fields[0].text) == field {
			s.hear(fields[1].text, name)
		} else {
			s.log.say(slog.LevelWarn, unreadable)
		}
	}
	return nil
}

const unreadable = "an event of the shared store cannot be read: it is not of a replica with one of the session_keys"

// hear opens an event and passes it on, if it is of another replica, recent, and new.
func (s *Store) hear(sealed []byte, stream string) {
	var e written
	plain, ok := []byte(nil), len(sealed) <= longest
	if ok {
		plain, ok = s.keys.Load().Open(sealed, []byte(stream))
	}
	if !ok || json.Unmarshal(plain, &e) != nil {
		s.log.say(slog.LevelWarn, unreadable)
		return
	}
	switch age := time.Since(e.At); {
	case e.From == s.from:
	case age.Abs() > maxAge:
		s.log.say(slog.LevelWarn, "an event of the shared store is too old: it was sent again, or the clocks of replicas differ", "age", age)
	case !s.reader.isNew(e):
		s.log.say(slog.LevelWarn, "an event of the shared store was sent again")
	case e.Kind == Invalidated:
		s.reader.doubt = &e.Event
	default:
		s.o.Handler.Heard(e.Event)
	}
}

// isNew reports whether an event was not read before. Events of one replica may change places, but not with many.
func (r *reader) isNew(e written) bool {
	w := r.writers[e.From]
	if w == nil {
		if len(r.writers) >= maxWriters {
			for from, old := range r.writers {
				if time.Since(old.at) > 2*maxAge { // whatever of it is sent again is too old
					delete(r.writers, from)
				}
			}
		}
		if len(r.writers) >= maxWriters {
			return false
		}
		w = &writer{}
		r.writers[e.From] = w
	}
	if e.At.After(w.at) {
		w.at = e.At
	}
	if e.Number > w.number {
		w.seen, w.number = w.seen<<min(e.Number-w.number, 64)|1, e.Number
		return true
	}
	bit := uint64(1) << min(w.number-e.Number, 64)
	isNew := bit != 0 && w.seen&bit == 0
	w.seen |= bit
	return isNew
}
