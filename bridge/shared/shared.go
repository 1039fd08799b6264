// Package shared is what the replicas of a bridge share in a store that speaks the protocol of Redis, such as Valkey: events
// (events.go), counters of calls and of refused credentials (counters.go) and the sessions that were ended (sessions.go).
// Everything in it can be lost: a caller never waits for the store longer than timeout, never gets an error because of it,
// and without it a replica does what it does alone. What is stored is encrypted or named by a keyed digest.
//
// Invariant: while Up reports false, nothing is sent but attempts to reach the store again.
package shared

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/bridgecheck/bridgecheck/bridge/keys"
)

const (
	timeout   = 100 * time.Millisecond // for one command
	tolerated = 3                      // commands in a row that may fail before the store counts as down
	dialTime  = time.Second
	retryTime = 500 * time.Millisecond // between attempts to reach the store
	oddTime   = 5 * time.Second        // before the next attempt after an odd reply
	logEvery  = time.Minute            // for one kind of message
)

// Options say which store, and for which site. All but Observe are needed.
type Options struct {
	Address string // redis://[user:password@]host:port[/db], or rediss:// for TLS
	Site    string // replicas of one site share
	Keys    *keys.Ring
	Logger  *slog.Logger
	Handler Handler
}

// Observer receives every command: what it was for, and with what outcome (ok, error or down).
type Observer func(operation, outcome string)

// Store is a connection to the store. It is safe for concurrent use.
type Store struct {
	o       Options
	address address
	from    string // this replica
	keys    atomic.Pointer[keys.Ring]
	observe atomic.Pointer[Observer]
	number  atomic.Uint64 // of the last event that was published
	log     messages

	now      atomic.Pointer[connection] // nil: the store is down
	failures atomic.Int64               // commands in a row
	reader   reader

	stop     context.CancelFunc
	finished sync.WaitGroup
}

// New checks the options. Start connects.
func New(o Options) (*Store, error) {
	where, err := parseAddress(o.Address)
	if err != nil {
		return nil, err
	}
	if o.Keys.Empty() {
		return nil, errors.New("needs session_keys: what replicas share is encrypted")
	}
	s := &Store{o: o, address: where, from: rand.Text(), log: messages{logger: o.Logger}, reader: newReader()}
	s.SetKeys(o.Keys)
	s.Observe(func(string, string) {})
	return s, nil
}

// Start keeps the store connected until Close.
func (s *Store) Start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.finished.Go(func() { s.connect(ctx) })
}

// Close ends the connection.
func (s *Store) Close() {
	if s.stop != nil {
		s.stop()
	}
	s.finished.Wait()
}

// SetKeys puts other keys in force.
func (s *Store) SetKeys(k *keys.Ring) { s.keys.Store(k) }

// Observe puts another observer in force.
func (s *Store) Observe(o Observer) { s.observe.Store(&o) }

// Up reports whether the store is taken to be reachable.
func (s *Store) Up() bool { return s.now.Load() != nil }

// connection is the clients of the store, until one of them is lost.
type connection struct {
	commands, events *client
	ctx              context.Context // ends when the store counts as down
	lose             context.CancelCauseFunc
}

// dial opens a connection. When it is lost, so are the sockets: nothing waits for a store that hangs.
func (s *Store) dial(ctx context.Context) (c *connection, err error) {
	c = &connection{}
	c.ctx, c.lose = context.WithCancelCause(ctx)
	if c.commands, err = s.address.dial(c.ctx); err == nil {
		c.events, err = s.address.dial(c.ctx)
	}
	if err != nil {
		c.lose(err)
		return nil, err
	}
	go func() {
		<-c.commands.broken
		c.lose(c.commands.why)
	}()
	return c, nil
}

// connect reaches the store, follows its events until it fails, and begins again.
func (s *Store) connect(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		s.log.say(slog.LevelWarn, "the shared store cannot be reached: this replica goes on alone", "error", err)
		wait := retryTime
		if errors.Is(err, errOdd) {
			wait, s.reader.last = oddTime, "" // what cannot be read is passed over
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// serve lets commands through from when the store is reached until it fails.
func (s *Store) serve(ctx context.Context) error {
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer c.lose(nil)
	if s.reader.last == "" {
		if err := s.latest(c); err != nil {
			return err
		}
	}
	s.failures.Store(0)
	s.now.Store(c)
	defer s.now.Store(nil)
	s.log.say(slog.LevelInfo, "the shared store is reached", "replica", s.from[:8])
	s.reader.reconnected = true
	return s.follow(c)
}

var errDown = errors.New("the shared store is down")

// do runs a command in bounded time. An error says that the store has not done it, as far as is known.
func (s *Store) do(operation string, run func(context.Context, *client) error) error {
	c, observe := s.now.Load(), *s.observe.Load()
	if c == nil {
		observe(operation, "down")
		return errDown
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := run(ctx, c.commands)
	if err == nil {
		s.failures.Store(0)
		observe(operation, "ok")
		return nil
	}
	observe(operation, "error")
	if (errors.Is(err, errOdd) || s.failures.Add(1) >= tolerated) && s.now.CompareAndSwap(c, nil) {
		c.lose(err)
	}
	return fmt.Errorf("shared store: %s: %w", operation, err)
}

// messages logs each message once in logEvery, and how often it came since: what a store makes a replica say is bounded.
type messages struct {
	logger *slog.Logger

	mu    sync.Mutex
	kinds map[string]*kindOfMessage
}

type kindOfMessage struct {
	seldom  rate.Sometimes
	omitted int
}

func (m *messages) say(level slog.Level, message string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kind := m.kinds[message]
	if kind == nil {
		if m.kinds == nil {
			m.kinds = map[string]*kindOfMessage{}
		}
		kind = &kindOfMessage{seldom: rate.Sometimes{First: 1, Interval: logEvery}}
		m.kinds[message] = kind
	}
	said := false
	kind.seldom.Do(func() {
		if said = true; kind.omitted > 0 {
			args = append(args, "omitted", kind.omitted)
		}
		m.logger.Log(context.Background(), level, message, args...)
	})
	if kind.omitted++; said {
		kind.omitted = 0
	}
}

// key names something of this site in the store. All keys hash to one slot of a cluster.
func (s *Store) key(kind string, name []byte) string {
	site := sha256.Sum256([]byte(s.o.Site))
	key := "{bridge:" + text(site[:9]) + "}:" + kind
	if name != nil {
		key += ":" + text(name)
	}
	return key
}

func text(digest []byte) string { return base64.RawURLEncoding.EncodeToString(digest) }
