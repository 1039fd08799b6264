package proxy

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// discovery remembers what the site showed of its methods last, by caller and address, for a fault that shows it again after
// the site changed.
type discovery struct {
	mu   sync.Mutex
	last map[string]*exchange.Response
	keys []string // of last, the oldest first
}

// maxRemembered is how many responses are remembered: the later ones push out the first.
const maxRemembered = 256

// discoveryKey is "" for requests other than successful discovery.
func discoveryKey(x *exchange.Exchange) string {
	if x.Verb != http.MethodGet || x.Route != route.Methods && x.Route != route.Method {
		return ""
	}
	return x.User + "\n" + x.Request.URL.RequestURI() + "\n" + x.Request.Header.Get("Accept-Language")
}

// note remembers a response.
func (d *discovery) note(x *exchange.Exchange, r *exchange.Response) {
	key := discoveryKey(x)
	if key == "" || r.Status != http.StatusOK {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		d.last = map[string]*exchange.Response{}
	}
	if _, ok := d.last[key]; !ok {
		if d.keys = append(d.keys, key); len(d.keys) > maxRemembered {
			delete(d.last, d.keys[0])
			d.keys = slices.Delete(d.keys, 0, 1)
		}
	}
	d.last[key] = copyOf(r)
}

// past is what discovery showed at some time.
type past map[string]*exchange.Response

// now returns what is remembered. It fails when nothing is: then there is nothing to show again.
func (d *discovery) now() (past, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.last) == 0 {
		return nil, errors.New("it shows what the site showed before, and no discovery passed the proxy yet")
	}
	return maps.Clone(d.last), nil
}

// response is what the site showed to the caller of this request then; nil where it did not.
func (p past) response(x *exchange.Exchange) *exchange.Response {
	if r := p[discoveryKey(x)]; r != nil {
		return copyOf(r)
	}
	return nil
}

// copyOf is for responses that are changed on their way.
func copyOf(r *exchange.Response) *exchange.Response {
	return &exchange.Response{Status: r.Status, Header: r.Header.Clone(), Body: bytes.Clone(r.Body)}
}
