// Package check is what a check talks to. An Environment is the target of a run; a T is that target as one check sees
// it, with all that the check sends and finds. A Client sends requests as one caller and gets Responses, each recorded as
// evidence; Expect compares them and makes a Finding of what differs. Drupal and Upstream are the site behind the bridge.
//
// It decides nothing about the contract: what must be is in the packages of the areas. Its one invariant: whatever is sent
// while a check runs is recorded, and whatever a check changes is undone when the check ends.
package check

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/authkind"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
)

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

// T is the target as one check sees it, with all that the check sends and finds.
type T struct {
	*Environment

	began     time.Time
	inCheck   bool // a check is running, so that there is something to end
	Mu        sync.Mutex
	recording bool // the check has not come to its clean-up
	Exchanges []*exchange
	blamed    *Response
	Findings  findings
	failed    *Finding        // that ended the check
	before    *fixtures.Site  // as it was served when the check began; nil without a mock
	inPart    bool            // a part of the check is running: its finding does not end the check
	excuse    excuse          // for what the check finds
	listed    map[string]bool // names that the bridge lists to any caller; nil: not asked
	unsent    atomic.Int64    // requests of the check that the run had no patience for
	unserved  atomic.Bool     // the bridge did not serve a request of the check
	cleanups  []func(context.Context)
	beside    any // what ended another goroutine of the check

	sessionsMu sync.Mutex
	sessions   map[sessionKey]*Session // of callers, where the bridge has MCP alone
}

// Unserved reports whether the bridge did not serve a request of the check: it gave no response, 429 or 500 and more.
func (t *T) Unserved() bool { return t.unserved.Load() }

// As gives a client that speaks as the identity. Without credentials for it, the running check is not testable.
func (t *T) As(who Identity) Client {
	creds, ok := t.CredentialsOf(who)
	if !ok {
		NotTestable(fmt.Sprintf("there are no credentials for %s", who))
	}
	return Client{T: t, Who: who, Creds: creds, waits: true}
}

// With gives a client that authenticates with credentials of the check's own making; name stands in the evidence. Where the
// bridge limits how often such credentials come, that is the response.
func (t *T) With(name Identity, creds Credentials) Client {
	for _, secret := range creds.Secrets() {
		if !t.isName(secret) { // a wrong password may be another's name, which messages need
			t.Redact.Add(secret)
		}
	}
	return Client{T: t, Who: name, Creds: creds}
}

// isName reports whether a text is the name of an account of the site.
func (t *T) isName(text string) bool {
	if t.Drupal == nil {
		return false
	}
	_, ok := t.Drupal.Site().User(text)
	return ok
}

func (t *T) CredentialsOf(who Identity) (Credentials, bool) {
	if creds, ok := t.Credentials[who]; ok {
		return creds, true
	}
	if who == Anonymous {
		return Credentials{}, true
	}
	if t.Drupal == nil {
		return Credentials{}, false
	}
	user, ok := t.Drupal.Site().User(string(who))
	if !ok {
		return Credentials{}, false
	}
	if t.Claims(OAuth) && t.Authority != nil {
		return Credentials{Token: t.token(who)}, true
	}
	creds := Credentials{User: user.Name, Password: user.Password}
	for _, kind := range authkind.Kinds {
		if t.Claims("auth-" + kind.Name) {
			if claimed := t.Drupal.credentialsOf(user, kind); !claimed.Empty() {
				creds = claimed
				break
			}
		}
	}
	t.Redact.Add(creds.Secrets()...)
	return creds, true
}

// credentialsOf are an account's credentials of one kind; empty: it has none.
func (d *Drupal) credentialsOf(user *fixtures.User, kind authkind.Kind) Credentials {
	switch kind.Name {
	case authkind.Basic:
		return Credentials{User: user.Name, Password: user.Password}
	case authkind.Bearer:
		if len(user.Tokens) > 0 {
			return Credentials{Token: user.Tokens[0].Value}
		}
	case authkind.Cookie:
		return Credentials{Cookie: d.Session(Identity(user.Name))}
	}
	return Credentials{}
}

// begin starts the check of a clause.
func (r *Environment) begin(clause string) *T {
	if r.Upstream != nil {
		r.Upstream.Mark()
	}
	if r.Drupal != nil {
		r.Drupal.users.Store(int64(slices.Index(r.Contract.IDs(), clause)) * accountsPerCheck)
	}
	r.Running = &T{Environment: r, began: time.Now(), inCheck: true, recording: true}
	r.Running.before = r.Running.siteNow()
	if r.Upstream != nil {
		r.Upstream.cleanup = r.Running.Cleanup
		r.Upstream.used.Store(false)
	}
	return r.Running
}

// accountsPerCheck is how many accounts one check creates at most. Their names are the same whatever was tested before.
const accountsPerCheck = 10_000

// Unrecorded calls send, whose requests are no evidence: what is asked once a run is asked by whichever check comes first.
func (t *T) Unrecorded(send func()) {
	record := func(on bool) (before bool) {
		t.Mu.Lock()
		defer t.Mu.Unlock()
		before, t.recording = t.recording, on
		return before
	}
	before := record(false)
	defer record(before)
	send()
}

// TakenBy is the tool that was asked to take what was generated for the inputSchema that it shows.
type TakenBy struct {
	Tool string
	Made *generate.Maker
}
