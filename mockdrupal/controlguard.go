package mockdrupal

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/loopback"
)

// checkCaller keeps out who may not use the control plane: callers without its token, and web pages. A page that a
// browser of this machine shows must not change the mock: neither from another site (Origin, Sec-Fetch-Site) nor by a
// name that its own DNS lets point here (Host; with a token that is no danger, for the page does not know it). Programs
// send neither Origin nor Sec-Fetch-Site.
func checkCaller(r *http.Request, token string) error {
	if token == "" && !loopback.Is(r.Host) {
		return forbidden("the control plane without a token serves this machine only: the Host must be 127.0.0.1, [::1] or localhost, not %q", r.Host)
	}
	if origin := r.Header.Get("Origin"); len(r.Header["Origin"]) > 1 || origin != "" && !isOwnOrigin(origin, r) {
		return forbidden("the control plane serves no web page of another origin: %q", origin)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return forbidden("the control plane serves no web page of another origin: Sec-Fetch-Site is %q", site)
	}
	sent := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token != "" && subtle.ConstantTimeCompare([]byte(sent), []byte(token)) != 1 {
		return &controlError{http.StatusUnauthorized, errors.New("the control plane needs its token: Authorization: Bearer TOKEN")}
	}
	return nil
}

func forbidden(format string, args ...any) error {
	return &controlError{http.StatusForbidden, fmt.Errorf(format, args...)}
}

// isOwnOrigin reports whether a page of this origin is the control plane's own.
func isOwnOrigin(origin string, r *http.Request) bool {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return strings.EqualFold(origin, scheme+r.Host)
}

// checkBody refuses a body that is not declared as JSON (or as YAML where that is taken): those are the only kinds of
// bodies that a browser does not send to other sites without asking them first.
func checkBody(r *http.Request, yaml bool) error {
	if r.ContentLength == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && (kind == "application/json" || yaml && kind == "application/yaml") {
		return nil
	}
	wanted := "application/json"
	if yaml {
		wanted += " or application/yaml"
	}
	return &controlError{http.StatusUnsupportedMediaType, fmt.Errorf("the body needs the Content-Type %s, not %q", wanted, r.Header.Get("Content-Type"))}
}
