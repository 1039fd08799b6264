package engine

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/bridgecheck/bridgecheck/suites/client"
)

// Dial makes a connection, as net.Dialer.DialContext does.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// newTransport makes the connections to the bridge; without a proxy those of the environment serve.
func newTransport(settings *tls.Config, proxy func(*http.Request) (*url.URL, error), dial Dial) *http.Transport {
	t := &http.Transport{
		TLSClientConfig:       settings,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       30 * time.Second,
		DisableCompression:    true, // a response is tested as it came
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
		Proxy:                 http.ProxyFromEnvironment,

		MaxResponseHeaderBytes: client.MaxHead,
	}
	if proxy != nil {
		t.Proxy = proxy
	}
	if dial != nil {
		t.DialContext = dial
	}
	return t
}
