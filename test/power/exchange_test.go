package power

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
)

// document is a JSON object on its way; edit changes it in place.
type document = map[string]any

// edit changes the request (before) or the response (after) of an exchange in place, where it is for it; nil: neither.
type edit struct {
	to             func(*http.Request) bool
	before         func(sent document)
	after          func(sent, got document)
	request        func(*http.Request) // changes what is no body
	responseHeader func(http.Header)
}

// largest is the largest body that is read.
const largest = 4 << 20

// inFront returns the change of a mutant between the caller and the bridge.
func inFront(e edit) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength < 0 || r.ContentLength > largest || r.Header.Get("Accept") == "text/event-stream" || !e.to(r) {
				next.ServeHTTP(w, r)
				return
			}
			body, _ := io.ReadAll(r.Body)
			r = r.Clone(r.Context())
			r.Header.Del("Accept-Encoding")
			body = e.ask(r, body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, r)
			out := e.answer(body, rec.Body.Bytes())
			if e.responseHeader != nil {
				e.responseHeader(rec.Header())
			}
			maps.Copy(w.Header(), rec.Header())
			w.Header().Set("Content-Length", strconv.Itoa(len(out)))
			w.WriteHeader(rec.Code)
			w.Write(out) //nolint:errcheck // the caller has gone
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// behind returns the change of a mutant between the bridge and the site.
func behind(e edit) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if !e.to(r) {
				return next.RoundTrip(r)
			}
			r = r.Clone(r.Context())
			var body []byte
			if r.Body != nil {
				body, _ = io.ReadAll(r.Body)
				r.Body.Close()
			}
			body = e.ask(r, body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
			response, err := next.RoundTrip(r)
			if err != nil || e.after == nil || response.StatusCode != http.StatusOK || response.ContentLength > largest {
				return response, err
			}
			got, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil {
				return nil, err
			}
			got = e.answer(body, got)
			response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(got)), int64(len(got))
			response.Header.Set("Content-Length", strconv.Itoa(len(got)))
			return response, nil
		})
	}
}

func (e edit) ask(r *http.Request, body []byte) []byte {
	if e.request != nil {
		e.request(r)
	}
	if e.before == nil {
		return body
	}
	if sent, ok := parsed(body); ok {
		was := written(sent)
		e.before(sent)
		if now := written(sent); now != was {
			return []byte(now)
		}
	}
	return body
}

func (e edit) answer(body, got []byte) []byte {
	if e.after == nil {
		return got
	}
	object, ok := parsed(got)
	if !ok {
		return got
	}
	sent, _ := parsed(body)
	was := written(object)
	e.after(sent, object)
	if now := written(object); now != was {
		return []byte(now)
	}
	return got
}

func parsed(body []byte) (document, bool) {
	v, err := exact.Parse(body)
	object, ok := v.(document)
	return object, err == nil && ok
}

func at(end string) func(*http.Request) bool {
	return func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, end) }
}

// front and site make mutants of an edit; those over MCP are tested by the clauses of MCP, too.
func front(e edit) mutants.Mutant { return mutants.Mutant{Name: "power", Middleware: inFront(e)} }

func site(e edit) mutants.Mutant { return mutants.Mutant{Name: "power", Transport: behind(e)} }

func overMCP(m mutants.Mutant) mutants.Mutant {
	m.MCP = true
	return m
}

// inSchema changes the texts and the values of a schema.
func inSchema(change func(any) any) func(any) any {
	return func(schema any) any {
		return everywhere(schema, func(v any) any {
			if o, ok := v.(document); ok {
				for _, word := range []string{"description", "default", "enum", "const"} {
					edited(o, word, func(v any) any { return everywhere(v, change) })
				}
			}
			return v
		})
	}
}

// everywhere changes a value and all within it, the inner ones first.
func everywhere(v any, change func(any) any) any { return change(within(v, change)) }

// within changes all within a value, and not the value itself.
func within(v any, change func(any) any) any {
	switch v := v.(type) {
	case document:
		out := document{}
		for name, member := range v {
			out[name] = everywhere(member, change)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = everywhere(item, change)
		}
		return out
	}
	return v
}

// objectIn returns a member that is an object; an empty one that is not there.
func objectIn(o document, name string) document {
	member, _ := o[name].(document)
	return member
}

// edited changes a member where it is there.
func edited(o document, name string, change func(any) any) {
	if v, there := o[name]; there {
		o[name] = change(v)
	}
}
