package compare

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
	"github.com/bridgecheck/bridgecheck/mockdrupal/phpschema"
)

func builtin(t *testing.T, name string) *fixtures.Site {
	t.Helper()
	return must.Get(fixtures.Builtin(name))(t)
}

func serve(t *testing.T, site *fixtures.Site) http.Handler {
	t.Helper()
	return must.Get(mockdrupal.New(site, mockdrupal.Options{}))(t)
}

func compareWith(t *testing.T, site *fixtures.Site, other http.Handler, requests int) *GeneratedReport {
	t.Helper()
	server := must.Serve(t, other)
	return must.Get(Generate(context.Background(), GenerateOptions{Site: site, URL: server.URL, Requests: requests, Seed: 1}))(t)
}

// A mock is no different from itself, and the requests reach what a site can respond with.
func TestTheSameSite(t *testing.T) {
	for _, name := range []string{"default", "transcripts", "types"} {
		t.Run(name, func(t *testing.T) {
			site := builtin(t, name)
			statuses, codes, verbs := map[int]int{}, map[string]int{}, map[string]int{}
			mock := serve(t, site)
			watched := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				recorder := httptest.NewRecorder()
				mock.ServeHTTP(recorder, r)
				statuses[recorder.Code]++
				verbs[r.Method+" "+strconv.Itoa(recorder.Code)]++
				for _, code := range []string{`"result":`, "-32600", "-32601", "-32602", "-32603", `[{`} {
					if strings.Contains(recorder.Body.String(), code) {
						codes[code]++
					}
				}
				maps.Copy(w.Header(), recorder.Header())
				w.WriteHeader(recorder.Code)
				_, _ = w.Write(recorder.Body.Bytes())
			})
			report := compareWith(t, site, watched, 700)
			for _, d := range report.Differences {
				t.Errorf("%s: %s\nmock: %s\nsite: %s", d.Request, d.Where, d.Mock, d.Site)
			}
			must.Expect(t, report.Requests == 700 && len(statuses) >= 5 && len(codes) >= 6,
				"%d requests had the statuses %v and %v only", report.Requests, statuses, codes)
			for _, verb := range []string{"HEAD 200", "HEAD 400", "OPTIONS 200", "OPTIONS 204", "OPTIONS 400"} {
				must.Expect(t, verbs[verb] != 0, "no request had %s, only %v", verb, verbs)
			}
		})
	}
}

func TestDifferencesAreFoundAndShrunk(t *testing.T) {
	site := builtin(t, "default")
	mock := serve(t, site)
	tests := map[string]struct {
		other http.Handler
		where string
		body  int // the longest body that the smallest request may have
	}{
		"a method returns something else": {serve(t, changed(site, func(m *fixtures.Method) {
			if m.ID == "access.open" {
				m.Behaviour.Value = fixtures.Raw(`"closed"`)
			}
		})), "body", len(`{"jsonrpc":"2.0","method":"access.open","id":0}`)},
		"a method is missing": {serve(t, changed(site, func(m *fixtures.Method) {
			if m.ID == "echo" {
				m.ID = "echo.other"
			}
		})), "", 80},
		"a permission is not asked for": {serve(t, changed(site, func(m *fixtures.Method) {
			if m.ID == "access.content" {
				m.Access = nil
			}
		})), "", 60},
		"an id is made a text": {rewrite(mock, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"id":1,`), []byte(`"id":"1",`)) }), "body", 60},
		"blanks are added":     {rewrite(mock, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"error":{`), []byte(`"error": {`)) }), "body", 1},
		"malformed JSON closes the connection": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			recorder := httptest.NewRecorder()
			mock.ServeHTTP(recorder, r)
			if recorder.Code == http.StatusBadRequest {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(recorder.Code)
			_, _ = w.Write(recorder.Body.Bytes())
		}), "status", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			report := compareWith(t, site, test.other, 1500)
			must.Assert(t, !report.Agrees(), "no difference was found")
			smallest := report.Differences[0]
			for _, d := range report.Differences {
				must.Expect(t, test.where == "" || d.part() == test.where || test.where == "status",
					"%s differs in %s, not in %s", d.Request, d.Where, test.where)
				if len(d.Request.Body) < len(smallest.Request.Body) || smallest.Request.Body == "" {
					smallest = d
				}
			}
			must.Expect(t, len(smallest.Request.Body) <= test.body,
				"the smallest request is %s, at most %d bytes were expected", smallest.Request, test.body)
		})
	}
}

func changed(site *fixtures.Site, change func(*fixtures.Method)) *fixtures.Site {
	site = site.Clone()
	for i := range site.Methods {
		change(&site.Methods[i])
	}
	return site
}

// rewrite changes the bodies of a site.
func rewrite(site http.Handler, change func([]byte) []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		site.ServeHTTP(recorder, r)
		for name, values := range recorder.Header() {
			if name != "Content-Length" {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(change(recorder.Body.Bytes()))
	})
}

// Two sites that close the connection without a response agree; the report counts that.
func TestBothClose(t *testing.T) {
	d := Compare(Record{}, Received{}, "")
	must.Expect(t, len(d) == 0, "%v %v", "two closed connections differ:", d)
	d = Compare(Record{Response: Response{Status: 400}}, Received{}, "")
	must.Expect(t, len(d) == 1 && d[0].Where == "status" && d[0].Got == "no response", "%v", d)
}

// The default site has no parameter that PHP's validator refuses whatever its value.
func TestTheDefaultSiteTakesWhatItsSchemasAllow(t *testing.T) {
	site := builtin(t, "default")
	g := newGenerator(site, newDice(1))
	for _, m := range g.methods {
		if m.maker == nil {
			continue
		}
		for _, p := range m.Params {
			schema, err := php.Decode(p.Resolved())
			if err != nil || p.Drupal != nil || m.Unchecked {
				continue
			}
			taken, drawn := 0, 0
			for range 20 {
				value, _ := m.maker.Drawn()
				arguments, _ := value.(map[string]any)
				v, has := arguments[p.Name]
				doc, err := php.Decode([]byte(encode(v)))
				if !has || err != nil {
					continue
				}
				drawn++
				if errs, thrown := phpschema.Validate(doc, schema); errs == nil && thrown == nil {
					taken++
				}
			}
			must.Expect(t, drawn <= 0 || taken != 0,
				"the parameter %s of %s refuses all of %d values that its schema allows", p.Name, m.ID, drawn)
		}
	}
}

func TestTheSeedDecides(t *testing.T) {
	site := builtin(t, "default")
	draw := func(seed uint64) (all []Generated) {
		g := newGenerator(site, newDice(seed))
		for range 50 {
			all = append(all, g.request())
		}
		return all
	}
	one, same, other := draw(1), draw(1), draw(2)
	different := false
	for i := range one {
		must.Assert(t, one[i] == same[i], "request %d of one seed: %s and %s", i, one[i], same[i])
		different = different || one[i] != other[i]
	}
	must.Expect(t, different, "two seeds draw the same requests")
}

// A site that is not what the site file describes is named at once: comparing it would take long and say nothing.
func TestAnotherSiteIsRefused(t *testing.T) {
	broken := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	_, err := Generate(t.Context(), GenerateOptions{Site: builtin(t, "default"), URL: broken.URL, Requests: 100})
	must.Expect(t, err != nil && strings.Contains(err.Error(), "GET /jsonrpc/methods") && strings.Contains(err.Error(), "500"),
		"expected an error that names the request and its status, got %v", err)
}

// Fifty failed logins in an hour lock an address out of a Drupal; then all that follows would differ.
func TestFewLoginsFail(t *testing.T) {
	site := builtin(t, "default").Clone()
	for i := range site.Users {
		if site.Users[i].Blocked {
			site.Users[i].Name = "barred"
		}
	}
	mock := serve(t, site)
	failed := 0
	report := compareWith(t, site, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, _, _ := r.BasicAuth(); name == "barred" || name == nobody {
			failed++
			w.WriteHeader(http.StatusTeapot) // a difference, each time
			return
		}
		mock.ServeHTTP(w, r)
	}), 1000)
	must.Expect(t, !report.Agrees() && failed >= maxRefused && failed < 50, "%d logins failed: %+v", failed, report.Differences)
}

// Differences of one method in one place are one.
func TestAMethodIsReportedOnce(t *testing.T) {
	site := builtin(t, "default")
	report := compareWith(t, site, serve(t, changed(site, func(m *fixtures.Method) {
		if m.ID == "access.open" {
			m.Behaviour.Value = fixtures.Raw(`"closed"`)
		}
	})), 1500)
	must.Equal(t, len(report.Differences), 1, "how many differences there are: %+v", report.Differences)
}

// A site that is being waited for when a user interrupts is not out of reach, and sent no response.
func TestAnInterrupt(t *testing.T) {
	site := builtin(t, "default")
	ctx, interrupt := context.WithCancel(t.Context())
	server := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		interrupt()
		<-r.Context().Done()
	}))
	_, err := Generate(ctx, GenerateOptions{Site: site, URL: server.URL, Requests: 1})
	unreachable := (*UnreachableError)(nil)
	must.Expect(t, errors.Is(err, context.Canceled) && !errors.As(err, &unreachable), "expected an error of the interrupt, got %v", err)
}

func TestNoSite(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := "http://" + listener.Addr().String()
	listener.Close()
	_, err := Generate(context.Background(), GenerateOptions{Site: builtin(t, "empty"), URL: address, Requests: 1})
	var unreachable *UnreachableError
	must.Expect(t, errors.As(err, &unreachable), "%v", err)
	must.Refuse(Generate(context.Background(), GenerateOptions{Site: builtin(t, "empty"), URL: address}))(t, "give 1 or more")
}
