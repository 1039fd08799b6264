package shared

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/valkey-io/valkey-go"
)

// End reports to all replicas that a session was ended, those that run now and those that start before until.
func (s *Store) End(id string, until time.Time) {
	left := time.Until(until)
	if left <= 0 {
		return
	}
	err := s.do("end", func(ctx context.Context, c valkey.Client) error {
		return c.Do(ctx, c.B().Set().Key(s.ending(id)).Value("").PxMilliseconds(left.Milliseconds()+1).Build()).Error()
	})
	if err == nil {
		s.Publish(Event{Kind: Ended, Subject: []byte(id), Until: until}) //nolint:errcheck // who adopts the session asks
	}
}

// Ended reports whether a session was ended; false where the store cannot say.
func (s *Store) Ended(id string) (ended bool) {
	s.do("ended", func(ctx context.Context, c valkey.Client) error { //nolint:errcheck // the session then goes on
		var err error
		ended, err = c.Do(ctx, c.B().Exists().Key(s.ending(id)).Build()).AsBool()
		return err
	})
	return ended
}

// ending names an end. The id is random, so that its digest needs no key, and is the same after their rotation.
func (s *Store) ending(id string) string {
	digest := sha256.Sum256([]byte(id))
	return s.key("ended", digest[:])
}
