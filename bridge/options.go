package bridge

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
	"github.com/bridgecheck/bridgecheck/bridge/filter"
	"github.com/bridgecheck/bridgecheck/bridge/invoke"
	"github.com/bridgecheck/bridgecheck/bridge/observe"
	"github.com/bridgecheck/bridgecheck/bridge/origin"
	"github.com/bridgecheck/bridgecheck/bridge/translate"
)

// Options is everything that can be said about a bridge, whether by flag, environment, configuration file or library.
// The zero value of a field means its default; only Drupal has none. What each field means, with its unit and default,
// stands in the table of settings, once.
type Options struct {
	Drupal      string
	Listen      string
	AdminListen string
	PlainHTTP   bool
	BasePath    string

	ToolOptions
	DiscoveryOptions
	CallOptions
	CallerOptions
	OAuthOptions
	ServingOptions

	Transport http.RoundTripper // how the site is reached; nil: a pooled transport of the bridge's own
	Now       func() time.Time  // the clock of all TTLs and rates; nil: time.Now
	Logger    *slog.Logger      // nil: nothing is logged

	warnings []string // about the files that the options were read from
}

// ToolOptions say which methods of the site become tools, and how a tool is described.
type ToolOptions struct {
	Source      SourceKind
	Expose      discovery.Exposure
	Visibility  Visibility
	Include     []string
	Exclude     []string
	ReadOnly    bool
	Naming      filter.Naming
	PageSize    int
	LazySchemas bool
	Types       map[string]translate.FieldType

	TargetMethod string
	TargetValue  string
	TargetMax    int
}

// DiscoveryOptions say how long, and for how many callers, the site's list of methods is cached.
type DiscoveryOptions struct {
	DiscoveryTTL  time.Duration
	PermissionTTL time.Duration
	RefusedTTL    time.Duration
	MaxStale      time.Duration
	StaleAfter    time.Duration
	Background    time.Duration
	MaxCallers    int
	MaxDiscovery  int
	Languages     []string
}

// CallOptions bound the requests to the site and the calls of tools.
type CallOptions struct {
	UpstreamTimeout time.Duration
	MaxAnswer       int64
	MaxInFlight     int
	MaxWaiting      int
	UpstreamCA      string
	Output          invoke.OutputCheck
	RatePerSec      float64
	RateBurst       int
}

// CallerOptions say whose credentials the bridge accepts and forwards, and how many wrong ones.
type CallerOptions struct {
	Credentials     []caller.Scheme
	ServiceUser     string
	ServicePassword caller.Secret
	ServiceTokens   []caller.Secret
	AccountFailures int
	AddressFailures int
	TotalFailures   int
	TrustedProxies  []string
	ForwardAddress  bool
	AdminMethod     string
	AdminTokens     []caller.Secret
}

// OAuthOptions name the authorization server whose access tokens the bridge accepts.
type OAuthOptions struct {
	OAuthIssuer       string
	OAuthResource     string
	OAuthAudience     []string
	OAuthJWKS         string
	OAuthExchange     string
	OAuthIntrospect   bool
	OAuthClient       string
	OAuthClientSecret caller.Secret
}

// ServingOptions bound what callers cost in memory, connections and time, and say how the bridge serves them.
type ServingOptions struct {
	MaxBody                 int64
	MaxBuffered             int64
	MaxConnections          int
	MaxConnectionsPerClient int

	BodyTimeout    time.Duration
	HeaderTimeout  time.Duration
	RequestTimeout time.Duration
	DrainPause     time.Duration
	WriteTimeout   time.Duration
	SessionIdle    time.Duration
	SessionLife    time.Duration
	SessionKeys    []caller.Secret
	Shared         string
	AllowedHosts   []string
	AuditLog       string
	TLSCert        string
	TLSKey         string
}

// SourceKind says where the site's methods are discovered.
type SourceKind string

// The sources: GET /jsonrpc/methods, or the MCP module's own /mcp/tools/list.
const (
	SourceJSONRPC SourceKind = "jsonrpc"
	SourceModule  SourceKind = "module"
)

// Visibility says whose tools a caller is shown.
type Visibility string

// Filtered: the caller's own. Broad: all that the service account sees; running stays guarded by the site, which is
// called with the caller's own credentials.
const (
	VisibilityFiltered Visibility = "filtered"
	VisibilityBroad    Visibility = "broad"
)

// withDefaults fills in what was left out and refuses what cannot be.
func (o Options) withDefaults() (Options, *url.URL, error) {
	for _, s := range Settings() {
		if s.Default == "" || !s.unset(&o) {
			continue
		}
		if err := s.Set(&o, s.Default); err != nil {
			return o, nil, err
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = observe.Bounded(o.Logger)
	site, err := origin.ParseAddress(o.Drupal)
	if err == nil && strings.HasSuffix(strings.TrimRight(site.Path, "/"), "/jsonrpc") { // as guides to the module print it
		err = errors.New("leave /jsonrpc out, which the bridge adds")
	}
	if err != nil {
		return o, nil, fmt.Errorf("drupal: %q is not the base address of a site, such as https://example.com: %w", redactURL(o.Drupal), err)
	}
	o.RequestTimeout = cmp.Or(o.RequestTimeout, o.UpstreamTimeout+requestSpare)
	if o.BasePath == "" && strings.HasSuffix(o.OAuthResource, "/mcp") {
		if resource, err := origin.ParseAddress(o.OAuthResource); err == nil {
			o.BasePath = strings.TrimSuffix(resource.Path, "/mcp")
		}
	}
	o.BasePath = strings.TrimSuffix(o.BasePath, "/")
	return o, site, o.consistent()
}

// requestSpare is by how much request_timeout exceeds upstream_timeout where it is not set: for the body, and for waiting
// for a list or for a place at the site. With the default the sum is 55 s, below the 60 s that proxies wait for a response.
const requestSpare = 25 * time.Second

// basePaths are paths that need no escaping.
var basePaths = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)

// consistent refuses combinations that mean nothing.
func (o Options) consistent() error {
	broad := o.Visibility == VisibilityBroad
	asks := o.OAuthExchange != "" || o.OAuthIntrospect // the authorization server, as a client
	switch service := o.ServiceUser != "" || o.ServicePassword != "" || len(o.ServiceTokens) > 0; {
	case o.BasePath != "" && !basePaths.MatchString(o.BasePath):
		return fmt.Errorf("base_path: %q must be a path such as /drupal-tools", o.BasePath)
	case o.RequestTimeout < o.UpstreamTimeout:
		return fmt.Errorf("request_timeout (%s) must be at least upstream_timeout (%s), which is part of it", o.RequestTimeout, o.UpstreamTimeout)
	case o.PageSize < 1 || o.MaxCallers < 1 || o.MaxAnswer < 1 || o.MaxBody < 1:
		return fmt.Errorf("page_size, max_callers, max_answer and max_body must be positive")
	case broad && (o.ServiceUser == "" || o.ServicePassword == ""):
		return fmt.Errorf("visibility broad needs service_user and a password: the account that discovers for all callers")
	case broad && len(o.ServiceTokens) > 0:
		return fmt.Errorf("service_tokens let callers act as the service account, and with visibility broad they call as themselves: leave one of the two out")
	case !broad && service && (o.ServiceUser == "" || o.ServicePassword == "" || len(o.ServiceTokens) == 0):
		return fmt.Errorf("a service account needs service_user, a password and at least one front-end token (without tokens everybody would act as the account), or visibility broad")
	case o.OAuthIssuer == "" && (o.OAuthResource != "" || o.OAuthAudience != nil || o.OAuthJWKS != ""):
		return fmt.Errorf("oauth_resource, oauth_audience and oauth_jwks mean nothing without oauth_issuer")
	case o.OAuthIssuer == "" && (o.OAuthExchange != "" || o.OAuthIntrospect):
		return fmt.Errorf("oauth_exchange and oauth_introspection mean nothing without oauth_issuer")
	case asks != (o.OAuthClient != "") || asks != (o.OAuthClientSecret != ""):
		return fmt.Errorf("oauth_exchange or oauth_introspection, oauth_client and oauth_client_secret go together: the authorization server responds to clients that it knows")
	case o.OAuthIssuer != "" && o.OAuthResource == "":
		return fmt.Errorf("oauth_issuer needs oauth_resource: the bridge cannot know by which address clients reach it")
	case o.OAuthIssuer != "" && len(o.ServiceTokens) > 0:
		return fmt.Errorf("oauth_issuer and service_tokens are two ways in: leave one of them out")
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return fmt.Errorf("tls_cert and tls_key go together")
	case o.LazySchemas && o.Source == SourceModule:
		return fmt.Errorf("lazy_schemas works with the source jsonrpc only: the module's list has the schemas in it")
	}
	return nil
}

// redactURL keeps a password out of a message.
func redactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.User == nil {
		return s
	}
	return u.Redacted()
}
