package suites_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/mockdrupal/module"
	"github.com/bridgecheck/bridgecheck/suites"
)

func TestReplayTellsWhetherTheAnswerIsTheSame(t *testing.T) {
	var well bool
	drupal := moduleSite(t, module.V13)
	at := serveAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if well {
			http.Error(w, `{"error":{"code":"invalid_cursor","message":"agent-pass"}}`, http.StatusBadRequest)
			return
		}
		drupal.ServeHTTP(w, r)
	}))
	report, err := suites.Run(t.Context(), suites.Target{URL: strings.Replace(at, "http://", "http://agent:agent-pass@", 1)}, suites.Options{Only: []string{"list/cursor-malformed"}})
	if err != nil {
		t.Fatal(err)
	}
	if line := report.Results[0].Curl; !strings.Contains(line, `-u "agent:$AGENT_PASSWORD"`) || !strings.Contains(line, "cursor=LTE%3D") {
		t.Fatalf("the curl line is %s", line)
	}
	password := func(name string) string { return map[string]string{"AGENT_PASSWORD": "agent-pass"}[name] }

	if _, err := suites.Replay(t.Context(), report, "list/cursor-malformed", func(string) string { return "" }, time.Second); err == nil || !strings.Contains(err.Error(), "AGENT_PASSWORD is not set") {
		t.Errorf("without the password Replay says %v", err)
	}
	if _, err := suites.Replay(t.Context(), report, "no/such", password, time.Second); err == nil {
		t.Error("a clause that is not in the report was replayed")
	}
	same, err := suites.Replay(t.Context(), report, "list/cursor-malformed", password, 5*time.Second)
	if err != nil || !same.Same || same.New.Response.Status != http.StatusOK {
		t.Errorf("the unchanged bridge gave %+v (%v), want the same", same, err)
	}
	well = true
	other, err := suites.Replay(t.Context(), report, "list/cursor-malformed", password, 5*time.Second)
	if err != nil || other.Same || other.New.Response.Status != http.StatusBadRequest {
		t.Errorf("the mended bridge gave %+v (%v), want another answer", other, err)
	}
	if strings.Contains(other.New.Response.Body, "agent-pass") {
		t.Errorf("the new answer shows the password: %s", other.New.Response.Body)
	}
}
