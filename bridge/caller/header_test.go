package caller

import (
	"net/http"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// The client's address is the connection's, or one that a proxy wrote which is trusted.
func FuzzForwardedFor(f *testing.F) {
	for _, s := range []string{"198.51.100.7", "1.2.3.4, 10.0.0.2", "[2001:db8::1]:80", "::ffff:10.0.0.1", "fe80::1%eth0", ",,", "x, 10.1.1.1"} {
		f.Add("10.0.0.1:1234", s)
		f.Add("192.0.2.1:1234", s)
	}
	proxies := must.Get(ParseProxies([]string{"10.0.0.0/8", "::1"}))(f)
	f.Fuzz(func(t *testing.T, remote, forwarded string) {
		r := &http.Request{RemoteAddr: remote, Header: http.Header{"X-Forwarded-For": {forwarded}}}
		got, own := proxies.client(r), Proxies(nil).client(r)
		must.Expect(t, got == own || proxies.trusts(own),
			"%s is no trusted proxy, and its X-Forwarded-For %q gives %s", own, forwarded, got)
		must.Expect(t, got.Zone() == "" && !got.Is4In6() && got.IsValid() == own.IsValid(), "%q from %q gives %s", forwarded, remote, got)
	})
}
