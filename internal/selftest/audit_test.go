package selftest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/reports"
)

// TestCallsOfEveryCheckAreAudited breaks calls that no check of the clause sends: with an empty text in their arguments, or after a
// failure.
func TestCallsOfEveryCheckAreAudited(t *testing.T) {
	failed := false // a failing method has been called
	for clause, broken := range map[string]func(w http.ResponseWriter, r *http.Request, body []byte, next http.Handler){
		"invoke/runs-once": func(w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			again := r.Clone(r.Context())
			again.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(httptest.NewRecorder(), again)
			next.ServeHTTP(w, r)
		},
		"invoke/arguments-forwarded": func(w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			body = bytes.ReplaceAll(body, []byte(`"a text"`), []byte(`"another"`))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			next.ServeHTTP(w, r)
		},
		"access/credentials-forwarded": func(w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
			r.SetBasicAuth("admin", "admin-pass")
			next.ServeHTTP(w, r)
		},
		"invoke/result-exact": func(w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
			if next.ServeHTTP(httptest.NewRecorder(), r); r.Context().Err() == nil {
				w.Header().Set("Content-Type", "application/json")
				w.Write([]byte(`{"result":"another"}`)) //nolint:errcheck // the caller has gone
			}
		},
		"invoke/answers-result": func(w http.ResponseWriter, r *http.Request, _ []byte, next http.Handler) {
			next.ServeHTTP(httptest.NewRecorder(), r)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			w.Write([]byte(`{"error":{"code":"internal_error","message":"It failed."}}`)) //nolint:errcheck // the caller has gone
		},
	} {
		t.Run(clause, func(t *testing.T) {
			failed = false
			during, met := "invoke/arguments-forwarded", func(body []byte) bool { return bytes.Contains(body, []byte(`":""`)) }
			if clause == during {
				during, met = "invoke/runs-once", func([]byte) bool { return failed }
			}
			m := mutants.Mutant{Name: "conditional", Middleware: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
					r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
					if strings.HasSuffix(r.URL.Path, "/tools/invoke") && met(body) {
						broken(w, r, body, next)
						return
					}
					failed = failed || bytes.Contains(body, []byte(`"name":"fail.`))
					next.ServeHTTP(w, r)
				})
			}}
			report := must.Get(Run(t.Context(), m, engine.Options{Only: []string{clause, during}, Cases: fewCases}, nil))(t)
			for _, r := range report.Results {
				if r.ID == clause {
					must.Expect(t, r.Verdict == reports.Fail && r.During == during && strings.Contains(r.Message, "while "+during+" was tested") && len(r.Evidence) > 0,
						"%s: %s: %s", r.ID, r.Verdict, r.Message)
				}
			}
		})
	}
}

// TestListsOfEveryCheckAreAudited changes lists in another language alone, which no check of the clause asks for.
func TestListsOfEveryCheckAreAudited(t *testing.T) {
	for clause, change := range map[string]func(list map[string]any){
		"list/pages-cover-all-once": func(list map[string]any) { delete(list, "nextCursor") },
		"list/next-cursor-type":     func(list map[string]any) { list["nextCursor"] = "" },
	} {
		t.Run(clause, func(t *testing.T) {
			m := mutants.Mutant{Name: "conditional", Middleware: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !strings.HasSuffix(r.URL.Path, "/tools/list") || r.Header.Get("Accept-Language") == "" || r.Header.Get("Accept-Encoding") != "" {
						next.ServeHTTP(w, r)
						return
					}
					seen := httptest.NewRecorder()
					next.ServeHTTP(seen, r)
					var list map[string]any
					if json.Unmarshal(seen.Body.Bytes(), &list) == nil && list["tools"] != nil {
						change(list)
					}
					maps.Copy(w.Header(), seen.Header())
					w.Header().Del("Content-Length")
					w.WriteHeader(seen.Code)
					json.NewEncoder(w).Encode(list) //nolint:errcheck // the caller has gone
				})
			}}
			report := must.Get(Run(t.Context(), m, engine.Options{Only: []string{clause, "list/order-stable"}}, nil))(t)
			r := report.Results[slices.IndexFunc(report.Results, func(r reports.Result) bool { return r.ID == clause })]
			must.Expect(t, r.Verdict == reports.Fail && r.During == "list/order-stable", "%s: %s: %s", r.ID, r.Verdict, r.Message)
		})
	}
}
