package upstream

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// lure is a way in which a request names another host than the site: headers, or the request target in absolute form.
type lure struct {
	name   string
	header http.Header
	target string // host and port of the request target; "": the target is a path, as usual
}

// allHeaders is the lure that every interface gets; the others go to calls alone.
const allHeaders = "all of these headers but Origin"

// lures are all ways in which code may read a host from a request, each in the syntax in which it is read.
func lures(host string) []lure {
	there := "http://" + host
	name, port, _ := net.SplitHostPort(host)
	all := []lure{
		{name: "Host", header: http.Header{"Host": {host}}},
		{name: "X-Forwarded-Host", header: http.Header{"X-Forwarded-Host": {host}}},
		{name: "X-Forwarded-Host and -Proto", header: http.Header{"X-Forwarded-Host": {host}, "X-Forwarded-Proto": {"http"}}},
		{name: "X-Forwarded-Host, -Port and -Proto", header: http.Header{"X-Forwarded-Host": {name}, "X-Forwarded-Port": {port}, "X-Forwarded-Proto": {"http"}}},
		{name: "Forwarded", header: http.Header{"Forwarded": {"host=" + host + ";proto=http"}}},
		{name: "Forwarded, quoted", header: http.Header{"Forwarded": {`for=192.0.2.1;host="` + host + `";proto=http`}}},
		{name: "X-Forwarded-Server", header: http.Header{"X-Forwarded-Server": {host}}},
		{name: "X-Original-Host", header: http.Header{"X-Original-Host": {host}}},
		{name: "X-Host", header: http.Header{"X-Host": {host}}},
		{name: "X-HTTP-Host-Override", header: http.Header{"X-Http-Host-Override": {host}}},
		{name: "X-Original-URL", header: http.Header{"X-Original-Url": {there + "/jsonrpc"}}},
		{name: "X-Rewrite-URL", header: http.Header{"X-Rewrite-Url": {there + "/jsonrpc"}}},
		{name: "X-Drupal-URL", header: http.Header{"X-Drupal-Url": {there}}},
		{name: "Origin", header: http.Header{"Origin": {there}}},
		{name: "Referer", header: http.Header{"Referer": {there}}},
	}
	together := lure{name: allHeaders, header: http.Header{}}
	for _, l := range all {
		for header, values := range l.header {
			if header != "Origin" { // which many bridges refuse before they read anything else
				together.header[header] = values
			}
		}
	}
	return append(all, together, lure{name: "the request target in absolute form", target: host})
}

func noSSRF(ctx context.Context, t *check.T) {
	call := scenario.MustRun(ctx, t)
	mustReach(ctx, t, call)
	visits, host := listenElsewhere(t)
	there := "http://" + host

	expectNoVisit := func(what string, send func()) {
		t.Row(check.Agent, "", what, func() {
			before := len(visits())
			t.Upstream.Mark()
			send()
			new := visits()[before:]
			t.Expect(new).To(BeEmpty(), check.Mismatch(what, "no connection to another host than the site", fmt.Sprintf("%s at %s", match.Abbreviate(new), host)))
			for _, entry := range t.Upstream.Journal() { // at one address there may be several sites
				t.Expect(entry.Host).NotTo(Equal(host), check.Mismatch(what, "requests to the site with its own Host", entry.HTTPMethod+" "+entry.Path+" with Host: "+entry.Host))
			}
		})
	}
	expectNoVisit("a URL as the name on describe", func() { t.As(check.Agent).Describe(ctx, there+"/jsonrpc") })
	for _, name := range []string{there + "/jsonrpc", "//" + host + "/jsonrpc", "@" + host + "/"} {
		expectNoVisit("the name "+name+" on invoke", func() { t.As(check.Agent).Invoke(ctx, name, check.Args{}) })
	}
	expectNoVisit("a URL as the cursor", func() { t.As(check.Agent).List(ctx, there) })
	all := lures(host)
	var strangers []check.Identity
	if t.Drupal != nil {
		strangers = t.Drupal.NewUsers(len(all), t.Permissions(check.Agent)...) // nothing is cached for these
	}
	calling := "invoke"
	if t.Alone() {
		calling = "tools/call"
	}
	for i, l := range all {
		caller := t.As(call.Identity)
		if t.Drupal != nil {
			caller = t.As(strangers[i])
		}
		for _, to := range interfaceRequests(ctx, t, caller, call) {
			if to.name != calling && l.name != allHeaders { // a call discovers for a stranger, too
				continue
			}
			expectNoVisit(l.name+" on "+to.name, func() {
				if r, ok := to.make(); ok {
					r.Header, r.Host = merged(r.Header, l.header), l.target
					caller.Send(ctx, r)
				}
			})
		}
	}
	for _, f := range []scenario.SiteFailure{
		{Name: "a redirect of a call", Fault: mockdrupal.Fault{Kind: fault.Redirect, Route: route.JSONRPC, Location: there + "/jsonrpc"}},
		{Name: "a redirect of a call that keeps the verb", Fault: mockdrupal.Fault{Kind: fault.Redirect, Route: route.JSONRPC, Location: there + "/jsonrpc", Status: 307}},
		{Name: "a redirect of discovery", Fault: mockdrupal.Fault{Kind: fault.Redirect, Route: route.Methods, Location: there + "/jsonrpc/methods"}},
		{Name: "a $ref in a schema", Fault: mockdrupal.Fault{Kind: fault.RemoteRef, Route: route.Methods, Location: there + "/schema.json"}},
	} {
		if t.Drupal == nil && f.Fault.Route == route.Methods {
			continue // no discovery can be caused
		}
		expectNoVisit(f.Name, func() {
			defer t.Upstream.Arm(f.Fault)()
			if t.Drupal != nil {
				t.As(t.Drupal.NewUser(t.Permissions(check.Agent)...)).List(ctx)
			}
			t.Call(ctx, call)
		})
	}
	scenario.WaitRecovered(ctx, t, call)
	if t.HasFindings() {
		return
	}
	t.Expect(visits()).To(BeEmpty(), check.Mismatch("all requests and faults of this check", "no connection to another host than the site", fmt.Sprintf("one to %s", host)))
}

// interfaceRequest makes a request to one interface of the bridge.
type interfaceRequest struct {
	name string
	make func() (r check.Request, ok bool)
}

// interfaceRequests are a request to each interface, in an order in which the first makes the bridge discover the caller's
// tools.
func interfaceRequests(ctx context.Context, t *check.T, caller check.Client, call check.Invocation) []interfaceRequest {
	arguments := call.Arguments
	if arguments == nil {
		arguments = []byte("{}")
	}
	params := map[string]any{"name": call.Tool, "arguments": arguments}
	post := func(path, body string, header http.Header) check.Request {
		return check.Request{Method: http.MethodPost, Path: path, Header: header, Body: strings.NewReader(body), Show: body}
	}
	return []interfaceRequest{
		{"list", func() (check.Request, bool) { return check.Request{Path: check.ListPath}, true }},
		{"describe", func() (check.Request, bool) {
			return check.Request{Path: check.DescribePath, Query: url.Values{"name": {call.Tool}}}, true
		}},
		{"invoke", func() (check.Request, bool) {
			return post(check.InvokePath, string(client.Encode(params)), nil), true
		}},
		{"tools/call", func() (check.Request, bool) {
			if !t.Claims("mcp") {
				return check.Request{}, false
			}
			session, opened := caller.AnyMCP(ctx)
			if !opened {
				return check.Request{}, false
			}
			message := session.Message(1, "tools/call", params)
			return post(check.MCPPath, string(client.Encode(message)), session.Headers("tools/call", params)), true
		}},
	}
}

func merged(one, other http.Header) http.Header {
	all := http.Header{}
	for _, h := range []http.Header{one, other} {
		maps.Copy(all, h)
	}
	return all
}

// listenElsewhere listens on a port to which no bridge may connect; visits lists the connections and requests that came.
func listenElsewhere(t *check.T) (visits func() []string, host string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		check.NotTestable("no second host can be opened on this machine: " + err.Error())
	}
	var mu sync.Mutex
	var seen []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, what)
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Second,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				note("a connection")
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			note(r.Method + " " + r.URL.Path)
			http.NotFound(w, r)
		}),
	}
	go server.Serve(listener) //nolint:errcheck // it ends with Close
	t.Cleanup(func(context.Context) { server.Close() })
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string{}, seen...)
	}, listener.Addr().String()
}
