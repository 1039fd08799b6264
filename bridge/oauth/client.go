package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// clientWait is the limit for one request of the bridge as a client of the authorization server, with the metadata.
const clientWait = 5 * time.Second

// endpoint is one of the issuer's that takes forms from the bridge as a client. The metadata that name it are kept as long
// as keys are.
type endpoint struct {
	o    Options
	keys *keys                       // which read the issuer's documents
	name string                      // its member in the metadata
	of   func(issuerMetadata) string // reads that member

	mu      sync.Mutex
	address string
	read    time.Time
}

// post sends a form and reads the JSON object that comes back. An error is that of the transport, of a server that fails,
// or of a success that is none.
func (e *endpoint) post(ctx context.Context, form url.Values, into any) (status int, err error) {
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
	body, err := io.ReadAll(io.LimitReader(res.Body, maxDocument))
	if err != nil {
		return 0, err
	}
	if res.StatusCode >= 500 {
		return 0, fmt.Errorf("the %s responded with %s", e.name, res.Status)
	}
	if err := json.Unmarshal(body, into); err != nil && res.StatusCode == http.StatusOK {
		return 0, fmt.Errorf("the %s's response: %w", e.name, err)
	}
	return res.StatusCode, nil
}

// find gives the address of the endpoint.
func (e *endpoint) find(ctx context.Context) (string, error) {
	e.mu.Lock()
	address, read := e.address, e.read
	e.mu.Unlock()
	now := e.o.Now()
	if address != "" && now.Sub(read) < keysFresh {
		return address, nil
	}
	m, err := e.keys.metadata(ctx, func(m issuerMetadata) error {
		_, err := Address(e.name+" in the issuer's metadata", e.of(m))
		return err
	})
	if err != nil {
		return "", err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.address, e.read = e.of(m), now
	return e.address, nil
}
