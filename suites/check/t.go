// Package check is what a check is written with. An Environment is the target of a run; a T is that target as one check sees
// it, with all that the check sends and finds. A Client sends requests as one caller (package patience, around package client)
// and gets Responses, each recorded as evidence; Expect compares them and makes a Finding of what differs. T.Drupal and
// T.Upstream are the site behind the bridge (package site).
//
// It decides nothing about the contract: what must be is in the packages of the areas. Its one invariant: whatever is sent
// while a check runs is recorded, and whatever a check changes is undone when the check ends.
package check

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/patience"
)

// T is the target as one check sees it, with all that the check sends and finds.
type T struct {
	*Environment
	patience.Scope // of its requests

	inCheck   bool // a check is running, so that there is something to end
	mu        sync.Mutex
	recording bool // the check has not come to its clean-up
	exchanges []*exchange
	blamed    *Response
	findings  findings
	failed    *Finding             // that ended the check
	before    *fixtures.Site       // as it was served when the check began; nil without a mock
	inPart    bool                 // a part of the check is running: its finding does not end the check
	listed    map[string]bool      // names that the bridge lists to any caller; nil: not asked
	besides   map[*Response]func() // sends the request alone of a response that came beside others
	cleanups  []func(context.Context)
	aside     any         // what ended another goroutine of the check
	metGone   atomic.Bool // the check met a bridge that is gone

	sessions sessions // of callers, where the bridge has MCP alone
	base     string   // URL of the process that the check asks; "": the target
}

// NewT is the target as it is seen outside of a check: nothing that is sent is evidence, and nothing ends.
func NewT(e *Environment) *T {
	t := &T{Environment: e}
	t.Begin(e.Run, t.record, func() client.Client { return t.As(Agent).Client.Client })
	return t
}

// begin starts the check of a clause.
func (e *Environment) begin(clause string) *T {
	e.Drupal.NumberAccountsFrom(int64(slices.Index(e.Contract.IDs(), clause)) * accountsPerCheck)
	t := NewT(e)
	t.inCheck, t.recording, t.before = true, true, e.Drupal.Snapshot()
	t.During = clause
	e.Upstream.Begin(t.Cleanup)
	return t
}

// accountsPerCheck is how many accounts one check creates at most. Their names are the same whatever was tested before.
const accountsPerCheck = 10_000

// Host is the bridge's host, with the port where its URL has one.
func (t *T) Host() string { return t.parsed().Host }

// Hostname is the bridge's host, without a port.
func (t *T) Hostname() string { return t.parsed().Hostname() }

func (t *T) parsed() *url.URL {
	u, err := url.Parse(t.URL)
	if err != nil {
		return &url.URL{}
	}
	return u
}

// Unrecorded calls send, whose requests are no evidence: what is asked once a run is asked by whichever check comes first.
func (t *T) Unrecorded(send func()) {
	record := func(on bool) (before bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		before, t.recording = t.recording, on
		return before
	}
	before := record(false)
	defer record(before)
	send()
}

// Mark makes Runs and Calls forget what came before, where there is a site to see.
func (t *T) Mark() { t.Upstream.Mark() }
