package oauth

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// How the issuer's keys are kept.
const (
	keysFresh  = 10 * time.Minute // taken to be all there are
	keysStale  = time.Hour        // used while the authorization server does not answer
	keysRetry  = 5 * time.Second  // between two requests for them, whatever tokens name
	keysWait   = 10 * time.Second // for one request
	maxKeys    = 1 << 20          // bytes of a document of the authorization server
	minRSABits = 2048
)

// key is a public key of the issuer.
type key struct {
	public    crypto.PublicKey
	algorithm string // that it is for; "": any that fits
}

// keySet is what the issuer published at a time.
type keySet struct {
	byID map[string]key
	at   time.Time
}

// keys fetches the issuer's keys when they are needed and keeps them.
type keys struct {
	o      Options
	client *http.Client
	flight singleflight.Group

	mu    sync.Mutex
	known keySet
	tried time.Time
}

func newKeys(o Options) *keys {
	return &keys{o: o, client: &http.Client{Transport: o.Transport, Timeout: keysWait,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the authorization server redirects, which is not followed")
		}}}
}

// find gives the key of an id; "" is the only one there is. A key that is not known may be new: then the issuer is asked,
// but not for every such token.
func (k *keys) find(ctx context.Context, id string) (key, error) {
	known, due := k.state(id)
	if due {
		asked := k.flight.DoChan("", func() (any, error) {
			return nil, k.refresh(context.WithoutCancel(ctx))
		})
		select {
		case r := <-asked:
			if r.Err != nil && known.at.IsZero() {
				return key{}, fault.New(fault.UpstreamUnavailable, "The authorization server's keys cannot be had; try again later.").Because(r.Err)
			}
		case <-ctx.Done():
			return key{}, fault.New(fault.UpstreamTimeout, "The authorization server's keys did not arrive in time.").Because(ctx.Err())
		}
		known, _ = k.state(id)
	}
	switch found, ok := known.byID[id]; {
	case known.at.IsZero():
		return key{}, fault.New(fault.UpstreamUnavailable, "The authorization server's keys cannot be had; try again later.")
	case ok:
		return found, nil
	case id == "" && len(known.byID) == 1:
		for _, only := range known.byID {
			return only, nil
		}
	}
	return key{}, errors.New("the token names a key that the issuer does not have")
}

// state gives the keys that may be used, and whether it is time to ask for them.
func (k *keys) state(id string) (known keySet, due bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Now()
	if known = k.known; now.Sub(known.at) > keysStale {
		known = keySet{}
	}
	_, have := known.byID[id]
	have = have || id == "" && len(known.byID) == 1
	return known, (!have || now.Sub(known.at) > keysFresh) && now.Sub(k.tried) > keysRetry
}

// refresh asks the issuer for its keys.
func (k *keys) refresh(ctx context.Context) error {
	now := k.o.Now()
	k.mu.Lock()
	k.tried = now
	k.mu.Unlock()
	address := k.o.Keys
	if address == "" {
		var err error
		if address, err = k.published(ctx); err != nil {
			return err
		}
	}
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := k.fetch(ctx, address, &document); err != nil {
		return err
	}
	set := keySet{byID: map[string]key{}, at: now}
	for _, raw := range document.Keys {
		if id, read, err := readKey(raw); err == nil { // a key of a kind that is not known here may be among them
			set.byID[id] = read
		}
	}
	if len(set.byID) == 0 {
		return fmt.Errorf("%s holds no key that signatures could be checked by", address)
	}
	k.mu.Lock()
	k.known = set
	k.mu.Unlock()
	return nil
}

// published finds where the keys are in the issuer's metadata (RFC 8414, or OpenID's older place).
func (k *keys) published(ctx context.Context) (string, error) {
	issuer, err := url.Parse(k.o.Issuer)
	if err != nil {
		return "", err
	}
	origin, path := issuer.Scheme+"://"+issuer.Host, strings.TrimSuffix(issuer.Path, "/")
	var failed error
	for _, address := range []string{
		origin + "/.well-known/oauth-authorization-server" + path,
		origin + "/.well-known/openid-configuration" + path,
		origin + path + "/.well-known/openid-configuration",
	} {
		var document struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		err := k.fetch(ctx, address, &document)
		if err == nil && document.Issuer != k.o.Issuer {
			err = fmt.Errorf("%s is the metadata of the issuer %q, not of %q", address, document.Issuer, k.o.Issuer)
		}
		if err == nil {
			_, err = Address("jwks_uri in "+address, document.Keys)
		}
		if err == nil {
			return document.Keys, nil
		}
		failed = errors.Join(failed, err)
	}
	return "", failed
}

// fetch reads a JSON document of the authorization server.
func (k *keys) fetch(ctx context.Context, address string, into any) error {
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
		return fmt.Errorf("%s answered %s", address, res.Status)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxKeys))
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}

// readKey reads a JSON Web Key (RFC 7517) that signatures can be checked by.
func readKey(raw []byte) (id string, _ key, _ error) {
	var j struct{ Kty, Use, Kid, Alg, Crv, N, E, X, Y string }
	if err := json.Unmarshal(raw, &j); err != nil {
		return "", key{}, err
	}
	if j.Use != "" && j.Use != "sig" {
		return "", key{}, errors.New("the key is not for signatures")
	}
	var public crypto.PublicKey
	var err error
	switch j.Kty {
	case "RSA":
		public, err = rsaKey(j.N, j.E)
	case "EC":
		public, err = ecKey(j.Crv, j.X, j.Y)
	case "OKP":
		public, err = edKey(j.Crv, j.X)
	default:
		err = errors.New("the key is of another kind")
	}
	return j.Kid, key{public, j.Alg}, err
}

func rsaKey(n, e string) (crypto.PublicKey, error) {
	modulus, err := number(n)
	if err != nil {
		return nil, err
	}
	exponent, err := number(e)
	if err != nil {
		return nil, err
	}
	if modulus.BitLen() < minRSABits || !exponent.IsInt64() || exponent.Int64() < 3 || exponent.Int64() > 1<<31-1 {
		return nil, errors.New("the key is too weak")
	}
	return &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}, nil
}

func number(text string) (*big.Int, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	return new(big.Int).SetBytes(b), err
}

var curves = map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}

func ecKey(name, x, y string) (crypto.PublicKey, error) {
	curve, known := curves[name]
	if !known {
		return nil, errors.New("the curve is not known")
	}
	size := (curve.Params().BitSize + 7) / 8
	point := []byte{4} // uncompressed
	for _, text := range []string{x, y} {
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || len(b) > size {
			return nil, errors.New("the point is not on the curve")
		}
		point = append(append(point, bytes.Repeat([]byte{0}, size-len(b))...), b...)
	}
	return ecdsa.ParseUncompressedPublicKey(curve, point)
}

func edKey(curve, x string) (crypto.PublicKey, error) {
	b, err := base64.RawURLEncoding.DecodeString(x)
	if err != nil || curve != "Ed25519" || len(b) != ed25519.PublicKeySize {
		return nil, errors.New("the key is no Ed25519 key")
	}
	return ed25519.PublicKey(b), nil
}
