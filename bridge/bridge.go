// Package bridge is the reference bridge: it turns a Drupal site's JSON-RPC methods into MCP tools. It reads downward,
// as a request travels: httpapi takes the request apart, catalog says which tools the caller has, discovery fills it
// with what translate and filter make of the site's description, invoke runs a tool, upstream alone knows the site.
// Nothing here imports the mock, the fixtures or the suites: the package can be taken out and used alone.
package bridge

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
)

// Bridge serves one site's methods as tools. It is an http.Handler, ready as soon as it is made.
type Bridge struct {
	mu       sync.RWMutex // held while core is read and its request counted
	core     *core
	kept     *lasting
	retiring sync.WaitGroup
}

// New makes a bridge. It does not ask the site anything; the first caller does.
func New(o Options) (*Bridge, error) {
	kept := &lasting{}
	c, err := newCore(o, kept)
	if err != nil {
		return nil, fmt.Errorf("bridge: %w", err)
	}
	kept.start()
	o.Warn(c.log)
	return &Bridge{core: c, kept: kept}, nil
}

// Check refuses options with which New or Server would fail.
func (o Options) Check() error {
	c, err := newCore(o, &lasting{}) // which reaches for no store before it is started
	if err != nil {
		return err
	}
	c.close()
	_, err = o.Server(nil)
	return err
}

// ServeHTTP serves a request.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if turnedAway(w, r) {
		return
	}
	if len(r.TransferEncoding) > 0 || b.kept.draining.Load() {
		// net/http takes Content-Length away where Transfer-Encoding stands beside it, so that the handler cannot see such a
		// request, after which the connection must be closed (RFC 9112 section 6.3): close it after every chunked one.
		w.Header().Set("Connection", "close")
	}
	c := b.use()
	defer c.active.Done()
	c.handler.ServeHTTP(w, below(c.base, r))
}

// below removes the path below which a proxy serves the bridge, where the proxy has not removed it.
func below(base string, r *http.Request) *http.Request {
	rest, ok := strings.CutPrefix(r.URL.Path, base)
	if base == "" || !ok || rest != "" && rest[0] != '/' {
		return r
	}
	inner := *r
	address := *r.URL
	address.Path, address.RawPath = cmp.Or(rest, "/"), strings.TrimPrefix(address.RawPath, base)
	inner.URL = &address
	return &inner
}

// Operation serves the operator's endpoints alone: for the listener of admin_listen.
func (b *Bridge) Operation() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := b.use()
		defer c.active.Done()
		c.operation.ServeHTTP(w, r)
	})
}

// use returns the parts that serve now. They stay open until the caller calls their Done.
func (b *Bridge) use() *core {
	b.mu.RLock()
	defer b.mu.RUnlock()
	b.core.active.Add(1)
	return b.core
}

// Reload applies new options to all requests that arrive from now on; those in progress end with the old ones.
// When the options are invalid, the error says why and nothing changes. MCP sessions, and what was counted of failed
// authentications, stay; the address to listen on, the files of the bridge's own
// certificate and the store that replicas share do, too.
func (b *Bridge) Reload(o Options) error {
	c, err := newCore(o, b.kept)
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	b.mu.Lock()
	old := b.core
	b.core = c
	b.mu.Unlock()
	o.Warn(c.log)
	old.mcp.Drain() // or its streams would keep it alive
	b.retiring.Go(func() {
		old.active.Wait()
		old.close()
	})
	return nil
}

// endStreams ends the streams on which MCP clients receive changes.
func (b *Bridge) endStreams() {
	b.mu.RLock()
	defer b.mu.RUnlock()
	b.core.mcp.Drain()
}

// Close ends the background work and closes the connections to the site.
func (b *Bridge) Close() {
	b.mu.Lock()
	c := b.core
	b.mu.Unlock()
	b.kept.close()
	c.close()
	b.retiring.Wait()
}

// ServeStdio speaks MCP over in and out until in ends, or ctx does, as one account of the site; user "" is the anonymous caller. An
// account that the site refuses is an error.
func (b *Bridge) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, user string, password caller.Secret) error {
	who, err := account(user, password)
	if err != nil {
		return err
	}
	unset := ""
	switch {
	case user == "":
		unset = "DRUPAL_USER is not set"
	case password == "":
		unset = "DRUPAL_PASSWORD is not set"
	}
	c := b.use()
	defer c.active.Done()
	return c.mcp.ServeStdio(ctx, in, out, who, unset)
}

// Explain asks the site which methods one account may run, and what becomes of each; user "" is the anonymous caller.
func (b *Bridge) Explain(ctx context.Context, user string, password caller.Secret) (*discovery.Explanation, error) {
	who, err := account(user, password)
	if err != nil {
		return nil, err
	}
	c := b.use()
	defer c.active.Done()
	return c.discovery.Explain(ctx, who)
}

// account is a caller by name and password.
func account(user string, password caller.Secret) (caller.Caller, error) {
	r := &http.Request{Header: http.Header{}}
	if user != "" {
		r.SetBasicAuth(user, string(password))
	}
	return caller.Callers{Schemes: []caller.Scheme{caller.Basic}}.From(r)
}
