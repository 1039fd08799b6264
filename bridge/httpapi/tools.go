package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// view identifies the caller, and returns the tools that the caller may see.
func (a *API) view(r *http.Request) (caller.Caller, discovery.View, error) {
	who, err := a.Callers.From(r)
	if err != nil {
		return who, discovery.View{}, err
	}
	v, err := a.Discovery.View(r.Context(), who)
	return who, v, err
}

// discoverer is view for those who may discover.
func (a *API) discoverer(r *http.Request) (discovery.View, error) {
	_, v, err := a.view(r)
	if err == nil && !v.MayDiscover {
		err = fault.New(fault.AccessDenied, "This caller may not discover tools: the permission 'access mcp tool discovery' is required.")
	}
	return v, err
}

// list serves GET /mcp/tools/list?cursor=C.
func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	v, err := a.discoverer(r)
	if err != nil {
		return err
	}
	text, err := parameter(r, "cursor", fault.InvalidCursor)
	if err != nil {
		return err
	}
	at, err := catalog.ParseCursor(text)
	if err != nil {
		return err
	}
	page, err := v.Page(r.Context(), at)
	if err != nil {
		return err
	}
	a.writePage(w, r, v, page)
	return nil
}

// writePage sends a page: not at all to those who have it, compressed to those who take it so.
func (a *API) writePage(w http.ResponseWriter, r *http.Request, v discovery.View, page *catalog.Page) {
	h := w.Header()
	h["Cache-Control"] = revalidate
	h["Vary"] = varyCaller
	markStale(h, v)
	zippedTag := strings.TrimSuffix(page.ETag, `"`) + `.gz"`
	body := page.Body
	h["Etag"] = []string{page.ETag}
	if e := r.Header.Get("Accept-Encoding"); e != "" && acceptsGzip(e) {
		if zipped := page.Gzip(); zipped != nil {
			body = zipped
			h["Content-Encoding"] = []string{"gzip"}
			h["Etag"] = []string{zippedTag}
		}
	}
	if hasETag(r.Header.Get("If-None-Match"), page.ETag, zippedTag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	a.writeJSON(w, http.StatusOK, body)
}

// describe serves GET /mcp/tools/describe?name=N.
func (a *API) describe(w http.ResponseWriter, r *http.Request) error {
	v, err := a.discoverer(r)
	if err != nil {
		return err
	}
	name, err := parameter(r, "name", fault.InvalidRequest)
	switch {
	case err != nil:
		return err
	case name == "":
		return fault.New(fault.MissingParameter, "The query parameter name is missing or empty.")
	case !utf8.ValidString(name):
		return fault.New(fault.InvalidRequest, "The query parameter name is not valid UTF-8.")
	}
	tool, err := v.Tool(r.Context(), name)
	if err != nil {
		return err
	}
	h := w.Header()
	h["Cache-Control"] = revalidate
	h["Vary"] = varyCaller
	markStale(h, v)
	a.writeJSON(w, http.StatusOK, tool.Described())
	return nil
}

// parameter reads a query parameter that may be given once; other parameters are ignored.
func parameter(r *http.Request, name string, code fault.Code) (string, error) {
	if r.URL.RawQuery == "" {
		return "", nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	switch values := query[name]; {
	case len(values) > 1:
		return "", fault.New(code, "The query parameter %s occurs more than once.", name)
	case len(values) == 1:
		return values[0], nil
	case err != nil && strings.Contains(r.URL.RawQuery, name+"="):
		return "", fault.New(code, "The query parameter %s is not percent-encoded as it should be.", name)
	}
	return "", nil
}
