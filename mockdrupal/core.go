package mockdrupal

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Core is a version of Drupal core as a client can distinguish it from others.
type Core struct {
	Version   string
	Generator string // X-Generator
	Charset   string // as pages and texts name it
	// ErrorStatus: X-Drupal-Dynamic-Cache of an error names its status.
	ErrorStatus bool
	BundleTypes bool   // the name of an entity type with a colon is one of a bundle, by which nothing can be loaded
	Source      string // where this is from
}

// Cores lists the versions that the mock can be, the oldest first. The first is the default, as it was recorded.
func Cores() []Core {
	return []Core{
		{"10.6", "Drupal 10 (https://www.drupal.org)", "UTF-8", false, false, "recorded (10.4.9); seen on 10.6"},
		{"11.3", "Drupal 11 (https://www.drupal.org)", "UTF-8", false, false, "documentation: as 10.6 but for the generator"},
		{"11.4", "Drupal 11 (https://www.drupal.org)", "utf-8", true, true, "seen on 11.4.5; drupal.org/node/3584640 for the header of errors"},
		{"12", "Drupal 12 (https://www.drupal.org)", "utf-8", true, true, "assumption: as 11.4 but for the generator"},
	}
}

// CoreOf returns the version with this name; "" is the default.
func CoreOf(version string) (Core, error) {
	cores := Cores()
	if version == "" {
		return cores[0], nil
	}
	names := make([]string, len(cores))
	for i, c := range cores {
		if names[i] = c.Version; c.Version == version {
			return c, nil
		}
	}
	return Core{}, fmt.Errorf("the mock cannot be Drupal %s: it can be %s", version, strings.Join(names, ", "))
}

const charsetIn = "; charset="

// DetectCore returns the version that the headers of a page show; ok is false when it is none of Cores.
func DetectCore(page http.Header) (found Core, ok bool) {
	_, charset, _ := strings.Cut(page.Get("Content-Type"), charsetIn)
	cores := Cores()
	i := slices.IndexFunc(cores, func(c Core) bool { return c.Generator == page.Get("X-Generator") && c.Charset == charset })
	if i < 0 {
		return Core{}, false
	}
	return cores[i], true
}

// Rewrite makes the headers of a response of one version those of another.
func (c Core) Rewrite(h http.Header) {
	if h.Get("X-Generator") == "" {
		return // not of Drupal, or of one that had not started
	}
	h["X-Generator"] = []string{c.Generator}
	kind, charset, has := strings.Cut(h.Get("Content-Type"), charsetIn)
	redirect := h.Get("Location") != "" // Symfony's own page, whose charset all versions spell alike
	if has && !redirect && strings.EqualFold(charset, c.Charset) {
		h["Content-Type"] = []string{kind + charsetIn + c.Charset}
	}
}

// finish adds what Drupal's own subscribers and caches put onto a response. The mock caches nothing.
func (x *request) finish(a *Response) {
	if a == nil || a.Header.Get("X-Generator") == "" {
		return
	}
	core := x.d.core
	core.Rewrite(a.Header)
	if x.Verb != http.MethodGet && x.Verb != http.MethodHead {
		return
	}
	a.Header["X-Drupal-Cache"] = []string{"MISS"}
	if x.caller.sent != "" {
		a.Header["X-Drupal-Cache"] = []string{"UNCACHEABLE (request policy)"}
	}
	format, _ := x.format()
	isPage := a.Status >= http.StatusBadRequest && format == formatHTML && strings.HasPrefix(a.Header.Get("Content-Type"), "text/html")
	switch {
	case a.Status < http.StatusBadRequest || isPage && !core.ErrorStatus:
		a.Header["X-Drupal-Dynamic-Cache"] = []string{"MISS"}
	case isPage:
		a.Header["X-Drupal-Dynamic-Cache"] = []string{fmt.Sprintf("UNCACHEABLE (%d, sub-request: MISS)", a.Status)}
	case core.ErrorStatus:
		a.Header["X-Drupal-Dynamic-Cache"] = []string{fmt.Sprintf("UNCACHEABLE (%d)", a.Status)}
	}
}
