package settings

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/loopback"
)

// Exposed lists the addresses, without credentials and each once, that receive a secret of the configuration over plain
// HTTP and across a network.
func (f *File) Exposed() []string {
	var addresses []string
	for _, name := range slices.Sorted(maps.Keys(f.Identities)) {
		i := f.Identities[name]
		addresses = append(addresses, f.URL)
		if i.Login != nil {
			addresses = append(addresses, cmp.Or(i.Login.URL, f.URL))
		}
		if i.ClientCredentials != nil {
			addresses = append(addresses, i.ClientCredentials.TokenURL)
		}
	}
	var exposed []string
	for _, address := range addresses {
		if Exposes(address) && !slices.Contains(exposed, address) {
			exposed = append(exposed, address)
		}
	}
	return exposed
}

// Exposes reports whether others can read what is sent to an address: it is plain HTTP to another machine.
func Exposes(address string) bool {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || !strings.EqualFold(u.Scheme, "http") {
		return false
	}
	return !loopback.Is(u.Hostname()) && !strings.HasSuffix(strings.ToLower(u.Hostname()), ".localhost")
}
