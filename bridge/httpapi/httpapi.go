// Package httpapi is the bridge's plain HTTP front: list, describe and invoke below /mcp/tools/, and the operator's
// endpoints. It takes requests apart and puts responses together, and knows HTTP only: which tools there are and what
// becomes of a call is decided elsewhere. Every response is JSON, an error always the envelope {"error": {…}}, with
// exactly one exception: what net/http refuses before it gets here.
package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/bridgecheck/bridgecheck/bridge/body"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/invoke"
	"github.com/bridgecheck/bridgecheck/bridge/oauth"
	"github.com/bridgecheck/bridgecheck/bridge/observe"
	"github.com/bridgecheck/bridgecheck/bridge/origin"
)

// API serves the endpoints. All fields but Time, Guard, Observe, Invalidated, Refusals and AdminTokens are needed.
type API struct {
	Callers     caller.Callers
	Discovery   *discovery.Engine
	Invoker     *invoke.Invoker
	Ready       func() bool     // the site is thought to be up
	Draining    func() bool     // the bridge is about to end
	AdminTokens []caller.Secret // bearer tokens of operators, beside callers who administer the site
	Memory      *fair.Memory    // for what is long
	MaxBody     int64           // longest request body, in bytes
	BodyTime    time.Duration   // how long a request's body may take to arrive
	Time        time.Duration   // how long a request may take in all, before its response; 0: any time
	WriteTime   time.Duration   // how long a caller may take to accept each part of a response, see body.Write
	Origin      origin.Policy
	Guard       *oauth.Guard // of tokens; nil: the site alone checks them
	Logger      *slog.Logger
	Observe     func(endpoint string, status int, took time.Duration) // receives every request; nil: none
	Invalidated func()                                                // receives each invalidation; nil: nobody
	Refusals    *observe.Refusals                                     // nil: refusals are not recorded
}

// endpoint serves a request, or returns why not. It must not have written anything when it returns an error.
type endpoint func(http.ResponseWriter, *http.Request) error

// methods are the endpoints of one path, by HTTP method. HEAD is GET without its body.
type methods map[string]endpoint

// Handler routes requests to the endpoints. mcp serves real MCP at /mcp. operation is where the operator's endpoints are, of
// OperationHandler: nil, if they have a listener of their own.
func (a *API) Handler(mcp, operation http.Handler) http.Handler {
	r := a.router()
	handle := func(path string, m methods) { r.Handle(path, a.serve(path, m)) }
	// The router tries them in this order, each by a regular expression: what is asked for most comes first.
	handle("/mcp/tools/invoke", methods{http.MethodPost: a.invoke})
	r.Handle("/mcp", mcp)
	handle("/mcp/tools/list", methods{http.MethodGet: a.list})
	handle("/mcp/tools/describe", methods{http.MethodGet: a.describe})
	a.handleProbes(r)
	if operation != nil {
		r.Handle("/metrics", operation)
		r.PathPrefix("/mcp/admin/").Handler(operation)
	}
	if a.Guard != nil {
		for _, path := range a.Guard.Paths() {
			r.Handle(path, a.Guard)
		}
	}
	return r
}

// OperationHandler routes requests to the operator's endpoints, and probes.
func (a *API) OperationHandler(metrics http.Handler) http.Handler {
	r := a.router()
	a.handleProbes(r)
	r.Handle("/metrics", a.sameOrigin(metrics))
	r.Handle("/mcp/admin/invalidate", a.serve("/mcp/admin/invalidate", methods{http.MethodPost: a.invalidate}))
	r.Handle("/mcp/admin/diagnostics", a.serve("/mcp/admin/diagnostics", methods{http.MethodGet: a.diagnostics}))
	return r
}

// router makes a router that matches paths as they are: its own cleaning would respond with redirects.
func (a *API) router() *mux.Router {
	r := mux.NewRouter().SkipClean(true)
	r.NotFoundHandler = a.serve("other", nil)
	return r
}

func (a *API) handleProbes(r *mux.Router) {
	for path := range probes {
		r.Handle(path, a.serve(path, a.probe(path)))
	}
}

// serve picks the endpoint for the request's method and responds with the envelope where it fails.
func (a *API) serve(path string, m methods) http.Handler {
	allow := m.allow()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		h := w.Header()
		h["X-Content-Type-Options"] = nosniff
		observe.Identify(h, r.Header)
		if a.Time > 0 {
			ctx, cancel := context.WithTimeout(r.Context(), a.Time)
			defer cancel()
			r = r.WithContext(ctx)
		}
		status := http.StatusOK
		err := a.guarded(w, r, path, m, allow)
		if err != nil {
			status = a.refuse(w, err)
			a.Refusals.Record(r, status, err)
			body.Drain(w, r, a.BodyTime)
		}
		took := time.Since(start)
		observe.Log(a.Logger, r, status, took, err)
		if a.Observe != nil {
			a.Observe(path, status, took)
		}
	})
}

// guarded responds with an error where the endpoint panics; the log says where it was.
func (a *API) guarded(w http.ResponseWriter, r *http.Request, path string, m methods, allow string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.From(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	if !IsProbe(path) {
		if err := a.Origin.Check(r); err != nil {
			w.Header().Set("Connection", "close") // rather than read the body
			return err
		}
	}
	return a.dispatch(w, r, m, allow)
}

// sameOrigin puts the policy of origins before another handler.
func (a *API) sameOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.Origin.Check(r); err != nil {
			a.Refusals.Record(r, a.refuse(w, err), err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

var nosniff = []string{"nosniff"}

func (a *API) dispatch(w http.ResponseWriter, r *http.Request, m methods, allow string) error {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	handle, ok := m[method]
	switch {
	case ok:
		return handle(w, r)
	case m == nil:
		return fault.New(fault.NotFound, "There is nothing at this path.")
	case method == http.MethodOptions:
		w.Header().Set("Allow", allow)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set("Allow", allow)
	return fault.New(fault.MethodNotAllowed, "%s is not allowed here; use %s.", fault.Brief(r.Method), allow)
}

// allow is the Allow header of a path.
func (m methods) allow() string {
	names := []string{http.MethodOptions}
	for name := range m {
		if names = append(names, name); name == http.MethodGet {
			names = append(names, http.MethodHead)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
