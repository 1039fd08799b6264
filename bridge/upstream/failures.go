package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// Failure says what becomes of a request to the site that brought no JSON-RPC response. The tables of failures are
// what the documentation prints; those of JSON-RPC itself are in invoke.
type Failure struct {
	When string // what the site did
	Code fault.Code
	Says string // the message for the caller
}

// refusals are the HTTP statuses that say something by themselves, without a JSON-RPC response. The page that came with
// one stays here. All others are a badResponse.
var refusals = map[int]Failure{
	http.StatusUnauthorized:       {"HTTP 401; its challenge goes on to the caller", fault.AuthRequired, "The site asks for credentials, or does not take these."},
	http.StatusForbidden:          {"HTTP 403", fault.AccessDenied, "The site denies this caller access: no permission, or a wrong user name or password."},
	http.StatusTooManyRequests:    {"HTTP 429; with its Retry-After, or 1 s", fault.RateLimited, "The site limits how often it may be called."},
	http.StatusServiceUnavailable: {"HTTP 503; with its Retry-After", fault.UpstreamUnavailable, "The site is not available at present."},
}

// silence is how a request ended without a response.
type silence struct {
	err             error
	caller, limited context.Context // of the request that came in, and of that time-limited
}

// silences are read from the top; what none of them takes is a badResponse.
var silences = []struct {
	Failure
	is func(silence) bool
}{
	{Failure{"a response for which max_buffered leaves no memory", fault.Overloaded, "Too many large results are held in memory; the tool may have run."}, func(s silence) bool { return errors.Is(s.err, fair.ErrNoMemory) }},
	{Failure{"a response longer than max_answer", fault.UpstreamError, unusable}, func(s silence) bool { return errors.Is(s.err, errTooLong) }},
	{Failure{"no response within request_timeout", fault.UpstreamTimeout, "The request took longer than the bridge allows."}, func(s silence) bool { return errors.Is(context.Cause(s.caller), context.DeadlineExceeded) }},
	{Failure{"the caller goes away first", fault.UpstreamTimeout, "The caller went away before the site had responded."}, func(s silence) bool { return s.caller.Err() != nil }},
	{Failure{"no response within upstream_timeout", fault.UpstreamTimeout, "The site did not respond in time."}, func(s silence) bool { return s.limited.Err() != nil || timedOut(s.err) }},
	{Failure{"the bridge has no descriptors or ports left to connect with", fault.Overloaded, exhaustedHere}, func(s silence) bool { return exhausted(s.err) }},
	{Failure{"no connection", fault.UpstreamUnavailable, "The site cannot be reached."}, func(s silence) bool { return notConnected(s.err) }},
}

// Failures lists what a site may do other than respond, in the order of precedence.
func Failures() []Failure {
	list := []Failure{
		refusals[http.StatusUnauthorized], refusals[http.StatusForbidden],
		refusals[http.StatusTooManyRequests], refusals[http.StatusServiceUnavailable],
	}
	for _, s := range silences {
		list = append(list, s.Failure)
	}
	return append(list,
		Failure{"no connection several times in a row: the site is not called for a second (the breaker)", fault.UpstreamUnavailable, unreachable},
		Failure{"the caller has its share of max_in_flight, and of max_waiting", fault.Overloaded, crowded},
		Failure{"all else: another status, a page, a redirect, an empty or broken body, another request's response", fault.UpstreamError, unusable})
}

const (
	unusable      = "The site gave no usable response."
	unreachable   = "The site cannot be reached."
	exhaustedHere = "The bridge has no free connection; retry in 1 s."
	crowded       = "Too many calls wait for the site; retry in 1 s."
)

// explain says why there is no response.
func explain(s silence) *fault.Error {
	for _, f := range silences {
		if f.is(s) {
			e := fault.New(f.Code, "%s", f.Says).Because(s.err)
			if f.Code == fault.Overloaded {
				e.RetryAfter = time.Second
			}
			return e
		}
	}
	return badResponse(s.err)
}

func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// exhausted reports whether the bridge's own machine has run out of something: that says nothing about the site.
func exhausted(err error) bool {
	causes := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM}
	return slices.ContainsFunc(causes, func(cause syscall.Errno) bool { return errors.Is(err, cause) })
}

func notConnected(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// refusal turns a status without a JSON-RPC response into a fault. What the site has against the bridge's own account is no fault of
// whoever acts as it.
func (a response) refusal(who caller.Caller) *fault.Error {
	f, ok := refusals[a.status]
	if !ok {
		return badResponse(fmt.Errorf("HTTP status %d", a.status))
	}
	e := fault.New(f.Code, "%s", f.Says)
	if who.Shared() && (f.Code == fault.AuthRequired || f.Code == fault.AccessDenied) {
		e.Message = caller.AccountRefused
	}
	switch f.Code {
	case fault.AuthRequired:
		e.Challenge = a.header.Values("WWW-Authenticate")
	case fault.RateLimited:
		e.RetryAfter = max(a.retryAfter(), time.Second)
	case fault.UpstreamUnavailable:
		e.RetryAfter = a.retryAfter()
	}
	return e
}

// retryAfter is the site's Retry-After where it is given in seconds.
func (a response) retryAfter() time.Duration {
	n, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil || n < 0 || n > 3600 {
		return 0
	}
	return time.Duration(n) * time.Second
}

// badResponse says that the site sent something that no JSON-RPC site sends.
func badResponse(cause error) *fault.Error {
	return fault.New(fault.UpstreamError, unusable).Because(cause)
}
