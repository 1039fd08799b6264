package httpapi

import (
	"net/http"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/translate"
)

// administrator lets an operator's token pass, or a caller who administers the site. A wrong token is counted: by the
// discovery, where it goes on to the site, or else here.
func (a *API) administrator(r *http.Request) error {
	token := caller.BearerToken(r.Header)
	if caller.MatchesSecret(token, a.AdminTokens) {
		return a.Callers.CountToken(r, token, nil)
	}
	who, v, err := a.view(r)
	switch {
	case fault.Is(err, fault.AuthRequired) && who.Anonymous() && token != "" && len(a.AdminTokens) > 0:
		return a.Callers.CountToken(r, token, fault.From(err))
	case err != nil:
		return err
	case v.Administers:
		return nil
	case who.Anonymous():
		return fault.New(fault.AuthRequired, "The bridge's administration asks for credentials.")
	}
	return fault.New(fault.AccessDenied, "This caller may not administer the bridge.")
}

// invalidate serves POST /mcp/admin/invalidate: from now on everything is refetched.
func (a *API) invalidate(w http.ResponseWriter, r *http.Request) error {
	if err := a.administrator(r); err != nil {
		return err
	}
	if err := a.sameSite(r); err != nil {
		return err
	}
	a.Discovery.Invalidate()
	if a.Invalidated != nil {
		a.Invalidated()
	}
	a.writeJSON(w, http.StatusOK, []byte(`{"invalidated":true}`))
	return nil
}

// diagnostics serves GET /mcp/admin/diagnostics: what was repaired, and which methods are in quarantine.
func (a *API) diagnostics(w http.ResponseWriter, r *http.Request) error {
	if err := a.administrator(r); err != nil {
		return err
	}
	found := a.Discovery.Diagnostics()
	if found == nil {
		found = []translate.Diagnostic{}
	}
	a.writeJSON(w, http.StatusOK, encoded(map[string]any{"diagnostics": found}))
	return nil
}

// probes are the paths that proxies, orchestrators and monitors ask without a setting, under any host name; there is
// nothing in the responses. HAProxy sends OPTIONS / by default.
var probes = map[string]func(*API, http.ResponseWriter, *http.Request) error{
	"/": (*API).root, "/healthz": (*API).healthz, "/livez": (*API).healthz, "/health": (*API).healthz, "/ping": (*API).healthz,
	"/readyz": (*API).readyz, "/ready": (*API).readyz,
}

// IsProbe reports whether a path is for probes.
func IsProbe(path string) bool { return probes[path] != nil }

// probe serves a path of probes, by each method that probes use.
func (a *API) probe(path string) methods {
	serve := func(w http.ResponseWriter, r *http.Request) error { return probes[path](a, w, r) }
	return methods{http.MethodGet: serve, http.MethodOptions: serve}
}

// root succeeds as long as the bridge takes requests.
func (a *API) root(w http.ResponseWriter, r *http.Request) error {
	if a.Draining() {
		return errDraining
	}
	return a.healthz(w, r)
}

var errDraining = fault.New(fault.UpstreamUnavailable, "The bridge is shutting down.")

// healthz succeeds as long as the process does.
func (a *API) healthz(w http.ResponseWriter, _ *http.Request) error {
	a.writeJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}

// readyz reports whether calls can be served: not while the site is thought to be down. Where no caller has a tool, it says why.
func (a *API) readyz(w http.ResponseWriter, _ *http.Request) error {
	switch {
	case a.Draining():
		return errDraining
	case !a.Ready():
		return fault.New(fault.UpstreamUnavailable, "The site cannot be reached.")
	}
	details := map[string]any{"status": "ready"}
	if why := a.Discovery.Nothing(); why != "" {
		details["details"] = []string{why}
	}
	a.writeJSON(w, http.StatusOK, encoded(details))
	return nil
}
