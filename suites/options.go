package suites

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/authserver"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/generate"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/redact"
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
	Contract        string                                            // version of the contract; "": the latest released, contract.Draft: every clause of this build
	Capabilities    []string                                          // claimed; nil: DefaultCapabilities
	Drupal          *mockdrupal.Drupal                                // the mock behind the bridge; nil: none is there
	Control         harness.Controlled                                // changes the real site behind Recorder; nil: it is only read
	Recorder        *proxy.Proxy                                      // the recording proxy before the real site behind the bridge; nil: none is there
	Site            *url.URL                                          // the real site behind the bridge, which is read; nil: that behind Recorder, if any
	TLS             *tls.Config                                       // towards the bridge; nil: the system's
	Proxy           func(*http.Request) (*url.URL, error)             // towards the bridge; nil: from the environment
	Dial            Dial                                              // connects to the bridge; nil: by TCP. Checks of the connection itself connect by TCP
	Rate            float64                                           // requests a second that the run sends at most; 0: no limit
	Replicas        []harness.Replica                                 // of the bridge beside the target; nil: there is one
	Credentials     map[harness.Identity]harness.Credentials          // beside those of the mock's accounts
	Authority       *authserver.Server                                // that the bridge takes tokens of, whose accounts are those of the mock; nil: none
	WrongTokens     map[string]string                                 // that the bridge must refuse, by what is wrong with each, for a run without Authority
	Secrets         []string                                          // what no output may show, beside the credentials
	Invocations     []harness.Invocation                              // what a run without a mock may invoke
	Invalidate      *harness.Invalidate                               // how the bridge's cache is emptied; nil: unknown
	Patterns        *harness.Patterns                                 // which methods are tools where no attribute says so; nil: DefaultPatterns
	RateLimit       int                                               // calls of one caller that the bridge takes at once; 0: unknown
	Stdio           func(context.Context) (io.ReadWriteCloser, error) // starts the bridge for MCP on stdin and stdout, authenticated as service; nil: unknown
	PageSize        int                                               // tools on a full page; 0: 50
	DiscoveryTTL    time.Duration                                     // how long the bridge may show a changed site's old state; 0: unknown
	UpstreamTimeout time.Duration                                     // how long the bridge waits for the site; 0: unknown
	Advance         func(time.Duration)                               // moves the clock of the mock and the bridge; nil: both live in real time
	Only, Skip      []string                                          // globs over clause ids
	Wire            contract.Wire                                     // contract.Front: MUSTs that need more than the front side do not count while they cannot be tested; "": all count
	Clients         []string                                          // whose refusals the area profile tests; nil: those of all
	Strict          bool                                              // a SHOULD that is not kept makes the run fail
	Timeout         time.Duration                                     // of one request; 0: 10 s
	RunTimeout      time.Duration                                     // of the whole run; 0: 10 min
	Seed            int64                                             // of generated cases; 0: 1
	Cases           int                                               // generated cases, and tools to describe, of one check at most; 0: 400
	Makers          *generate.Makers                                  // of generated cases, shared by runs one after the other; nil: of its own
	Tool            reports.Tool                                      // who runs
	Take            func(clause string) bool                          // asks whether this process tests a clause, the one that takes longest first; nil: it tests all
	Sharers         int                                               // processes that test the bridge at the same time, of which this is one; 0: it alone
	Independent     bool                                              // end the run where what a check finds may depend on those before it; the part says why
	Started         func(clause string)                               // receives each clause when its check starts; nil: nobody
	Progress        func(reports.Result)                              // receives each verdict; nil: nobody
	StopAfter       func(reports.Result) (reason string)              // receives each verdict; a reason ends the run; nil: it tests every clause
}

// Redactor knows all secrets that the run is given.
func (o Options) Redactor() *redact.Redactor {
	r := &redact.Redactor{}
	r.Add(o.Secrets...)
	r.Add(proxySecrets(os.Getenv)...)
	for _, creds := range o.Credentials {
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
			secrets = append(secrets, password, harness.Basic(proxy.User.Username(), password))
		}
	}
	return slices.DeleteFunc(secrets, func(s string) bool { return s == "" })
}

// UsageError is a mistake in what the run was given.
type UsageError struct{ Reason string }

func (e *UsageError) Error() string { return e.Reason }

// UnreachableError reports that the target never responded.
type UnreachableError struct {
	URL    string
	Reason error
}

func (e *UnreachableError) Error() string { return fmt.Sprintf("cannot reach %s: %v", e.URL, e.Reason) }

func (e *UnreachableError) Unwrap() error { return e.Reason }

func usage(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Claim adds and takes capabilities: `a,b` adds, `-c` takes away; a naming, exposure or visibility that is added takes
// the place of the default one.
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
		claimed, added = append(claimed, name), append(added, name)
	}
	return claimed, oneOfEach(claimed)
}

func unknownCapability(all *contract.Contract, name string) error {
	names := make([]string, len(all.Capabilities))
	for i, c := range all.Capabilities {
		names[i] = c.Name
	}
	return usage("there is no capability %q; did you mean %s? `bridgecheck checks` lists all", name, suggest.Nearest(name, names))
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
func newRun(target Target, o Options) (*harness.Environment, error) {
	all, err := contract.Load()
	if err != nil {
		return nil, err
	}
	contract, err := all.At(o.Contract)
	if err != nil {
		return nil, &UsageError{err.Error()}
	}
	u, err := BaseURL(target.URL)
	if err != nil {
		return nil, err
	}
	if o.Capabilities == nil {
		o.Capabilities = DefaultCapabilities
	}
	for _, c := range o.Capabilities {
		if !contract.Knows(c) {
			return nil, unknownCapability(contract, c)
		}
	}
	if err := oneOfEach(o.Capabilities); err != nil {
		return nil, err
	}
	for _, c := range o.Clients {
		if names := contract.ClientNames(); !slices.Contains(names, c) {
			return nil, usage("%q is no client; there are %s", c, strings.Join(names, ", "))
		}
	}
	selected, err := selection(contract, o)
	if err != nil {
		return nil, err
	}
	r := &harness.Environment{
		Policy:   harness.Policy{Timeout: defaulted(o.Timeout, 10*time.Second), WaitOut: o.Drupal == nil && o.Recorder == nil},
		PageSize: defaulted(o.PageSize, 50), DiscoveryTTL: o.DiscoveryTTL, UpstreamTimeout: o.UpstreamTimeout, Advance: o.Advance,
		Claimed: o.Capabilities, Credentials: map[harness.Identity]harness.Credentials{}, Invocations: o.Invocations, Invalidate: o.Invalidate, Patterns: harness.DefaultPatterns, RateLimit: o.RateLimit, Stdio: o.Stdio, Sharers: o.Sharers,
		Seed: defaulted(o.Seed, 1), Cases: defaulted(o.Cases, defaultCases), Makers: cmp.Or(o.Makers, &generate.Makers{}), Taken: map[harness.TakenBy]*generate.Maker{},
		Transport: newTransport(o.TLS, o.Proxy, o.Dial), Contract: contract,
		Redact: o.Redactor(), Selected: selected, Authority: o.Authority, WrongTokens: o.WrongTokens, Clients: o.Clients,
	}
	if o.Rate > 0 {
		r.Rate = rate.NewLimiter(rate.Limit(o.Rate), 1)
	}
	if o.Patterns != nil {
		r.Patterns, r.PatternsGiven = *o.Patterns, true
	}
	for who, creds := range o.Credentials {
		r.Credentials[who] = creds
	}
	if u.User != nil {
		password, _ := u.User.Password()
		r.Credentials[harness.Agent] = harness.Credentials{User: u.User.Username(), Password: password}
		u.User = nil
	}
	switch {
	case o.Drupal != nil:
		r.Upstream = &harness.SiteSide{Recorder: o.Drupal}
		r.Drupal = &harness.Drupal{SiteSide: r.Upstream, Mock: o.Drupal}
	case o.Recorder != nil:
		r.Upstream = &harness.SiteSide{Recorder: o.Recorder, Proxy: true}
		if o.Control != nil {
			r.Drupal = &harness.Drupal{SiteSide: r.Upstream, Mock: o.Control}
		}
	}
	if r.Drupal != nil {
		r.Site = r.Drupal
		if _, ok := r.Drupal.Site().User(string(harness.Agent)); !ok {
			return nil, usage("the site %s has no user %s, which the checks need", r.Drupal.Site().Name, harness.Agent)
		}
	} else if _, ok := r.Credentials[harness.Agent]; !ok {
		r.Credentials[harness.Agent] = harness.Credentials{}
	}
	for _, creds := range r.Credentials {
		r.Redact.Add(creds.Secrets()...)
	}
	r.URL = u.String()
	if len(o.Replicas) > 0 {
		r.Replicas = append([]harness.Replica{{URL: r.URL}}, o.Replicas...)
	}
	return r, nil
}

func defaulted[T int | time.Duration | int64](value, otherwise T) T {
	if value == 0 {
		return otherwise
	}
	return value
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
	return func(id string) bool {
		_, in := contract.Clause(id)
		return in && (len(o.Only) == 0 || only[id]) && !skipped[id]
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
			return nil, usage("the glob %q matches no clause of version %s of the contract; the nearest is %s", glob, contract.Version, suggest.Nearest(glob, contract.Globs()))
		}
		for _, id := range ids {
			set[id] = true
		}
	}
	return set, nil
}

// defaultCases is how many generated cases a check tries at most.
const defaultCases = 400
