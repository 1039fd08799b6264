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

func TestAChangeInFrontOfABridge(t *testing.T) {
	var busy sync.Once // in all plays
	// where changes the requests whose body holds a text, and passes on the others.
	where := func(text string, change func(w http.ResponseWriter, r *http.Request, next http.Handler)) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if x := r.Context().Value(playedKey{}).(*played); strings.Contains(string(x.exchange.body), text) {
					change(w, r, next)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
	}
	for _, c := range []struct {
		name    string
		change  func(*player) func(next http.Handler) http.Handler
		touched []int // nil: all
	}{
		{"none", func(*player) func(http.Handler) http.Handler {
			return func(next http.Handler) http.Handler { return next }
		}, []int{}},
		{"what the clauses do not send", func(*player) func(http.Handler) http.Handler {
			return where("no such text", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusTeapot) })
		}, []int{}},
		{"the same, written once more", func(*player) func(http.Handler) http.Handler {
			return where("plain", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				copied := &copiedWriter{ResponseWriter: w}
				next.ServeHTTP(copied, r.Clone(r.Context()))
			})
		}, []int{}},
		{"the status", func(*player) func(http.Handler) http.Handler {
			return where("again", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusTeapot) })
		}, []int{1}},
		{"a header of the response", func(*player) func(http.Handler) http.Handler {
			return where("plain", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				w.Header().Set("X-Changed", "1")
				next.ServeHTTP(w, r)
			})
		}, []int{1}},
		{"more of a body", func(*player) func(http.Handler) http.Handler {
			return where("second", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				next.ServeHTTP(w, r)
				io.WriteString(w, "more") //nolint:errcheck // it is memory
			})
		}, []int{2}},
		{"a header of the request, in place", func(*player) func(http.Handler) http.Handler {
			return where("plain", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				r.Header.Del("Authorization")
				next.ServeHTTP(w, r)
			})
		}, []int{1}},
		{"the method of an odd request, in place", func(*player) func(http.Handler) http.Handler {
			return where("odd", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				r.Method = http.MethodGet
				next.ServeHTTP(w, r)
			})
		}, []int{3}},
		{"the reading of an odd request", func(*player) func(http.Handler) http.Handler {
			return where("odd", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				r.Body.Read(make([]byte, 1)) //nolint:errcheck // it is memory
				next.ServeHTTP(w, r)
			})
		}, []int{3}},
		{"the body of an odd request, dropped", func(*player) func(http.Handler) http.Handler {
			return where("odd", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				r.Body = http.NoBody
				next.ServeHTTP(w, r)
			})
		}, []int{3}},
		{"the writer of an odd response", func(*player) func(http.Handler) http.Handler {
			return where("odd", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				next.ServeHTTP(&copiedWriter{ResponseWriter: w}, r)
			})
		}, []int{3}},
		{"flushed", func(*player) func(http.Handler) http.Handler {
			return where("plain", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				next.ServeHTTP(w, r)
				http.NewResponseController(w).Flush() //nolint:errcheck // it does not flush
			})
		}, []int{1}},
		{"sent twice", func(*player) func(http.Handler) http.Handler {
			return where("first", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				next.ServeHTTP(w, r)
				next.ServeHTTP(&watchedWriter{header: http.Header{}}, r)
			})
		}, []int{2}},
		{"not sent", func(*player) func(http.Handler) http.Handler {
			return where("odd", func(http.ResponseWriter, *http.Request, http.Handler) {})
		}, []int{3}},
		{"late", func(*player) func(http.Handler) http.Handler {
			return where("again", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				time.Sleep(2 * longest)
				next.ServeHTTP(w, r)
			})
		}, []int{1}},
		{"late once, as on a busy machine", func(*player) func(http.Handler) http.Handler {
			return func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Context().Value(playedKey{}).(*played).clause == 2 {
						busy.Do(func() { time.Sleep(2 * longest) })
					}
					next.ServeHTTP(w, r)
				})
			}
		}, []int{}},
		{"not given up with its caller", func(*player) func(http.Handler) http.Handler {
			return where("plain", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				next.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
			})
		}, []int{1}},
		{"a request of its own to the site", func(p *player) func(http.Handler) http.Handler {
			return where("second", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				p.stranger(r) //nolint:errcheck // it is about the request
				next.ServeHTTP(w, r)
			})
		}, []int{2}},
		{"a variable that two share who are served at once", func(*player) func(http.Handler) http.Handler {
			var current string
			return func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					own := string(r.Context().Value(playedKey{}).(*played).exchange.body)
					current = own
					next.ServeHTTP(w, r)
					if current != own {
						io.WriteString(w, "of another caller") //nolint:errcheck // it is memory
					}
				})
			}
		}, []int{2}},
		{"a request of its own to the bridge", func(*player) func(http.Handler) http.Handler {
			return where("plain", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				next.ServeHTTP(&watchedWriter{header: http.Header{}}, r.WithContext(context.Background()))
				next.ServeHTTP(w, r)
			})
		}, nil},
		{"what comes before all clauses", func(*player) func(http.Handler) http.Handler {
			return where("preflight", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusTeapot) })
		}, nil},
		{"a tool of the lists", func(*player) func(http.Handler) http.Handler { return respondToLists(http.StatusOK, `{"tools":[]}`) }, []int{4}},
		{"the tools of the lists", func(*player) func(http.Handler) http.Handler { return respondToLists(http.StatusOK, `{}`) }, nil},
		{"the status of the lists", func(*player) func(http.Handler) http.Handler {
			return respondToLists(http.StatusBadGateway, `{"tools":[]}`)
		}, nil},
		{"lists that are no JSON", func(*player) func(http.Handler) http.Handler { return respondToLists(http.StatusOK, `<html>"tools"`) }, nil},
		{"broken", func(*player) func(http.Handler) http.Handler {
			return where("plain", func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) })
		}, nil},
		{"one after the other", func(*player) func(http.Handler) http.Handler {
			var one sync.Mutex
			return where("", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				one.Lock()
				defer one.Unlock()
				next.ServeHTTP(w, r)
			})
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &player{exchanges: inOrder(), patience: 3 * longest, pause: longest}
			expect(t, p, func() { p.inFront(c.change(p)) }, c.touched)
		})
	}
}

// respondToLists is a change that responds to all lists.
func respondToLists(status int, body string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				next.ServeHTTP(w, r)
				return
			}
			copied := &watchedWriter{header: http.Header{}}
			next.ServeHTTP(copied, r)
			maps.Copy(w.Header(), copied.header)
			w.WriteHeader(status)
			io.WriteString(w, body) //nolint:errcheck // it is memory
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
	if all != (want == nil) {
		t.Fatalf("all are touched: %t", all)
	}
	if all {
		return
	}
	if got := slices.Sorted(maps.Keys(touched)); !slices.Equal(got, want) {
		t.Errorf("the clauses %v are touched, not %v", got, want)
	}
}
