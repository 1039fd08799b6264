package selftest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/reports"
)

// TestCallsOfEveryCheckAreAudited breaks calls that have an empty text in their arguments, which no check of the clause sends.
func TestCallsOfEveryCheckAreAudited(t *testing.T) {
	for clause, broken := range map[string]func(w http.ResponseWriter, r *http.Request, body []byte, next http.Handler){
		"invoke/runs-once": func(w http.ResponseWriter, r *http.Request, body []byte, next http.Handler) {
			again := r.Clone(r.Context())
			again.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(httptest.NewRecorder(), again)
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
			m := mutants.Mutant{Name: "conditional", Middleware: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
					r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
					if strings.HasSuffix(r.URL.Path, "/tools/invoke") && bytes.Contains(body, []byte(`":""`)) {
						broken(w, r, body, next)
						return
					}
					next.ServeHTTP(w, r)
				})
			}}
			report := must.Get(Run(t.Context(), m, engine.Options{Only: []string{clause, "invoke/arguments-forwarded"}, Cases: fewCases}, nil))(t)
			for _, r := range report.Results {
				if r.ID == clause {
					must.Expect(t, r.Verdict == reports.Fail && r.During == "invoke/arguments-forwarded" && strings.Contains(r.Message, "while invoke/arguments-forwarded was tested") && len(r.Evidence) > 0,
						"%s: %s: %s", r.ID, r.Verdict, r.Message)
				}
			}
		})
	}
}
