package caller

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks whose X-Forwarded-For is trusted.
type Proxies []netip.Prefix

// ParseProxies reads addresses and networks, as in 10.0.0.0/8 or ::1.
func ParseProxies(list []string) (Proxies, error) {
	var proxies Proxies
	for _, text := range list {
		prefix, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); err != nil && single == nil {
			prefix, err = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q is no address or network, as in 10.0.0.0/8", text)
		}
		proxies = append(proxies, prefix.Masked())
	}
	return proxies, nil
}

// maxHops bounds how far a chain of proxies is followed.
const maxHops = 16

// client is the address that a request comes from: its connection's or, behind proxies that are trusted, the nearest one
// in X-Forwarded-For that is not such a proxy. Any client can write the entries before that.
func (p Proxies) client(r *http.Request) netip.Addr {
	connected, _ := netip.ParseAddrPort(r.RemoteAddr)
	addr := connected.Addr().Unmap().WithZone("")
	if len(p) == 0 || !p.trusts(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && i >= len(hops)-maxHops; i-- {
		next, err := parseHop(hops[i])
		if err != nil {
			return addr
		}
		if addr = next; !p.trusts(addr) {
			return addr
		}
	}
	return addr
}

// parseHop reads an address; some proxies write a port after it.
func parseHop(text string) (netip.Addr, error) {
	text = strings.TrimSpace(text)
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		var withPort netip.AddrPort
		withPort, err = netip.ParseAddrPort(text)
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), err
}

func (p Proxies) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(prefix netip.Prefix) bool { return prefix.Contains(addr) })
}
