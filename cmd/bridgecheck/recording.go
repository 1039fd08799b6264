package main

import (
	"context"
	"net/url"

	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/suites"
)

// recording is the real site behind the bridge, and where a recording proxy before it listens; the zero value is none.
type recording struct {
	listen string // "": there is no proxy
	site   *url.URL
}

// recordingOf reads the two flags. A proxy needs its site.
func recordingOf(listen, drupal string) (recording, error) {
	switch {
	case listen == "" && drupal == "":
		return recording{}, nil
	case drupal == "":
		return recording{}, usagef("--drupal-proxy is a proxy in front of a real site: give its URL by --drupal")
	}
	site, err := url.Parse(drupal)
	if err != nil || site.Scheme != "http" && site.Scheme != "https" || site.Host == "" {
		return recording{}, usagef("--drupal is no http or https address: give for example https://drupal.example.org")
	}
	return recording{listen, site}, nil
}

// fits refuses a plan in which the proxy has no place.
func (r recording) fits(p *plan) error {
	switch {
	case r.site == nil:
		return nil
	case p.mockListen != "":
		return usagef("--drupal and --mock-listen are both the site behind the bridge: give one of the two")
	case p.target.URL == "" && p.exec == "":
		return usagef("--drupal needs a bridge in front of the site: name it by --url or --exec")
	}
	return nil
}

// real takes the real site as the one behind the bridge, starts the proxy before it if there is one, and returns the URL for
// the bridge.
func (s *stage) real(ctx context.Context, r recording) (string, error) {
	s.site = r.site
	if r.listen == "" {
		return r.site.String(), nil
	}
	return s.record(ctx, r)
}

// record starts the proxy and returns its URL. A site that takes no connections ends the run before it begins.
func (s *stage) record(ctx context.Context, r recording) (string, error) {
	proxy, err := proxy.New(r.site, proxy.Options{})
	if err != nil {
		return "", usageError(err)
	}
	if err := proxy.Reachable(ctx); err != nil {
		return "", &suites.UnreachableError{URL: r.site.Redacted(), Reason: err}
	}
	server, err := proxy.Listen(r.listen)
	if err != nil {
		return "", cannotListen("drupal-proxy", r.listen, err)
	}
	s.recorder = proxy
	s.stops = append(s.stops, func() { server.Close() })
	return reachable(server.URL), nil
}
