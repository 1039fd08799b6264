package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/body"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// Header values that never change, shared by all responses.
var (
	jsonType    = []string{"application/json"}
	noStore     = []string{"no-store"}
	revalidate  = []string{"private, no-cache"} // a caller's own cache may keep it, and must revalidate it
	varyCaller  = []string{"Authorization, Cookie, Accept-Language, Accept-Encoding"}
	staleMarker = []string{`110 - "Response is Stale"`}
)

// writeJSON sends a whole document, in parts that need not be joined first. HEAD gets the same headers; net/http
// leaves the body out.
func (a *API) writeJSON(w http.ResponseWriter, status int, parts ...[]byte) {
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(length)}
	if _, ok := h["Cache-Control"]; !ok {
		h["Cache-Control"] = noStore
	}
	w.WriteHeader(status)
	body.Write(w, a.WriteTime, parts...) //nolint:errcheck // the client went away: nobody would see the error
}

// refuse sends the envelope and gives the status that went out.
func (a *API) refuse(w http.ResponseWriter, err error) int {
	f := fault.From(err)
	status := f.Status()
	h := w.Header()
	h["Cache-Control"] = noStore
	if f.Code == fault.AuthRequired || len(f.Challenge) > 0 {
		h["Www-Authenticate"] = a.Guard.Challenge(f)
	}
	if f.RetryAfter > 0 {
		h.Set("Retry-After", f.WaitSeconds())
	}
	b := append(make([]byte, 0, 256), `{"error":{"code":"`...)
	b = append(append(b, f.Code...), `","message":`...)
	b = jsondoc.AppendString(b, strings.ToValidUTF8(f.Message, "�"))
	if f.Data != nil {
		b = append(append(b, `,"data":`...), f.Data...)
	}
	a.writeJSON(w, status, append(b, '}', '}'))
	return status
}

// markStale marks a response that is older than its TTL.
func markStale(h http.Header, v discovery.View) {
	if v.Stale {
		h["Warning"] = staleMarker
		h.Set("Age", strconv.Itoa(int(v.Age/time.Second)))
	}
}

// hasETag reports whether an If-None-Match header names one of these tags, weakly compared.
func hasETag(header string, tags ...string) bool {
	if header == "" {
		return false
	}
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		for _, tag := range tags {
			if candidate == tag || candidate == "*" {
				return true
			}
		}
	}
	return false
}

// acceptsGzip reads Accept-Encoding; a weight of 0 is a refusal.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name = strings.ToLower(strings.TrimSpace(name)); name != "gzip" && name != "*" {
			continue
		}
		weight, ok := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(params), " ", ""), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		return !ok || err == nil && q > 0
	}
	return false
}

// encoded makes a body of a value that cannot fail to encode.
func encoded(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}
