// Package loopback has the one rule of which hosts are this machine. No DNS decides it, so that neither a web page nor a network
// can make another machine count.
package loopback

import (
	"net"
	"net/netip"
	"strings"
)

// Is reports whether a host, with or without a port, is localhost or an address of this machine. Names below localhost do not
// count: some resolvers ask DNS for them.
func Is(host string) bool {
	if name, port, err := net.SplitHostPort(host); err == nil && strings.Trim(port, "0123456789") == "" {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
