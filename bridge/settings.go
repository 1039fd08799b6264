package bridge

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/discovery"
	"github.com/bridgecheck/bridgecheck/bridge/filter"
	"github.com/bridgecheck/bridgecheck/bridge/invoke"
	"github.com/bridgecheck/bridgecheck/internal/authkind"
)

// Setting is one option as an operator meets it: by this name in the configuration file, with dashes as a flag, and in
// the environment. The table is what --help and the documentation print.
type Setting struct {
	Name    string
	Env     string // "": not settable there
	Default string // as text; "": nothing
	Kind    string // bool, int, duration or string, as help shows it
	Help    string
	Secret  bool // no flag and no plain text in a file: by environment, or by the setting of the same name with _file

	set   func(*Options, string) error
	unset func(*Options) bool
}

// Flag is the setting's name on the command line.
func (s Setting) Flag() string { return strings.ReplaceAll(s.Name, "_", "-") }

// Set reads a value from text: a duration as 90s or a number of seconds, a list with commas between its items.
func (s Setting) Set(o *Options, text string) error {
	if err := s.set(o, text); err != nil {
		if s.Secret {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		return fmt.Errorf("%s: %q %w", s.Name, text, err)
	}
	return nil
}

// Settings is the table of all options.
func Settings() []Setting {
	return []Setting{
		textSetting("drupal", "DRUPAL_URL", "",
			"base address of the site, http or https, without /jsonrpc", func(o *Options) *string { return &o.Drupal }),
		textSetting("listen", "BRIDGE_LISTEN", "127.0.0.1:8081",
			"host:port to listen on; port 0 takes a free one", func(o *Options) *string { return &o.Listen }),
		textSetting("admin_listen", "BRIDGE_ADMIN_LISTEN", "",
			"host:port of a second listener for /healthz, /readyz, /metrics and /mcp/admin/, of which /metrics and /mcp/admin/ are then no longer served by the first; callers cannot hold its connections",
			func(o *Options) *string { return &o.AdminListen }),
		flagSetting("plain_http",
			"no warning where the bridge listens beyond this machine without tls_cert: a proxy in front encrypts",
			func(o *Options) *bool { return &o.PlainHTTP }),
		textSetting("base_path", "BRIDGE_BASE_PATH", "",
			"path below which a proxy serves the bridge, such as /drupal, whether the proxy removes it or not; if unset, the path of oauth_resource before /mcp",
			func(o *Options) *string { return &o.BasePath }),

		choice("source", "jsonrpc",
			"where methods are discovered: jsonrpc (/jsonrpc/methods) or module (/mcp/tools/list of the MCP module)",
			func(o *Options) *SourceKind { return &o.Source }, SourceJSONRPC, SourceModule),
		choice("expose", "auto",
			"what makes a method a tool: attribute, patterns, or auto (the attribute where the site shows it, else patterns)",
			func(o *Options) *discovery.Exposure { return &o.Expose }, discovery.ExposeAuto, discovery.ExposeAttribute, discovery.ExposePatterns),
		choice("visibility", "filtered",
			"which tools a caller sees: filtered (those that the site lets the caller run) or broad (all that service_user sees; calls run as the caller)",
			func(o *Options) *Visibility { return &o.Visibility }, VisibilityFiltered, VisibilityBroad),
		listSetting("include", "BRIDGE_INCLUDE",
			"patterns of the ids of methods that become tools; * matches any characters; if unset: "+strings.Join(filter.DefaultInclude, ", ")+" where there is no attribute",
			func(o *Options) *[]string { return &o.Include }),
		listSetting("exclude", "BRIDGE_EXCLUDE",
			"patterns of the ids of methods that do not become tools, whatever include says; if unset: "+strings.Join(filter.DefaultExclude, ", ")+" where there is no attribute",
			func(o *Options) *[]string { return &o.Exclude }),
		flagSetting("read_only",
			"only tools that change nothing: readOnlyHint is true or, where a method has no hint, its id ends like that of a reading method, such as content.list",
			func(o *Options) *bool { return &o.ReadOnly }),
		choice("naming", "id",
			"tool names: id (unchanged) or underscore (all but letters, digits, _ and - turned into _, at most 64 characters)",
			func(o *Options) *filter.Naming { return &o.Naming }, filter.NamingID, filter.NamingUnderscore),
		number("page_size", "BRIDGE_PAGE_SIZE", "50",
			"tools on a page of the list", func(o *Options) *int { return &o.PageSize }),
		flagSetting("lazy_schemas",
			"read /jsonrpc/methods as an index and fetch a tool's schemas from /jsonrpc/methods/{id} when it is first shown or called: one request per tool, and no look-up for entity_reference",
			func(o *Options) *bool { return &o.LazySchemas }),
		textSetting("target_method", "", "{target}.list",
			"method that lists the valid values of an entity_reference; {target} is the entity type; called only if the caller sees it; none: no look-up",
			func(o *Options) *string { return &o.TargetMethod }),
		textSetting("target_value", "", "id",
			"member of the items that target_method returns that holds the value", func(o *Options) *string { return &o.TargetValue }),
		number("target_max", "", "100",
			"longest enum of such values; if there are more, the entity_reference accepts any string",
			func(o *Options) *int { return &o.TargetMax }),

		duration("discovery_ttl", "BRIDGE_DISCOVERY_TTL", "300s",
			"how long the site's tools are cached; the shorter of this and permission_ttl applies, except with lazy_schemas",
			func(o *Options) *time.Duration { return &o.DiscoveryTTL }),
		duration("permission_ttl", "BRIDGE_PERMISSION_TTL", "60s",
			"how long the tools of one caller are cached; a call always goes to the site, which checks permissions",
			func(o *Options) *time.Duration { return &o.PermissionTTL }),
		duration("refused_ttl", "", "5s",
			"how long a refused caller is remembered, no longer than permission_ttl",
			func(o *Options) *time.Duration { return &o.RefusedTTL }),
		duration("max_stale", "", "1h",
			"how old a cached list may be that is served while the site fails",
			func(o *Options) *time.Duration { return &o.MaxStale }),
		duration("stale_after", "", "2s",
			"how long a request for the list waits for a slow site before a cached list is served",
			func(o *Options) *time.Duration { return &o.StaleAfter }),
		duration("background", "", "",
			"refresh the tools of callers seen within this time in the background; if unset, only those of callers who listen for changes",
			func(o *Options) *time.Duration { return &o.Background }),
		number("max_callers", "", "10000", "callers whose tools are cached", func(o *Options) *int { return &o.MaxCallers }),

		number("max_discovery", "", "32",
			"discoveries that run at the same time; more wait", func(o *Options) *int { return &o.MaxDiscovery }),
		listSetting("languages", "BRIDGE_LANGUAGES",
			"codes of the site's languages, such as en, pt-br: the site receives the one that Accept-Language prefers; if unset, all of ISO 639-1 are accepted",
			func(o *Options) *[]string { return &o.Languages }),

		duration("upstream_timeout", "BRIDGE_UPSTREAM_TIMEOUT", "30s",
			"time limit of one request to the site, from connecting to the last byte",
			func(o *Options) *time.Duration { return &o.UpstreamTimeout }),
		number("max_answer", "", "16777216",
			"longest response of the site to a call, in bytes; its list of methods may be 8 times as long", func(o *Options) *int64 { return &o.MaxAnswer }),
		number("max_in_flight", "", "256",
			"requests that run at the site at the same time; one caller has at most twice as many as remain free", func(o *Options) *int { return &o.MaxInFlight }),
		number("max_waiting", "", "1024",
			"requests that may wait until max_in_flight allows them, the caller with the fewest first; more get 503",
			func(o *Options) *int { return &o.MaxWaiting }),
		textSetting("upstream_ca", "BRIDGE_UPSTREAM_CA", "",
			"file of CA certificates (PEM) that the bridge trusts for the site, beside the system's",
			func(o *Options) *string { return &o.UpstreamCA }),

		choice("output", "pass",
			"results that break their tool's output schema: pass, warn (in the log) or refuse",
			func(o *Options) *invoke.OutputCheck { return &o.Output }, invoke.OutputPass, invoke.OutputWarn, invoke.OutputRefuse),
		rateSetting("rate_limit", "BRIDGE_RATE_LIMIT",
			"calls per second that one caller may make to one tool; if unset, any number",
			func(o *Options) *float64 { return &o.RatePerSec }),
		number("rate_burst", "", "10",
			"calls that may come at once under rate_limit", func(o *Options) *int { return &o.RateBurst }),

		schemes("credentials", "basic,bearer",
			"authentication schemes that are forwarded to the site: "+strings.Join(authkind.Names(), ", "),
			func(o *Options) *[]caller.Scheme { return &o.Credentials }),
		textSetting("service_user", "BRIDGE_SERVICE_USER", "",
			"account of the site with which all callers act, by service_tokens, or which discovers for all callers where visibility is broad; needs service_password",
			func(o *Options) *string { return &o.ServiceUser }),
		secret("service_password",
			"BRIDGE_SERVICE_PASSWORD", "password of service_user", func(o *Options) *caller.Secret { return &o.ServicePassword }),
		secrets("service_tokens", "BRIDGE_SERVICE_TOKENS",
			"bearer tokens of callers who act as service_user",
			func(o *Options) *[]caller.Secret { return &o.ServiceTokens }),
		number("auth_account_failures", "", "4",
			"refusals of one account name in 6 hours; then new credentials for it get 429; below Drupal's user.flood user_limit",
			func(o *Options) *int { return &o.AccountFailures }),
		number("auth_address_failures", "BRIDGE_AUTH_ADDRESS_FAILURES", "20",
			"different credentials from one client address that the site or the bridge refuses in 1 hour; then new ones from there get 429",
			func(o *Options) *int { return &o.AddressFailures }),
		number("auth_total_failures", "BRIDGE_AUTH_TOTAL_FAILURES", "40",
			"refusals of account names in 1 hour over all clients; below Drupal's user.flood ip_limit, which counts the bridge's address; not counted with forward_address",
			func(o *Options) *int { return &o.TotalFailures }),
		listSetting("trusted_proxies", "BRIDGE_TRUSTED_PROXIES",
			"addresses and networks of proxies in front of the bridge whose X-Forwarded-For names the client",
			func(o *Options) *[]string { return &o.TrustedProxies }),
		flagSetting("forward_address",
			"send the client's address to the site in X-Forwarded-For; the site must trust the bridge as a reverse proxy",
			func(o *Options) *bool { return &o.ForwardAddress }),
		textSetting("admin_method", "", "cache.rebuild",
			"callers who see this method on the site may use /mcp/admin/; none: only admin_tokens may",
			func(o *Options) *string { return &o.AdminMethod }),
		secrets("admin_tokens", "BRIDGE_ADMIN_TOKENS",
			"bearer tokens that may use /mcp/admin/", func(o *Options) *[]caller.Secret { return &o.AdminTokens }),

		textSetting("oauth_issuer", "BRIDGE_OAUTH_ISSUER", "",
			"authorization server, as named in the claim iss: only its access tokens (JWT, or any with oauth_introspection) are accepted; verified tokens are forwarded to the site, unless oauth_exchange is set",
			func(o *Options) *string { return &o.OAuthIssuer }),
		textSetting("oauth_resource", "BRIDGE_OAUTH_RESOURCE", "",
			"address of the bridge's /mcp as clients know it, for its metadata", func(o *Options) *string { return &o.OAuthResource }),
		listSetting("oauth_audience", "BRIDGE_OAUTH_AUDIENCE",
			"accepted values of a token's claim aud; if unset, oauth_resource", func(o *Options) *[]string { return &o.OAuthAudience }),
		textSetting("oauth_jwks", "BRIDGE_OAUTH_JWKS", "",
			"address of the issuer's keys; if unset, the one in the issuer's metadata", func(o *Options) *string { return &o.OAuthJWKS }),
		textSetting("oauth_exchange", "BRIDGE_OAUTH_EXCHANGE", "",
			"the site as the issuer knows it, a URL (parameter resource) or another name (audience): callers' tokens are exchanged for tokens of the site (RFC 8693)",
			func(o *Options) *string { return &o.OAuthExchange }),
		flagSetting("oauth_introspection",
			"access tokens may be opaque: the issuer is asked about each (RFC 7662), and its word is kept for 30 s", func(o *Options) *bool { return &o.OAuthIntrospect }),
		textSetting("oauth_client", "BRIDGE_OAUTH_CLIENT", "",
			"client as which the bridge exchanges tokens and asks about them", func(o *Options) *string { return &o.OAuthClient }),
		secret("oauth_client_secret", "BRIDGE_OAUTH_CLIENT_SECRET",
			"secret of oauth_client", func(o *Options) *caller.Secret { return &o.OAuthClientSecret }),

		number("max_body", "", "2097152",
			"longest request body, in bytes: a picture of 1.5 MB in base64 fits; raise it for tools that take larger files",
			func(o *Options) *int64 { return &o.MaxBody }),
		number("max_buffered", "", "134217728",
			"bytes of memory for the request bodies and results of all requests together, beyond 16 KiB of each, at least four times the longest of them; one caller has at most two thirds; what does not fit gets 503",
			func(o *Options) *int64 { return &o.MaxBuffered }),
		number("max_connections", "", "4096",
			"open connections; more get 503 and are closed", func(o *Options) *int { return &o.MaxConnections }),
		number("max_connections_per_client", "", "1024",
			"open connections from one client address; behind a proxy, whose address all callers share, raise it to max_connections",
			func(o *Options) *int { return &o.MaxConnectionsPerClient }),
		duration("body_timeout", "", "10s",
			"how long a request's body may take to arrive", func(o *Options) *time.Duration { return &o.BodyTimeout }),
		duration("header_timeout", "", "5s",
			"how long a request's header may take to arrive", func(o *Options) *time.Duration { return &o.HeaderTimeout }),
		duration("request_timeout", "", "",
			"how long a request may take from its header to the first byte of its response, whatever it waits for; streams have no limit; if unset, 25 s more than upstream_timeout",
			func(o *Options) *time.Duration { return &o.RequestTimeout }),
		duration("drain_pause", "BRIDGE_DRAIN_PAUSE", "",
			"how long the bridge goes on serving after SIGTERM while /readyz and / say 503, so that proxies stop sending to it first; longer than a proxy takes to notice; if unset, not at all",
			func(o *Options) *time.Duration { return &o.DrainPause }),
		duration("write_timeout", "", "30s",
			"how long a caller may take to accept each 64 KiB of a response, or an event of a stream",
			func(o *Options) *time.Duration { return &o.WriteTimeout }),
		duration("session_idle", "", "1h",
			"how long an MCP session may go unused, without session_keys", func(o *Options) *time.Duration { return &o.SessionIdle }),
		duration("session_life", "", "24h",
			"how long an MCP session lasts with session_keys, used or not", func(o *Options) *time.Duration { return &o.SessionLife }),
		secrets("session_keys", "BRIDGE_SESSION_KEYS",
			"secrets of 32+ characters that encrypt MCP sessions",
			func(o *Options) *[]caller.Secret { return &o.SessionKeys }),
		textSetting("shared", "BRIDGE_SHARED", "",
			"store that replicas share, such as redis://127.0.0.1:6379 (Valkey or Redis; rediss:// for TLS): rate_limit and the auth_ limits count over all of them, ended sessions and invalidations reach all; needs session_keys; without the store each replica goes on alone",
			func(o *Options) *string { return &o.Shared }),
		listSetting("allowed_hosts", "BRIDGE_ALLOWED_HOSTS",
			"accepted host names in the Host header; if unset, any, but on loopback connections only those of this machine and of oauth_resource",
			func(o *Options) *[]string { return &o.AllowedHosts }),
		textSetting("audit_log", "BRIDGE_AUDIT_LOG", "",
			"file that gets a JSON line for each call: who ran which tool, when, with what outcome; opened again on SIGHUP",
			func(o *Options) *string { return &o.AuditLog }),
		textSetting("tls_cert", "BRIDGE_TLS_CERT", "",
			"file of the bridge's own certificate (PEM); with tls_key the bridge serves https; read again when it changes",
			func(o *Options) *string { return &o.TLSCert }),
		textSetting("tls_key", "BRIDGE_TLS_KEY", "", "file of the key of tls_cert (PEM)", func(o *Options) *string { return &o.TLSKey }),
	}
}

// FromEnv overrides options by what the environment says; BRIDGE_…_FILE names a file that holds a secret.
func (o *Options) FromEnv(getenv func(string) string) error {
	for _, s := range Settings() {
		if s.Env == "" {
			continue
		}
		text := getenv(s.Env)
		if file := getenv(s.Env + "_FILE"); s.Secret && file != "" {
			var err error
			if text, err = o.readSecret(file); err != nil {
				return fmt.Errorf("%s_FILE: %w", s.Env, err)
			}
		}
		if text == "" {
			continue
		}
		if err := s.Set(o, text); err != nil {
			return fmt.Errorf("environment %s: %w", s.Env, err)
		}
	}
	return nil
}

// Flags returns a flag for every setting but the secrets; parsing them overrides o.
func (o *Options) Flags() *flag.FlagSet {
	fs := flag.NewFlagSet("bridge", flag.ContinueOnError)
	for _, s := range Settings() {
		if s.Secret {
			continue
		}
		fs.Func(s.Flag(), s.Usage(), func(text string) error { return s.Set(o, text) })
	}
	return fs
}

// Usage is the help with the default and the environment variable.
func (s Setting) Usage() string {
	usage := s.Help
	if s.Default != "" {
		usage += " (default " + s.Default + ")"
	}
	if s.Env != "" {
		usage += " (" + s.Env + ")"
	}
	return usage
}

// readSecret reads a file that holds one secret, or several on lines of their own.
func (o *Options) readSecret(file string) (string, error) {
	b, err := readShort(file)
	if err != nil {
		return "", err
	}
	o.checkMode(file)
	return strings.ReplaceAll(strings.TrimSpace(string(b)), "\n", ","), nil
}

// setting makes a Setting of a field and a way to read it.
func setting[T any](name, env, def, help string, at func(*Options) *T, unset func(T) bool, read func(string) (T, error)) Setting {
	return Setting{
		Name: name, Env: env, Default: def, Help: help, Kind: kindOf[T](),
		unset: func(o *Options) bool { return unset(*at(o)) },
		set: func(o *Options, text string) error {
			v, err := read(text)
			if err == nil {
				*at(o) = v
			}
			return err
		},
	}
}

// kindOf names what a setting of a type takes.
func kindOf[T any]() string {
	switch any(*new(T)).(type) {
	case bool:
		return "bool"
	case int, int64, float64:
		return "int"
	case time.Duration:
		return "duration"
	}
	return "string"
}

func isZero[T comparable](v T) bool { var zero T; return v == zero }

func isNil[T any](v []T) bool { return v == nil }

func textSetting(name, env, def, help string, at func(*Options) *string) Setting {
	return setting(name, env, def, help, at, isZero, func(s string) (string, error) { return s, nil })
}

func flagSetting(name, help string, at func(*Options) *bool) Setting {
	return setting(name, "BRIDGE_"+strings.ToUpper(name), "", help, at, isZero, func(s string) (bool, error) {
		v, err := strconv.ParseBool(s)
		return v, complain(err, "must be true or false")
	})
}

func number[T int | int64](name, env, def, help string, at func(*Options) *T) Setting {
	return setting(name, env, def, help, at, isZero, func(s string) (T, error) {
		v, err := strconv.ParseInt(s, 10, 64)
		if err == nil && v < 1 {
			err = strconv.ErrRange
		}
		return T(v), complain(err, "must be a whole number above 0")
	})
}

func rateSetting(name, env, help string, at func(*Options) *float64) Setting {
	return setting(name, env, "", help, at, isZero, func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err == nil && !(v > 0 && v <= 1e6) {
			err = strconv.ErrRange
		}
		return v, complain(err, "must be a number above 0")
	})
}

func duration(name, env, def, help string, at func(*Options) *time.Duration) Setting {
	return setting(name, env, def, help, at, isZero, func(s string) (time.Duration, error) {
		if _, err := strconv.ParseFloat(s, 64); err == nil {
			s += "s" // a bare number is seconds
		}
		v, err := time.ParseDuration(s)
		if err == nil && v <= 0 {
			err = strconv.ErrRange
		}
		return v, complain(err, "must be a time above 0, such as 90s, 5m or a number of seconds")
	})
}

func choice[T ~string](name, def, help string, at func(*Options) *T, of ...T) Setting {
	return setting(name, "BRIDGE_"+strings.ToUpper(name), def, help, at, isZero, func(s string) (T, error) {
		if slices.Contains(of, T(s)) {
			return T(s), nil
		}
		return "", fmt.Errorf("must be one of %v", of)
	})
}

func listSetting(name, env, help string, at func(*Options) *[]string) Setting {
	return setting(name, env, "", help, at, isNil, func(s string) ([]string, error) { return items[string](s), nil })
}

func schemes(name, def, help string, at func(*Options) *[]caller.Scheme) Setting {
	return setting(name, "BRIDGE_CREDENTIALS", def, help, at, isNil, func(s string) ([]caller.Scheme, error) {
		list := items[caller.Scheme](s)
		for _, item := range list {
			if authkind.Of(string(item)).Name == "" {
				return nil, fmt.Errorf("must be a list of %s", strings.Join(authkind.Names(), ", "))
			}
		}
		return list, nil
	})
}

func secret(name, env, help string, at func(*Options) *caller.Secret) Setting {
	s := setting(name, env, "", help, at, isZero, func(s string) (caller.Secret, error) { return caller.Secret(s), nil })
	s.Secret = true
	return s
}

func secrets(name, env, help string, at func(*Options) *[]caller.Secret) Setting {
	s := setting(name, env, "", help, at, isNil, func(s string) ([]caller.Secret, error) { return items[caller.Secret](s), nil })
	s.Secret = true
	return s
}

// items splits a list at its commas.
func items[T ~string](s string) []T {
	list := []T{}
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, T(item))
		}
	}
	return list
}

// complain returns a message in the operator's words for an error of the standard library's.
func complain(err error, message string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s", message)
}
