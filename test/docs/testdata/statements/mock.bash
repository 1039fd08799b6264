serve SITE mock --control 127.0.0.1:0
M=$(control SITE)
serve TWO mock --jsonrpc 2
serve MCP mock --with-module mcp
cat >site.yaml <<'END'
title: Special
null_results: allowed
roles: {agent: [use jsonrpc services]}
users: [{uid: 3, name: agent, password: agent-pass, roles: [agent]}]
methods:
- {id: a.null, behaviour: {value: null}}
- {id: a.breaks, output: {type: string}, behaviour: {value: 42}}
- {id: a.exclusive, unchecked: true, params: {n: {schema: {type: number, exclusiveMinimum: 3}}}, behaviour: echo}
- {id: a.both, params: {n: {schema: {type: number, minimum: 3, exclusiveMinimum: 3}}}, unchecked: true, behaviour: echo}
- {id: a.contains, params: {n: {schema: {type: array, contains: {const: 1}}}}, unchecked: true, behaviour: echo}
- {id: a.disallow, params: {n: {schema: {disallow: string}}}, unchecked: true, behaviour: echo}
- {id: a.ref, params: {n: {schema: {$ref: "#/nowhere"}}}, unchecked: true, behaviour: echo}
- {id: a.multiple, params: {n: {schema: {type: number, multipleOf: 0}}}, unchecked: true, behaviour: echo}
- {id: a.pattern, params: {n: {schema: {type: string, pattern: "^(?<!x)\\w+$"}}}, unchecked: true, behaviour: echo}
- {id: a.wrong, params: {n: {schema: {type: string, pattern: "("}}}, unchecked: true, behaviour: echo}
- {id: a.list, params: {n: {schema: {type: array}}}, behaviour: echo}
- {id: a.object, params: {n: {schema: {type: object}}}, behaviour: echo}
- {id: a.headers, headers: {X-Mine: one, Cache-Control: max-age=5, ETag: "x"}, behaviour: {value: 1}}
END
serve SPECIAL mock --site site.yaml --quirk lenient-output
serve STRICT mock --site site.yaml
# rpc STATUS METHOD [PARAMS] [URL]: a call of agent.
rpc() { gets "$1" -u agent:agent-pass --json "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$2\",\"params\":${3:-{\}}}" "${4:-$SITE}/jsonrpc"; }
# post STATUS METHOD [PARAMS]: a message to the module mcp.
post() { gets "$1" -u agent:agent-pass --json "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$2\",\"params\":${3:-{\}}}" $MCP/mcp/post; }
plane() { gets "$1" -X "$2" "$M/$3" "${@:4}"; }

#> the built-in site `default` on 127.0.0.1:8080
exits 0 bridgecheck mock --help
says 'default "?default"?' '127\.0\.0\.1:8080"'
serve DEFAULT mock --site default
methods() { curl -s -u agent:agent-pass "$1/jsonrpc/methods" | sed 's|http:[^"]*||g'; }
methods $SITE >without
methods $DEFAULT >with
cmp without with

#> It prints `listening on http://…` when it is ready.
grep -qE '^listening on http://127.0.0.1:[0-9]+$' SITE.log

#> An empty address is an error; where others can reach it with passwords that
#> everybody knows, as by `--listen :8080`, it prints at which addresses.
exits 2 bridgecheck mock --listen ''
serve WIDE mock --listen :0
cat WIDE.log
grep -vE '^listening on' WIDE.log | grep -E '[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+'
not grep -vE '^listening on|control plane' SITE.log

#> Passwords are `NAME-pass`, bearer tokens `NAME-token`; `admin` may do
#> everything, `agent` most, `discoverer` little, `blocked` nothing.
gets 200 -u agent:agent-pass $SITE/jsonrpc/methods
gets 200 -H 'Authorization: Bearer agent-token' $SITE/jsonrpc/methods
gets 403 -u blocked:blocked-pass $SITE/jsonrpc/methods
of() { curl -s -u "$1:$1-pass" $SITE/jsonrpc/methods | grep -o JsonRpcMethod | wc -l; }
echo $(of admin) $(of agent) $(of discoverer)
test $(of admin) -gt $(of agent)
test $(of agent) -gt $(of discoverer)

#> Every account is an OAuth client whose
#> secret is its password; the scope `role_X` limits a token to the role X.
gets 200 $SITE/oauth/token -d grant_type=client_credentials -d client_id=agent -d client_secret=agent-pass -d scope=role_reader
TOKEN=$(sed -n 's/.*"access_token":"\([^"]*\)".*/\1/p' said)
gets 200 -H "Authorization: Bearer $TOKEN" $SITE/jsonrpc/methods
silent '"access.fixture"'
gets 200 -u agent:agent-pass $SITE/jsonrpc/methods
says '"access.fixture"'
gets 401 $SITE/oauth/token -d grant_type=client_credentials -d client_id=agent -d client_secret=wrong

#> a 204 for a lone
#> notification that 2.0.5 lacks
gets 204 -u agent:agent-pass --json '{"jsonrpc":"2.0","method":"content.list"}' $TWO/jsonrpc

#> `cookie` in the site file has no effect
curl -s -c jar -H 'Content-Type: application/json' "$TWO/user/login?_format=json" -d '{"name":"agent","pass":"agent-pass"}' >/dev/null
sed 's/^title:.*/title: C\nauth: {jsonrpc: [cookie]}/' site.yaml >cookie.yaml
serve C2 mock --jsonrpc 2 --site cookie.yaml
serve C3 mock --site cookie.yaml
for u in $C2 $C3; do
	curl -s -c jar -H 'Content-Type: application/json' "$u/user/login?_format=json" -d '{"name":"agent","pass":"agent-pass"}' >/dev/null
	curl -s -b jar -o $u.out -w '%{http_code}\n' --json '{"jsonrpc":"2.0","id":1,"method":"a.headers"}' $u/jsonrpc >>codes || true
done
cat codes
test "$(head -n 1 codes)" != 200
test "$(tail -n 1 codes)" = 200

#> 401 without credentials, 400 without calls in the query, else 204 with `Allow` and no `Access-Control-*`; elsewhere 405
o() { gets "$1" -X OPTIONS -H 'Access-Control-Request-Method: POST' -H 'Origin: https://x.example' "${@:2}"; }
o 401 $SITE/jsonrpc
o 400 -u agent:agent-pass $SITE/jsonrpc
o 204 -u agent:agent-pass "$SITE/jsonrpc?query=%7B%22jsonrpc%22:%222.0%22,%22id%22:1,%22method%22:%22content.list%22%7D"
says '^Allow:'
silent '^Access-Control-'
o 405 -u agent:agent-pass $SITE/jsonrpc/methods

#> a method that returns null | `null_results` of the site file: allowed without it | fails with -32603
rpc 200 a.null '{}' $STRICT
says '"result":null'
sed '/null_results/d' site.yaml >without.yaml
serve W mock --site without.yaml
rpc 200 a.null '{}' $W
serve W2 mock --site without.yaml --jsonrpc 2
rpc 200 a.null "{}" $W2
says '"code":-32603'

#> a result that breaks `output` | 500, `id: null`, -32603; not in a batch, even of one call
rpc 500 a.breaks '{}' $STRICT
says '"code":-32603' '"id":null'
gets 200 -u agent:agent-pass --json '[{"jsonrpc":"2.0","id":1,"method":"a.breaks"}]' $STRICT/jsonrpc
says '"result":42'

#> `--quirk lenient-output` sends them
rpc 200 a.breaks '{}' $SPECIAL
says '"result":42'

#> the keywords of Drafts 3 and 4 bind, whatever `$schema` says (`disallow`, `extends`, `divisibleBy`, `requires`); `contains`, `if`, `prefixItems`, `propertyNames` do not
rpc 200 a.contains '{"n":[2]}' $STRICT
says '"result"'
rpc 400 a.disallow '{"n":"text"}' $STRICT
says '"code":-32602'

#> only its truth counts; without `minimum` beside it every number is refused (-32602)
rpc 400 a.exclusive '{"n":99}' $STRICT
says '"code":-32602'
rpc 400 a.both '{"n":3}' $STRICT
rpc 200 a.both '{"n":4}' $STRICT

#> look-around, back references, possessive quantifiers bind, `\w` is any letter; an invalid pattern refuses every text
rpc 200 a.pattern '{"n":"grüße"}' $STRICT
rpc 400 a.pattern '{"n":"a b"}' $STRICT
rpc 400 a.wrong '{"n":"("}' $STRICT

#> `$ref` that does not resolve, an unknown `type` | 400, -32603
rpc 400 a.ref '{"n":1}' $STRICT
says '"code":-32603'

#> `multipleOf: 0`, a schema that needs itself | 500, the page of an uncaught error
rpc 500 a.multiple '{"n":1}' $STRICT
says 'unexpected error'
silent jsonrpc

#> `[]` | an object and a list, also as a result
rpc 200 a.list '{"n":[]}' $STRICT
rpc 200 a.object '{"n":[]}' $STRICT

#> names in lower case, one `Content-Type`; Cache-Control, Expires, ETag, Last-Modified and Vary are not sent
rpc 200 a.headers '{}' $STRICT
says '^x-mine: one'
silent 'max-age=5' '^[Ee][Tt]ag: *"?x'
test "$(grep -ci '^content-type:' said)" = 1

#> keep `/index.php`; the host in lower case, without the default port
gets 200 -u agent:agent-pass -H 'Host: SITE.Example:80' $SITE/index.php/jsonrpc/methods
says 'site\.example\\/index\.php\\/'

#> Flood control (`--flood`, `PUT flood`) has Drupal's figures: after five failures of an account from one address in six hours, and after
#> 50 of an address in one hour for any accounts, right credentials are refused, too (403).
serve FLOOD mock --flood
for i in 1 2 3 4; do gets 403 -u agent:wrong$i $FLOOD/jsonrpc/methods; done
gets 200 -u agent2:agent2-pass $FLOOD/jsonrpc/methods
gets 403 -u agent:wrong5 $FLOOD/jsonrpc/methods
gets 403 -u agent:agent-pass $FLOOD/jsonrpc/methods
curl -s -u "nobody#1:x" "$FLOOD/jsonrpc/methods?[1-45]" -o /dev/null
gets 403 -u agent2:agent2-pass $FLOOD/jsonrpc/methods

#> A success clears the account and not the
#> address.
serve FLOOD mock --flood
for i in 1 2 3 4; do gets 403 -u agent:wrong$i $FLOOD/jsonrpc/methods; done
gets 200 -u agent:agent-pass $FLOOD/jsonrpc/methods
for i in 1 2 3 4; do gets 403 -u agent:wrong$i $FLOOD/jsonrpc/methods; done
gets 200 -u agent:agent-pass $FLOOD/jsonrpc/methods
curl -s -u "nobody:x" "$FLOOD/jsonrpc/methods?[1-42]" -o /dev/null
gets 403 -u agent2:agent2-pass $FLOOD/jsonrpc/methods

#> `/user/login` counts by itself. It is off by default, unlike a Drupal's
serve FLOOD mock --flood
for i in 1 2 3 4 5; do gets 403 -u agent:wrong$i $FLOOD/jsonrpc/methods; done
gets 200 -H 'Content-Type: application/json' "$FLOOD/user/login?_format=json" -d '{"name":"agent","pass":"agent-pass"}'
for i in 1 2 3 4 5 6; do gets 403 -u agent2:wrong$i $SITE/jsonrpc/methods; done
gets 200 -u agent2:agent2-pass $SITE/jsonrpc/methods

#> | 10.6, the default | Drupal 10 | `charset=UTF-8` | `MISS` of the page; none in JSON |
gets 404 $SITE/no-page
says '^X-Generator: Drupal 10 ' 'charset=UTF-8' '^X-Drupal-Dynamic-Cache: MISS$'
gets 404 "$SITE/no-page?_format=json"
silent '^X-Drupal-Dynamic-Cache'

#> | 11.4 | Drupal 11 | `charset=utf-8` | `UNCACHEABLE (404)`, of a page `UNCACHEABLE (404, sub-request: MISS)`
serve NEW mock --drupal 11.4
gets 404 $NEW/no-page
says '^X-Generator: Drupal 11 ' 'charset=utf-8' '^X-Drupal-Dynamic-Cache: UNCACHEABLE \(404, sub-request: MISS\)$'
gets 404 "$NEW/no-page?_format=json"
says '^X-Drupal-Dynamic-Cache: UNCACHEABLE \(404\)$'

#> | 12 | Drupal 12 | `charset=utf-8` | as 11.4 | assumption |
serve NEW mock --drupal 12
gets 404 $NEW/no-page
says '^X-Generator: Drupal 12 ' 'charset=utf-8' '^X-Drupal-Dynamic-Cache: UNCACHEABLE \(404, sub-request: MISS\)$'

#> | 11.3 | Drupal 11 | `charset=UTF-8` | as 10.6 | documentation |
serve NEW mock --drupal 11.3
gets 404 $NEW/no-page
says '^X-Generator: Drupal 11 ' 'charset=UTF-8' '^X-Drupal-Dynamic-Cache: MISS$'

#> `content.get` is `site_content_get`
post 200 tools/list
says '"name":"site_content_get"'
silent 'nextCursor'
post 200 initialize '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}'
says '"protocolVersion":"2025-03-26"'
post 200 resources/list
says '"resources":\[\]'

#> does not validate: the plugin does. Unknown and denied tools are -32603
post 200 tools/call '{"name":"site_no_such","arguments":{}}'
says '"code":-32603'

#> `isError: true` with the error's message, and for -32602 the parameter; no code, no data
post 200 tools/call '{"name":"site_fail_server","arguments":{}}'
says '"isError":true'
silent '"code"' '"data"'

#> Basic, bearer, cookie; 401 with -32001 for wrong ones and none
gets 401 --json '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' $MCP/mcp/post
says '"code":-32001'
silent '^WWW-Authenticate'

#> Without a token the control plane listens on this machine only.
exits 2 bridgecheck mock --control 0.0.0.0:0

#> Where `BRIDGECHECK_CONTROL_TOKEN` is set, callers send
#> `Authorization: Bearer TOKEN`; without `--control` it is then below `/-/mock/` on the site's own address.
export BRIDGECHECK_CONTROL_TOKEN=some-long-token-of-mine-0123456789
serve TOKEN mock
gets 200 -H "Authorization: Bearer $BRIDGECHECK_CONTROL_TOKEN" $TOKEN/-/mock/site
gets 401 $TOKEN/-/mock/site

#> Bad input is
#> refused with 4xx and `{"error": what and where}`, and changes nothing.
before=$(curl -s $M/site | md5sum)
plane 400 PATCH site --json '{"roles":{"agent":{"grant":["no such permission"]}}}'
says '^\{"error":'
plane 400 PATCH site --json '{"rolls":{}}'
plane 400 POST faults --json '{"kind":"no-such-kind"}'
test "$before" = "$(curl -s $M/site | md5sum)"

#> Without a token the `Host` must be `127.0.0.1`, `[::1]` or `localhost` (else 403: another name may
#> point here by DNS rebinding).
gets 403 -H 'Host: evil.example' $M/site
gets 200 -H "Host: localhost" $M/site

#> An `Origin` must be the control plane's own, and `Sec-Fetch-Site` not another site's (403);
gets 403 -H 'Origin: https://evil.example' $M/site
gets 403 -H 'Sec-Fetch-Site: cross-site' $M/site
gets 200 -H "Origin: ${M%/-/mock}" $M/site

#> A body needs `Content-Type: application/json`, a site file `application/yaml` or that (else 415).
gets 415 $M/faults -H 'Content-Type: text/plain' -d '{"kind":"status","status":503}'
gets 415 -X PUT $M/site -H 'Content-Type: text/plain' --data-binary @site.yaml

#> or {"modules":["NAME"]}; "enable" brings them back
serve MODULES mock --site transcripts --control 127.0.0.1:0
M=$(control MODULES)
has() { curl -s -u admin:admin-pass $MODULES/jsonrpc/methods | grep -q '"plugins.list"'; }
has
plane 204 PATCH site --json '{"disable":{"modules":["jsonrpc_core"]}}'
not has
plane 204 PATCH site --json '{"enable":{"modules":["jsonrpc_core"]}}'
has

#> how often it ran
curl -s -X DELETE $M/journal
before=$(curl -s $M/runs/content.types)
rpc 200 content.types
after=$(curl -s $M/runs/content.types)
echo "$before $after"
test "$before" != "$after"

#> also after, route, status, fault
curl -s -X DELETE $M/journal
rpc 200 content.types
rpc 400 no.such
gets 200 "$M/journal?status=200&route=jsonrpc&user=agent&after=0"
says 'content.types'

#> if several match, the one armed first acts. A pattern that can match nothing is an error.
curl -s -X DELETE $M/faults
curl -s $M/faults --json '{"kind":"status","status":503,"method":"content.*"}'
curl -s $M/faults --json '{"kind":"status","status":502,"method":"content.*"}'
rpc 503 content.types
curl -s -X DELETE $M/faults
plane 400 POST faults --json '{"kind":"status","status":503,"method":"no.such.method"}'
says '"error"'
rpc 200 content.types

#> Kinds
#> with `"runs": true` run the method first; others do so with `"run": true`.
gets 200 $M/fault-kinds
says '"runs": ?true'
runs() { curl -s $M/runs/content.types; }
first=$(runs)
curl -s $M/faults --json '{"kind":"status","status":503,"count":1}'
rpc 503 content.types
test "$first" = "$(runs)"
curl -s $M/faults --json '{"kind":"status","status":503,"count":1,"run":true}'
rpc 503 content.types
test "$first" != "$(runs)"

#> An entry's `cookies` are those that came with the request and its `set_cookies` those of the response, by name and hash of
#> the value
curl -s -X DELETE $M/journal
curl -s $M/faults --json '{"kind":"set-cookie","cookie":"marker={seq}; Path=/","count":1}'
gets 200 -H 'Cookie: mine=secretvalue' -u agent:agent-pass --json '{"jsonrpc":"2.0","id":1,"method":"content.types"}' $SITE/jsonrpc
says '^Set-Cookie: marker=[0-9]+; Path=/'
gets 200 $M/journal
says '"set_cookies"' 'marker' '"mine"' 'sha256:[0-9a-f]{12}'
silent secretvalue

#> Credentials are shown only as hashes (`sha256:` and 12 digits): `Authorization`, cookies, tokens in headers and queries, and
#> the bodies of `/user/login`, `/oauth/token` and `/oauth/revoke`. Equal credentials have equal hashes.
curl -s -X DELETE $M/journal
curl -s -H 'Content-Type: application/json' "$SITE/user/login?_format=json" -d '{"name":"agent","pass":"agent-pass"}' >/dev/null
curl -s $SITE/oauth/token -d grant_type=client_credentials -d client_id=agent -d client_secret=agent-pass >/dev/null
rpc 200 content.types
rpc 200 content.types
gets 200 $M/journal
silent agent-pass "$(printf agent:agent-pass | base64)"
hashes=$(grep -o '"Authorization":\[\?"[^"]*"' said | sort -u | wc -l)
test "$hashes" = 1

#> of a body it
#> shows 64 KiB, of a call all parameters.
curl -s -X DELETE $M/journal
head -c 100000 /dev/zero | tr '\0' x >big
{ printf '{"jsonrpc":"2.0","id":1,"method":"content.search","params":{"query":"'; cat big; printf '"}}'; } >big.json
curl -s -o /dev/null -u agent:agent-pass --json @big.json $SITE/jsonrpc
gets 200 $M/journal
test "$(sed -n 's/.*"body":"\([^"]*\)".*/\1/p' said | base64 -d | wc -c)" = 65536
says '"params":"\{\\"query\\":\\"x{100}'

#> Entries are numbered by `seq` without gaps.
curl -s -X DELETE $M/journal
for i in 1 2 3; do rpc 200 content.types; done
curl -s $M/journal | grep -o '"seq": *[0-9]*' | tr -dc '0-9\n' | sort -n | awk 'NR > 1 && $1 != last + 1 { exit 1 } { last = $1 }'

#> It prints the agreement by area and every difference, names the headers that are left out, and why, and ends with 1 when something
#> differs; `--json` is for programs.
mkdir -p rec
echo '{"id":"mine/list","as":"agent","auth":"basic","fresh_cache":true,"request":{"method":"POST","path":"/jsonrpc","headers":{"Content-Type":"application/json"},"body":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"content.list\"}"}}' >cases.jsonl
BRIDGECHECK_PASSWORD_AGENT=agent-pass exits 0 bridgecheck mock record --url $TWO --cases cases.jsonl --out recordings
exits 0 bridgecheck mock verify --transcripts recordings --site default
says '1 of 1 records agree' 'not compared'
exits 1 bridgecheck mock verify --transcripts recordings --site empty
says 'DIFFERS'
exits 1 bridgecheck mock verify --transcripts recordings --site empty --json
says '^\{'

#> No credential is stored: not in headers, not in bodies (write `{{password}}` there), not in responses.
echo '{"id":"mine/login","as":"agent","auth":"none","fresh_cache":true,"request":{"method":"POST","path":"/user/login?_format=json","headers":{"Content-Type":"application/json"},"body":"{\"name\":\"agent\",\"pass\":\"{{password}}\"}"}}' >login.jsonl
BRIDGECHECK_PASSWORD_AGENT=agent-pass exits 0 bridgecheck mock record --url $SITE --cases login.jsonl --out logins
grep -rq '"status": *200' logins
not grep -rE 'agent-pass|SESS[0-9a-f]*=[A-Za-z0-9]' logins

#> It is a ring in memory of 32,768 entries and 128 MiB of headers, bodies and calls, whichever is full first; of a body it
#> shows 64 KiB, of a call all parameters. When it is full the oldest entries are dropped: `dropped` counts them, `lost` is how many after `after=` are
#> missing, and a reader that finds `lost` above 0 has not seen everything.
serve FULL mock --control 127.0.0.1:0
P=$(control FULL)
number() { curl -s "$P/journal?user=nobody&after=$2" | grep -oE "\"$1\": ?[0-9]+" | tr -dc 0-9; }
{ printf '{"jsonrpc":"2.0","id":1,"method":"content.search","params":{"query":"'; head -c 990000 /dev/zero | tr '\0' x; printf '"}}'; } >long.json
gets 200 -u agent:agent-pass --json @long.json $FULL/jsonrpc
curl -s $P/journal >entry
test $(tr -cs x '\n' <entry | awk 'length == 990000' | wc -l) = 1
test "$(grep -oE '"body":"[^"]*"' entry | wc -c)" = 87394 # 64 KiB in base64
test "$(number dropped 0)" = "$(number lost 0)"
curl -s -u agent:agent-pass --json @long.json "$FULL/jsonrpc?[2-150]" -o /dev/null
DROPPED=$(number dropped 0)
test $DROPPED -gt 0
test $(number lost 0) = $DROPPED
test $(number lost 1) = $((DROPPED - 1))
test $(number lost $DROPPED) = 0
constant mockdrupal/journal/journal.go 'DefaultLimit = 32_768 '

#> Flood control (`--flood`, `PUT flood`)
plane 204 PUT flood
for i in 1 2 3 4 5; do gets 403 -u agent2:wrong$i $SITE/jsonrpc/methods; done
gets 403 -u agent2:agent2-pass $SITE/jsonrpc/methods
plane 204 DELETE flood
gets 200 -u agent2:agent2-pass $SITE/jsonrpc/methods

#> `bytes_out` is the part of it that is body, compressed for `huge-gzip`.
out() {
	curl -s -X DELETE $M/journal
	fault "{\"kind\":\"$1\",\"size\":3000000,\"route\":\"jsonrpc\",\"count\":1}" >/dev/null
	curl -s -o /dev/null -H 'Accept-Encoding: gzip' -u agent:agent-pass --json '{"jsonrpc":"2.0","id":1,"method":"whoami"}' $SITE/jsonrpc
	curl -s $M/journal | grep -oE '"bytes_out": ?[0-9]+' | tr -dc 0-9
}
test $(out huge) -ge 3000000
test $(out huge-gzip) -lt 2900000
test $(out huge-gzip) -gt 0

#> numbers under `format: phone`, `style` | -32602 with PHP's message
cat >formats.yaml <<'END'
roles: {agent: [use jsonrpc services]}
users: [{uid: 3, name: agent, password: agent-pass, roles: [agent]}]
methods:
- {id: a.phone, params: {n: {schema: {type: number, format: phone}}}, unchecked: true, behaviour: echo}
- {id: a.style, params: {n: {schema: {type: number, format: style}}}, unchecked: true, behaviour: echo}
- {id: a.plain, params: {n: {schema: {type: number}}}, behaviour: echo}
END
serve FORMATS mock --site formats.yaml
for m in a.phone a.style; do
	rpc 400 $m '{"n":1}' $FORMATS
	says '"code":-32602' 'must be of type string, int given'
done
rpc 200 a.plain '{"n":1}' $FORMATS

#> `Freeze` holds methods and `Step` lets them continue one by one.
plane 204 PUT freeze --json '{"method":"content.*"}'
for i in 1 2; do curl -s -o frozen.$i -u agent:agent-pass --json '{"jsonrpc":"2.0","id":1,"method":"content.types"}' $SITE/jsonrpc & done
rpc 200 whoami
sleep 0.3
done_with() { test $(cat frozen.1 frozen.2 2>/dev/null | grep -o '"result"' | wc -l) = $1; }
done_with 0
curl -s --fail-with-body $M/step --json '{"count":1}'
soon done_with 1
sleep 0.3
done_with 1
plane 204 DELETE freeze
soon done_with 2

#> Faults that change documents of `/jsonrpc/methods` leave `tools/list` as it is.
serve BOTH mock --with-module mcp --control 127.0.0.1:0
list() { curl -s -u agent:agent-pass --json '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}' $BOTH/mcp/post | md5sum; }
documents() { curl -s -u agent:agent-pass $BOTH/jsonrpc/methods | md5sum; }
M=$(control BOTH) before=$(list) known=$(documents)
KIND=$(curl -s $M/fault-kinds | grep -oE '"name": ?"poison[a-z-]*"' | head -n 1 | sed 's/.*"\(poison.*\)"/\1/')
fault "{\"kind\":\"$KIND\"}"
test "$known" != "$(documents)"
test "$before" = "$(list)"

#> A parameter of `drupal: TYPE` takes anything, though a real site has no such type
printf 'roles: {agent: [use jsonrpc services]}\nusers: [{uid: 3, name: agent, password: agent-pass, roles: [agent]}]\nmethods: [{id: a.b, behaviour: echo, params: {p: {drupal: integer}}}]\n' >drupal.yaml
serve ANY mock --site drupal.yaml
rpc 200 a.b '{"p":{"x":[true]}}' $ANY
