package client

import (
	"net/http"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// The beginning of a long body does not show that it is broken further on.
func TestOutcomeSaysThatABodyIsNoJSON(t *testing.T) {
	whole := `{"error":{"code":"execution_error","message":"` + strings.Repeat("x", 300) + `"}}`
	for body, broken := range map[string]bool{whole: false, whole[:len(whole)-1]: true, "<html>": false, "": false} {
		r := &Response{Status: http.StatusInternalServerError, Body: []byte(body)}
		must.Expect(t, strings.Contains(r.Outcome(), "no valid JSON") == broken, "%.20s…: %s", body, r.Outcome())
	}
}
