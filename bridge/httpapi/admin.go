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

// healthz succeeds as long as the process does.
func (a *API) healthz(w http.ResponseWriter, _ *http.Request) error {
	a.writeJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}

// readyz says whether calls can be served: not while the site is thought to be down. Where no caller has a tool, it says why.
func (a *API) readyz(w http.ResponseWriter, _ *http.Request) error {
	if !a.Ready() {
		return fault.New(fault.UpstreamUnavailable, "The site cannot be reached.")
	}
	details := map[string]any{"status": "ready"}
	if why := a.Discovery.Nothing(); why != "" {
		details["details"] = []string{why}
	}
	a.writeJSON(w, http.StatusOK, encoded(details))
	return nil
}
