package engine

import (
	"cmp"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/bridgecheck/bridgecheck/internal/authkind"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/baseline"
	"github.com/bridgecheck/bridgecheck/suites/areas"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
	"github.com/bridgecheck/bridgecheck/suites/patience"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// DefaultCapabilities are claimed for a bridge of which nothing else is known.
var DefaultCapabilities = []string{"tools", "naming-id", "exposure-attribute", "visibility-filtered", "discovery-permission",
	"auth-basic", "auth-passthrough"}

// WrongTokens are the names that tokens may have in Options.WrongTokens.
var WrongTokens = []string{"expired", "not_yet_valid", "other_issuer", "other_audience"}

// Target is the bridge to test.
type Target struct {
	URL          string // http or https, with a base path where the bridge has one; user:password authenticates the agent
	Name         string // of the implementation, for the report
	Version      string
	Organisation string
	Contact      string
}

// Options is all that a run can be given, shared by flags, configuration and library. The zero value is a black-box run
// with the default capabilities.
type Options struct {
	Site         Site           // what stands behind the bridge
	Bridge       Bridge         // how the bridge behaves, as far as that is known
	Callers      Callers        // who calls, and what they may call
	Connection   Connection     // to the bridge
	Contract     string         // version of the contract; "": the latest released, contract.Draft: every clause of this build
	Capabilities []string       // claimed; nil: DefaultCapabilities
	Clients      []string       // whose refusals the area profile tests; nil: those of all
	Only, Skip   []string       // globs over clause ids
	Extra        []check.Check  // checks that bring a clause of their own
	Wire         contract.Wire  // contract.Front: MUSTs that need more than the front side do not count while they cannot be tested; "": all count
	Strict       bool           // a SHOULD that is not kept makes the run fail
	Short        bool           // leaves out the checks that send most
	Seed         int64          // of generated cases; 0: 1
	Cases        int            // generated cases, and tools to describe, of one check at most; 0: 220
	Sample       int            // tools and cases of one check at most, without the checks that send most; what passes is partial. 0: all
	RunTimeout   time.Duration  // of the whole run; 0: 10 min
	Baseline     *baseline.File // what is known to fail; nil: nothing
	Tool         reports.Tool   // who runs
	Progress     func(reports.Result)
	Pass         Pass // for who shares the checks of a run among several
}

// Site is what stands behind the bridge. The zero value says that nothing is known of it.
type Site struct {
	Drupal   *mockdrupal.Drupal // the mock; nil: none is there
	Recorder *proxy.Proxy       // the recording proxy before a real site; nil: none is there
	Control  site.Controlled    // changes the real site behind Recorder; nil: it is only read
	URL      *url.URL           // of a real site, which is read; nil: that behind Recorder, if any
}

// Connection is how the run connects to the bridge.
type Connection struct {
	TLS     *tls.Config                           // nil: the system's
	Proxy   func(*http.Request) (*url.URL, error) // nil: from the environment
	Dial    Dial                                  // nil: by TCP. Checks of the connection itself connect by TCP
	Rate    float64                               // requests a second that the run sends at most; 0: no limit
	Timeout time.Duration                         // of one request; 0: 10 s
}

// Bridge and Callers are what the checks are told.
type (
	Bridge  = check.Bridge
	Callers = check.Callers
)

// Pass is what a worker that tests some of the checks of a run is told beside what the run is. The zero value tests all.
type Pass struct {
	Take        func(clause string) bool             // asks whether this worker tests a clause, the one that takes longest first; nil: it tests all
	Sharers     int                                  // workers that test the bridge at the same time, of which this is one; 0: it alone
	Independent bool                                 // end the pass where what a check finds may depend on those before it; the part says why
	Started     func(clause string)                  // receives each clause when its check starts; nil: nobody
	Observe     func(check.Check, check.Outcome)     // receives what each check found; nil: nobody
	StopAfter   func(reports.Result) (reason string) // receives each verdict; a reason ends the run; nil: it tests every clause
	Makers      *generate.Makers                     // of generated cases, shared by several passes; nil: of its own
	Clock       func(time.Duration)                  // moves a clock that the bridge may go by: the run finds out whether it does; nil: there is none
	Apart       *check.Replica                       // not started, keeps the site's methods far longer than a caller's permissions; nil: there is none
	Waiting     func(why string)                     // receives what the run waits for before a check; nil: nobody
	Log         func() string                        // returns what the bridge has printed so far; nil: the run does not see it
	Wrong       *atomic.Int32                        // counts the wrong credentials of several passes; nil: this pass counts its own
	Spent       *patience.Timeouts                   // what time-outs have cost passes before this one; nil: nothing
}

// Redactor knows all secrets that the run is given.
func (o Options) Redactor() *redact.Redactor {
	r := &redact.Redactor{}
	r.Add(o.Callers.Secrets...)
	r.Add(proxySecrets(os.Getenv)...)
	for _, creds := range o.Callers.Credentials {
		r.Add(creds.Secrets()...)
	}
	return r
}

// proxySecrets are the passwords of the proxies that the environment names.
func proxySecrets(getenv func(string) string) []string {
	var secrets []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		if proxy, err := url.Parse(getenv(name)); err == nil && proxy.User != nil {
			password, _ := proxy.User.Password()
			secrets = append(secrets, password, client.Basic(proxy.User.Username(), password))
		}
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return s == "" })
}

// UsageError is a mistake in what the run was given.
type UsageError struct{ Reason string }

func (e *UsageError) Error() string { return e.Reason }

// UnreachableError reports that the target never responded, or is none that the run can test.
type UnreachableError struct {
	URL    string // that did not respond; "": the target responds, and Reason is the whole message
	Reason error
}

func (e *UnreachableError) Error() string {
	if e.URL == "" {
		return e.Reason.Error()
	}
	return fmt.Sprintf("cannot reach %s: %v", e.URL, e.Reason)
}

func (e *UnreachableError) Unwrap() error { return e.Reason }

func usage(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Claim adds and takes capabilities: `a,b` adds, `-c` takes away; a naming, exposure or visibility that is added takes
// the place of the default one. exposure-mcp-module takes that of the default naming, too, and of discovery-permission.
func Claim(from []string, changes string) ([]string, error) {
	contract, err := contract.Load()
	if err != nil {
		return nil, err
	}
	claimed := slices.Clone(from)
	var added []string
	for _, word := range strings.FieldsFunc(changes, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, drop := strings.CutPrefix(word, "-")
		name = strings.TrimPrefix(name, "+")
		if !contract.Knows(name) {
			return nil, unknownCapability(contract, name)
		}
		claimed = slices.DeleteFunc(claimed, func(c string) bool { return c == name })
		if drop {
			continue
		}
		if family := family(name); family != "" {
			claimed = slices.DeleteFunc(claimed, func(c string) bool { return strings.HasPrefix(c, family) && !slices.Contains(added, c) })
		}
		if name == check.ExposureMCP { // the module gives the names, and does not say who may discover
			claimed = slices.DeleteFunc(claimed, func(c string) bool {
				return (family(c) == "naming-" || c == "discovery-permission") && !slices.Contains(added, c)
			})
		}
		claimed, added = append(claimed, name), append(added, name)
	}
	if slices.Contains(claimed, check.OAuth) {
		for _, kind := range authkind.Names() {
			if c := "auth-" + kind; slices.Contains(claimed, c) {
				return nil, usage("a bridge cannot have both %s and %s: it serves nobody without a token of the authorization server; claim -%[2]s too", check.OAuth, c)
			}
		}
	}
	return claimed, oneOfEach(claimed)
}

func unknownCapability(all *contract.Contract, name string) error {
	names := make([]string, len(all.Capabilities))
	for i, c := range all.Capabilities {
		names[i] = c.Name
	}
	return usage("there is no capability %q; %s", name, suggest.Or(name, names, "`bridgecheck checks` lists all"))
}

// family is the prefix of capabilities that exclude each other.
func family(capability string) string {
	for _, prefix := range []string{"naming-", "exposure-", "visibility-"} {
		if strings.HasPrefix(capability, prefix) {
			return prefix
		}
	}
	return ""
}

func oneOfEach(claimed []string) error {
	seen := map[string]string{}
	for _, c := range claimed {
		f := family(c)
		if f == "" {
			continue
		}
		if other, two := seen[f]; two {
			return usage("a bridge cannot have both %s and %s: claim one of them", other, c)
		}
		seen[f] = c
	}
	if seen["exposure-"] == check.ExposureMCP {
		switch {
		case seen["naming-"] != "":
			return usage("a bridge cannot have both %s and %s: the module gives the names", check.ExposureMCP, seen["naming-"])
		case slices.Contains(claimed, "tools"):
			return usage("%s is for a bridge with MCP alone: claim mcp,-tools too", check.ExposureMCP)
		}
	}
	return nil
}

// BaseURL reads the URL of a bridge. The error is a *UsageError that shows no password.
func BaseURL(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	u, err := url.Parse(text)
	_, _, portErr := net.SplitHostPort(text)
	switch {
	case err != nil && portErr == nil && !strings.Contains(text, "/"), err == nil && u.Scheme != "" && u.Opaque != "" && u.Scheme != "http" && u.Scheme != "https":
		return nil, usage("the URL %q is not http or https: write http:// or https:// before it", text)
	case err != nil:
		return nil, usage("the URL cannot be read: %v", errors.Unwrap(err)) // without the URL: there may be a password in it
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, usage("the URL %q is not http or https: give for example http://127.0.0.1:8081", u.Redacted())
	case u.Hostname() == "":
		return nil, usage("the URL %q names no host", u.Redacted())
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, usage("the URL %q has a query or a fragment: give the base URL of the bridge alone", u.Redacted())
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, usage("the URL %q has an invalid port: give 1 to 65535", u.Redacted())
		}
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	return u, nil
}

// newRun checks what the run was given and makes it ready.
func newRun(target Target, o Options) (*check.Environment, error) {
	contract, err := contractAt(o.Contract, extraClauses(o.Extra))
	if err != nil {
		return nil, err
	}
	u, err := BaseURL(target.URL)
	if err != nil {
		return nil, err
	}
	if o.Capabilities == nil {
		o.Capabilities = DefaultCapabilities
	}
	if err := o.checkClaims(contract); err != nil {
		return nil, err
	}
	selected, err := selection(contract, o)
	if err != nil {
		return nil, err
	}
	r := &check.Environment{
		Config: check.Config{
			Bridge: o.Bridge, Callers: o.Callers, Claimed: o.Capabilities, Clients: o.Clients, Contract: contract, Selected: selected,
			Seed: cmp.Or(o.Seed, 1), Cases: cmp.Or(o.Cases, defaultCases), Sample: o.Sample, Sharers: o.Pass.Sharers,
			OfOne:  slices.DeleteFunc(areas.Checks(), func(c check.Check) bool { return c.OfOne == nil }),
			Redact: o.Redactor(), Wrong: cmp.Or(o.Pass.Wrong, &atomic.Int32{}),
			Target: &client.Target{Transport: newTransport(o.Connection.TLS, o.Connection.Proxy, o.Connection.Dial)},
		},
		Learned: check.Learned{Makers: cmp.Or(o.Pass.Makers, &generate.Makers{}), Taken: map[check.TakenBy]*generate.Maker{}},
	}
	if o.Sample > 0 {
		r.Cases = min(r.Cases, o.Sample)
	}
	r.PageSize, r.Credentials = cmp.Or(r.PageSize, 50), maps.Clone(r.Credentials)
	if r.Credentials == nil {
		r.Credentials = map[check.Identity]check.Credentials{}
	}
	if u.User != nil {
		password, _ := u.User.Password()
		r.Credentials[check.Agent] = check.Credentials{User: u.User.Username(), Password: password}
		u.User = nil
	}
	if err := connectSite(r, o.Site); err != nil {
		return nil, err
	}
	if _, ok := r.Credentials[check.Agent]; !ok && r.Drupal == nil {
		r.Credentials[check.Agent] = check.Credentials{}
	}
	for _, creds := range r.Credentials {
		r.Redact.Add(creds.Secrets()...)
	}
	r.URL = u.String()
	if len(r.Replicas) > 0 {
		r.Replicas = append([]check.Replica{{URL: r.URL}}, r.Replicas...)
	}
	var limit *rate.Limiter
	if o.Connection.Rate > 0 {
		limit = rate.NewLimiter(rate.Limit(o.Connection.Rate), 1)
	}
	r.Start(cmp.Or(o.Connection.Timeout, 10*time.Second), limit)
	return r, nil
}

// checkClaims refuses capabilities and clients that the contract does not have, or that exclude each other.
func (o Options) checkClaims(contract *contract.Contract) error {
	for _, c := range o.Capabilities {
		if !contract.Knows(c) {
			return unknownCapability(contract, c)
		}
	}
	if err := oneOfEach(o.Capabilities); err != nil {
		return err
	}
	for _, c := range o.Clients {
		if names := contract.ClientNames(); !slices.Contains(names, c) {
			return usage("%q is no client; there are %s", c, strings.Join(names, ", "))
		}
	}
	return nil
}

// connectSite gives the run what it was given of the site behind the bridge.
func connectSite(r *check.Environment, s Site) error {
	switch {
	case s.Drupal != nil:
		r.Upstream = &site.Upstream{Recorder: s.Drupal}
		r.Drupal = &site.Drupal{Upstream: r.Upstream, Mock: s.Drupal}
	case s.Recorder != nil:
		r.Upstream = &site.Upstream{Recorder: s.Recorder, Proxy: true}
		if s.Control != nil {
			r.Drupal = &site.Drupal{Upstream: r.Upstream, Mock: s.Control}
		}
	}
	if r.Drupal == nil {
		return nil
	}
	r.Site = r.Drupal
	if r.Spares() {
		r.Drupal.Prefix = "-" + strings.ToLower(rand.Text()[:6]) + "-"
	}
	if _, ok := r.Drupal.Site().User(string(check.Agent)); !ok {
		return usage("the site %s has no user %s, which the checks need", r.Drupal.Site().Name, check.Agent)
	}
	return nil
}

// selection turns the globs into the set of clauses that the run tests.
func selection(contract *contract.Contract, o Options) (func(id string) bool, error) {
	only, err := matches(contract, o.Only)
	if err != nil {
		return nil, err
	}
	skipped, err := matches(contract, o.Skip)
	if err != nil {
		return nil, err
	}
	costly := map[string]bool{}
	if o.Short || o.Sample > 0 {
		for _, c := range allChecks(o.Extra) {
			costly[c.ID] = c.Costly
		}
	}
	return func(id string) bool {
		_, in := contract.Clause(id)
		return in && !costly[id] && (len(o.Only) == 0 || only[id]) && !skipped[id]
	}, nil
}

func matches(contract *contract.Contract, globs []string) (map[string]bool, error) {
	set := map[string]bool{}
	for _, glob := range globs {
		ids, err := contract.Match(glob)
		if err != nil {
			return nil, &UsageError{err.Error()}
		}
		if len(ids) == 0 {
			return nil, usage("the glob %q matches no clause of version %s of the contract; %s", glob, contract.Version,
				suggest.Or(glob, contract.Globs(), "the areas are "+strings.Join(contract.Areas(), ", ")))
		}
		for _, id := range ids {
			set[id] = true
		}
	}
	return set, nil
}

// defaultCases is how many generated cases a check tries at most.
const defaultCases = 220
