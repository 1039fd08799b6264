package main

import (
	"context"
	"net/url"

	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/suites"
)

// recording is where a recording proxy listens and the real site behind it; the zero value is none.
type recording struct {
	listen string
	site   *url.URL
}

// recordingOf reads the two flags of a recording proxy, which go together.
func recordingOf(listen, drupal string) (recording, error) {
	switch {
	case listen == "" && drupal == "":
		return recording{}, nil
	case listen == "":
		return recording{}, usagef("--drupal names the site behind a recording proxy: give the proxy's address by --drupal-proxy")
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
	case r.listen == "":
		return nil
	case p.mockListen != "":
		return usagef("--drupal-proxy and --mock-listen are both the site behind the bridge: give one of the two")
	case p.target.URL == "" && p.exec == "":
		return usagef("--drupal-proxy needs a bridge in front of it: name it by --url or --exec")
	}
	return nil
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
