package settings

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/bridgecheck/bridgecheck/internal/engine"
)

// Session is a login of ours at a Drupal site. It stays open there until it is ended.
type Session struct {
	Site   string `json:"site"`
	Cookie string `json:"cookie"`
	Token  string `json:"token"` // that the site wants for ending it
}

// Sessions are those that Options has opened.
func (f *File) Sessions() []Session { return f.sessions }

// End ends sessions, by the way to the site that the configuration says. One that the site has ended already is no
// error; what could not be ended is in one.
func (f *File) End(ctx context.Context, sessions ...Session) error {
	settings, err := f.tls()
	if err != nil {
		return err
	}
	proxy, err := f.proxy()
	if err != nil {
		return err
	}
	var failed []error
	for _, s := range sessions {
		resp, err := f.post(ctx, s.Site+"/user/logout?_format=json&token="+url.QueryEscape(s.Token),
			http.Header{"Content-Type": {"application/json"}, "Cookie": {s.Cookie}}, nil, engine.Options{Connection: engine.Connection{TLS: settings, Proxy: proxy}})
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("a session at %s could not be ended: %w", s.Site, err))
		case resp.status >= http.StatusInternalServerError || resp.status == http.StatusTooManyRequests:
			failed = append(failed, fmt.Errorf("a session at %s could not be ended: the site responded %d", s.Site, resp.status))
		}
	}
	return errors.Join(failed...)
}
