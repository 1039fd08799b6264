package bridge

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"
)

// Options is everything that can be said about a bridge, whether by flag, environment, configuration file or library.
// The zero value of a field is its default; only Drupal has none.
type Options struct {
	Drupal string `yaml:"drupal"` // the site's base address, http or https

	PageSize        int           `yaml:"page_size"`        // tools on a page of the list; 50
	DiscoveryTTL    time.Duration `yaml:"discovery_ttl"`    // how long the site's tools are taken to be the same; 300s
	PermissionTTL   time.Duration `yaml:"permission_ttl"`   // how long a caller's permissions are; 60s
	UpstreamTimeout time.Duration `yaml:"upstream_timeout"` // for one request to the site; 30s

	Transport http.RoundTripper `yaml:"-"` // how the site is reached; nil: a pooled transport of the bridge's own
	Now       func() time.Time  `yaml:"-"` // the clock of all TTLs; nil: time.Now
	Logger    *slog.Logger      `yaml:"-"` // nil: nothing is logged
}

// withDefaults fills in what was left out and refuses what cannot be.
func (o Options) withDefaults() (Options, *url.URL, error) {
	site, err := url.Parse(o.Drupal)
	if err != nil || (site.Scheme != "http" && site.Scheme != "https") || site.Host == "" {
		return o, nil, fmt.Errorf("drupal: %q is not the address of a site; it must be like https://example.com", o.Drupal)
	}
	if o.PageSize == 0 {
		o.PageSize = 50
	}
	if o.DiscoveryTTL == 0 {
		o.DiscoveryTTL = 300 * time.Second
	}
	if o.PermissionTTL == 0 {
		o.PermissionTTL = 60 * time.Second
	}
	if o.UpstreamTimeout == 0 {
		o.UpstreamTimeout = 30 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, site, nil
}
