package loopback

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestIs(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST.:80": true, "127.8.9.1": true, "127.0.0.1:8081": true, "::1": true, "[::1]": true, "[::1]:80": true, "::ffff:127.0.0.1": true,
		"": false, ":80": false, "0.0.0.0": false, "192.0.2.1": false, "a.localhost": false, "localhost.example": false, "127.0.0.1.example:80": false,
		"127.0.0.1:80.example": false, "127.1": false, "evil-localhost": false,
	} {
		must.Equal(t, Is(host), want, "Is(%q)", host)
	}
}
