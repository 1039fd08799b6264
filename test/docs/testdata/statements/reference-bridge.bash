serve SITE mock --control 127.0.0.1:0
M=$(control SITE)
serve BRIDGE bridge --drupal $SITE --discovery-ttl 1h --permission-ttl 1h

#> serves the site's JSON-RPC methods as tools at `http://127.0.0.1:8081/mcp/tools/…`, and as real MCP at `/mcp`.
exits 0 bridgecheck bridge --help
says '127\.0\.0\.1:8081'
lists 200 $BRIDGE
says '"name":"content.list"'
gets 200 -u agent:agent-pass $BRIDGE/mcp -H 'Accept: application/json, text/event-stream' --json '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
says serverInfo

#> a caller sees the tools that
#> the site lets it run.
gets 200 -u agent:agent-pass "$BRIDGE/mcp/tools/describe?name=access.fixture"
gets 404 -u discoverer:discoverer-pass "$BRIDGE/mcp/tools/describe?name=access.fixture"

#> If it shows McpTool attributes, they decide what is a tool; if
#> not, patterns do (`include`, `exclude`).
bridgecheck fixtures export default -o plain.yaml
sed -i 's/^title:.*/&\nextensions: none/' plain.yaml
serve PLAIN mock --site plain.yaml
serve BY bridge --drupal $PLAIN
gets 200 -u agent:agent-pass "$BRIDGE/mcp/tools/describe?name=whoami"
gets 404 -u agent:agent-pass "$BRIDGE/mcp/tools/describe?name=content.unlisted"
gets 404 -u agent:agent-pass "$BY/mcp/tools/describe?name=whoami"
gets 200 -u agent:agent-pass "$BY/mcp/tools/describe?name=content.unlisted"
serve INCLUDED bridge --drupal $PLAIN --include whoami
gets 200 -u agent:agent-pass "$INCLUDED/mcp/tools/describe?name=whoami"

#> each is a
#> flag, a key of the configuration file (with `_` for `-`), and an environment variable where one is named.
printf 'drupal: %s\npage_size: 3\n' $SITE >page.yaml
size() { curl -s -u agent:agent-pass $1/mcp/tools/list | grep -o '"inputSchema"' | wc -l; }
serve A bridge --config page.yaml
test "$(size $A)" = 3
serve A bridge --drupal $SITE --page-size 4
test "$(size $A)" = 4
export BRIDGE_PAGE_SIZE=5
serve A bridge --drupal $SITE
test "$(size $A)" = 5

#> `--check` asks the site as the account of `DRUPAL_USER` and `DRUPAL_PASSWORD` and prints for each method the tool that it
#> becomes, or why it is none.
DRUPAL_USER=agent DRUPAL_PASSWORD=agent-pass exits 0 bridgecheck bridge --drupal $SITE --check
says '^ *content\.list' '^ *content\.unlisted.*no '

#> A bridge whose callers all see no tool says so in its log, in the diagnostics and in the `details` of
#> `/readyz`: `49 methods, 0 match include; see --include`.
serve NONE bridge --drupal $SITE --include 'no.such.*' --admin-method none --expose patterns
lists 200 $NONE
soon grep -qE '[0-9]+ methods, 0 match include; see --include' NONE.log
gets 200 $NONE/readyz
says '"details"' '[0-9]+ methods, 0 match include; see --include'

#> `--check-config` reports whether the settings are valid and serves nothing.
exits 0 bridgecheck bridge --drupal $SITE --check-config
says '^the settings are valid$'
exits 2 bridgecheck bridge --drupal $SITE --page-size 0 --check-config

#> SIGHUP reads them again without dropping a
#> request or an MCP session; if one is wrong, nothing changes.
printf 'drupal: %s\npage_size: 3\n' $SITE >hup.yaml
serve HUP bridge --config hup.yaml
size() { curl -s -u agent:agent-pass $HUP/mcp/tools/list | grep -o '"inputSchema"' | wc -l; }
test "$(size)" = 3
gets 200 -u agent:agent-pass $HUP/mcp -H 'Accept: application/json, text/event-stream' --json '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
SESSION=$(sed -n 's/^Mcp-Session-Id: //Ip' said)
curl -s -u agent:agent-pass --json '{"name":"slow","arguments":{}}' $HUP/mcp/tools/invoke -o slow -w '%{http_code}' >slow.code &
sed -i 's/page_size: 3/page_size: 6/' hup.yaml
kill -HUP $(cat HUP.pid)
changed() { test "$(size)" = 6; }
soon changed
gets 200 -u agent:agent-pass $HUP/mcp -H "Mcp-Session-Id: $SESSION" -H 'Accept: application/json, text/event-stream' --json '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
says '"tools"'
wait $!
test "$(cat slow.code)" = 200
sed -i 's/page_size.*/page_size: none/' hup.yaml
kill -HUP $(cat HUP.pid)
soon grep -q 'page_size' HUP.log
test "$(size)" = 6

#> each caller sees all tools and runs what the site lets it | `visibility: broad`, `service_user`, and its password: the account discovers, calls run as the caller
export BRIDGE_SERVICE_PASSWORD=service-pass
serve BROAD bridge --drupal $SITE --visibility broad --service-user service
gets 200 -u discoverer:discoverer-pass "$BROAD/mcp/tools/describe?name=access.fixture"
gets 403 -u discoverer:discoverer-pass --json '{"name":"access.fixture","arguments":{}}' $BROAD/mcp/tools/invoke
gets 200 -u agent:agent-pass --json '{"name":"whoami","arguments":{}}' $BROAD/mcp/tools/invoke
says '"agent"'

#> callers have no account on the site | `service_user`, its password, and `service_tokens`: a caller with one of the tokens acts as the account
export BRIDGE_SERVICE_PASSWORD=service-pass BRIDGE_SERVICE_TOKENS=token-of-mine-0123456789-0123456789
serve SERVICE bridge --drupal $SITE --service-user service
gets 200 -H "Authorization: Bearer $BRIDGE_SERVICE_TOKENS" --json '{"name":"whoami","arguments":{}}' $SERVICE/mcp/tools/invoke
says '"service"'
gets 401 -H "Authorization: Bearer other-0123456789-0123456789-0123456789" --json '{"name":"whoami","arguments":{}}' $SERVICE/mcp/tools/invoke

#> Where it refuses the account of `service_user`,
#> the message of the error says so: it is not the caller who lacks something.
export BRIDGE_SERVICE_PASSWORD=wrong BRIDGE_SERVICE_TOKENS=token-of-mine-0123456789-0123456789
serve SERVICE bridge --drupal $SITE --service-user service
code=$(curl -s -o said -w '%{http_code}' -H "Authorization: Bearer $BRIDGE_SERVICE_TOKENS" $SERVICE/mcp/tools/list)
says 'service_user'

#> a number without a fraction that is not spelled as an
#> integer (`3.0`, `1e2`), as models and some clients write it, becomes one (`3`, `100`) where the inputSchema asks for an integer.
curl -s -X DELETE $M/journal
call 200 $BRIDGE content.get '{"nid":1e0}'
call 200 $BRIDGE content.get '{"nid":2.0}'
gets 200 "$M/journal?method=content.get"
says '"params":"\{\\"nid\\":1\}"' '"params":"\{\\"nid\\":2\}"'

#> | `GET /healthz`, `/livez`, `/health`, `/ping` | liveness |
for p in /healthz /livez /health /ping /readyz /ready /; do gets 200 $BRIDGE$p; done

#> readiness, 503 while the site is thought to be down, and before the end
serve GONE mock
serve LONELY bridge --drupal $GONE
lists 200 $LONELY
gets 200 $LONELY/readyz
kill $(cat GONE.pid)
down() { curl -s -u agent:agent-pass --json '{"name":"whoami","arguments":{}}' $LONELY/mcp/tools/invoke >/dev/null; gets 503 $LONELY/readyz; }
soon down
gets 200 $LONELY/healthz
gets 200 $LONELY/

#> Prometheus: requests, refusals, requests to the site, look-ups of tools, violations of schemas, quarantine, breaker
lists 200 $BRIDGE
gets 200 $BRIDGE/metrics
call 400 $BRIDGE content.get '{"nid":"x"}'
gets 200 $BRIDGE/metrics
says '^bridge_request_seconds' '^bridge_refusals_total' '^bridge_upstream' '^bridge_discovery_total' '^bridge_violations_total' '^bridge_quarantined_methods' '^bridge_site_up'

#> what was repaired, and which methods could not become tools, and why
gets 200 -u admin:admin-pass $BRIDGE/mcp/admin/diagnostics
says '"method"' '"problem"'

#> the cached tools are refetched
lists 200 $BRIDGE
curl -s -X PATCH $M/site --json '{"disable":{"methods":["content.count"]}}'
gets 200 -u agent:agent-pass "$BRIDGE/mcp/tools/describe?name=content.count"
gets 200 -X POST -u admin:admin-pass $BRIDGE/mcp/admin/invalidate
gone() { gets 404 -u agent:agent-pass "$BRIDGE/mcp/tools/describe?name=content.count"; }
soon gone
curl -s -X PATCH $M/site --json '{"enable":{"methods":["content.count"]}}'
gets 200 -X POST -u admin:admin-pass $BRIDGE/mcp/admin/invalidate

#> Probes may also be HEAD and OPTIONS, under any host name.
for p in /healthz /readyz /; do
	gets 200 -H 'Host: anything.example' $BRIDGE$p
	test "$(curl -s -o /dev/null -w '%{http_code}' -I $BRIDGE$p)" = 200
	test "$(curl -s -o /dev/null -w '%{http_code}' -X OPTIONS $BRIDGE$p)" = 200
done

#> With `admin_listen` all of these have a listener with connections
#> of its own, in plain HTTP, and the public one serves the probes of them only
serve SPLIT bridge --drupal $SITE --admin-listen 127.0.0.1:0
cat SPLIT.log
ADMIN=$(grep -v '^listening on' SPLIT.log | grep -oE 'http://127\.0\.0\.1:[0-9]+|127\.0\.0\.1:[0-9]+' | head -n 1)
ADMIN=http://${ADMIN#http://}
gets 200 $ADMIN/healthz
gets 200 $ADMIN/metrics
gets 200 -u admin:admin-pass $ADMIN/mcp/admin/diagnostics
gets 200 $SPLIT/healthz
gets 404 $SPLIT/metrics
gets 404 -u admin:admin-pass $SPLIT/mcp/admin/diagnostics

#> The last two are for callers who see the method `admin_method` on the site, and for callers with a token of `admin_tokens`.
#> The others need no credentials and show no tool and no caller.
gets 403 -u agent:agent-pass $BRIDGE/mcp/admin/diagnostics
gets 200 -u admin:admin-pass $BRIDGE/mcp/admin/diagnostics
BRIDGE_ADMIN_TOKENS=token-of-mine-0123456789-0123456789 serve TOKENS bridge --drupal $SITE --admin-method none
gets 200 -H 'Authorization: Bearer token-of-mine-0123456789-0123456789' $TOKENS/mcp/admin/diagnostics
gets 403 -u admin:admin-pass $TOKENS/mcp/admin/diagnostics
gets 200 $BRIDGE/metrics
silent 'content\.' '"agent"'

#> The log (stderr) has a line for each request that failed at the bridge or the site, over the tools API and `/mcp` alike, with
#> the request's `X-Request-Id` and `traceparent`, which the bridge forwards to the site.
TRACE=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
curl -s -X DELETE $M/journal
call 500 $BRIDGE fail.server '{}' -H 'X-Request-Id: mine-1' -H "traceparent: $TRACE"
soon grep -qE "msg=request .*status=500.*request_id=mine-1 traceparent=\"?00-0af7651916cd43dd8448eb211c80319c" BRIDGE.log
gets 200 "$M/journal?method=fail.server"
says 'mine-1' '00-0af7651916cd43dd8448eb211c80319c'
gets 200 -u agent:agent-pass $BRIDGE/mcp -H 'X-Request-Id: mine-2' -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2025-11-25' --json '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
SESSION=$(sed -n 's/^Mcp-Session-Id: //Ip' said)
gets 200 -u agent:agent-pass $BRIDGE/mcp -H "Mcp-Session-Id: $SESSION" -H 'X-Request-Id: mine-3' -H 'Accept: application/json, text/event-stream' --json '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fail.server","arguments":{}}}'
soon grep -qE "status=500.*request_id=mine-3" BRIDGE.log

#> In the metrics a failure over `/mcp`
#> counts under the HTTP status that the tools API has for it, because MCP reports most failures with a 200.
gets 200 $BRIDGE/metrics
says 'endpoint="/mcp",status="500"'

#> then `bridgecheck healthy http://127.0.0.1:8081/healthz` ends with 0
exits 0 bridgecheck healthy $BRIDGE/healthz

#> a 403 that lacks it says so, in the response and in the log.
lists 403 $BRIDGE -H 'Host: bridge.example'
says 'allowed_hosts'
soon grep -q 'kind=host.*allowed_hosts' BRIDGE.log
serve HOSTS bridge --drupal $SITE --allowed-hosts bridge.example
lists 200 $HOSTS -H 'Host: bridge.example'

#> Only `X-Forwarded-For` is read: the header `Forwarded`
#> (RFC 7239) and the PROXY protocol are not.
serve BEHIND bridge --drupal $SITE --trusted-proxies 127.0.0.1
gets 403 -u x:y $BEHIND/mcp/tools/list -H 'X-Forwarded-For: 203.0.113.7'
soon grep -q 'client=203.0.113.7' BEHIND.log
gets 403 -u x:z $BEHIND/mcp/tools/list -H 'Forwarded: for=203.0.113.9'
gets 403 -u x:zz $BRIDGE/mcp/tools/list -H 'X-Forwarded-For: 203.0.113.9'
not grep -q 203.0.113.9 BEHIND.log BRIDGE.log

#> Below `location /drupal/`, with or without the path removed, set `base_path: /drupal`
serve BELOW bridge --drupal $SITE --base-path /drupal
gets 200 -u agent:agent-pass $BELOW/drupal/mcp/tools/list
gets 200 -u agent:agent-pass $BELOW/mcp/tools/list

#> A request takes at most `request_timeout` until its response begins, 55 s by default
#>
#> | time of a request, whatever it waits for | `request_timeout` | 504 or 503 |
serve SLOW bridge --drupal $SITE --upstream-timeout 900ms --request-timeout 1s
lists 200 $SLOW
fault '{"kind":"delay","delay":"3s","count":2}'
began=$(date +%s%N)
call 504 $SLOW whoami
test $((($(date +%s%N) - began) / 1000000)) -lt 2800
exits 0 bridgecheck bridge --help
grep -A2 -e '--request-timeout' said | grep -q '25 s more'
says 'time limit of one request to the site.*|default 30s'

#> On SIGTERM `/readyz` and `/` say 503 and responses close their connections; after `drain_pause`, unset by default,
#> the bridge takes no more connections, and requests under way have 10 s to end.
#>
#> | `GET /` | 503 before the end, else 200 |
serve DRAIN bridge --drupal $SITE --drain-pause 2s
lists 200 $DRAIN
silent '^Connection: close'
kill $(cat DRAIN.pid)
drains() { gets 503 $DRAIN/readyz; }
soon drains
gets 503 $DRAIN/
lists 200 $DRAIN
says '^Connection: close'
refused() { test "$(curl -s -o /dev/null -w '%{http_code}' $DRAIN/healthz)" = 000; }
soon refused
serve DRAIN bridge --drupal $SITE
curl -s -u agent:agent-pass --json '{"name":"slow","arguments":{}}' $DRAIN/mcp/tools/invoke -o slow -w '%{http_code}' >slow.code &
sleep 0.1
kill $(cat DRAIN.pid)
wait $!
test "$(cat slow.code)" = 200

#> Beyond this machine without `tls_cert` the bridge warns that passwords cross the network in the clear; where the
#> proxy on another machine encrypts, `plain_http: true` ends the warning.
serve WIDE bridge --drupal $SITE --listen 0.0.0.0:0
soon grep -q 'in the clear\|tls_cert' WIDE.log
serve QUIET bridge --drupal $SITE --listen 0.0.0.0:0 --plain-http
not grep -q 'in the clear\|tls_cert' QUIET.log

#> | length of a body | `max_body`, 2 MiB: a picture of 1.5 MB in base64 fits | 413 |
{ printf '{"name":"content.search","arguments":{"query":"'; head -c 2097152 /dev/zero | tr '\0' x; printf '"}}'; } >big.json
gets 413 -u agent:agent-pass --json @big.json $BRIDGE/mcp/tools/invoke
{ printf '{"name":"content.search","arguments":{"query":"'; head -c 1500000 /dev/zero | base64 -w0; printf '"}}'; } >fits.json
gets 200 -u agent:agent-pass --json @fits.json $BRIDGE/mcp/tools/invoke

#> | time for the head of a request to arrive | `header_timeout` | the end of the connection |
serve IMPATIENT bridge --drupal $SITE --header-timeout 300ms --body-timeout 300ms
P=${IMPATIENT##*:}
exec 3<>/dev/tcp/127.0.0.1/$P
printf 'GET /mcp/tools/list HTTP/1.1\r\nHost: 127.0.0.1\r\n' >&3
timeout 5 cat <&3 >ended

#> | time for a body to arrive | `body_timeout` | 400 |
serve IMPATIENT bridge --drupal $SITE --body-timeout 300ms
exec 3<>/dev/tcp/127.0.0.1/${IMPATIENT##*:}
printf 'POST /mcp/tools/invoke HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Basic %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"name"' "$(printf agent:agent-pass | base64)" >&3
timeout 5 cat <&3 >ended
grep -q '^HTTP/1.1 400' ended

#> | requests at the site | `max_in_flight` and `max_waiting` | 503, `Retry-After: 1` |
serve FEW bridge --drupal $SITE --max-in-flight 1 --max-waiting 1
lists 200 $FEW
curl -s -o /dev/null -D heads --parallel --parallel-immediate --parallel-max 20 -u agent:agent-pass --json '{"name":"slow","arguments":{}}' "$FEW/mcp/tools/invoke?[1-12]" || true
cat heads
grep -q '^HTTP/1.1 503' heads
grep -qi '^Retry-After: 1' heads

#> | credentials | 16 KiB of a bearer token, 2 KiB of a name and a password; 8 KiB of claims, of them 1 KiB for the subject | 401 |
gets 401 -u "agent:$(head -c 2049 /dev/zero | tr '\0' x)" $BRIDGE/mcp/tools/list
gets 401 -H "Authorization: Bearer $(head -c 16385 /dev/zero | tr '\0' x)" $BRIDGE/mcp/tools/list

#> | connections | `max_connections`, `max_connections_per_client` | 503, and the connection is closed; probes are served all the same, and a connection whose first request head is not complete after 0.25 s loses its place to others |
serve FEW bridge --drupal $SITE --max-connections 3
opens() { eval "exec $1<>/dev/tcp/127.0.0.1/${FEW##*:}"; }
for i in 4 5 6; do opens $i; done
sleep 0.3
lists 200 $FEW
exec 4>&- 5>&- 6>&-
for i in 4 5 6; do
	opens $i
	printf 'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n' >&$i
	read -r -t 5 line <&$i
done
lists 503 $FEW
says '"overloaded"' '^Connection: close' '^Retry-After: 1$'
gets 200 $FEW/healthz
gets 200 $FEW/readyz

#> | time for a client to accept 64 KiB | `write_timeout` | the end of the connection |
#>
#> | memory of bodies and results over 16 KiB, of all callers together | `max_buffered`; over `/mcp` a body over 16 KiB is read only once the site is known to let its caller in | 503, `Retry-After: 1` |
asks() { # URL FD: a call that has its status and does not read on
	eval "exec $2<>/dev/tcp/127.0.0.1/${1##*:}"
	printf 'POST /mcp/tools/invoke HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Basic %s\r\nContent-Type: application/json\r\nContent-Length: 32\r\n\r\n{"name":"whoami","arguments":{}}' "$(printf agent:agent-pass | base64)" >&$2
	read -r -t 20 line <&$2
	[[ $line = 'HTTP/1.1 200 '* ]]
}
fault '{"kind":"huge","size":14000000,"route":"jsonrpc"}'
serve IMPATIENT bridge --drupal $SITE --write-timeout 300ms
asks $IMPATIENT 3
asks $BRIDGE 4
sleep 1.5
test $(timeout 20 cat <&3 | wc -c) -lt 14000000
test $(timeout 20 cat <&4 | wc -c) -ge 14000000

serve SMALL bridge --drupal $SITE --max-answer 15000000 --max-buffered 1
for fd in 3 4; do asks $SMALL $fd; done
call 503 $SMALL whoami
says '"overloaded"' 'Too many large results are held in memory; the tool may have run' '^Retry-After: 1$'
for fd in 5 6; do asks $BRIDGE $fd; done
call 200 $BRIDGE whoami
curl -s -X DELETE $M/faults

#> ```yaml
#> types:
#>   geofield:
#>     schema: {type: object, properties: {lat: {type: number}, lon: {type: number}}, required: [lat, lon]}
#>   rating:
#>     schema: {type: integer, minimum: 1}
#>     settings: {stars: maximum}     # the field's setting stars becomes the schema's maximum
cat >fields.yaml <<'END'
roles: {agent: [use jsonrpc services, access mcp tool discovery]}
users: [{uid: 3, name: agent, password: agent-pass, roles: [agent]}]
methods:
- {id: a.b, mcp: {}, behaviour: echo, params: {at: {drupal: geofield}, stars: {drupal: rating, settings: {stars: 5}}, all: {drupal: string, cardinality: 3}, other: {drupal: unheard_of}}}
END
sed -n '/^types:$/,/^```$/p' "$ROOT/docs/reference-bridge.md" | sed '/^```$/d' >types.yaml
serve FIELDS mock --site fields.yaml
serve B bridge --drupal $FIELDS --config types.yaml
gets 200 -u agent:agent-pass "$B/mcp/tools/describe?name=a.b"
says '"lat":\{"type":"number"\}' '"stars":\{[^}]*"maximum":5' '"all":\{"type":"array"'

#> Of what Drupal's own schema refuses all the same, the message
#> names the parameter and the reason: `n: Double value found, but an integer is required`.
serve B bridge --drupal $SITE --discovery-ttl 1h --permission-ttl 1h
curl -s -X PATCH $M/site --json '{"methods":{"content.get":{"schemas":{"nid":{"type":"number"}}}}}'
lists 200 $B
curl -s -X PATCH $M/site --json '{"methods":{"content.get":{"schemas":{"nid":{"type":"integer"}}}}}'
call 400 $B content.get '{"nid":1.5}'
says 'nid: Double value found, but an integer is required'

#> | steps of checking arguments against their schema | 4 million, some 0.2 s; 50 violations; the end of the request | 400 with what was found, or that the value is too large for its schema |
cat >wide.yaml <<'END'
roles: {agent: [use jsonrpc services, access mcp tool discovery]}
users: [{uid: 3, name: agent, password: agent-pass, roles: [agent]}]
methods: [{id: a.b, mcp: {}, behaviour: echo, params: {n: {schema: {type: array, items: {type: integer}}}}}]
END
serve WIDE mock --site wide.yaml
serve B bridge --drupal $WIDE
call 400 $B a.b "{\"n\":[$(printf '"x",%.0s' $(seq 200))1]}"
test $(grep -o '"schema_path"' said | wc -l) -le 51
test $(grep -o '"schema_path"' said | wc -l) -ge 50

#> Idle connections stay open for 3 minutes
#>
#> the 25 s between two of their comments
#>
#> What the bridge refuses it
#> reads to its end, up to 64 MiB
#>
#> 4 million, some 0.2 s; 50 violations
constant bridge/serve.go 'idleTime = 3 \* time\.Minute$'
constant bridge/mcp/stream.go 'keepAlive = 25 \* time\.Second$'
constant bridge/body/body.go 'maxDrained = 64 << 20$'
constant bridge/schema/evaluate.go 'maxSteps = 4_000_000$'
