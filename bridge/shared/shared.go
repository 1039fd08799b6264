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
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/bridgecheck/bridgecheck/bridge/keys"
)

const (
	timeout   = 100 * time.Millisecond // for one command
	tolerated = 3                      // commands in a row that may fail before the store is taken for down
	dialTime  = time.Second
	retryTime = 500 * time.Millisecond // between attempts to reach the store

	bufferSize = 64 << 10 // bytes, of each connection and direction
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
	client  valkey.ClientOption
	from    string // this replica
	keys    atomic.Pointer[keys.Ring]
	observe atomic.Pointer[Observer]

	now      atomic.Pointer[connection] // nil: the store is down
	failures atomic.Int64               // commands in a row

	stop     context.CancelFunc
	finished sync.WaitGroup
}

// New checks the options. Start connects.
func New(o Options) (*Store, error) {
	u, err := url.Parse(o.Address)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" {
		return nil, errors.New("must be the address of a store, such as redis://127.0.0.1:6379; rediss:// for TLS")
	}
	if number := strings.Trim(u.Path, "/"); number != "" {
		if _, err := strconv.ParseUint(number, 10, 16); err != nil {
			return nil, errors.New("must name a database of the store by its number, as in redis://127.0.0.1:6379/1")
		}
	}
	if o.Keys.Empty() {
		return nil, errors.New("needs session_keys: what replicas share is encrypted")
	}
	client, err := valkey.ParseURL(o.Address)
	if err != nil || u.RawQuery != "" {
		return nil, errors.New("must be an address without parameters, such as redis://127.0.0.1:6379/1")
	}
	client.ClientName, client.ForceSingleClient, client.DisableCache, client.DisableRetry = "bridgecheck", true, true, true
	client.Dialer.Timeout, client.ConnWriteTimeout = dialTime, dialTime
	client.PipelineMultiplex = -1 // one connection for all commands, which is there when the store is reached
	client.ReadBufferEachConn, client.WriteBufferEachConn = bufferSize, bufferSize
	s := &Store{o: o, client: client, from: rand.Text()}
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

// connection is a client of the store, until it is lost.
type connection struct {
	valkey.Client
	ctx  context.Context // ends when the store is taken for down
	lose context.CancelCauseFunc
}

// dial opens a connection. When it is lost, so are the sockets: nothing waits for a store that hangs.
func (s *Store) dial(ctx context.Context) (*connection, error) {
	ctx, lose := context.WithCancelCause(ctx)
	o := s.client
	o.DialCtxFn = func(_ context.Context, address string, dialer *net.Dialer, config *tls.Config) (conn net.Conn, err error) {
		if config == nil {
			conn, err = dialer.DialContext(ctx, "tcp", address)
		} else {
			conn, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
		}
		if err == nil {
			context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
	client, err := valkey.NewClient(o)
	if err != nil {
		lose(err)
		return nil, err
	}
	return &connection{client, ctx, lose}, nil
}

// close loses the connection.
func (c *connection) close() {
	c.lose(nil)
	c.Close()
}

// connect reaches the store, follows its events until it fails, and begins again.
func (s *Store) connect(ctx context.Context) {
	last, said := "", false
	for ctx.Err() == nil {
		var err error
		last, err = s.serve(ctx, last, func() { said = false })
		if ctx.Err() != nil {
			return
		}
		if !said {
			s.o.Logger.Warn("the shared store cannot be reached: this replica goes on alone", "error", err)
			said = true
		}
		select {
		case <-time.After(retryTime):
		case <-ctx.Done():
		}
	}
}

// serve lets commands through from when the store is reached until it fails.
func (s *Store) serve(ctx context.Context, last string, reached func()) (string, error) {
	c, err := s.dial(ctx)
	if err != nil {
		return last, err
	}
	defer c.close()
	if last == "" {
		if last, err = s.latest(c); err != nil {
			return "", err
		}
	}
	s.failures.Store(0)
	s.now.Store(c)
	defer s.now.Store(nil)
	s.o.Logger.Info("the shared store is reached", "replica", s.from[:8])
	reached()
	s.o.Handler.Reconnected()
	return s.follow(c, last)
}

var errDown = errors.New("the shared store is down")

// do runs a command in bounded time. An error says that the store has not done it, as far as is known.
func (s *Store) do(operation string, run func(context.Context, valkey.Client) error) error {
	c, observe := s.now.Load(), *s.observe.Load()
	if c == nil {
		observe(operation, "down")
		return errDown
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := run(ctx, c.Client)
	if err == nil {
		s.failures.Store(0)
		observe(operation, "ok")
		return nil
	}
	observe(operation, "error")
	if s.failures.Add(1) >= tolerated && s.now.CompareAndSwap(c, nil) {
		c.lose(err)
	}
	return fmt.Errorf("shared store: %s: %w", operation, err)
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
