package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// How the issuer's keys are kept.
const (
	keysFresh   = 10 * time.Minute // used without asking for newer ones
	keysStale   = time.Hour        // used while newer ones are asked for
	keysRetry   = 5 * time.Second  // between two refreshes, whatever tokens name
	keysWait    = 10 * time.Second // for a whole refresh: the issuer's metadata and its keys
	unknownWait = 3 * time.Second  // how long a token with an unknown key waits for a refresh at most
	maxDocument = 1 << 20          // bytes of the document with the keys
	maxKeys     = 100              // keys of an issuer that are kept
)

// keySet is what the issuer published at a time.
type keySet struct {
	byID map[string]key
	at   time.Time
}

// find returns the key of an id; "" is the only one there is.
func (s keySet) find(id string) (key, bool) {
	if found, ok := s.byID[id]; ok || id != "" || len(s.byID) != 1 {
		return found, ok
	}
	for _, only := range s.byID {
		return only, true
	}
	return key{}, false
}

// keys fetches the issuer's keys in the background and keeps them. A token with a known key never waits: newer keys are
// asked for while it is checked. At most one refresh runs at a time.
type keys struct {
	o      Options
	client *http.Client

	mu      sync.Mutex
	known   keySet
	tried   time.Time     // when the last refresh began
	failed  error         // of the last refresh; nil: it succeeded, or there was none
	running chan struct{} // closed when the refresh that is running ends; nil: none is
}

func newKeys(o Options) *keys {
	if t, ok := http.DefaultTransport.(*http.Transport); ok && o.Transport == nil {
		t = t.Clone()
		t.MaxResponseHeaderBytes = maxWord
		o.Transport = t
	}
	return &keys{o: o, client: &http.Client{Transport: o.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the authorization server redirects, which is not followed")
		}}}
}

// find returns the key of an id. A key that is not known may be new: then the token waits for one refresh, for a bounded
// time, and not for each such token.
func (k *keys) find(ctx context.Context, id string) (key, error) {
	found, known, running := k.state(id)
	if known {
		return found, nil
	}
	if running != nil {
		patience := time.NewTimer(min(unknownWait, cmp.Or(k.o.Wait, unknownWait)))
		defer patience.Stop()
		select {
		case <-running:
		case <-patience.C:
			return key{}, unavailable(errors.New("the refresh takes longer than a token waits"))
		case <-ctx.Done():
			return key{}, fault.New(fault.UpstreamTimeout, "The authorization server's keys did not arrive in time.").Because(ctx.Err())
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	current := k.usable()
	if found, known = current.find(id); known {
		return found, nil
	}
	if current.at.IsZero() {
		return key{}, unavailable(k.failed)
	}
	return key{}, errors.New("the token names a key that the issuer does not have")
}

func unavailable(cause error) *fault.Error {
	f := fault.New(fault.UpstreamUnavailable, "The authorization server's keys are not available; try again later.").Because(cause)
	f.RetryAfter = keysRetry
	return f
}

// state looks a key up and starts a refresh where one is due. running ends with the refresh that is worth waiting for;
// nil: there is none.
func (k *keys) state(id string) (found key, known bool, running <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Now()
	current := k.usable()
	found, known = current.find(id)
	if due := !known || now.Sub(current.at) > keysFresh; due && k.running == nil && now.Sub(k.tried) > keysRetry {
		k.tried, k.running = now, make(chan struct{})
		go k.refresh(now)
	}
	return found, known, k.running
}

// usable returns the keys that are not too old; k is locked.
func (k *keys) usable() keySet {
	if k.o.Now().Sub(k.known.at) > keysStale {
		return keySet{}
	}
	return k.known
}

// refresh asks the issuer for its keys. at is when it began.
func (k *keys) refresh(at time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), keysWait)
	defer cancel()
	set, err := k.current(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed = err; err == nil {
		set.at = at
		k.known = set
	}
	close(k.running)
	k.running = nil
}

// current reads the keys that the issuer has now.
func (k *keys) current(ctx context.Context) (set keySet, err error) {
	defer func() {
		if p := recover(); p != nil { // a document of another's must not end the bridge
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	address := k.o.Keys
	if address == "" {
		m, err := k.metadata(ctx, func(m issuerMetadata) error {
			_, err := Address("jwks_uri in the issuer's metadata", m.Keys)
			return err
		})
		if err != nil {
			return set, err
		}
		address = m.Keys
	}
	var published []jsontext.Value
	if err := k.fetch(ctx, address, maxDocument, fields{"keys": list(&published, raw)}); err != nil {
		return set, err
	}
	set.byID = map[string]key{}
	for _, one := range published[:min(len(published), maxKeys)] {
		if id, read, err := readKey(one); err == nil { // a key of a kind that is not known here may be among them
			set.byID[id] = read
		}
	}
	if len(set.byID) == 0 {
		return set, fmt.Errorf("%s holds no key that signatures could be checked by", address)
	}
	return set, nil
}

// issuerMetadata is what the bridge reads in the issuer's metadata.
type issuerMetadata struct {
	Issuer, Keys, TokenEndpoint, IntrospectionEndpoint string
}

// metadata reads the issuer's metadata (RFC 8414, or OpenID's older place), from the first place where they suffice.
func (k *keys) metadata(ctx context.Context, suffice func(issuerMetadata) error) (issuerMetadata, error) {
	issuer, err := url.Parse(k.o.Issuer)
	if err != nil {
		return issuerMetadata{}, err
	}
	origin, path := issuer.Scheme+"://"+issuer.Host, strings.TrimSuffix(issuer.Path, "/")
	var failed error
	for _, address := range []string{
		origin + "/.well-known/oauth-authorization-server" + path,
		origin + "/.well-known/openid-configuration" + path,
		origin + path + "/.well-known/openid-configuration",
	} {
		var document issuerMetadata
		err := k.fetch(ctx, address, maxWord, fields{"issuer": text(&document.Issuer), "jwks_uri": optional(text(&document.Keys)),
			"token_endpoint": optional(text(&document.TokenEndpoint)), "introspection_endpoint": optional(text(&document.IntrospectionEndpoint))})
		if err == nil && document.Issuer != k.o.Issuer {
			err = fmt.Errorf("%s is the metadata of the issuer %.200q, not of %q", address, document.Issuer, k.o.Issuer)
		}
		if err == nil {
			err = suffice(document)
		}
		if err == nil {
			return document, nil
		}
		failed = errors.Join(failed, err)
	}
	return issuerMetadata{}, failed
}

// fetch reads a JSON document of the authorization server.
func (k *keys) fetch(ctx context.Context, address string, longest int64, want fields) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	res, err := k.client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s responded with %d", address, res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, longest))
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if err := want.read(body); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}
