package oauth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/bridgecheck/bridgecheck/bridge/recent"
)

// clientWait is the limit for one request of the bridge as a client of the authorization server, with the metadata.
const clientWait = 5 * time.Second

// A memory holds so many tokens, fewer where what the authorization server says of each is long.
const (
	maxRemembered = 10_000
	usualSize     = 2 << 10  // bytes that are held for a token
	maxWord       = 64 << 10 // bytes of what the authorization server says of one token, or in its metadata
)

// memory keeps what the authorization server said of tokens, each by a digest of the token and until a time. Requests with
// one token wait for one question.
type memory[V any] struct {
	now     func() time.Time
	kept    *recent.Cache[[sha256.Size]byte, *remembered[V]]
	flights singleflight.Group
}

type remembered[V any] struct {
	value V
	err   error
	until time.Time
}

// newMemory makes a memory of values that hold so many bytes each.
func newMemory[V any](now func() time.Time, size func(V) int) *memory[V] {
	weigh := func(r *remembered[V]) int { return max(size(r.value), usualSize) }
	return &memory[V]{now: now, kept: recent.New[[sha256.Size]byte](maxRemembered*usualSize, weigh)}
}

// of returns what is known of a token, or asks; until is how long the response, or the error, is kept; zero: not at all.
func (m *memory[V]) of(ctx context.Context, token string, ask func(context.Context) (value V, until time.Time, err error)) (V, error) {
	id := sha256.Sum256([]byte(token))
	if have, ok := m.kept.Get(id); ok && m.now().Before(have.until) {
		return have.value, have.err
	}
	got, err, _ := m.flights.Do(string(id[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clientWait) // others wait for it, too
		defer cancel()
		value, until, err := ask(ctx)
		if !until.IsZero() {
			m.kept.Set(id, &remembered[V]{value, err, until})
		}
		return value, err
	})
	return got.(V), err
}

// endpoint is one of the issuer's that takes forms from the bridge as a client. The metadata that name it are kept as long
// as keys are.
type endpoint struct {
	o    Options
	keys *keys                       // which read the issuer's documents
	name string                      // its member in the metadata
	of   func(issuerMetadata) string // reads that member

	asking  singleflight.Group // holds what follows
	address string
	read    time.Time // when address was read
	failed  error     // of the last attempt to read it
	tried   time.Time
}

// post sends a form and reads the JSON object that comes back. An error is that of the transport, of a server that fails,
// or of a success that is none.
func (e *endpoint) post(ctx context.Context, form url.Values, want fields) (status int, err error) {
	address, err := e.find(ctx)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	r.SetBasicAuth(url.QueryEscape(e.o.Client), url.QueryEscape(string(e.o.ClientSecret))) // RFC 6749 §2.3.1
	res, err := e.keys.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxWord))
	if err != nil {
		return 0, err
	}
	if res.StatusCode >= 500 {
		return 0, fmt.Errorf("the %s responded with %d", e.name, res.StatusCode)
	}
	if err := want.read(body); err != nil && res.StatusCode == http.StatusOK {
		return 0, fmt.Errorf("the %s's response: %w", e.name, err)
	}
	return res.StatusCode, nil
}

// find returns the address of the endpoint. The metadata are asked for once in keysRetry at most, whatever tokens come.
func (e *endpoint) find(ctx context.Context) (string, error) {
	found, err, _ := e.asking.Do("", func() (any, error) {
		now := e.o.Now()
		if now.Sub(e.read) > keysFresh && now.Sub(e.tried) > keysRetry {
			e.tried = now
			var m issuerMetadata
			if m, e.failed = e.keys.metadata(ctx, func(m issuerMetadata) error {
				_, err := Address(e.name+" in the issuer's metadata", e.of(m))
				return err
			}); e.failed == nil {
				e.address, e.read = e.of(m), now
			}
		}
		if e.address != "" && now.Sub(e.read) <= keysStale {
			return e.address, nil
		}
		return "", e.failed
	})
	return found.(string), err
}
