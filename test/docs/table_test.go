package docs

import "regexp"

// notRun lists the commands that a bare machine cannot run, and why. Those of `go` still name packages that exist.
var notRun = []struct {
	command *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`^go test .*(-run|-update|selftest)`), "compiles the tests of the tree, which takes minutes; TestGoTestCommands looks at its arguments"},
	{regexp.MustCompile(`^go (run|generate) `), "compiles the tree and may write to it"},
	{regexp.MustCompile(`^(bin/)?bridgecheck selftest( +#.*| --mutant .*)?$`), "tests mutants for minutes; cmd/bridgecheck/testdata/script/selftest.txtar runs one"},
	{regexp.MustCompile(`^(\(cd dist && )?(sha256sum|tar|install|npm|npx|composer|vendor/bin/bridgecheck) `), "installs what make packages builds; .ci/install does it where there is no Go"},
	{regexp.MustCompile(`^ddev `), "needs DDEV and Docker; TestTheCommandsOfDDEV runs what the containers run"},
	{regexp.MustCompile(`^docker `), "needs Docker and its registry; .ci/image builds and runs the images"},
}

// replacements turn commands and files of a page into some that run without a network. SITE is the mock's address.
var replacements = []struct {
	old *regexp.Regexp
	new string
}{
	{regexp.MustCompile(`https://(drupal\.)?example\.(org|com)\b`), "http://SITE"},
	{regexp.MustCompile(`https://bridge\.example\b`), "http://127.0.0.1:8081"},
	{regexp.MustCompile(`--listen :([0-9]{4})\b`), "--listen 127.0.0.1:$1"},
	{regexp.MustCompile(`^(.*bridgecheck run .*--watch)$`), "timeout -s INT 2 $1; test $$? = 124"}, // it watches until Ctrl-C
	{regexp.MustCompile(`^curl (.*"method":"no\.such")`), "curl --no-fail-with-body $1"},           // it shows a refusal
	{regexp.MustCompile(`BRIDGECHECK_PASSWORD_AGENT=…`), "BRIDGECHECK_PASSWORD_AGENT=agent-pass"},
	{regexp.MustCompile(`AGENT_COOKIE=…`), `AGENT_COOKIE=$$(curl -c - -o /dev/null --json '{"name":"agent","pass":"agent-pass"}' 'http://SITE/user/login?_format=json' | awk '/SESS/ {print $$6 "=" $$7}')`},
}

// servers are the commands that serve until they are ended, and the port of their default address.
var servers = []struct {
	command, not *regexp.Regexp
	port         string
}{
	{regexp.MustCompile(`^(bin/)?bridgecheck mock\b`), regexp.MustCompile(`mock (quirks|record|verify)\b`), "8080"},
	{regexp.MustCompile(`^(bin/)?bridgecheck bridge\b`), regexp.MustCompile(`--(check-config|stdio|help)\b`), "8081"},
	{regexp.MustCompile(`^(bin/)?bridgecheck report serve\b`), nil, "8082"},
	{regexp.MustCompile(`^(bin/)?bridgecheck console\b`), nil, "8083"},
}

// fewChecks stand in for all checks in runs that have the mock behind the bridge: all runs of the pages together would
// take minutes. The other runs are whole.
const fewChecks = " --only list/names-unique --only invoke/runs-once"

var (
	anyRun   = regexp.MustCompile(`\bbridgecheck run\b`)
	wholeRun = regexp.MustCompile(`--(only|list|cleanup|drupal-proxy|config)\b|--url [^-]*( #.*)?$`)
	password = regexp.MustCompile(`\b([A-Z0-9]+)_PASSWORD=…`)
)

// accounts are the users of the built-in sites whose names are not those of the identities.
var accounts = map[string]string{"OUTSIDER": "rpconly", "DRUPAL": "agent"}

const (
	bridgeAt8081 = "bridgecheck bridge --listen 127.0.0.1:8081 --drupal http://127.0.0.1:8080"
	bridgeAtSite = "bridgecheck bridge --listen 127.0.0.1:8081 --drupal http://SITE"
)

// needs lists what must run before a command of a page that the page itself does not start.
var needs = []struct{ page, command, first string }{
	{"README.md", "--url http://127.0.0.1:8081", bridgeAt8081},
	{"README.md", "--config bridge.yaml", bridgeAtSite},
	{"README.md", "--config bridge.yaml", "AGENT_PASSWORD=agent-pass"},
	{"docs/validate-my-bridge.md", "--url http://127.0.0.1:8081", bridgeAt8081},
	{"docs/gate-a-release.md", "--previous old", "bridgecheck run --exec './my-bridge' --report-dir old"},
	{"docs/gate-a-release.md", "report serve", "mkdir reports && cp -r old new reports"},
	{"docs/behind-a-proxy.md", "--url https://bridge.example", bridgeAt8081},
	{"docs/console.md", "console bridgecheck-report", "bridgecheck run --exec './my-bridge'"},
	{"docs/go.md", "8081", bridgeAt8081},
	{"docs/mcp.md", "--transport http", bridgeAtSite},
	{"docs/mcp.md", "--config bridge.yaml", bridgeAtSite},
	{"docs/mcp.md", "--config bridge.yaml", "AGENT_PASSWORD=agent-pass"},
	{"docs/mock.md", "--site my-site.yaml --listen", "bridgecheck fixtures export default -o my-site.yaml"},
	{"docs/mock.md", "M=http://127.0.0.1:8082", "bridgecheck mock --control 127.0.0.1:8082"},
	{"docs/my-drupal.md", "run --config bridge.yaml", bridgeAtSite},
	{"docs/my-drupal.md", "--url http://127.0.0.1:8081 --drupal https", bridgeAtSite},
	{"docs/my-drupal.md", "--url http://127.0.0.1:8081 --drupal-proxy", bridgeAt8081},
	{"docs/my-drupal.md", "examples/drupal-module", "bridgecheck mock --listen SITE --with-module v1.3 --site transcripts"},
}

// claude stands in for Claude Code: an MCP server that is added must respond, started or addressed as the command says.
const claude = `#!/bin/bash
open='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
case "$*" in
"mcp list") exit ;;
"mcp add --transport http drupal "*) curl -H "$8" -H "Accept: application/json, text/event-stream" -H "Content-Type: application/json" -d "$open" "$6" | grep serverInfo ;;
"mcp add drupal "*)
	while test "$1" != --; do test "$1" != --env || eval "export $2"; shift; done
	shift && echo "$open" | "$@" | grep serverInfo ;;
*) exit 2 ;;
esac
`

// agent is part of a configuration.
const agent = "identities: {agent: {basic: {user: agent, password: {env: AGENT_PASSWORD}}}}\n"

// files are those that a page takes for granted, by page and name.
var files = map[string]map[string]string{
	"README.md":            {"bridge.yaml": "url: http://127.0.0.1:8081\n" + agent},
	"docs/contributing.md": {"go.mod": "module github.com/bridgecheck/bridgecheck\n"},
	"docs/mcp.md":          {"bridge.yaml": "url: http://127.0.0.1:8081\n" + agent},
	"docs/mock.md":         {"cases.jsonl": `{"id":"mine/whoami","as":"agent","auth":"basic","request":{"method":"POST","path":"/jsonrpc","headers":{"Content-Type":"application/json"},"body":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"my.method\"}"}}`},
	"docs/my-drupal.md":    {"bridge.yaml": "url: http://127.0.0.1:8081\n" + agent},
}
