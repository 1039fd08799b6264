package scenario

import (
	"context"
	"net"
	"time"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// maxResent bounds how often a call that was not accepted (429, 503 with Retry-After) is sent again.
const maxResent = 20

// longestWait is the longest Retry-After that is waited for.
const longestWait = 30 * time.Second

// Delivered sends a request until the bridge takes it on: 429, and 503 with Retry-After, are no responses to it.
func Delivered(ctx context.Context, t *check.T, ask func() *check.Response) *check.Response {
	r := ask()
	for range maxResent {
		pause, busy := r.Busy()
		if !busy || pause > longestWait {
			break
		}
		t.Pause(ctx, pause)
		r = ask()
	}
	return r
}

// SiteFailure is a way in which the site fails a call.
type SiteFailure struct {
	Name  string
	Fault mockdrupal.Fault
}

// WaitRecovered waits until the bridge serves again after a fault of the site is over.
func WaitRecovered(ctx context.Context, t *check.T, call check.Invocation) {
	if fault := Recovers(ctx, t, call); !fault.IsZero() {
		check.BlockedBy(fault.About("the bridge does not serve again after a fault of the site"), "upstream/down-and-up")
	}
}

// Recovers makes a call that has to succeed until it does: at once, or after the Retry-After that a breaker announces. It returns
// what came instead.
func Recovers(ctx context.Context, t *check.T, call check.Invocation) check.Finding {
	r := t.Call(ctx, call)
	for range 3 {
		pause, told := r.RetryAfter()
		if r.Succeeded() || !told || pause > longestWait {
			break
		}
		t.Pause(ctx, pause)
		r = t.Call(ctx, call)
	}
	if r.Succeeded() {
		return check.Finding{}
	}
	return check.Mismatch(r.Subject(), "a success once the site is well", r.Outcome())
}

// LocalAddresses are those on this machine by which the bridge has reached the site since the last Mark.
func LocalAddresses(t *check.T) []string {
	var all []string
	for _, entry := range t.Upstream.Journal() {
		if host, _, err := net.SplitHostPort(entry.Host); err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback()) {
			all = append(all, entry.Host)
		}
	}
	return all
}

// NameTheSite matches a response that contains one of the addresses.
func NameTheSite(addresses []string) types.GomegaMatcher {
	return match.ContainAnyOf(addresses, "to contain the site's address, in a header or in the body")
}
