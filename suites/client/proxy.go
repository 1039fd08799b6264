package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Proxy is an HTTP server in front of the bridge, as it shows itself.
type Proxy struct {
	Name  string // of the table of settings, or its own word for itself
	Shown string // by what, such as `Server: nginx/1.22.1`
}

// String is the name, with what showed it.
func (p Proxy) String() string { return p.Name + " (" + p.Shown + ")" }

// The proxies that the table of settings has lines for.
const (
	nginx   = "nginx"
	apache  = "Apache"
	haproxy = "HAProxy"
	varnish = "Varnish"
	caddy   = "Caddy"
)

// products are proxies by a word of their Via or Server. Those of the table come first.
var products = []struct{ word, name string }{
	{"nginx", nginx}, {"openresty", nginx}, {"apache", apache}, {"haproxy", haproxy}, {"varnish", varnish}, {"caddy", caddy},
	{"envoy", "Envoy"}, {"cloudflare", "Cloudflare"}, {"cloudfront", "CloudFront"}, {"awselb", "AWS ELB"}, {"akamai", "Akamai"},
	{"traefik", "Traefik"}, {"squid", "Squid"}, {"litespeed", "LiteSpeed"}, {"microsoft-iis", "IIS"}, {"google", "Google"}, {"fastly", "Fastly"},
}

// pages are the error pages that the proxies make. HAProxy shows itself in nothing else.
var pages = []struct {
	name string
	form *regexp.Regexp // with the status as its group
}{
	{nginx, regexp.MustCompile(`^<html>\s*<head><title>(\d{3}) [^<]*</title></head>\s*<body[^>]*>\s*<center><h1>[^<]*</h1></center>\s*(?:<center>[^<]*</center>\s*)?<hr><center>(?:nginx|openresty)`)},
	{apache, regexp.MustCompile(`^<!DOCTYPE HTML PUBLIC "-//(?:IETF//DTD HTML 2\.0|W3C//DTD HTML 4\.01)//EN"[^>]*>\s*<html><head>\s*<title>(\d{3}) [^<]*</title>\s*</head><body>`)},
	{haproxy, regexp.MustCompile(`^<html><body><h1>(\d{3}) [^<]*</h1>\s*[^<]*</body></html>\s*$`)},
	{varnish, regexp.MustCompile(`^<!DOCTYPE html>\s*<html>\s*<head>\s*<title>(\d{3}) [^<]*</title>(?s:.*)<h3>Guru Meditation:</h3>\s*<p>XID: `)},
}

// pageOf is the proxy whose error page a body is; nil: none of those that are known.
func pageOf(status int, body []byte) *Proxy {
	for _, p := range pages {
		if m := p.form.FindSubmatch(body); m != nil && string(m[1]) == strconv.Itoa(status) {
			return &Proxy{p.name, "by the form of its page"}
		}
	}
	return nil
}

// shownBy is the proxy that the headers of a response name; nil: none.
func shownBy(h http.Header) *Proxy {
	named := func(header, text string) *Proxy {
		for _, p := range products {
			if strings.Contains(strings.ToLower(text), p.word) {
				return &Proxy{p.name, header + ": " + OneLine(text)}
			}
		}
		return nil
	}
	for _, via := range h.Values("Via") {
		if p := named("Via", via); p != nil {
			return p
		}
		if words := strings.Fields(via); len(words) > 1 {
			return &Proxy{words[1], "Via: " + OneLine(via)}
		}
	}
	if id := h.Get("X-Varnish"); id != "" {
		return &Proxy{varnish, "X-Varnish: " + OneLine(id)}
	}
	for _, server := range h.Values("Server") {
		if p := named("Server", server); p != nil {
			return p
		}
	}
	return nil
}

// Front is the proxy in front of the bridge, as far as one was seen; nil: none was.
func (t *Target) Front() *Proxy {
	if t == nil {
		return nil
	}
	return t.front.Load()
}

// NoteFront learns from a response what stands in front of the bridge: a success or an envelope shows through what it came, an error
// page who made it.
func (t *Target) NoteFront(a *Response) {
	if t == nil || t.front.Load() != nil {
		return
	}
	switch p := shownBy(a.Header); {
	case p != nil && (a.Succeeded() || a.ErrorObject() != nil):
		t.front.CompareAndSwap(nil, p)
	case a.Status >= http.StatusBadRequest:
		if p := pageOf(a.Status, a.Body); p != nil && byGateway[a.Status] {
			t.front.CompareAndSwap(nil, p)
		}
	}
}

// LookForFront finds out what stands in front of the bridge where no response has shown it: what is no HTTP is responded to by
// whoever reads it first.
func (t *Target) LookForFront(ctx context.Context) {
	if t.front.Load() != nil || t.looked.Swap(true) {
		return
	}
	conn, err := t.dial(ctx)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(lookTime))
	if _, err := io.WriteString(conn, "bridgecheck\r\n\r\n"); err != nil {
		return
	}
	said, _ := io.ReadAll(io.LimitReader(conn, 8<<10))
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(said)), nil)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if p := pageOf(resp.StatusCode, body); p != nil {
		t.front.Store(cmp.Or(shownBy(resp.Header), p))
	}
}

// lookTime is how long the response to what is no HTTP is waited for.
const lookTime = 2 * time.Second

// dial opens a connection of HTTP/1.1 to the bridge.
func (t *Target) dial(ctx context.Context) (net.Conn, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, err
	}
	if t.Transport.Proxy != nil {
		if by, err := t.Transport.Proxy(&http.Request{URL: u}); by != nil || err != nil {
			return nil, errors.New("the run goes through a proxy")
		}
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	conn, err := t.Transport.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil || u.Scheme != "https" {
		return conn, err
	}
	settings := &tls.Config{}
	if t.Transport.TLSClientConfig != nil {
		settings = t.Transport.TLSClientConfig.Clone()
	}
	settings.NextProtos, settings.ServerName = []string{"http/1.1"}, cmp.Or(settings.ServerName, u.Hostname())
	secure := tls.Client(conn, settings)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

// byGateway are the statuses that a gateway sends without the bridge.
var byGateway = map[int]bool{400: true, 408: true, 413: true, 414: true, 429: true, 431: true, 502: true, 503: true, 504: true}

// MadeBy is the proxy that made the response in place of the bridge; nil: the bridge made it, or nobody can know. A header is
// no proof, for a bridge may send it: the status must be one that a gateway sends by itself, and the body no envelope but the
// page of a known proxy, or nothing in JSON where successes come through a proxy.
func (a *Response) MadeBy() *Proxy {
	if a == nil || a.viewed || !byGateway[a.Status] || a.ErrorObject() != nil {
		return nil
	}
	if a.Status == http.StatusBadRequest && !a.refusableUnread() && a.sentBytes() < tooLarge && !bytes.Contains(a.Body, []byte("Too Large")) {
		return nil
	}
	if p := pageOf(a.Status, a.Body); p != nil {
		if own := shownBy(a.Header); own != nil && own.Name == p.Name {
			return own
		}
		return p
	}
	if a.Status == http.StatusTooManyRequests || a.Status == http.StatusBadRequest && !a.bodyWithoutMeaning() || a.Object() != nil {
		return nil
	}
	return a.Front()
}

// tooLarge is a body that no bridge has to take, in bytes.
const tooLarge = 16 << 20

// PermittedToProxy reports whether a proxy made the response and may do so: the contract has nothing on what it refuses before
// it knows where the request goes, and the bridge is not to blame for how it says that the bridge closed the connection of a
// body that is too large (RFC 9110 section 15.6.3).
func (a *Response) PermittedToProxy() bool {
	if a.MadeBy() == nil {
		return false
	}
	switch a.Status {
	case http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge, http.StatusTooManyRequests:
		return true
	case http.StatusBadRequest:
		return a.refusableUnread() || a.sentBytes() >= tooLarge
	}
	return a.sentBytes() >= tooLarge
}

// sentBytes is the length of the request's body.
func (a *Response) sentBytes() int { return len(a.Shown) + a.Unseen }

// bodyWithoutMeaning reports whether the request is GET or HEAD with a body, which a server may refuse (RFC 9110 section 9.3.1).
func (a *Response) bodyWithoutMeaning() bool {
	return (a.Method == http.MethodGet || a.Method == http.MethodHead) && a.sentBytes() > 0
}

// refusableUnread reports whether the request is one that a server may refuse before it reads where it goes: one with a body
// without meaning, or with a path or query that is no valid text.
func (a *Response) refusableUnread() bool {
	if a.bodyWithoutMeaning() {
		return true
	}
	for _, part := range []string{a.Path, a.RawQuery} {
		text, err := url.PathUnescape(part)
		if err != nil || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.Contains(text, "/..") {
			return true
		}
	}
	return false
}

// EndedByProxy reports whether it was a proxy that ended the connection after this response: Apache does so after these
// statuses, as a server may (RFC 9112 section 9.6), and Connection is a header of one hop.
func (a *Response) EndedByProxy() bool {
	front := a.Front()
	return front != nil && front.Name == apache && slices.Contains([]int{400, 408, 411, 413, 414, 500, 501, 503}, a.Status)
}

// cached is what shows that a response came from a cache; "": nothing does.
func (a *Response) cached() string {
	if age := a.Header.Get("Age"); age != "" && age != "0" {
		return "Age: " + OneLine(age)
	}
	for _, name := range []string{"X-Cache", "X-Cache-Status", "Cf-Cache-Status"} {
		if v := a.Header.Get(name); strings.Contains(strings.ToLower(v), "hit") {
			return name + ": " + OneLine(v)
		}
	}
	if ids := strings.Fields(a.Header.Get("X-Varnish")); len(ids) > 1 {
		return "X-Varnish: " + strings.Join(ids, " ")
	}
	return ""
}
