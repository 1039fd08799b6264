serve SITE mock --control 127.0.0.1:0
M=$(control SITE)
serve BRIDGE bridge --drupal $SITE --upstream-timeout 2s --max-answer 100000
# refused CODE MESSAGE [DATA]: the site refuses the next call so.
refused() { fault "{\"kind\":\"error\",\"count\":1,\"body\":\"{\\\"code\\\":$1,\\\"message\\\":\\\"$2\\\",\\\"data\\\":\\\"$3\\\"}\"}"; }

#> | -32600 whose data begin with `Access Denied` | 403 | `access_denied` | Access denied: the site does not let this caller run TOOL. |
refused -32600 'Invalid Request' 'Access Denied.'
call 403 $BRIDGE whoami
says '"access_denied"' 'Access denied: the site does not let this caller run whoami\.'

#> | -32601 | 404 | `tool_not_found` | There is no tool named "TOOL". |
refused -32601 'Method Not Found'
call 404 $BRIDGE whoami
says '"tool_not_found"' 'There is no tool named ..whoami...'

#> | -32602, said by the method | 400 | `invalid_params` | The site refused the arguments of TOOL: the site's words |
call 400 $BRIDGE fail.invalid_params
says '"invalid_params"' 'The site refused the arguments of fail\.invalid_params: '

#> | -32602, a violation of the site's own schema | 400 | `invalid_params` | The site refused the arguments of TOOL, which fit the schema that the bridge knew: the site's words; the schema is refetched. |
lists 200 $BRIDGE
curl -s -X PATCH $M/site --json '{"methods":{"content.search":{"schemas":{"query":{"type":"string","minLength":30}}}}}'
call 400 $BRIDGE content.search '{"query":"short"}'
says 'The site refused the arguments of content\.search, which fit the schema that the bridge knew: .*; the schema is refetched\.'
curl -s -X PATCH $M/site --json '{"methods":{"content.search":{"schemas":{"query":{"type":"string"}}}}}'

#> | any other code | 500 | `execution_error` | The tool TOOL failed: the site's words |
call 500 $BRIDGE fail.server
says '"execution_error"' 'The tool fail\.server failed: The service is not available' '"jsonrpc_code":-32000'

#> `jsonrpc_code` and `jsonrpc_data` go into the error's `data`, but for a denial and a tool that is gone, and never PHP's own text.
call 500 $BRIDGE fail.data_string
says '"jsonrpc_code":' '"jsonrpc_data":'
refused -32600 'Invalid Request' 'Access Denied.'
call 403 $BRIDGE whoami
silent jsonrpc_code
refused -32601 'Method Not Found'
call 404 $BRIDGE whoami
silent jsonrpc_code
call 500 $BRIDGE fail.trace
silent '\.php'

#> | HTTP 401; its challenge goes on to the caller | 401 | `authentication_required` | The site asks for credentials, or does not take these. |
fault '{"kind":"status","status":401,"route":"jsonrpc"}'
call 401 $BRIDGE whoami
says '"authentication_required"' 'The site asks for credentials, or does not take these\.'

#> | HTTP 403 | 403 | `access_denied` | The site denies this caller access: no permission, or a wrong user name or password. |
fault '{"kind":"status","status":403,"route":"jsonrpc"}'
call 403 $BRIDGE whoami
says '"access_denied"' 'The site denies this caller access: no permission, or a wrong user name or password\.'

#> | HTTP 429; with its Retry-After, or 1 s | 429 | `rate_limited` | The site limits how often it may be called. |
fault '{"kind":"status","status":429,"route":"jsonrpc"}'
call 429 $BRIDGE whoami
says '"rate_limited"' 'The site limits how often it may be called\.' '^Retry-After: '

#> | HTTP 503; with its Retry-After | 503 | `upstream_unavailable` | The site is not available at present. |
fault '{"kind":"status","status":503,"route":"jsonrpc"}'
call 503 $BRIDGE whoami
says '"upstream_unavailable"' 'The site is not available at present\.'

#> | a response longer than max_answer | 502 | `upstream_error` | The site gave no usable response. |
fault '{"kind":"huge","size":200000,"route":"jsonrpc"}'
call 502 $BRIDGE whoami
says '"upstream_error"' 'The site gave no usable response\.'

#> | no response within upstream_timeout | 504 | `upstream_timeout` | The site did not respond in time. |
fault '{"kind":"delay","delay":"8s","route":"jsonrpc","count":1}'
call 504 $BRIDGE whoami
says '"upstream_timeout"' 'The site did not respond in time\.'

#> | no connection | 503 | `upstream_unavailable` | The site cannot be reached. |
#>
#> | no connection several times in a row: the site is not called for a second (the breaker) | 503 | `upstream_unavailable` | The site cannot be reached. |
serve GONE mock
serve LONELY bridge --drupal $GONE
lists 200 $LONELY
kill $(cat GONE.pid)
down() { call 503 $LONELY whoami; says '"upstream_unavailable"' 'The site cannot be reached\.'; }
soon down
for i in 1 2 3 4 5 6 7 8; do down; done
gets 200 $LONELY/metrics
says '^bridge_site_up 0$'

#> all else: another status, a page, a redirect, an empty or broken body, another request's response | 502 | `upstream_error` | The site gave no usable response.
for f in '"status","status":418' '"html"' '"empty"' '"redirect"' '"cut"' '"garbage"' '"wrong-id"'; do
	fault "{\"kind\":$f,\"route\":\"jsonrpc\"}"
	call 502 $BRIDGE whoami
	says '"upstream_error"' 'The site gave no usable response\.'
done
curl -s -X DELETE $M/faults

#> read_only` | | `BRIDGE_READ_ONLY` | only tools that change nothing: readOnlyHint is true or, where a method has no hint, its id ends like that of a reading method, such as content.list |
serve B bridge --drupal $SITE --read-only
shows() { gets $1 -u service:service-pass "$2/mcp/tools/describe?name=$3"; }
shows 200 $B content.list
shows 200 $BRIDGE content.create
shows 404 $B content.create

#> | `naming` | `id` | `BRIDGE_NAMING` | tool names: id (unchanged) or underscore (all but letters, digits, _ and - turned into _, at most 64 characters) |
serve B bridge --drupal $SITE --naming underscore
gets 200 -u agent:agent-pass "$B/mcp/tools/describe?name=content_list"

#> | `lazy_schemas` | | `BRIDGE_LAZY_SCHEMAS` | read /jsonrpc/methods as an index and fetch a tool's schemas from /jsonrpc/methods/{id} when it is first shown or called: one request per tool, and no look-up for entity_reference |
serve B bridge --drupal $SITE --lazy-schemas
curl -s -X DELETE $M/journal
gets 200 -u agent:agent-pass "$B/mcp/tools/describe?name=content.list"
gets 200 $M/journal
says '"path":"/jsonrpc/methods/content.list"'

#> | `output` | `pass` | `BRIDGE_OUTPUT` | results that break their tool's output schema: pass, warn (in the log) or refuse |
serve LENIENT mock --quirk lenient-output --control 127.0.0.1:0
M=$(control LENIENT)
serve PASS bridge --drupal $LENIENT
serve WARN bridge --drupal $LENIENT --output warn
serve REFUSE bridge --drupal $LENIENT --output refuse
curl -s -X PATCH $M/site --json '{"methods":{"content.count":{"output":{"type":"string"}}}}'
call 200 $PASS content.count
call 200 $WARN content.count
soon grep -q 'level=WARN.*content.count' WARN.log
not grep -q 'level=WARN.*content.count' PASS.log
call 500 $REFUSE content.count
says 'does not conform to its output schema'

#> | `source` | `jsonrpc` | `BRIDGE_SOURCE` | where methods are discovered: jsonrpc (/jsonrpc/methods) or module (/mcp/tools/list of the MCP module) |
bridgecheck fixtures export default -o basic.yaml
sed -i 's/  mcp: \[cookie\]/  mcp: [basic]/' basic.yaml
serve MODULE mock --with-module v1.4 --site basic.yaml --control 127.0.0.1:0
serve B bridge --drupal $MODULE --source module
M=$(control MODULE)
lists 200 $B
gets 200 $M/journal
says '"path":"/mcp/tools/list"'
silent '"path":"/jsonrpc/methods"'

#> | `credentials` | `basic,bearer` | `BRIDGE_CREDENTIALS` | authentication schemes that are forwarded to the site: basic, bearer, cookie |
lists 200 $BRIDGE
gets 200 -H 'Authorization: Bearer agent-token' $BRIDGE/mcp/tools/list
serve B bridge --drupal $SITE --credentials bearer
lists 401 $B
gets 200 -H 'Authorization: Bearer agent-token' $B/mcp/tools/list

#> | `background` | | | refresh the tools of callers seen within this time in the background; if unset, only those of callers who listen for changes |
serve B bridge --drupal $SITE --background 1m --discovery-ttl 300ms --permission-ttl 300ms
lists 200 $B
curl -s -X DELETE $M/journal
polled() { test $(curl -s "$M/journal?route=methods" | grep -o '"seq":' | wc -l) -ge 2; }
soon polled

#> | `max_stale` | `1h` | | how old a cached list may be that is served while the site fails |
serve B bridge --drupal $SITE --discovery-ttl 10ms --permission-ttl 10ms
serve SHORT bridge --drupal $SITE --discovery-ttl 10ms --permission-ttl 10ms --max-stale 50ms
lists 200 $B
lists 200 $SHORT
fault '{"kind":"status","status":500,"route":"methods"}'
sleep 0.2
lists 200 $B
lists 502 $SHORT
curl -s -X DELETE $M/faults

#> | `rate_burst` | `10` | | calls that may come at once under rate_limit |
serve B bridge --drupal $SITE --rate-limit 0.01
curl -s -o /dev/null -w '%{http_code}\n' -u agent:agent-pass --json '{"name":"whoami","arguments":{}}' "$B/mcp/tools/invoke?[1-15]" >codes
test $(grep -c 200 codes) -ge 10
test $(grep -c 429 codes) -ge 3

#> what makes a method a tool: attribute, patterns, or auto (the attribute where the site shows it, else patterns) |
#>
#> patterns of the ids of methods that do not become tools, whatever include says
serve ATTRIBUTE bridge --drupal $SITE --expose attribute
serve PATTERNS bridge --drupal $SITE --expose patterns --include 'content.*' --exclude content.count
shows() { gets $1 -u agent:agent-pass "$2/mcp/tools/describe?name=$3"; }
shows 200 $ATTRIBUTE whoami
shows 404 $ATTRIBUTE content.unlisted
shows 404 $PATTERNS whoami
shows 200 $PATTERNS content.unlisted
shows 404 $PATTERNS content.count

#> how long a request for the list waits for a slow site before a cached list is served |
serve B bridge --drupal $SITE --discovery-ttl 10ms --permission-ttl 10ms --stale-after 200ms --upstream-timeout 20s
lists 200 $B
fault '{"kind":"delay","delay":"10s","route":"methods"}'
sleep 0.1
began=$(date +%s%N)
lists 200 $B
test $((($(date +%s%N) - began) / 1000000)) -lt 8000
curl -s -X DELETE $M/faults

#> | `target_method` | `{target}.list` | | method that lists the valid values of an entity_reference; {target} is the entity type
#>
#> | `target_max` | `100` | | longest enum of such values; if there are more, the entity_reference accepts any string |
cat >targets.yaml <<'END'
roles: {agent: [use jsonrpc services, access mcp tool discovery]}
users: [{uid: 3, name: agent, password: agent-pass, roles: [agent]}]
methods:
- {id: a.b, mcp: {}, behaviour: echo, params: {kind: {drupal: entity_reference, target: node_type}}}
- {id: node_type.list, mcp: {}, behaviour: {value: [{id: article}, {id: page}]}}
END
serve TARGETS mock --site targets.yaml
serve B bridge --drupal $TARGETS
gets 200 -u agent:agent-pass "$B/mcp/tools/describe?name=a.b"
says '"enum":\["article","page"\]'
for flags in '--target-max 1' '--target-method none'; do
	serve B bridge --drupal $TARGETS $flags
	gets 200 -u agent:agent-pass "$B/mcp/tools/describe?name=a.b"
	silent '"enum"'
done

#> | `upstream_ca` | | `BRIDGE_UPSTREAM_CA` | file of CA certificates (PEM) that the bridge trusts for the site, beside the system's |
exits 2 bridgecheck bridge --check-config --drupal https://drupal.invalid --upstream-ca nowhere.pem

#> base address of the site, http or https, without /jsonrpc |
exits 2 bridgecheck bridge --check-config --drupal ftp://drupal.invalid
exits 2 bridgecheck bridge --check-config --drupal https://drupal.invalid/jsonrpc

#> | `session_keys` (secret) | | `BRIDGE_SESSION_KEYS` | secrets of 32+ characters that encrypt MCP sessions |
BRIDGE_SESSION_KEYS=short exits 2 bridgecheck bridge --check-config --drupal $SITE

#> a secret is in the environment or, as `NAME_file` in the configuration or `ENV_FILE` in the environment, in a file of its own.
echo secret-of-more-than-32-characters-0123456789 >key
chmod 600 key
BRIDGE_SESSION_KEYS_FILE=key exits 0 bridgecheck bridge --check-config --drupal $SITE
printf 'drupal: %s\nsession_keys_file: key\n' "$SITE" >secret.yaml
exits 0 bridgecheck bridge --check-config --config secret.yaml
printf 'drupal: %s\nsession_keys: secret-of-more-than-32-characters-0123456789\n' "$SITE" >secret.yaml
exits 2 bridgecheck bridge --check-config --config secret.yaml

#> | `max_callers` | `10000` | | callers whose tools are cached |
asked() { test "$(curl -s "$M/journal?route=methods" | grep -o '"seq":' | wc -l)" = $1; }
for limit in 1 10000; do
	serve B bridge --drupal $SITE --max-callers $limit
	curl -s -X DELETE $M/journal
	for name in agent agent2 agent; do lists 200 $B -u $name:$name-pass; done
	asked $((limit == 1 ? 3 : 2))
done

#> | `refused_ttl` | `5s` | | how long a refused caller is remembered, no longer than permission_ttl |
refuses() { lists 403 $1 -u blocked:blocked-pass; }
asks() { curl -s -X DELETE $M/journal; refuses $1; test -n "$(curl -s "$M/journal?route=methods" | grep '"seq":')"; }
serve LONG bridge --drupal $SITE --refused-ttl 1h --permission-ttl 1h --discovery-ttl 1h
serve SHORT bridge --drupal $SITE --refused-ttl 100ms --permission-ttl 1h --discovery-ttl 1h
serve BOTH bridge --drupal $SITE --refused-ttl 1h --permission-ttl 100ms --discovery-ttl 1h
for u in $LONG $SHORT $BOTH; do refuses $u; done
sleep 0.2
not asks $LONG
asks $SHORT
asks $BOTH
constant bridge/settings.go '"refused_ttl", "", "5s"'

#> | -32602 whose data begin with `Missing required parameter` | 400 | `invalid_params` | The site refused the arguments of TOOL, which fit the schema that the bridge knew: the site's words; the schema is refetched. |
refused -32602 'Invalid Params' 'Missing required parameter: nid'
call 400 $BRIDGE whoami
says '"invalid_params"' 'The site refused the arguments of whoami, which fit the schema that the bridge knew: Missing required parameter: nid; the schema is refetched\.'

#> | no response within request_timeout | 504 | `upstream_timeout` | The request took longer than the bridge allows. |
serve B bridge --drupal $SITE --upstream-timeout 2s --request-timeout 2s --max-in-flight 1
lists 200 $B
fault '{"kind":"delay","delay":"1500ms","route":"jsonrpc"}'
curl -s --parallel --parallel-immediate -u agent:agent-pass --json '{"name":"whoami","arguments":{}}' "$B/mcp/tools/invoke?[1-2]" >bodies
grep -q '"code":"upstream_timeout","message":"The request took longer than the bridge allows\."' bodies
exits 2 bridgecheck bridge --check-config --drupal $SITE --upstream-timeout 5s --request-timeout 1s
curl -s -X DELETE $M/faults

#> | the caller has its share of max_in_flight, and of max_waiting | 503 | `overloaded` | Too many calls wait for the site; retry in 1 s. |
serve B bridge --drupal $SITE --max-in-flight 1 --max-waiting 1
lists 200 $B
fault '{"kind":"delay","delay":"1s","route":"jsonrpc"}'
curl -s --parallel --parallel-immediate --parallel-max 20 -u agent:agent-pass --json '{"name":"whoami","arguments":{}}' "$B/mcp/tools/invoke?[1-8]" >bodies || true
grep -q '"code":"overloaded","message":"Too many calls wait for the site; retry in 1 s\."' bodies
curl -s -X DELETE $M/faults

#> | 400 | `invalid_cursor`, `invalid_json`, `invalid_params`, `invalid_request`, `missing_parameter` |
#>
#> | 404 | `not_found`, `tool_not_found` |
#>
#> | 405 | `method_not_allowed` |
#>
#> | 413 | `request_too_large` |
#>
#> | 415 | `unsupported_media_type` |
post() { gets $1 -u agent:agent-pass --json "$3" "${@:4}" $BRIDGE/mcp/tools/invoke; says "\"code\":\"$2\""; }
lists 400 $BRIDGE --get --data-urlencode cursor=none
says '"code":"invalid_cursor"'
post 400 invalid_json '{'
post 400 invalid_params '{"name":"content.get","arguments":{"nid":"x"}}'
gets 400 -u agent:agent-pass "$BRIDGE/mcp/tools/describe?name=%ff"
says '"code":"invalid_request"'
post 400 missing_parameter '{}'
post 404 tool_not_found '{"name":"no.such","arguments":{}}'
post 415 unsupported_media_type '{}' -H 'Content-Type: text/plain'
head -c 2097153 /dev/zero | tr '\0' ' ' >large
post 413 request_too_large @large
gets 404 -u agent:agent-pass $BRIDGE/mcp/nowhere
says '"code":"not_found"'
gets 405 -u agent:agent-pass $BRIDGE/mcp/tools/invoke
says '"code":"method_not_allowed"'

#> A Drupal field type, the JSON Schema of one value, and where its settings go in it. A `cardinality` other than 1 makes an array.
#> A type that is neither here nor in the configuration takes anything.
sed -n 's/^| `\([a-z_]*\)` | `\({.*}\)` |.*/\1 \2/p' "$ROOT/docs/reference-bridge-tables.md" >types
test $(wc -l <types) -ge 25
{
	printf 'roles: {agent: [use jsonrpc services, access mcp tool discovery]}\nusers: [{uid: 3, name: agent, password: agent-pass, roles: [agent]}]\nmethods:\n'
	while read -r type _; do
		printf -- '- {id: one.%s, mcp: {}, behaviour: echo, params: {p: {drupal: %s}}}\n- {id: many.%s, mcp: {}, behaviour: echo, params: {p: {drupal: %s, cardinality: -1}}}\n' $type $type $type $type
	done <types
	printf -- '- {id: one.other, mcp: {}, behaviour: echo, params: {p: {drupal: other}}}\n'
} >fields.yaml
serve FIELDS mock --site fields.yaml
serve B bridge --drupal $FIELDS --page-size 200
lists 200 $B
tr -d '\n' <said >list
while read -r type schema; do
	schema=${schema%\}}
	grep -qF "\"description\":\"one.$type\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"p\":$schema" list || { echo "one.$type: no $schema"; grep -o "\"one.$type\".*" list | head -c 300; false; }
	grep -qF "\"description\":\"many.$type\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"p\":{\"type\":\"array\",\"items\":$schema" list || { echo "many.$type: no $schema"; grep -o "\"many.$type\".*" list | head -c 300; false; }
done <types
gets 200 -u agent:agent-pass --json '{"name":"one.other","arguments":{"p":[1,{"a":null}]}}' $B/mcp/tools/invoke

#> | `target_value` | `id` | | member of the items that target_method returns that holds the value |
cat >uuids.yaml <<'END'
roles: {agent: [use jsonrpc services, access mcp tool discovery]}
users: [{uid: 3, name: agent, password: agent-pass, roles: [agent]}]
methods:
- {id: a.b, mcp: {}, behaviour: echo, params: {kind: {drupal: entity_reference, target: node_type}}}
- {id: node_type.list, mcp: {}, behaviour: {value: [{id: x, uuid: one}, {id: y, uuid: two}]}}
END
serve TARGETS mock --site uuids.yaml
serve B bridge --drupal $TARGETS --target-value uuid
gets 200 -u agent:agent-pass "$B/mcp/tools/describe?name=a.b"
says '"enum":\["one","two"\]'

#> | `include` | | `BRIDGE_INCLUDE` | patterns of the ids of methods that become tools; \* matches any characters; if unset: content.\*, search.\*, taxonomy.\*, media.\* where there is no attribute |
cat >plain.yaml <<'END'
extensions: none
roles: {agent: [use jsonrpc services]}
users: [{uid: 3, name: agent, password: agent-pass, roles: [agent]}]
methods:
- {id: content.a, behaviour: echo}
- {id: search.a, behaviour: echo}
- {id: taxonomy.a, behaviour: echo}
- {id: media.a, behaviour: echo}
- {id: user.a, behaviour: echo}
END
serve PLAIN mock --site plain.yaml
serve B bridge --drupal $PLAIN
lists 200 $B
test "$(grep -oE '"name":"[a-z.]*"' said | sort | tr -d '\n')" = '"name":"content.a""name":"media.a""name":"search.a""name":"taxonomy.a"'
serve B bridge --drupal $PLAIN --include 'u*a'
lists 200 $B
test "$(grep -oE '"name":"[a-z.]*"' said)" = '"name":"user.a"'

#> | `max_answer` | `16777216` | | longest response of the site to a call, in bytes; its list of methods may be 8 times as long |
SIZE=$(curl -s -u agent:agent-pass $SITE/jsonrpc/methods | wc -c)
serve B bridge --drupal $SITE --max-answer $((SIZE / 8 + 300))
lists 200 $B
serve B bridge --drupal $SITE --max-answer $((SIZE / 8 - 300))
lists 502 $B

#> | `page_size` | `50` | `BRIDGE_PAGE_SIZE` | tools on a page of the list |
page() { lists 200 $1 -u admin:admin-pass; test $(grep -o '"inputSchema":' said | wc -l) = $2; }
cat >fifty.yaml <<END
roles: {agent: [use jsonrpc services, access mcp tool discovery]}
users: [{uid: 1, name: admin, password: admin-pass, roles: [agent]}]
methods:
$(for i in $(seq 60); do echo "- {id: a.b$i, mcp: {}, behaviour: echo}"; done)
END
serve FIFTY mock --site fifty.yaml
serve B bridge --drupal $FIFTY
page $B 50
BRIDGE_PAGE_SIZE=9 serve B bridge --drupal $FIFTY
page $B 9
