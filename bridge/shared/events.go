package shared

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	kept      = "10000" // events that the stream holds
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
	return s.do("publish", func(ctx context.Context, c redis.Conn) error {
		_, err := redis.DoContext(c, ctx, "XADD", stream, "MAXLEN", "~", kept, "*", "e", sealed)
		return err
	})
}

// latest is the last event that is there now.
func (s *Store) latest(c redis.Conn) (string, error) {
	found, err := entries(c.Do("XREVRANGE", s.key("events", nil), "+", "-", "COUNT", 1))
	if err != nil || len(found) == 0 {
		return "0-0", err
	}
	return found[0].id, nil
}

// follow reads events until the store fails. It gives the last that it read.
func (s *Store) follow(ctx context.Context, c redis.Conn, last string) (string, error) {
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-s.lost:
			c.Close()
		case <-ended:
		}
	}()
	stream := s.key("events", nil)
	for ctx.Err() == nil {
		streams, err := redis.Values(c.Do("XREAD", "COUNT", 100, "BLOCK", blockTime.Milliseconds(), "STREAMS", stream, last))
		if err == redis.ErrNil { // nothing new
			continue
		}
		var found []entry
		if err == nil {
			var pair []any // of the stream's name and its entries
			if pair, err = redis.Values(streams[0], nil); err == nil {
				found, err = entries(pair[1], nil)
			}
		}
		if err != nil {
			return last, err
		}
		for _, e := range found {
			last = e.id
			s.hear(e.sealed, stream)
		}
	}
	return last, ctx.Err()
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

// entry is an event as the stream has it.
type entry struct {
	id     string
	sealed []byte
}

// entries reads a list of [id, [field, value, …]].
func entries(reply any, err error) ([]entry, error) {
	list, err := redis.Values(reply, err)
	if err != nil {
		return nil, err
	}
	all := make([]entry, len(list))
	for i, item := range list {
		var fields [][]byte
		parts, err := redis.Values(item, nil)
		if err == nil {
			_, err = redis.Scan(parts, &all[i].id, &fields)
		}
		if err != nil {
			return nil, err
		}
		if len(fields) > 1 {
			all[i].sealed = fields[1]
		}
	}
	return all, nil
}
