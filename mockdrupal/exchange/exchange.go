// Package exchange is one HTTP request on its way through a site and its response on the way back. It records both in the
// journal and sends the response byte by byte as it is asked to, correctly or not. It decides nothing: who may do what is
// the site's to say, what goes wrong the fault's.
//
// Its invariant: whatever reaches the client is counted in the journal's entry. A recorder begins an exchange, the site
// names route and caller, the body is read, the site (or a fault) sets the Response, and the exchange sends it.
package exchange

import (
	"cmp"
	"io"
	"net/http"

	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// Exchange is one request and its response.
type Exchange struct {
	Request  *http.Request
	Verb     string // the HTTP method, as X-HTTP-Method-Override has it
	PathInfo string // the path as it was sent, without /index.php
	Path     string // decoded and without trailing slashes, as Drupal routes it

	Route string // the route's name; "" when none matches
	Named string // the method or tool that the path names; "" when it names none
	User  string // the account's name, as faults match it
	Title string // of the site, for pages
	Past  any    // a former state of the site that is to respond; nil: the present one

	MaxBody  int64 // how much of the body is read; 0: as much as of a known caller
	Body     []byte
	Response *Response // nil until the site or a fault has set it
	Done     bool      // nothing more is to be sent: all was sent, the connection has ended or the client went away

	w       http.ResponseWriter
	journal *journal.Journal
	record  *journal.Record
	conn    *journal.Conn
	calls   []journal.Call // the JSON-RPC calls of the request, as far as they can be read
	read    bool           // the body was read, with readErr
	readErr error
}

// Begin records a request that has just arrived on a connection.
func Begin(w http.ResponseWriter, r *http.Request, j *journal.Journal, conn *journal.Conn) *Exchange {
	x := &Exchange{Request: r, Verb: route.Verb(r), PathInfo: route.PathInfo(r), w: w, journal: j, record: j.Begin(r, conn), conn: conn}
	x.Path = route.Path(x.PathInfo)
	return x
}

// End records that the exchange is over.
func (x *Exchange) End() { x.journal.End(x.record) }

// Entry returns a copy of the journal's entry.
func (x *Exchange) Entry() journal.Entry { return x.journal.View(x.record) }

// Note changes the journal's entry.
func (x *Exchange) Note(change func(*journal.Entry)) { x.journal.Edit(x.record, change) }

// NoteCalls records the JSON-RPC calls of the request.
func (x *Exchange) NoteCalls(calls []journal.Call) { x.journal.Calls(x.record, calls) }

// NoteCaller records who makes the request: the account's name as the journal shows it, and how it authenticated.
func (x *Exchange) NoteCaller(user, scheme string) {
	x.Note(func(e *journal.Entry) { e.Route, e.User, e.Scheme = x.Route, user, scheme })
}

// maxRequest is how much of a body the site reads: more is refused, as PHP's post_max_size has it.
const maxRequest = 64 << 20

// ReadBody reads and records the request's body, once. It fails when the client goes away.
func (x *Exchange) ReadBody() error {
	if x.read {
		return x.readErr
	}
	x.read = true
	body, err := io.ReadAll(io.LimitReader(x.Request.Body, cmp.Or(x.MaxBody, maxRequest)))
	x.Body = body
	x.journal.Body(x.record, body, route.ReceivesCredentials(x.Route))
	x.readErr = err
	return err
}

// Query returns an argument as PHP's $_GET has it.
func (x *Exchange) Query(name string) (value string, isList, has bool) {
	return php.Query(x.Request.URL.RawQuery, name)
}

// Message is the JSON text that the request carries: the body, or the query argument; nothing for HEAD.
func (x *Exchange) Message() []byte {
	switch x.Verb {
	case http.MethodPost:
		return x.Body
	case http.MethodGet, http.MethodOptions:
		text, _, _ := x.Query("query")
		return []byte(text)
	}
	return nil
}

// Calls returns the JSON-RPC calls that the request seems to hold: what its path names, then what its message holds.
func (x *Exchange) Calls() []journal.Call {
	if x.calls != nil {
		return x.calls
	}
	x.calls = []journal.Call{}
	if x.Named != "" {
		x.calls = append(x.calls, journal.Call{Method: x.Named})
	}
	message := x.Message()
	if _, err := php.Decode(message); err != nil {
		return x.calls
	}
	docs := php.Elements(message)
	if docs == nil {
		docs = [][]byte{message}
	}
	for _, doc := range docs {
		x.calls = append(x.calls, ReadCall(doc))
	}
	return x.calls
}

// ReadCall reads a call's method, id and params as they stand in a request.
func ReadCall(doc []byte) journal.Call {
	var c journal.Call
	for _, m := range php.Members(doc) {
		switch m.Name {
		case "method":
			if name, err := php.Decode(m.Raw); err == nil {
				c.Method = php.ToString(name)
			}
		case "id":
			c.ID = m.Raw
		case "params":
			c.Params = m.Raw
		}
	}
	c.Notification = c.ID == nil
	return c
}
