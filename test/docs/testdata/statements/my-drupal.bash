serve SITE mock --control 127.0.0.1:0
M=$(control SITE)
serve BRIDGE bridge --drupal $SITE --upstream-timeout 2s
export AGENT_PASSWORD=agent-pass
agent='identities: {agent: {basic: {user: agent, password: {env: AGENT_PASSWORD}}}}'
printf 'url: %s\n%s\n' "$BRIDGE" "$agent" >bridge.yaml

#> **No request names an existing tool on invoke, by any verb**, nor on MCP or
#> a tool's own address: a site that checks nothing would run it, and some run on GET.
#>
#> A clause that needs more is *not testable*, and
#> its message says what would make it testable.
#>
#> It is *partial* with exit
#> code 4
curl -s -X DELETE $M/journal
exits 4 bridgecheck run --config bridge.yaml
says '^partial'
test "$(curl -s "$M/journal?ran=true" | grep -o '"seq":' | wc -l)" = 0
grep -q '"verdict": "not-testable"' bridgecheck-report/report.json

#> Nothing is created or changed on the site except the sessions of identities that use `login`. They are ended after the
#> run, also after an interrupt
before=$(curl -s $M/site | md5sum)
sed 's/basic: {/login: {/' bridge.yaml >login.yaml
sed -i "s|login: {|login: {url: $SITE, |" login.yaml
serve COOKIES bridge --drupal $SITE --credentials cookie
sed -i "s|^url: .*|url: $COOKIES|" login.yaml
printf 'capabilities: [auth-cookie, -auth-basic]\n' >>login.yaml
curl -s -X DELETE $M/journal
any bridgecheck run --config login.yaml --only 'list/*' --report-dir logged
test "$before" = "$(curl -s $M/site | md5sum)"
curl -s "$M/journal" | grep -q '"path":"/user/login"'
curl -s "$M/journal" | grep -q '"path":"/user/logout"'
test ! -e logged/.undo.json

#> `bridgecheck run --config-schema > bridge.schema.json` prints its JSON Schema, by which editors complete it.
exits 0 bridgecheck run --config-schema
says '"\$schema"' '"identities"'

#> Mistakes in the file are reported with file and line before anything
#> is sent, and refused credentials and a tool that the bridge does not show before any clause is tested.
printf 'url: %s\nidentitis: {}\n' "$BRIDGE" >wrong.yaml
exits 2 bridgecheck run --config wrong.yaml
says 'wrong\.yaml:2'
AGENT_PASSWORD=wrong exits 2 bridgecheck run --config bridge.yaml --report-dir early
test ! -e early/report.json
sed 's/$/ /' bridge.yaml >unknown.yaml
printf 'invocations: [{tool: no.such}]\n' >>unknown.yaml
exits 2 bridgecheck run --config unknown.yaml --report-dir early
says 'no\.such'
test ! -e early/report.json

#> The run reads its `/jsonrpc/methods` as each
#> identity, by GET, with the credentials that the bridge receives
#>
#> It changes nothing and runs nothing.
before=$(curl -s $M/site | md5sum)
curl -s -X DELETE $M/journal
exits 4 bridgecheck run --config bridge.yaml --drupal $SITE --only 'list/*'
test "$before" = "$(curl -s $M/site | md5sum)"
test "$(curl -s "$M/journal?ran=true" | grep -o '"seq":' | wc -l)" = 0
curl -s "$M/journal?route=methods&user=agent" | grep -q '"http_method":"GET"'

#> The proxy forwards
#> everything, keeps a journal of which methods were called, by which account, and whether they ran, and can inject faults of
#> the site
#>
#> With calls under `invocations` these clauses are tested as
#> well: `invoke/runs-once`, `invoke/not-cached`
cp bridge.yaml calls.yaml
sed -i /^url/d calls.yaml
printf 'invocations: [{tool: content.list}]\n' >>calls.yaml
any bridgecheck run --exec 'bridgecheck bridge' --drupal-proxy 127.0.0.1:0 --drupal $SITE --config calls.yaml --only invoke/runs-once --only invoke/not-cached --only upstream/post-only --only upstream/http-error
cat said
test $(grep -c '"verdict": "pass"' bridgecheck-report/report.json) = 4

#> sends that request again, to the report's target or to the bridge that `--to URL` names, and shows both responses side by
#> side; exit code 0 when the response is the same, 1 when it is different.
#>
#> Its credentials are variables: `$AGENT_PASSWORD`
serve SMALL bridge --drupal $SITE --page-size 7
printf 'url: %s\n%s\nsettings: {page_size: 8}\n' "$SMALL" "$agent" >small.yaml
any bridgecheck run --config small.yaml --drupal $SITE --only list/page-size --report-dir failed
grep -q 'AGENT_PASSWORD' failed/report.html
not grep -q 'agent-pass' failed/report.html failed/report.json
exits 0 bridgecheck replay failed list/page-size
serve OTHER bridge --drupal $SITE --page-size 8
exits 1 bridgecheck replay failed list/page-size --to $OTHER --yes

#> Passwords, tokens, cookies and the values of custom headers are removed from everything that is written, by their value,
#> also where a bridge shows them percent-encoded, as JSON escapes, as HTML entities, in base64 or in hexadecimal.
any bridgecheck run --config bridge.yaml --only 'access/*' --report-dir secrets
not grep -rqE "agent-pass|$(printf agent:agent-pass | base64)" secrets said

#> (`--jsonrpc 2` for the line 2)
exits 0 bridgecheck fixtures export default --drupal-module fixtures-module
test -s fixtures-module/bridgecheck_fixtures.info.yml
exits 0 bridgecheck fixtures export default --drupal-module fixtures-two --jsonrpc 2
not diff -rq fixtures-module fixtures-two

#> (each tool some 30 times), and `upstream/pooled` (one tool 20 times, and up to 200 times where the bridge uses several connections).
sed /^url/d bridge.yaml >counted.yaml
printf 'invocations: [{tool: content.types}]\n' >>counted.yaml
runs() { curl -s $M/runs/content.types | tr -dc 0-9; }
before=$(runs)
exits 0 bridgecheck run --exec 'bridgecheck bridge' --drupal-proxy 127.0.0.1:0 --drupal $SITE --config counted.yaml --only invoke/runs-once
between=$(runs)
exits 0 bridgecheck run --exec 'bridgecheck bridge' --drupal-proxy 127.0.0.1:0 --drupal $SITE --config counted.yaml --only upstream/pooled
echo $before $between $(runs)
test $((between - before)) -ge 20
test $((between - before)) -le 40
test $(($(runs) - between)) -ge 20
test $(($(runs) - between)) -le 25

#> Secrets are in the environment or in files, never in the configuration, not in an address either
printf 'url: %s\n' "${BRIDGE/\/\//\/\/agent:agent-pass@}" >address.yaml
exits 2 bridgecheck run --config address.yaml --only describe/missing-name
silent 'agent-pass'

#> - The list of a small site has one page. `list/page-size`, `list/cursor-no-leak`, `list/cursor-other-caller` and
#> `list/page-boundary-exact` need several: lower the page size of the bridge, and give it as `--page-size`; the message of the
#> clause says which size helps.
cat >tiny.yaml <<'END'
permissions: []
roles: {agent: [use jsonrpc services, access mcp tool discovery]}
users: [{uid: 3, name: agent, password: agent-pass, roles: [agent]}]
methods:
- {id: a.b, mcp: {}, behaviour: echo}
- {id: a.c, mcp: {}, behaviour: echo}
- {id: a.d, mcp: {}, behaviour: echo}
- {id: a.e, mcp: {}, behaviour: echo}
END
serve TINY mock --site tiny.yaml
serve B bridge --drupal $TINY
printf 'url: %s\n%s\n' "$B" "$agent" >tiny-run.yaml
any bridgecheck run --config tiny-run.yaml --drupal $TINY --only list/page-size --only list/cursor-no-leak --only list/page-boundary-exact --verbose --report-dir tiny
test $(grep -c '"verdict": "not-testable"' tiny/report.json) = 3
says 'page.size'
serve B bridge --drupal $TINY --page-size 2
printf 'url: %s\n%s\n' "$B" "$agent" >tiny-run.yaml
any bridgecheck run --config tiny-run.yaml --drupal $TINY --page-size 2 --only list/page-size --only list/cursor-no-leak --only list/page-boundary-exact --report-dir tiny
test $(grep -c '"verdict": "pass"' tiny/report.json) -ge 1

#> until then they are in `.undo.json` in the report directory, readable by you alone. After a
#> crash `bridgecheck run --cleanup --config bridge.yaml` ends them.
serve COOKIES bridge --drupal $SITE --credentials cookie
printf 'url: %s\nidentities: {agent: {login: {url: %s, user: agent, password: {env: AGENT_PASSWORD}}}}\ncapabilities: [auth-cookie, -auth-basic]\nrate: 10\nreport_dir: crashed\n' $COOKIES $SITE >crash.yaml
curl -s -X DELETE $M/journal
bridgecheck run --config crash.yaml --only 'list/*' >crash.log 2>&1 &
soon test -s crashed/.undo.json
test "$(stat -c %a crashed/.undo.json)" = 600
kill -9 $!
not grep -q '"path":"/user/logout"' <(curl -s $M/journal)
exits 0 bridgecheck run --cleanup --config crash.yaml
says '^sessions ended: 1$'
curl -s $M/journal | grep -q '"path":"/user/logout"'
test ! -e crashed/.undo.json

#> When a site responds with 429, or 503 with Retry-After, the run waits and sends the request again;
serve FRESH bridge --drupal $SITE
printf 'url: %s\n%s\n' "$FRESH" "$agent" >fresh.yaml
fault '{"kind":"status","status":429,"count":1}'
curl -s -X DELETE $M/journal
exits 0 bridgecheck run --config fresh.yaml --only list/names-unique --report-dir waits
curl -s $M/journal | grep -q '"status":429'

#> `rate` in the
#> configuration keeps below its limit.
{ cat bridge.yaml; echo 'rate: 10'; } >rate.yaml
exits 0 bridgecheck run --config rate.yaml --only describe/missing-name,describe/after-error --report-dir rate
SENT=$(sed -n 's/^ *"requests": \([0-9]*\),$/\1/p' rate/report.json | tail -n 1)
TOOK=$(sed -n 's/^ *"duration_ms": \([0-9]*\).*/\1/p' rate/report.json | head -n 1)
echo $SENT requests in $TOOK ms
test $SENT -ge 5
test $TOOK -ge $((100 * (SENT - 3)))

#> # a base path is kept
#>
#> # beside this file
serve BELOW bridge --drupal $SITE --base-path /drupal
mkdir beside
printf 'url: %s/drupal\nidentities: {agent: {bearer: {file: token.txt}}}\ncapabilities: [auth-bearer, -auth-basic]\n' $BELOW >beside/bridge.yaml
(umask 077; echo agent-token >beside/token.txt)
exits 0 bridgecheck run --config beside/bridge.yaml --only list/names-unique --report-dir below
grep -q "\"$BELOW/drupal\"" below/report.json

#> tls: {ca: internal-ca.pem}                     # cert and key for a client certificate; insecure: true warns
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=one -addext subjectAltName=IP:127.0.0.1 2>/dev/null
chmod 600 key.pem
serve TLS bridge --drupal $SITE --tls-cert cert.pem --tls-key key.pem
encrypted() { printf 'url: %s\n%s\n%s\n' "$TLS" "$agent" "$2" >tls.yaml; exits $1 bridgecheck run --config tls.yaml --only list/names-unique --report-dir tls; }
encrypted 3
encrypted 0 'tls: {ca: cert.pem}'
silent insecure
encrypted 0 'tls: {insecure: true}'
says insecure

#> # the expected response: clause invoke/answers-result
for result in '{uid: 3, name: agent}' pong; do
	{ cat bridge.yaml; printf 'invocations: [{tool: whoami, arguments: {}, expect: {status: 200, result: %s}}]\n' "$result"; } >expect.yaml
	exits $(test "$result" = pong && echo 1 || echo 0) bridgecheck run --config expect.yaml --only invoke/answers-result --report-dir expect
done
says 'pong'

#> - A site that shows no McpTool attributes (most do not) does not say which methods are tools. Then a method is a tool if the
#> bridge lists it to any of the identities, and the clauses on titles, annotations and marked methods are not testable.
bridgecheck fixtures export default -o plain.yaml
sed -i '1i extensions: none' plain.yaml
serve PLAIN mock --site plain.yaml
serve B bridge --drupal $PLAIN
printf 'url: %s\n%s\n' "$B" "$agent" >plain-run.yaml
for site in $PLAIN $SITE; do
	sed -i "s|^url: .*|url: $(test $site = $PLAIN && echo $B || echo $BRIDGE)|" plain-run.yaml
	any bridgecheck run --config plain-run.yaml --drupal $site --only mapping/title-from-attribute,mapping/annotations-from-attribute,mapping/name-is-id --report-dir plain
	grep -oE '"verdict": .*' plain/report.json | sort | uniq -c >>plain.verdicts
done
cat plain.verdicts
test "$(tr -dc 0-9a-z- <plain.verdicts)" = 2verdictnot-testable1verdictpass3verdictpass

#> With the recording proxy
#> the run [measures it](a-bridge-that-is-up.md), and warns of a value that is not so.
#>
#> Point the bridge at the proxy's address instead of the site
sed /^url/d bridge.yaml >timeout.yaml
printf 'invocations: [{tool: content.types}]\n' >>timeout.yaml
serve FREE mock
kill $(cat FREE.pid)
serve B bridge --drupal $FREE --upstream-timeout 1s
proxied() { exits 0 bridgecheck run --url $B --drupal-proxy ${FREE#http://} --drupal $SITE --config timeout.yaml --only upstream/timeout "$@"; }
proxied
silent warning
proxied --upstream-timeout 20s
says 'warning: --upstream-timeout is 20s, and the bridge gave a hanging site up after 1'
lists 200 $BRIDGE
exits 4 bridgecheck run --url $BRIDGE --drupal-proxy 127.0.0.1:0 --drupal $SITE --config timeout.yaml --only 'upstream/*'
not grep -q '"verdict": "fail"' bridgecheck-report/report.json
says 'point the bridge at it'
test $(grep -c '"verdict": "not-testable"' bridgecheck-report/report.json) -gt 8
