package observe

import (
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/origin"
	"github.com/bridgecheck/bridgecheck/bridge/throttle"
)

// RefusalKinds are the kinds of refusals in the log and in bridge_refusals_total, and what each means.
var RefusalKinds = []struct{ Name, Means string }{
	{"credentials", "401: missing, malformed or refused credentials"},
	{"throttled", "429: too many wrong credentials of the account or the address"},
	{"rate", "429: more calls than rate_limit, or than the site, allows"},
	{"access", "403: the caller lacks a permission or a scope"},
	{"host", "403: a host name that allowed_hosts does not name"},
	{"origin", "403: a web page of another site"},
}

// refusalKind returns the kind of a refusal; "": it is not a refusal.
func refusalKind(err error) string {
	switch {
	case errors.Is(err, throttle.ErrThrottled):
		return "throttled"
	case errors.Is(err, origin.ErrHost):
		return "host"
	case errors.Is(err, origin.ErrOrigin):
		return "origin"
	case fault.Is(err, fault.AuthRequired):
		return "credentials"
	case fault.Is(err, fault.AccessDenied):
		return "access"
	case fault.Is(err, fault.RateLimited):
		return "rate"
	}
	return ""
}

// Lines of one address are logged at this rate, and so many at once, so that an address that floods hides no other. Bounded limits
// those of all.
const addressLines, addressBurst = 0.1, 20

// Refusals logs and counts refused requests: who, as far as that is no secret, from which address, what was refused and why.
// A nil Refusals records nothing.
type Refusals struct {
	log      *slog.Logger
	callers  caller.Callers
	count    func(kind string)
	address  *throttle.Rates
	unlogged atomic.Int64
}

// NewRefusals makes a log; count receives each refusal.
func NewRefusals(log *slog.Logger, callers caller.Callers, count func(kind string), now func() time.Time) *Refusals {
	return &Refusals{log: log, callers: callers, count: count, address: throttle.NewRates(addressLines, addressBurst, now)}
}

// Record notes that a request failed, where that is a refusal.
func (l *Refusals) Record(r *http.Request, status int, err error) {
	kind := refusalKind(err)
	if l == nil || kind == "" {
		return
	}
	l.count(kind)
	if !l.log.Enabled(r.Context(), slog.LevelWarn) {
		return
	}
	claim := l.callers.Claim(r)
	if l.address.Allow(claim.Network, "") != nil {
		l.unlogged.Add(1)
		return
	}
	l.log.LogAttrs(r.Context(), slog.LevelWarn, "refused",
		slog.String("kind", kind), slog.Int("status", status), slog.String("client", claim.Address.String()), slog.String("user", claim.User),
		slog.String("method", fault.Brief(r.Method)), slog.String("path", fault.Brief(r.URL.Path)), slog.String("why", fault.Brief(fault.From(err).Message)),
		slog.String("request_id", r.Header.Get("X-Request-Id")), slog.Int64(unloggedKey, l.unlogged.Swap(0)))
}
