// Package settings reads the file of `bridgecheck run --config`: the bridge, the credentials of each identity, what the
// bridge claims and which tools may be invoked. It is strict: an unknown key, a wrong type and a secret that stands in the file itself are errors with file
// and line. It resolves secrets from the environment and from files, and never shows one.
package settings

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// File is a configuration as written. Every field is documented here, once, with unit and default.
type File struct {
	URL            string              `yaml:"url"`            // base URL of a running bridge
	Exec           string              `yaml:"exec"`           // command that starts the bridge
	Env            []string            `yaml:"env"`            // with exec: names of environment variables to pass to the bridge
	MockListen     string              `yaml:"mock_listen"`    // HOST:PORT of the mock Drupal behind the bridge
	Drupal         string              `yaml:"drupal"`         // URL of the real site behind the bridge
	DrupalProxy    string              `yaml:"drupal_proxy"`   // HOST:PORT of the recording proxy
	Implementation Implementation      `yaml:"implementation"` // for the report
	Capabilities   []string            `yaml:"capabilities"`   // added to the default, or with - removed from it
	Identities     map[string]Identity `yaml:"identities"`     // the credentials of callers
	WrongTokens    map[string]Secret   `yaml:"wrong_tokens"`   // tokens that the bridge must refuse: expired, not_yet_valid, other_issuer, other_audience
	Settings       Settings            `yaml:"settings"`       // how the bridge is configured
	TLS            TLS                 `yaml:"tls"`            // of connections to the bridge
	Proxy          string              `yaml:"proxy"`          // URL of an HTTP proxy; default: from the environment
	Rate           float64             `yaml:"rate"`           // requests per second that the run sends at most; default: no limit
	Timeout        Duration            `yaml:"timeout"`        // time limit of one request; default 10s
	RunTimeout     Duration            `yaml:"run_timeout"`    // time limit of the whole run; default 10m
	Invocations    []Invocation        `yaml:"invocations"`    // the calls that a run without a mock may send
	Only           []string            `yaml:"only"`           // globs of clauses
	Skip           []string            `yaml:"skip"`           // globs of clauses
	Clients        []string            `yaml:"clients"`        // whose refusals the area profile tests: claude, openai, gemini; default: all
	Contract       string              `yaml:"contract"`       // version of the contract; default: the latest released
	Wire           string              `yaml:"wire"`           // front: MUSTs that need to see more than the front side do not count while they cannot be tested
	Strict         bool                `yaml:"strict"`         // warnings fail the run
	Baseline       string              `yaml:"baseline"`       // file of known failures, beside this file
	ReportDir      string              `yaml:"report_dir"`     // default bridgecheck-report
	Seed           int64               `yaml:"seed"`           // seed of the generated cases; default 1
	Cases          int                 `yaml:"cases"`          // maximum of generated cases, and of tools to describe, in one check; default 400

	path     string
	lines    map[string]int // of keys, for errors that are found later
	resolved []string       // the values of all secrets that were read
	sessions []Session      // that logins opened
}

// ForOneBridge names a key that applies to one bridge in particular, and not to the run as a whole; "" where there is none.
func (f *File) ForOneBridge() string {
	return f.firstGiven("identities", "wrong_tokens", "implementation", "tls", "proxy", "invocations", "settings.invalidate")
}

// Implementation names the bridge in the report.
type Implementation struct {
	Name         string `yaml:"name"`
	Version      string `yaml:"version"`
	Organisation string `yaml:"organisation"`
	Contact      string `yaml:"contact"`
}

// Identity is how one caller authenticates: by exactly one of Basic, Bearer, Login and ClientCredentials, or by Headers.
type Identity struct {
	Basic             *Password         `yaml:"basic"`
	Bearer            *Secret           `yaml:"bearer"`
	Login             *Login            `yaml:"login"`
	ClientCredentials *Client           `yaml:"client_credentials"`
	Headers           map[string]Secret `yaml:"headers"`
}

// Password authenticates by HTTP Basic.
type Password struct {
	User     string `yaml:"user"`
	Password Secret `yaml:"password"`
}

// Login opens a session at a Drupal site for its cookie.
type Login struct {
	URL      string `yaml:"url"` // of the site; default: the bridge's
	User     string `yaml:"user"`
	Password Secret `yaml:"password"`
}

// Client fetches a bearer token by OAuth 2 client credentials.
type Client struct {
	TokenURL string `yaml:"token_url"`
	ID       string `yaml:"client_id"`
	Secret   Secret `yaml:"client_secret"`
	Scope    string `yaml:"scope"`
}

// Secret is where a secret comes from: an environment variable or a file. It never stands in the configuration itself.
type Secret struct {
	Env  string `yaml:"env"`
	File string `yaml:"file"`
}

// WrongKind says what to write in place of the secret itself.
func (Secret) WrongKind() string {
	return "a secret may not stand in this file: write {env: VARIABLE} or {file: PATH}"
}

// Settings are how the bridge is configured; what is left out is unknown, and clauses that need it are not testable.
type Settings struct {
	PageSize        int         `yaml:"page_size"`        // tools on a full page; default 50
	DiscoveryTTL    Duration    `yaml:"discovery_ttl"`    // how long it may show a changed site's old state
	UpstreamTimeout Duration    `yaml:"upstream_timeout"` // how long it waits for the site
	RateLimit       int         `yaml:"rate_limit"`       // calls of one caller that it takes at once
	Invalidate      *Invalidate `yaml:"invalidate"`       // the call that empties its cache
	Include         []string    `yaml:"include"`          // patterns of methods that are tools; default: the contract's
	Exclude         []string    `yaml:"exclude"`          // patterns of methods that are none; default: the contract's
}

// Invalidate is the call that empties the bridge's cache.
type Invalidate struct {
	Method   string `yaml:"method"` // default POST
	Path     string `yaml:"path"`
	Identity string `yaml:"identity"`
}

// TLS says how the bridge's certificate is checked and ours is shown.
type TLS struct {
	CA       string `yaml:"ca"`       // file of certificates to trust beside the system's
	Cert     string `yaml:"cert"`     // file of our certificate
	Key      string `yaml:"key"`      // file of its key
	Insecure bool   `yaml:"insecure"` // trust any certificate; the run warns
}

// Invocation is a call that a run without a mock may make: of a tool that is known to be safe.
type Invocation struct {
	Tool      string    `yaml:"tool"`
	Identity  string    `yaml:"identity"` // default agent
	Arguments yaml.Node `yaml:"arguments"`
	Expect    Expect    `yaml:"expect"`
}

// Expect is the response that an invocation must give.
type Expect struct {
	Status int       `yaml:"status"` // default 200
	Result yaml.Node `yaml:"result"` // any JSON; default: any result
}

// Duration is a time as Go writes it: 1s, 250ms, 5m.
type Duration time.Duration

// UnmarshalYAML reads a duration and says what one looks like.
func (d *Duration) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.ParseDuration(node.Value)
	if err != nil || parsed <= 0 {
		return fmt.Errorf("%q is no duration: write for example 1s, 250ms or 5m", node.Value)
	}
	*d = Duration(parsed)
	return nil
}
