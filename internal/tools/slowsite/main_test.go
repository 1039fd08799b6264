package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestSlowly(t *testing.T) {
	site := httptest.NewServer(http.NotFoundHandler())
	address := must.Get(url.Parse(site.URL))(t)
	slow := httptest.NewServer(slowly(address, 50*time.Millisecond))
	defer slow.Close()
	began := time.Now()
	r := must.Get(http.Get(slow.URL + "/jsonrpc"))(t)
	r.Body.Close()
	if took := time.Since(began); r.StatusCode != http.StatusNotFound || took < 50*time.Millisecond {
		t.Errorf("the response is %d after %s, want 404 after 50ms or more", r.StatusCode, took)
	}
	site.Close()
	if r, err := http.Get(slow.URL + "/jsonrpc"); err == nil {
		r.Body.Close()
		t.Errorf("a site that is down responds %d", r.StatusCode)
	}
}

func TestRunNeedsASite(t *testing.T) {
	for name, c := range map[string]struct {
		drupal string
		args   []string
	}{"no site": {"", []string{"true"}}, "no command": {"http://127.0.0.1:1", nil}} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), c.args, c.drupal); err == nil || !strings.Contains(err.Error(), "DRUPAL_URL") {
				t.Errorf("the error is %v", err)
			}
		})
	}
	if err := run(t.Context(), []string{"true"}, "http://127.0.0.1:1"); err != nil {
		t.Errorf("a command that ends well: %v", err)
	}
}
