package suites

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"
)

// newTransport makes the connections to the bridge; without a proxy those of the environment serve.
func newTransport(settings *tls.Config, proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	t := &http.Transport{
		TLSClientConfig:       settings,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       30 * time.Second,
		DisableCompression:    true, // a response is tested as it came
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
		Proxy:                 http.ProxyFromEnvironment,
	}
	if proxy != nil {
		t.Proxy = proxy
	}
	return t
}
