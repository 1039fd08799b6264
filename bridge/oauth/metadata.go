package oauth

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// wellKnown is where a resource's metadata is, before the resource's own path.
const wellKnown = "/.well-known/oauth-protected-resource"

// MetadataAddress is where clients find the metadata. Behind a proxy that serves the bridge below a path it is below that,
// too: RFC 9728 would have it at the root of the host, which the proxy does not pass on, but clients go by the challenge.
func (g *Guard) MetadataAddress() string {
	u := *g.resource
	u.Path = g.o.Base + wellKnown + strings.TrimSuffix(strings.TrimPrefix(u.Path, g.o.Base), "/")
	return u.String()
}

// Paths are those at which the metadata is served: the resource's own, that of /mcp, for a proxy may have taken a
// prefix off, and the one for the whole host, where clients look next.
func (g *Guard) Paths() []string {
	paths := []string{wellKnown, wellKnown + "/mcp"}
	whole := strings.TrimSuffix(g.resource.Path, "/")
	for _, own := range []string{wellKnown + whole, wellKnown + strings.TrimPrefix(whole, g.o.Base)} {
		if !slices.Contains(paths, own) {
			paths = append(paths, own)
		}
	}
	return paths
}

// metadata is the document of RFC 9728.
type metadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported,omitempty"`
	Methods  []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name"`
}

// ServeHTTP serves the metadata to any client.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*") // clients in browsers look here first; there is nothing secret in it
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Mcp-Protocol-Version")
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := json.Marshal(metadata{
		Resource: g.o.Resource, Servers: []string{g.o.Issuer}, Scopes: speakable(g.o.Scopes()), Methods: []string{"header"}, Name: "Drupal tools",
	})
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError) // cannot be: these are strings
		return
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body) //nolint:errcheck // the client went away: nobody would see the error
}
