package shared

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/valkey-io/valkey-go"
)

const (
	kept      = "10000" // events that the stream holds
	field     = "e"     // of an entry: the event
	blockTime = time.Second
	readTime  = 3 * time.Second // for a read of the stream, with blockTime
)

// Event is what a replica reports to the others. The stream keeps events, so that who reconnects misses none.
type Event struct {
	From    string    `json:"from"`              // the replica
	Kind    Kind      `json:"kind"`              //
	Subject []byte    `json:"subject,omitempty"` // of a change, the caller's identity; of an end, the session's id
	Version string    `json:"version,omitempty"` // of the tools that the caller has now
	Until   time.Time `json:"until,omitzero"`    // how long an end has to be remembered
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
	e.From = s.from
	plain, err := json.Marshal(e)
	if err != nil {
		return err
	}
	stream := s.key("events", nil)
	sealed := s.keys.Load().Seal(plain, []byte(stream))
	return s.do("publish", func(ctx context.Context, c valkey.Client) error {
		return c.Do(ctx, c.B().Xadd().Key(stream).Maxlen().Almost().Threshold(kept).Id("*").FieldValue().FieldValue(field, valkey.BinaryString(sealed)).Build()).Error()
	})
}

// latest is the last event that is there now.
func (s *Store) latest(c *connection) (string, error) {
	ctx, cancel := context.WithTimeout(c.ctx, dialTime)
	defer cancel()
	found, err := c.Do(ctx, c.B().Xrevrange().Key(s.key("events", nil)).End("+").Start("-").Count(1).Build()).AsXRange()
	if err != nil || len(found) == 0 {
		return "0-0", err
	}
	return found[0].ID, nil
}

// follow reads events until the store fails. It gives the last that it read.
func (s *Store) follow(c *connection, last string) (string, error) {
	stream := s.key("events", nil)
	for {
		found, err := s.after(c, stream, last)
		if err != nil {
			return last, cmp.Or(context.Cause(c.ctx), err)
		}
		for _, e := range found {
			last = e.ID
			s.hear([]byte(e.FieldValues[field]), stream)
		}
	}
}

// after gives the events after the last; none if there are none for blockTime.
func (s *Store) after(c *connection, stream, last string) ([]valkey.XRangeEntry, error) {
	ctx, cancel := context.WithTimeout(c.ctx, readTime)
	defer cancel()
	streams, err := c.Do(ctx, c.B().Xread().Count(100).Block(blockTime.Milliseconds()).Streams().Key(stream).Id(last).Build()).AsXRead()
	if valkey.IsValkeyNil(err) {
		return nil, nil
	}
	return streams[stream], err
}

// hear opens an event and passes it on, if it is of another replica.
func (s *Store) hear(sealed []byte, stream string) {
	var e Event
	plain, ok := s.keys.Load().Open(sealed, []byte(stream))
	if !ok || json.Unmarshal(plain, &e) != nil {
		s.o.Logger.Warn("an event of the shared store cannot be read: it is not of a replica with one of the session_keys")
		return
	}
	if e.From != s.from {
		s.o.Handler.Heard(e)
	}
}
