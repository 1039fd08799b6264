package origin

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestPolicy(t *testing.T) {
	loopback, outside := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8081}
	open, strict := New(nil, "bridge.example"), New([]string{"Bridge.example:443", "other.example"}, "")
	for _, c := range []struct {
		name    string
		policy  Policy
		local   net.Addr
		host    string
		origins []string
		want    bool
	}{
		{"this machine", open, loopback, "127.0.0.1:8081", nil, true},
		{"this machine by name", open, loopback, "LOCALHOST:8081", nil, true},
		{"this machine by IPv6", open, loopback, "[::1]:8081", nil, true},
		{"a name that points here", open, loopback, "evil.example:8081", nil, false},
		{"the same, with an origin", open, loopback, "evil.example:8081", []string{"http://evil.example:8081"}, false},
		{"a name that ends alike", open, loopback, "evil-localhost.example", nil, false},
		{"a port that is none", open, loopback, "127.0.0.1:80.evil.example", nil, false},
		{"a name that begins alike", open, loopback, "127.0.0.1.evil.example", nil, false},
		{"a name of one label", open, loopback, "bridge:8081", nil, true},
		{"a page under a name of one label", open, loopback, "bridge:8081", []string{"http://bridge:8081"}, false},
		{"another machine's address", open, loopback, "192.0.2.7:8081", nil, false},
		{"the name that clients know", open, loopback, "bridge.example", nil, true},
		{"no name", open, loopback, "", nil, true},
		{"elsewhere any name", open, outside, "whatever.example", nil, true},
		{"no connection", Policy{}, nil, "example.com", nil, true},
		{"a listed name", strict, outside, "BRIDGE.example.:8443", nil, true},
		{"a name that is not listed", strict, outside, "evil.example", nil, false},
		{"an address that is not listed", strict, outside, "192.0.2.1", nil, false},
		{"a name of one label, not listed", strict, loopback, "bridge", nil, false},
		{"this machine, not listed", strict, loopback, "127.0.0.1:8081", nil, true},
		{"own page", open, outside, "a.example:8081", []string{"http://a.example:8081"}, true},
		{"own page, port left out", open, outside, "a.example:443", []string{"https://a.example"}, true},
		{"page of a listed host behind a proxy", strict, outside, "other.example", []string{"https://bridge.example"}, true},
		{"page of another host", open, outside, "a.example", []string{"https://evil.example"}, false},
		{"page of another port", open, outside, "a.example:8081", []string{"http://a.example:9000"}, false},
		{"page of a sandbox", open, outside, "a.example", []string{"null"}, false},
		{"page of an extension", open, outside, "a.example", []string{"chrome-extension://a.example"}, false},
		{"two origins", open, outside, "a.example", []string{"http://a.example", "http://evil.example"}, false},
	} {
		r := &http.Request{Host: c.host, Header: http.Header{}}
		if c.origins != nil {
			r.Header["Origin"] = c.origins
		}
		if c.local != nil {
			r = r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, c.local))
		}
		err := c.policy.Check(r)
		must.Expect(t, (err == nil) == c.want, "%s: %v", c.name, err)
	}
}

// What passes for an own page has the request's host name or a listed one.
func FuzzCheck(f *testing.F) {
	f.Add("http://a.example", "a.example")
	f.Add("https://[::1]:1", "[::1]:1")
	f.Fuzz(func(t *testing.T, origin, host string) {
		r := &http.Request{Host: host, Header: http.Header{"Origin": {origin}}}
		must.Expect(t, New([]string{"a.example"}, "").Check(r) != nil || hostname(host) == "a.example" || hostname(host) == "",
			"%q from %q passes", host, origin)
	})
}
