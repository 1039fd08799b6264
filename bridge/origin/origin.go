// Package origin says from which web pages, and by which host names, requests may come: one policy for all of the bridge's
// interfaces. A browser sends requests for pages of other hosts, and for pages whose host name was made to point at this
// machine (DNS rebinding); the bridge responds to neither.
package origin

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/internal/loopback"
)

// Policy is what may come. The zero value lets any host name pass but on loopback connections, where it must be one of
// this machine's.
type Policy struct {
	strict bool     // only these host names, wherever the connection comes from
	hosts  []string // in small letters, without a port
}

// New makes a policy. allowed are all host names by which the bridge is reached; nil: any, but on loopback connections.
// known is one more that is let pass there; "": none.
func New(allowed []string, known string) Policy {
	p := Policy{strict: len(allowed) > 0}
	for _, host := range append(slices.Clone(allowed), known) {
		if host != "" {
			p.hosts = append(p.hosts, hostname(host))
		}
	}
	return p
}

// The causes of refusals.
var (
	ErrHost   = errors.New("the host name is not allowed")
	ErrOrigin = errors.New("the origin is not allowed")
)

// Check returns an AccessDenied fault for a request that may not come.
func (p Policy) Check(r *http.Request) error {
	if !p.names(r) {
		return fault.New(fault.AccessDenied, "This bridge does not respond under the host name %q; if callers reach it by that name, add it to allowed_hosts (BRIDGE_ALLOWED_HOSTS).",
			fault.Brief(r.Host)).Because(ErrHost)
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return nil
	}
	if len(origins) > 1 || !p.own(origins[0], r.Host) {
		return fault.New(fault.AccessDenied, "Requests from other web sites, here %q, are refused; if the site belongs to the bridge, add its host to allowed_hosts (BRIDGE_ALLOWED_HOSTS).",
			fault.Brief(origins[0])).Because(ErrOrigin)
	}
	return nil
}

// names reports whether the bridge goes by the request's host name.
func (p Policy) names(r *http.Request) bool {
	host := hostname(r.Host)
	if host == "" || slices.Contains(p.hosts, host) { // browsers always send one
		return true
	}
	if local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr); isLoopback(local) {
		// Nobody else can have a name of one label: it is in no zone of theirs. Only browsers send an Origin.
		return loopback.Is(host) || !p.strict && r.Header["Origin"] == nil && !strings.ContainsAny(host, ".:")
	}
	return !p.strict
}

// own reports whether an Origin is that of a page of the bridge's own host.
func (p Policy) own(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	return strings.EqualFold(strings.TrimSuffix(u.Host, port), strings.TrimSuffix(host, port)) || slices.Contains(p.hosts, hostname(u.Host))
}

// hostname is a host without its port, as it is compared.
func hostname(host string) string {
	if name, port, err := net.SplitHostPort(host); err == nil && strings.Trim(port, "0123456789") == "" {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
