// Package settings reads the file of `bridgecheck run --config`: the bridge, the credentials of each identity, what the
// bridge claims and which tools may be invoked. It is strict: an unknown key, a wrong type and a secret that stands in the file itself are errors with file
// and line. It resolves secrets from the environment and from files, and never shows one.
package settings

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// File is a configuration as written. The table of settings documents each key, with unit and default.
type File struct {
	URL            string              `yaml:"url"`
	Exec           string              `yaml:"exec"`
	MCPStdio       string              `yaml:"mcp_stdio"`
	Env            []string            `yaml:"env"`
	MockListen     string              `yaml:"mock_listen"`
	Drupal         string              `yaml:"drupal"`
	DrupalProxy    string              `yaml:"drupal_proxy"`
	Implementation Implementation      `yaml:"implementation"`
	Capabilities   []string            `yaml:"capabilities"`
	Identities     map[string]Identity `yaml:"identities"`
	WrongTokens    map[string]Secret   `yaml:"wrong_tokens"`
	Settings       Settings            `yaml:"settings"`
	TLS            TLS                 `yaml:"tls"`
	Proxy          string              `yaml:"proxy"`
	Rate           float64             `yaml:"rate"`
	Timeout        Duration            `yaml:"timeout"`
	RunTimeout     Duration            `yaml:"run_timeout"`
	Invocations    []Invocation        `yaml:"invocations"`
	ReportDir      string              `yaml:"report_dir"`
	Scope          `yaml:",inline"`

	path     string
	lines    map[string]int // of keys, for errors that are found later
	resolved []string       // the values of all secrets that were read
	sessions []Session      // that logins opened
}

// Scope is which clauses are tested, with how many cases, and what is held against the bridge.
type Scope struct {
	Only     []string `yaml:"only"`
	Skip     []string `yaml:"skip"`
	Clients  []string `yaml:"clients"`
	Contract string   `yaml:"contract"`
	Wire     string   `yaml:"wire"`
	Strict   bool     `yaml:"strict"`
	Baseline string   `yaml:"baseline"`
	Seed     int64    `yaml:"seed"`
	Cases    int      `yaml:"cases"`
	Sample   int      `yaml:"sample"`
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
	URL      string `yaml:"url"`
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
	PageSize        int         `yaml:"page_size"`
	DiscoveryTTL    Duration    `yaml:"discovery_ttl"`
	UpstreamTimeout Duration    `yaml:"upstream_timeout"`
	RateLimit       int         `yaml:"rate_limit"`
	Invalidate      *Invalidate `yaml:"invalidate"`
	Include         []string    `yaml:"include"`
	Exclude         []string    `yaml:"exclude"`
}

// Invalidate is the call that empties the bridge's cache.
type Invalidate struct {
	Method   string `yaml:"method"`
	Path     string `yaml:"path"`
	Identity string `yaml:"identity"`
}

// TLS says how the bridge's certificate is checked and ours is shown.
type TLS struct {
	CA       string `yaml:"ca"`
	Cert     string `yaml:"cert"`
	Key      string `yaml:"key"`
	Insecure bool   `yaml:"insecure"`
}

// Invocation is a call that a run without a mock may make: of a tool that is known to be safe.
type Invocation struct {
	Tool      string    `yaml:"tool"`
	Identity  string    `yaml:"identity"`
	Arguments yaml.Node `yaml:"arguments"`
	Expect    Expect    `yaml:"expect"`
}

// Expect is the response that an invocation must give.
type Expect struct {
	Status int       `yaml:"status"`
	Result yaml.Node `yaml:"result"`
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
