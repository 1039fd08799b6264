// Package observe records what the bridge did, in the same way for all of its interfaces: request ids and log lines, the
// audit log, and metrics. It shows neither credentials nor bodies.
package observe

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// requestID is what a request may call itself.
var requestID = regexp.MustCompile(`^[A-Za-z0-9._:/+=-]{1,128}$`)

// Identify gives a request an id, by which it is found in the log and goes on to the site. A caller gets its own back;
// one that the bridge generated stays out of the response, where it would make equal refusals differ.
func Identify(response, request http.Header) {
	const name = "X-Request-Id"
	if sent := request[name]; len(sent) > 0 && requestID.MatchString(sent[0]) {
		response[name] = sent[:1]
		return
	}
	request[name] = []string{strconv.FormatUint(rand.Uint64(), 36)}
}

// Log says what became of a request: a warning where the bridge or the site failed, else for those who debug.
func Log(log *slog.Logger, r *http.Request, status int, took time.Duration, err error) {
	level := slog.LevelDebug
	if status >= 500 {
		level = slog.LevelWarn
	}
	if !log.Enabled(r.Context(), level) {
		return
	}
	log.Log(r.Context(), level, "request", "method", fault.Brief(r.Method), "path", fault.Brief(r.URL.Path), "status", status, "took", took,
		"request_id", r.Header.Get("X-Request-Id"), "traceparent", fault.Brief(r.Header.Get("Traceparent")), "error", err)
}
