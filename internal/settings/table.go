package settings

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/engine"
)

// Setting is one setting of a run as a user meets it: a flag of `run` and an input of the Action, a key of the configuration
// file, a variable. The flags, the schema of the file, docs/settings.md and the flags of the Go suite are made of the table.
type Setting struct {
	Key     string // in the configuration file; NAME and [] stand for what the user names and for items; "": none
	Flag    string // of `run`; "": none
	Env     string // variable that holds a secret, or with _FILE the name of a file that does; "": none
	Default string // as text; "": nothing
	Help    string // one line; a word in backquotes says what the flag takes
	Report  string // member of `settings` in the report; "": none
	Option  string // field of what the library takes, such as Bridge.PageSize in Options; "": none
	Bound   Bound  // of numbers and durations
	Suite   bool   // the Go suite has it, by the flag and by the variable BRIDGE_FLAG
	Local   bool   // only makes sense on a command line: the Action does not have it
	Hidden  bool   // a machine's own flag, in no help
	Lists   bool   // of a repeatable flag: it takes several with commas, too

	at func(*Values) any // pointer to its value; nil: only documented here
}

// Bound limits a number or a duration.
type Bound struct {
	AboveZero bool // else 0 is allowed, and nothing below it
	Example   string
}

// Values are what a run is told: by its configuration file, and by its command line.
type Values struct {
	File
	Command
}

// Command is what only a command line says.
type Command struct {
	Config                    string
	Claims                    []string // the changes of --capabilities
	MoreURLs, Watch           []string
	Replicas, Jobs            int
	Control, WithModule       string
	ReadyTimeout              Duration
	RerunFailed, Shard, RunID string
	OAuthLogin
	FailFast, Keep, Quiet, List, JSON bool
	Verbose                           bool
	Cleanup, ConfigSchema             bool
	WriteBaseline, Previous           string
}

// OAuthLogin says who logs in at the authorization server of the bridge, and how.
type OAuthLogin struct {
	LogIn    []string // callers
	ClientID string
	Issuer   string
	Device   bool
}

// ControlTokenEnv is where the token of a control plane comes from: others can read a command line.
const ControlTokenEnv = "BRIDGECHECK_CONTROL_TOKEN"

// ClientSecretEnv is where the secret of an OAuth client comes from.
const ClientSecretEnv = "BRIDGECHECK_CLIENT_SECRET"

// Table is all settings of a run, in the order of its help.
func Table() []Setting {
	positive := func(example string) Bound { return Bound{AboveZero: true, Example: example} }
	return []Setting{
		{Flag: "config", Suite: true, Help: "YAML `file` with the values of flags, and more; a flag overrides it", at: func(v *Values) any { return &v.Config }},
		{Key: "url", Flag: "url", Suite: true, Option: "Target.URL", at: func(v *Values) any { return &urls{&v.URL, &v.MoreURLs} },
			Help: "base `URL` of a running bridge; user:password in it (not in the file) are the credentials of the agent; again for each further replica of it"},
		{Flag: "replicas", Default: "1", Bound: positive(""), Option: "Options.Bridge.Replicas", at: func(v *Values) any { return &v.Replicas },
			Help: "with --exec: how many replicas of the bridge are started; more than 1 claims replicas"},
		{Key: "exec", Flag: "exec", at: func(v *Values) any { return &v.Exec },
			Help: "`command` that starts the bridge, split into words as a shell does; its environment has DRUPAL_URL and BRIDGE_LISTEN"},
		{Key: "mock_listen", Flag: "mock-listen", Suite: true, Report: "mock", Option: "Options.Site.Drupal", at: func(v *Values) any { return &v.MockListen },
			Help: "`HOST:PORT` for the mock Drupal behind the bridge"},
		{Key: "drupal_proxy", Flag: "drupal-proxy", Report: "recording_proxy", Option: "Options.Site.Recorder", at: func(v *Values) any { return &v.DrupalProxy },
			Help: "`HOST:PORT` for a recording proxy between the bridge and the site of --drupal; point the bridge at it"},
		{Key: "drupal", Flag: "drupal", Report: "site_methods", Option: "Options.Site.URL", at: func(v *Values) any { return &v.Drupal },
			Help: "`URL` of the real Drupal behind the bridge; its methods are read as each identity, and nothing is changed"},
		{Flag: "control", Report: "control", Option: "Options.Site.Control", at: func(v *Values) any { return &v.Control },
			Help: "`URL` of the control plane of the site of --drupal, with its token in " + ControlTokenEnv + "; checks change that site. Needs --drupal-proxy"},
		{Flag: "with-module", at: func(v *Values) any { return &v.WithModule },
			Help: "the mock Drupal behind the bridge has the endpoints of this `version` of the MCP module, faults included: v1.3 or v1.4; or mcp: of the module of that name"},
		{Key: "mcp_stdio", Flag: "mcp-stdio", Option: "Options.Bridge.Stdio", at: func(v *Values) any { return &v.MCPStdio },
			Help: "`command` that starts the bridge on stdin and stdout; with --exec, with the same environment, beside that bridge; without, a bridge that has nothing else (needs --capabilities mcp,-tools). Claims mcp-stdio"},
		{Flag: "login", Local: true, at: func(v *Values) any { return &v.LogIn },
			Help: "with --url: get the token of this `identity`, without a value agent, by a login in your browser, keep it in your configuration directory and renew it; repeatable. Claims oauth and mcp in place of auth-basic"},
		{Flag: "device", Local: true, at: func(v *Values) any { return &v.Device }, Help: "with --login: by a browser on another machine"},
		{Flag: "client-id", Local: true, at: func(v *Values) any { return &v.ClientID },
			Help: "with --login: `id` of a client at the authorization server, or the address of its metadata, with its secret in " + ClientSecretEnv + "; without it, one is registered"},
		{Flag: "issuer", Local: true, at: func(v *Values) any { return &v.Issuer },
			Help: "with --login: `URL` of the authorization server, which has to be one that the bridge names; a client with a secret needs it: its secret goes there alone"},
		{Key: "env", Flag: "env", at: func(v *Values) any { return &v.Env },
			Help: "with --exec or --mcp-stdio: `name` of an environment variable to pass to the bridge; repeatable"},
		{Flag: "ready-timeout", Default: "30s", Bound: positive("10s"), at: func(v *Values) any { return &v.ReadyTimeout },
			Help: "with --exec: how long the bridge may take until it responds as one: 502 to 504 and refused connections are waited for"},
		{Key: "capabilities", Flag: "capabilities", Lists: true, Suite: true, Option: "Options.Capabilities", at: func(v *Values) any { return &v.Claims },
			Help: "what the bridge claims: `a,b,-c` adds a and b to the default and removes c; a list in the file"},
		{Key: "settings.page_size", Flag: "page-size", Suite: true, Default: "50", Bound: positive(""), Report: "page_size", Option: "Options.Bridge.PageSize",
			at: func(v *Values) any { return &v.Settings.PageSize }, Help: "tools on a full page"},
		{Key: "settings.discovery_ttl", Flag: "discovery-ttl", Suite: true, Bound: Bound{Example: "1s"}, Report: "discovery_ttl", Option: "Options.Bridge.DiscoveryTTL",
			at:   func(v *Values) any { return &v.Settings.DiscoveryTTL },
			Help: "how long the bridge may show old tools after the site changed; 0: unknown (1s with --exec)"},
		{Key: "settings.upstream_timeout", Flag: "upstream-timeout", Suite: true, Bound: Bound{Example: "2s"}, Report: "upstream_timeout",
			Option: "Options.Bridge.UpstreamTimeout", at: func(v *Values) any { return &v.Settings.UpstreamTimeout },
			Help: "how long the bridge waits for the site; 0: unknown (2s with --exec, in whole seconds there)"},
		{Key: "only", Flag: "only", Lists: true, Suite: true, Report: "only", Option: "Options.Only", at: func(v *Values) any { return &v.Only },
			Help: "test only the clauses that this `glob` matches; repeatable, or several with commas"},
		{Key: "skip", Flag: "skip", Lists: true, Suite: true, Report: "skip", Option: "Options.Skip", at: func(v *Values) any { return &v.Skip },
			Help: "leave out the clauses that this `glob` matches; repeatable, or several with commas"},
		{Flag: "rerun-failed", Local: true, Report: "rerun_failed", at: func(v *Values) any { return &v.RerunFailed },
			Help: "test only the clauses that failed in this `report.json`, or in a directory with one; without a value, that of --report-dir"},
		{Flag: "fail-fast", at: func(v *Values) any { return &v.FailFast },
			Help: "end the run after the first MUST that fails and is not excused by the baseline"},
		{Flag: "jobs", at: func(v *Values) any { return &v.Jobs },
			Help: "`number` of workers, each with a bridge and a mock Drupal of its own, or all at the bridge of --url; 0: as many as help, at most 12"},
		{Flag: "shard", at: func(v *Values) any { return &v.Shard },
			Help: "test only the clauses of shard `I/N`, as 1/3; report merge makes one report of all"},
		{Flag: "run-id", at: func(v *Values) any { return &v.RunID },
			Help: "with --shard: `name` of the run, the same for all its shards (default that of the CI run)"},
		{Flag: "watch", Local: true, at: func(v *Values) any { return &v.Watch },
			Help: "with --exec: run again when files change, first what failed, until Ctrl-C; the `directory` to watch, without a value that of the files in the command; repeatable"},
		{Flag: "keep", Local: true, at: func(v *Values) any { return &v.Keep },
			Help: "after the run, keep the bridge and the mock Drupal running until Ctrl-C, and print their addresses and accounts on stderr"},
		{Key: "contract", Flag: "contract", Suite: true, Option: "Options.Contract", at: func(v *Values) any { return &v.Contract },
			Help: "`version` of the contract (default the latest released; draft: also clauses that are not released)"},
		{Key: "wire", Flag: "wire", Suite: true, Option: "Options.Wire", at: func(v *Values) any { return &v.Wire },
			Help: "front: MUSTs that need to see more than the `side` of the callers do not count while they cannot be tested"},
		{Key: "clients", Flag: "client", Lists: true, Report: "clients", Option: "Options.Clients", at: func(v *Values) any { return &v.Clients },
			Help: "of what MCP `clients` and model providers refuse, test what these do: claude, openai, gemini; without it, all"},
		{Key: "strict", Flag: "strict", Suite: true, Option: "Options.Strict", at: func(v *Values) any { return &v.Strict }, Help: "warnings fail the run, too"},
		{Key: "report_dir", Flag: "report-dir", Default: "bridgecheck-report", at: func(v *Values) any { return &v.ReportDir }, Help: "`directory` for the report"},
		{Key: "timeout", Flag: "timeout", Suite: true, Default: "10s", Bound: positive("10s"), Report: "timeout", Option: "Options.Connection.Timeout",
			at:   func(v *Values) any { return &v.Timeout },
			Help: "time limit of one request; if unset and the upstream time-out is as long, that and 5s"},
		{Key: "run_timeout", Flag: "run-timeout", Suite: true, Default: "10m", Bound: positive("10s"), Option: "Options.RunTimeout",
			at: func(v *Values) any { return &v.RunTimeout }, Help: "time limit of the whole run"},
		{Key: "seed", Flag: "seed", Suite: true, Default: "1", Option: "Options.Seed", at: func(v *Values) any { return &v.Seed }, Help: "seed of the generated cases"},
		{Key: "cases", Flag: "cases", Suite: true, Default: "220", Bound: positive(""), Option: "Options.Cases", at: func(v *Values) any { return &v.Cases },
			Help: "maximum of generated cases, and of tools to describe, in one check"},
		{Key: "sample", Flag: "sample", Suite: true, Report: "sample", Bound: Bound{Example: "10"}, Option: "Options.Sample", at: func(v *Values) any { return &v.Sample },
			Help: "for a slow site: test with at most this `number` of tools and cases in one check, without the checks that send most; 0: all. What passes is partial"},
		{Key: "baseline", Flag: "baseline", Option: "Options.Baseline", at: func(v *Values) any { return &v.Baseline },
			Help: "`file` of known failures; each must still fail as the file says"},
		{Flag: "write-baseline", at: func(v *Values) any { return &v.WriteBaseline }, Help: "write the failures to this `file`, as a first baseline"},
		{Flag: "previous", at: func(v *Values) any { return &v.Previous },
			Help: "earlier `report.json`, or a directory with one; the report lists what changed since"},
		{Key: "implementation.name", Flag: "implementation", Option: "Target.Name", at: func(v *Values) any { return &v.Implementation.Name },
			Help: "`name` of the bridge, for the report"},
		{Key: "implementation.version", Flag: "implementation-version", Option: "Target.Version", at: func(v *Values) any { return &v.Implementation.Version },
			Help: "`version` of the bridge, for the report"},
		{Key: "implementation.organisation", Flag: "organisation", Option: "Target.Organisation", at: func(v *Values) any { return &v.Implementation.Organisation },
			Help: "`name` of the organisation that makes the bridge, for the report"},
		{Key: "implementation.contact", Flag: "contact", Option: "Target.Contact", at: func(v *Values) any { return &v.Implementation.Contact },
			Help: "contact `address` of the bridge's makers, for the report"},
		{Flag: "quiet", at: func(v *Values) any { return &v.Quiet }, Help: "print only the clauses that fail and the verdict"},
		{Flag: "verbose", at: func(v *Values) any { return &v.Verbose },
			Help: "print every failure, warning and untested MUST with its details, not a summary of one screen"},
		{Flag: "list", Local: true, at: func(v *Values) any { return &v.List }, Help: "list the checks that would run, and run none"},
		{Flag: "cleanup", Local: true, at: func(v *Values) any { return &v.Cleanup }, Help: "end the sessions that a crashed run left open, and test nothing"},
		{Flag: "config-schema", Local: true, at: func(v *Values) any { return &v.ConfigSchema },
			Help: "print the JSON Schema of the file of --config, for editors, and test nothing"},
		{Flag: "json", Local: true, at: func(v *Values) any { return &v.JSON }, Help: "print one JSON document on stdout"},

		{Key: "settings.rate_limit", Bound: positive(""), Option: "Options.Bridge.RateLimit", at: func(v *Values) any { return &v.Settings.RateLimit },
			Help: "calls of one caller that the bridge takes at once"},
		{Key: "settings.invalidate.path", Help: "path of the call that empties the bridge's cache, such as /mcp/admin/invalidate"},
		{Key: "settings.invalidate.method", Default: "POST", Help: "HTTP method of that call"},
		{Key: "settings.invalidate.identity", Help: "identity that makes that call"},
		{Key: "settings.include", Help: "patterns of methods that are tools; if unset, the contract's"},
		{Key: "settings.exclude", Help: "patterns of methods that are none; if unset, the contract's"},
		{Key: "rate", Option: "Options.Connection.Rate", at: func(v *Values) any { return &v.Rate }, Help: "requests per second that the run sends at most; if unset, no limit"},
		{Key: "proxy", Option: "Options.Connection.Proxy", Help: "URL of an HTTP or SOCKS proxy on the way to the bridge; if unset, that of HTTP_PROXY and HTTPS_PROXY"},
		{Key: "tls.ca", Help: "file of certificates (PEM) to trust beside the system's"},
		{Key: "tls.cert", Help: "file of our certificate (PEM), for a bridge that asks for one"},
		{Key: "tls.key", Help: "file of the key of tls.cert (PEM)"},
		{Key: "tls.insecure", Help: "trust any certificate of the bridge; the run warns"},

		{Key: "identities.NAME.basic.user", Help: "name of the account, for HTTP Basic; NAME is an identity of the contract, such as agent"},
		{Key: "identities.NAME.basic.password.env", Help: "variable that holds the password"},
		{Key: "identities.NAME.basic.password.file", Help: "file that holds the password"},
		{Key: "identities.NAME.bearer.env", Help: "variable that holds the bearer token"},
		{Key: "identities.NAME.bearer.file", Help: "file that holds the bearer token"},
		{Key: "identities.NAME.login.url", Help: "site at which the session is opened, by POST /user/login; if unset, the bridge's address, which is right only for a bridge in the site itself"},
		{Key: "identities.NAME.login.user", Help: "name of the account, for a session cookie"},
		{Key: "identities.NAME.login.password.env", Help: "variable that holds the password"},
		{Key: "identities.NAME.login.password.file", Help: "file that holds the password"},
		{Key: "identities.NAME.client_credentials.token_url", Help: "token endpoint, for a bearer token by OAuth 2 client credentials"},
		{Key: "identities.NAME.client_credentials.client_id", Help: "client at the authorization server"},
		{Key: "identities.NAME.client_credentials.client_secret.env", Help: "variable that holds the client's secret"},
		{Key: "identities.NAME.client_credentials.client_secret.file", Help: "file that holds the client's secret"},
		{Key: "identities.NAME.client_credentials.scope", Help: "scope that is asked for; if unset, none"},
		{Key: "identities.NAME.headers.NAME.env", Help: "variable that holds the value of the header"},
		{Key: "identities.NAME.headers.NAME.file", Help: "file that holds the value of the header"},
		{Key: "wrong_tokens.NAME.env", Help: "variable that holds a token that the bridge must refuse; NAME is one of " + strings.Join(engine.WrongTokens, ", ")},
		{Key: "wrong_tokens.NAME.file", Help: "file that holds such a token"},
		{Key: "invocations[].tool", Help: "tool that a run without a mock may call, many times and with any arguments"},
		{Key: "invocations[].identity", Default: "agent", Help: "identity that calls it"},
		{Key: "invocations[].arguments", Help: "arguments of the call, a mapping; without them the tool is called with none; invoke/empty-arguments applies where one call of the list has none"},
		{Key: "invocations[].expect.status", Default: "200", Help: "HTTP status of its response"},
		{Key: "invocations[].expect.result", Help: "result of the call, any JSON; if unset, any result"},

		{Env: ControlTokenEnv, Help: "token of the control plane of --control, and of that of the mock"},
		{Env: ClientSecretEnv, Help: "secret of the client of --client-id, with --issuer, for auth doctor and run --login"},
		{Env: "DRUPAL_PASSWORD", Help: "password of the account DRUPAL_USER, for bridge --check and --stdio, fixtures import and mock record"},
	}
}

// fault says what is wrong with a value that is out of bounds; "": nothing.
func (s Setting) fault(v *Values) string {
	value, off := s.at(v), false
	switch value := value.(type) {
	case *int:
		off = *value < 0 || s.Bound.AboveZero && *value == 0
		if off && s.Flag == "jobs" {
			return fmt.Sprintf("%d: give 1 or more, or 0 for as many as help", *value)
		} else if off {
			return fmt.Sprintf("%d: give 1 or more", *value)
		}
	case *Duration:
		off = *value < 0 || s.Bound.AboveZero && *value == 0
		if off {
			least := "0 or more"
			if s.Bound.AboveZero {
				least = "more than 0"
			}
			return fmt.Sprintf("%s: give %s, for example %s", time.Duration(*value), least, s.Bound.Example)
		}
	}
	return ""
}

// value is the setting's value, which may be set.
func (s Setting) value(v *Values) reflect.Value {
	if u, ok := s.at(v).(*urls); ok {
		return reflect.ValueOf(u.first).Elem()
	}
	return reflect.ValueOf(s.at(v)).Elem()
}

// Resolve makes one set of values: those of the flags that were given, then those of the file, then the defaults. The error is
// a *engine.UsageError.
func Resolve(file *File, flags *Values, given func(flag string) bool) (*Values, error) {
	v := &Values{File: *file, Command: flags.Command}
	v.Baseline = file.BaselinePath()
	for _, s := range Table() {
		if s.Flag == "" || s.at == nil {
			continue
		}
		if given(s.Flag) {
			if fault := s.fault(flags); fault != "" {
				return nil, &engine.UsageError{Reason: "--" + s.Flag + " is " + fault}
			}
		}
		if given(s.Flag) || s.value(v).IsZero() {
			s.value(v).Set(s.value(flags))
		}
	}
	switch {
	case given("url"):
		v.Exec = ""
		if !given("mcp-stdio") {
			v.MCPStdio = ""
		}
	case given("exec"):
		v.URL = ""
	}
	return v, v.checkTimeouts(func(flag, key string) string {
		if given(flag) {
			return "--" + flag
		}
		if file.given(key) {
			return key
		}
		return ""
	})
}

// slack is how much longer than the bridge's own limit the run waits for its response, at least.
const slack = 5 * time.Second

// checkTimeouts makes the run wait longer than the bridge does: else its own time-out would hide that of the bridge. Two values
// that contradict each other are an error.
func (v *Values) checkTimeouts(where func(flag, key string) string) error {
	upstream, limit := time.Duration(v.Settings.UpstreamTimeout), time.Duration(v.Timeout)
	if upstream <= 0 || limit > upstream {
		return nil
	}
	own := where("timeout", "timeout")
	if own == "" {
		v.Timeout = Duration(upstream + slack)
		return nil
	}
	return &engine.UsageError{Reason: fmt.Sprintf("%s is %s and %s is %s: the run has to wait longer than the bridge waits for its site; leave %s out, or give more than %s",
		own, limit, cmp.Or(where("upstream-timeout", "settings.upstream_timeout"), "the upstream time-out"), upstream, own, upstream)}
}

// apply sets what engine.Options has a field of the same kind for.
func (v *Values) apply(o *engine.Options) {
	for _, s := range Table() {
		path, ok := strings.CutPrefix(s.Option, "Options.")
		if !ok || s.at == nil {
			continue
		}
		into := reflect.ValueOf(o).Elem()
		for name := range strings.SplitSeq(path, ".") {
			into = into.FieldByName(name)
		}
		if from := s.value(v); from.Kind() == into.Kind() && !from.IsZero() {
			into.Set(from.Convert(into.Type()))
		}
	}
}

var flagInText = regexp.MustCompile(`--[a-z]+(?:-[a-z]+)*`)

// AsOptions names the settings of a text as users of the library do: Options.Bridge.DiscoveryTTL in place of --discovery-ttl. A
// flag that the library does not have is named as one of the command line.
func AsOptions(text string) string {
	names := map[string]string{}
	for _, s := range Table() {
		if s.Flag != "" {
			names["--"+s.Flag] = cmp.Or(s.Option, "bridgecheck run --"+s.Flag)
		}
	}
	found := flagInText.FindAllStringIndex(text, -1)
	var b strings.Builder
	end := 0
	for _, at := range found {
		before, flag := text[:at[0]], text[at[0]:at[1]]
		name := names[flag]
		if line := before[strings.LastIndexAny(before, "`\n")+1:]; name == "" || strings.Contains(line, "bridgecheck ") { // a command line stays as it is
			name = flag
		}
		b.WriteString(text[end:at[0]] + name)
		end = at[1]
	}
	return b.String() + text[end:]
}
