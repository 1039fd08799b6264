package reach

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// exchange is a request to the reference bridge, or of the bridge to its site, with the response.
type exchange struct {
	clause   int // place of the clause whose check it belongs to, from 1; 0: before all
	request  *http.Request
	body     []byte // of the request
	status   int
	header   http.Header
	response []byte // its body
	err      error  // in place of a response of the site
	length   int64  // of the body as the site declares it, for a client; -1: it does not
	begin    int    // place among the begins and ends of all exchanges of the tape
	end      int
	odd      bool // it is not all in here: a stream, a broken connection, a request that was given up, a slow response
}

// tape records exchanges in the order in which they begin. It is safe for concurrent use.
type tape struct {
	mu        sync.Mutex
	clause    int
	places    int
	exchanges []*exchange
}

// slow is how long an exchange takes whose duration may be what a check is about.
const slow = 100 * time.Millisecond

// largest is the size from which on a body is not recorded, in bytes.
const largest = 1 << 20

// next makes what is recorded from now on belong to the next clause.
func (t *tape) next() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clause++
}

// begin records a request. The end, to be called once, lets complete put the rest into the exchange and say whether that is all.
func (t *tape) begin(r *http.Request) (end func(complete func(*exchange) bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	began := time.Now()
	e := &exchange{clause: t.clause, request: r.Clone(context.WithoutCancel(r.Context())), begin: t.places, odd: true}
	e.request.Body = nil
	t.places++
	t.exchanges = append(t.exchanges, e)
	return func(complete func(*exchange) bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		e.odd = !complete(e) || time.Since(began) > slow || r.Context().Err() != nil
		e.end = t.places
		t.places++
	}
}

// recorded returns the exchanges as they are now. Those that have not ended last until the end.
func (t *tape) recorded() []*exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*exchange, len(t.exchanges))
	for i, e := range t.exchanges {
		now := *e
		now.end = cmp.Or(now.end, t.places)
		all[i] = &now
	}
	return all
}

// inFront records what callers send to a bridge, and its responses.
func (t *tape) inFront(bridge http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end := t.begin(r)
		sent := &copied{ReadCloser: r.Body, ended: r.ContentLength == 0}
		if r.ContentLength != 0 {
			r.Body = sent
		}
		response := &copiedWriter{ResponseWriter: w}
		served := false // a handler that panics breaks the connection
		defer func() {
			end(func(e *exchange) bool {
				e.body, e.status, e.header, e.response = sent.bytes(), response.status, response.header, response.body.Bytes()
				return served && sent.whole() && response.whole()
			})
		}()
		bridge.ServeHTTP(response, r)
		served = true
	})
}

// behind records what a bridge sends to its site, and the responses.
func (t *tape) behind(site http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		end := t.begin(r)
		sent := &copied{ended: true}
		if r.Body != nil {
			sent = &copied{ReadCloser: r.Body}
			r = r.WithContext(r.Context()) // a RoundTripper leaves the request as it is
			r.Body = sent
		}
		response, err := site.RoundTrip(r)
		if err != nil {
			end(func(e *exchange) bool { e.err = err; return false })
			return nil, err
		}
		header, got := response.Header.Clone(), &copied{ReadCloser: response.Body}
		got.closed = sync.OnceFunc(func() {
			end(func(e *exchange) bool {
				e.body, e.status, e.header, e.response, e.length = sent.bytes(), response.StatusCode, header, got.bytes(), response.ContentLength
				return sent.whole() && got.whole()
			})
		})
		response.Body = got
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// copied is a body that keeps what is read of it.
type copied struct {
	io.ReadCloser
	closed func() // nil, or called by Close

	mu    sync.Mutex // the site may respond while a transport still reads the request
	kept  bytes.Buffer
	ended bool
}

func (c *copied) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.mu.Lock()
	if c.kept.Len() <= largest {
		c.kept.Write(p[:n])
	}
	c.ended = c.ended || err == io.EOF
	c.mu.Unlock()
	return n, err
}

func (c *copied) Close() error {
	if c.closed != nil {
		c.closed()
	}
	return c.ReadCloser.Close()
}

func (c *copied) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.kept.Bytes())
}

// whole reports whether all of the body was read and kept.
func (c *copied) whole() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended && c.kept.Len() <= largest
}

// copiedWriter keeps what a handler writes.
type copiedWriter struct {
	http.ResponseWriter
	status  int
	header  http.Header
	body    bytes.Buffer
	flushed bool
}

func (w *copiedWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.header = status, w.Header().Clone()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *copiedWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status, w.header = http.StatusOK, w.Header().Clone()
	}
	if w.body.Len() <= largest {
		w.body.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController.
func (w *copiedWriter) FlushError() error {
	w.flushed = true
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (w *copiedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// whole reports whether the response was written at once and kept.
func (w *copiedWriter) whole() bool {
	return w.status >= http.StatusOK && !w.flushed && w.body.Len() <= largest
}
