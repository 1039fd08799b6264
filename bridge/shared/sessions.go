package shared

import (
	"context"
	"crypto/sha256"
	"strconv"
	"time"
)

// ended is what the store keeps of an end, sealed for its name: a store cannot end sessions by itself.
const ended = "ended"

// End reports to all replicas that a session was ended, those that run now and those that start before until.
func (s *Store) End(id string, until time.Time) {
	left := time.Until(until)
	if left <= 0 {
		return
	}
	name := s.ending(id)
	sealed := s.keys.Load().Seal([]byte(ended), []byte(name))
	err := s.do("end", func(ctx context.Context, c *client) error {
		_, err := c.do(ctx, small, "SET", name, string(sealed), "PX", strconv.FormatInt(left.Milliseconds()+1, 10))
		return err
	})
	if err == nil {
		s.Publish(Event{Kind: Ended, Subject: []byte(id), Until: until}) //nolint:errcheck // who adopts the session asks
	}
}

// Ended reports whether a session was ended; false where the store cannot say.
func (s *Store) Ended(id string) (is bool) {
	name := s.ending(id)
	s.do("ended", func(ctx context.Context, c *client) error { //nolint:errcheck // the session then goes on
		v, err := c.do(ctx, small, "GET", name)
		if err != nil || v.kind == 0 {
			return err
		}
		if _, is = s.keys.Load().Open(v.text, []byte(name)); !is {
			err = odd("not the end of a session")
		}
		return err
	})
	return is
}

// ending names an end. The id is random, so that its digest needs no key, and is the same after their rotation.
func (s *Store) ending(id string) string {
	digest := sha256.Sum256([]byte(id))
	return s.key("ended", digest[:])
}
