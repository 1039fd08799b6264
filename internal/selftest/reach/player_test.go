package reach

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// longest is the pause of the tests: a busy machine may hold up a change for some milliseconds.
const longest = 500 * time.Millisecond

// said is an exchange of a clause, with a body in both directions.
func said(clause, begin, end int, body string) *exchange {
	r, err := http.NewRequest(http.MethodPost, "http://bridge/mcp/tools/invoke", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Basic YTpi")
	return &exchange{clause: clause, request: r, body: []byte(body), status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}},
		response: []byte("to " + body), length: int64(len("to " + body)), begin: begin, end: end}
}

// listed is an exchange of a clause that lists.
func listed(clause, begin, end int) *exchange {
	e := said(clause, begin, end, "")
	e.request.Method, e.response = http.MethodGet, []byte(`{"tools":[{"name":"a"}]}`)
	e.length = int64(len(e.response))
	return e
}

// odd is an exchange that is not all recorded.
func odd(clause, begin, end int) *exchange {
	e := said(clause, begin, end, "odd")
	e.odd, e.response, e.status = true, nil, 0
	return e
}

// broken is an exchange with a site that does not respond.
func broken(clause, begin, end int, err error) *exchange {
	e := odd(clause, begin, end)
	e.err = err
	return e
}

// inOrder is what changes in front of a bridge are tried with: what comes before all clauses, and a clause each of plain
// exchanges, of two that overlap, of an odd one, and of a list.
func inOrder() []*exchange {
	return []*exchange{said(0, 0, 1, "preflight"), said(1, 2, 3, "plain"), said(1, 4, 5, "plain again"), said(2, 6, 9, "first"), said(2, 7, 8, "second"), odd(3, 10, 11),
		listed(0, 12, 13), listed(4, 14, 15)}
}

// change is what a middleware does with one request.
type change func(w http.ResponseWriter, r *http.Request, next http.Handler)

// status is a change to another response.
func status(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusTeapot) }

// before is a change of the request, in place.
func before(do func(r *http.Request)) change {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) { do(r); next.ServeHTTP(w, r) }
}

// after is what follows the response.
func after(do func(w http.ResponseWriter)) change {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) { next.ServeHTTP(w, r); do(w) }
}

// lists is a change that responds to all lists.
func lists(status int, body string) change {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		copied := &watchedWriter{header: http.Header{}}
		next.ServeHTTP(copied, r)
		maps.Copy(w.Header(), copied.header)
		w.WriteHeader(status)
		io.WriteString(w, body) //nolint:errcheck // it is memory
	}
}

func more(w http.ResponseWriter) { io.WriteString(w, "more") } //nolint:errcheck // it is memory

func TestAChangeInFrontOfABridge(t *testing.T) {
	var p *player
	var busy sync.Once // in all plays
	var current string // of those who are served at once
	var one sync.Mutex
	of := func(r *http.Request) *played { return r.Context().Value(playedKey{}).(*played) }
	for _, c := range []struct {
		name    string
		where   string // the requests whose body holds this text are changed
		change  change
		touched []int // nil: all
	}{
		{"none", "", before(func(*http.Request) {}), []int{}},
		{"what the clauses do not send", "no such text", status, []int{}},
		{"the same, written once more", "plain", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(&copiedWriter{ResponseWriter: w}, r.Clone(r.Context()))
		}, []int{}},
		{"the status", "again", status, []int{1}},
		{"a header of the response", "plain", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			w.Header().Set("X-Changed", "1")
			next.ServeHTTP(w, r)
		}, []int{1}},
		{"more of a body", "second", after(more), []int{2}},
		{"a header of the request, in place", "plain", before(func(r *http.Request) { r.Header.Del("Authorization") }), []int{1}},
		{"the method of an odd request, in place", "odd", before(func(r *http.Request) { r.Method = http.MethodGet }), []int{3}},
		{"the reading of an odd request", "odd", before(func(r *http.Request) { r.Body.Read(make([]byte, 1)) }), []int{3}}, //nolint:errcheck // it is memory
		{"the body of an odd request, dropped", "odd", before(func(r *http.Request) { r.Body = http.NoBody }), []int{3}},
		{"the writer of an odd response", "odd", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(&copiedWriter{ResponseWriter: w}, r)
		}, []int{3}},
		{"flushed", "plain", after(func(w http.ResponseWriter) { http.NewResponseController(w).Flush() }), []int{1}}, //nolint:errcheck // it does not flush
		{"sent twice", "first", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(w, r)
			next.ServeHTTP(&watchedWriter{header: http.Header{}}, r)
		}, []int{2}},
		{"not sent", "odd", func(http.ResponseWriter, *http.Request, http.Handler) {}, []int{3}},
		{"late", "again", before(func(*http.Request) { time.Sleep(2 * longest) }), []int{1}},
		{"late once, as on a busy machine", "", before(func(r *http.Request) {
			if of(r).clause == 2 {
				busy.Do(func() { time.Sleep(2 * longest) })
			}
		}), []int{}},
		{"not given up with its caller", "plain", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
		}, []int{1}},
		{"a request of its own to the site", "second", before(func(r *http.Request) { p.stranger(r) }), []int{2}}, //nolint:errcheck // it is about the request
		{"a variable that two share who are served at once", "", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			own := string(of(r).exchange.body)
			current = own
			if next.ServeHTTP(w, r); current != own {
				more(w)
			}
		}, []int{2}},
		{"a request of its own to the bridge", "plain", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(&watchedWriter{header: http.Header{}}, r.WithContext(context.Background()))
			next.ServeHTTP(w, r)
		}, nil},
		{"what comes before all clauses", "preflight", status, nil},
		{"a tool of the lists", "", lists(http.StatusOK, `{"tools":[]}`), []int{4}},
		{"the tools of the lists", "", lists(http.StatusOK, `{}`), nil},
		{"the status of the lists", "", lists(http.StatusBadGateway, `{"tools":[]}`), nil},
		{"lists that are no JSON", "", lists(http.StatusOK, `<html>"tools"`), nil},
		{"broken", "plain", func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }, nil},
		{"one after the other", "", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			one.Lock()
			defer one.Unlock()
			next.ServeHTTP(w, r)
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p = &player{exchanges: inOrder(), patience: 3 * longest, pause: longest}
			expect(t, p, func() {
				p.inFront(func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if x, ok := r.Context().Value(playedKey{}).(*played); !ok || !strings.Contains(string(x.exchange.body), c.where) {
							next.ServeHTTP(w, r)
							return
						}
						c.change(w, r, next)
					})
				})
			}, c.touched)
		})
	}
}

func TestAChangeBehindABridge(t *testing.T) {
	refused := errors.New("refused")
	exchanges := func() []*exchange {
		return []*exchange{said(0, 0, 1, "preflight"), said(1, 2, 3, "plain"), broken(2, 4, 5, refused), odd(3, 6, 7), listed(4, 8, 9)}
	}
	// where changes the requests of a clause, and passes on the others.
	where := func(clause int, change func(r *http.Request, next http.RoundTripper) (*http.Response, error)) func(http.RoundTripper) http.RoundTripper {
		return func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Context().Value(playedKey{}).(*played).clause == clause {
					return change(r, next)
				}
				return next.RoundTrip(r)
			})
		}
	}
	for _, c := range []struct {
		name    string
		change  func(next http.RoundTripper) http.RoundTripper
		touched []int // nil: all
	}{
		{"none", func(next http.RoundTripper) http.RoundTripper { return next }, []int{}},
		{"a body that is read and given again", where(1, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			body, err := io.ReadAll(response.Body)
			response.Body = io.NopCloser(strings.NewReader(string(body)))
			return response, err
		}), []int{}},
		{"a body that is other", where(1, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Body = io.NopCloser(strings.NewReader("other"))
			}
			return response, err
		}), []int{1}},
		{"a header of the request", where(1, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("X-Changed", "1")
			return next.RoundTrip(r)
		}), []int{1}},
		{"another error", where(2, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			_, err := next.RoundTrip(r)
			return nil, errors.Join(err, errors.New("more"))
		}), []int{2}},
		{"a response in place of an error", where(2, func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}), []int{2}},
		{"the reading of an odd response", where(3, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Body.Read(make([]byte, 1)) //nolint:errcheck // it is memory
			}
			return response, err
		}), []int{3}},
		{"what the bridge remembers for the clauses after it", where(4, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Header.Set("X-Changed", "1")
			}
			return response, err
		}), nil},
		{"a connection of another kind", func(next http.RoundTripper) http.RoundTripper { return next.(*http.Transport) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &player{exchanges: exchanges(), patience: 3 * longest, pause: longest}
			expect(t, p, func() { p.behind(c.change) }, c.touched)
		})
	}
}

// expect plays and compares the clauses that are touched; nil means all.
func expect(t *testing.T, p *player, set func(), want []int) {
	t.Helper()
	touched, all := p.play(set)
	must.Assert(t, all == (want == nil), "all are touched: %t", all)
	if all {
		return
	}
	got := slices.Sorted(maps.Keys(touched))
	must.Expect(t, slices.Equal(got, want), "the clauses %v are touched, not %v", got, want)
}
