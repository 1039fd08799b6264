serve SITE mock --control 127.0.0.1:0
M=$(control SITE)
serve BRIDGE bridge --drupal $SITE

#> | `auth_account_failures` | 4 in 6 hours | refusals of one account name, in any letter case |
serve B bridge --drupal $SITE
curl -s -X DELETE $M/journal
for name in agent:w1 Agent:w2 AGENT:w3 aGENT:w4; do lists 403 $B -u $name; done
lists 429 $B -u agent:wrong2
says '"rate_limited"' '^Retry-After: 2[01][0-9][0-9][0-9]$'
test $(curl -s $M/journal | grep -o '"seq":' | wc -l) = 4

#> A request that would go over a limit gets 429 `rate_limited` with `Retry-After`, and the site does not see it. Credentials
#> that the site accepted pass, whatever others try. Credentials that the site refused before are refused in the same way,
#> from memory, while a limit is reached.
serve B bridge --drupal $SITE
lists 200 $B -u agent2:agent2-pass
for i in 1 2 3 4; do lists 403 $B -u "agent2:wrong$i"; done
lists 429 $B -u agent2:new
curl -s -X DELETE $M/journal
lists 403 $B -u agent2:wrong1
lists 200 $B -u agent2:agent2-pass
call 200 $B whoami '{}' -u agent2:agent2-pass

#> After four wrong passwords within 6 hours, the right one, too, gets 429 until the first of the four is 6 hours old, if it was
#> not used before: `Retry-After` says when.
#>
#> To let people in at once, either raise `auth_account_failures` and
#> send SIGHUP, which uses the one failure that Drupal still allows, or restart the bridge
printf 'drupal: %s\nauth_account_failures: 4\n' $SITE >hup.yaml
serve B bridge --config hup.yaml
for i in 1 2 3 4; do lists 403 $B -u "agent:wrong$i"; done
lists 429 $B
sed -i 's/failures: 4/failures: 5/' hup.yaml
kill -HUP $(cat B.pid)
soon lists 200 $B

#> | `auth_address_failures` | 20 in 1 hour | different credentials from one client address (64 bits of IPv6) | |
serve B bridge --drupal $SITE
lists 200 $B
for i in $(seq 20); do lists 403 $B -u "nobody$i:x"; done
lists 429 $B -u nobody21:x
lists 200 $B

#> | `auth_total_failures` | 40 in 1 hour | refusals of account names, of all clients |
serve B bridge --drupal $SITE --trusted-proxies 127.0.0.1
for i in $(seq 40); do lists 403 $B -u "nobody$i:x" -H "X-Forwarded-For: 203.0.113.$i"; done
lists 429 $B -u nobody41:x -H "X-Forwarded-For: 203.0.113.99"

#> `auth_total_failures` does not count then.
serve B bridge --drupal $SITE --trusted-proxies 127.0.0.1 --forward-address
for i in $(seq 41); do lists 403 $B -u "nobody$i:x" -H "X-Forwarded-For: 203.0.113.$i"; done

#> With `forward_address` the site gets the client's address in `X-Forwarded-For`
serve B bridge --drupal $SITE --trusted-proxies 127.0.0.1 --forward-address
curl -s -X DELETE $M/journal
lists 200 $B -H 'X-Forwarded-For: 198.51.100.1, 203.0.113.50'
gets 200 $M/journal
says '"X-Forwarded-For":\["203.0.113.50"\]'

#> then the client is the nearest address in `X-Forwarded-For` that is no trusted proxy. What
#> clients write before it is ignored.
serve B bridge --drupal $SITE --trusted-proxies 127.0.0.1,10.0.0.0/8
lists 403 $B -u x:y -H 'X-Forwarded-For: 192.0.2.66, 203.0.113.7, 10.1.2.3'
soon grep -q 'client=203.0.113.7 ' B.log
not grep -q 192.0.2.66 B.log

#> Wrong tokens of those that the bridge itself compares (`service_tokens`, `admin_tokens`) count for `auth_address_failures`,
#> too. Beyond the limit a right token that was never used before gets the same 429 as a wrong one; tokens in use pass.
export BRIDGE_SERVICE_PASSWORD=service-pass BRIDGE_SERVICE_TOKENS=token-of-mine-0123456789-0123456789,token-of-other-0123456789-0123456789
serve B bridge --drupal $SITE --service-user service
bearer() { gets $1 -H "Authorization: Bearer $2" $B/mcp/tools/list; }
bearer 200 token-of-mine-0123456789-0123456789
for i in $(seq 20); do bearer 401 wrong-$i-0123456789-0123456789-0123456789; done
bearer 429 wrong-21-0123456789-0123456789-0123456789
bearer 429 token-of-other-0123456789-0123456789
bearer 200 token-of-mine-0123456789-0123456789

#> Each 401, 403 and 429, over every interface, is a warning with the message `refused`, and counts in `bridge_refusals_total` by its kind:
gets 401 $BRIDGE/mcp/tools/list
soon grep -qE '^time=[^ ]+ level=WARN msg=refused kind=credentials status=401 client=127.0.0.1 user=\S* ?method=GET path=/mcp/tools/list why=".*" request_id=' BRIDGE.log
gets 401 $BRIDGE/mcp -H 'Authorization: Basic !!!' --json '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' -H 'Accept: application/json, text/event-stream'
soon grep -qE 'msg=refused kind=credentials status=401 .*path=/mcp ' BRIDGE.log
gets 200 $BRIDGE/metrics
says '^bridge_refusals_total[{]kind="credentials"[}] [1-9]'

#> | `throttled` | 429 | too many wrong credentials of the account or from the address |
serve B bridge --drupal $SITE
for i in 1 2 3 4; do lists 403 $B -u "agent:wrong$i"; done
lists 429 $B -u agent:wrong
soon grep -q 'msg=refused kind=throttled status=429' B.log

#> | `rate` | 429 | more calls than `rate_limit`, or than the site, allows |
serve B bridge --drupal $SITE --rate-limit 0.01 --rate-burst 1
call 200 $B whoami
call 429 $B whoami
soon grep -q 'msg=refused kind=rate status=429' B.log

#> | `access` | 403 | the caller lacks a permission or a scope, or the site denies a wrong password so |
lists 403 $BRIDGE -u agent:wrong
soon grep -q 'msg=refused kind=access status=403' BRIDGE.log

#> | `host`, `origin` | 403 | a host name or an origin that `allowed_hosts` does not name |
lists 403 $BRIDGE -H 'Host: evil.example'
lists 403 $BRIDGE -H 'Origin: https://evil.example'
soon grep -q 'msg=refused kind=host status=403' BRIDGE.log
soon grep -q 'msg=refused kind=origin status=403' BRIDGE.log

#> `user` is the account where the site has accepted it since the start; else `unknown:` and a digest that only this process
#> can make, because people type passwords where the name belongs. Credentials are never in a line.
lists 200 $BRIDGE -u service:service-pass
lists 403 $BRIDGE -u service:secret-word
lists 403 $BRIDGE -u typed-secret:x
soon grep -qE 'msg=refused .*user=service ' BRIDGE.log
soon grep -qE 'msg=refused .*user=unknown:[0-9a-f]+' BRIDGE.log
not grep -qE 'secret-word|typed-secret' BRIDGE.log

#> An address has 20 lines at
#> once and then one in 10 s
#>
#> `unlogged` in a line is how many
#> were left out before it.
serve B bridge --drupal $SITE
for i in $(seq 30); do gets 401 $B/mcp/tools/list; done
sleep 0.3
test $(grep -c msg=refused B.log) -ge 20
test $(grep -c msg=refused B.log) -le 22

#> failregex = ^.* level=WARN msg=refused kind=(?:credentials|access|throttled) status=\d+ client=<HOST>
lists 403 $BRIDGE -u agent:wrong
soon grep -qP '^.* level=WARN msg=refused kind=(?:credentials|access|throttled) status=\d+ client=127\.0\.0\.1 ' BRIDGE.log

#> all spellings of the same credential share what is remembered and counted.
#> Malformed credentials, several `Authorization` headers and several session cookies get 401 and never reach the site. Beside
#> an `Authorization` header cookies are ignored.
B64=$(printf agent:agent-pass | base64)
curl -s -X DELETE $M/journal
gets 401 -H 'Authorization: Basic !!!' $BRIDGE/mcp/tools/list
gets 401 -H "Authorization: Basic $B64" -H "Authorization: Bearer agent-token" $BRIDGE/mcp/tools/list
serve COOKIES bridge --drupal $SITE --credentials cookie,basic
gets 401 -H "Cookie: SESSaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=x; SESSbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb=y" $COOKIES/mcp/tools/list
gets 200 $M/journal
says '"entries":\[\]'
gets 200 -H "Authorization:  basic   $B64" $BRIDGE/mcp/tools/list
gets 200 -u agent:agent-pass -H 'Cookie: SESSaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=x; SESSbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb=y' $COOKIES/mcp/tools/list

#> Rate limits (`rate_limit`) count by account where the credential names one.
serve B bridge --drupal $SITE --rate-limit 0.01 --rate-burst 1
call 200 $B whoami
call 200 $B whoami '{}' -u agent2:agent2-pass
call 429 $B whoami

#> `Accept-Language` is reduced to one language of the site's (`languages`); without that setting to one of ISO 639-1
serve B bridge --drupal $SITE --languages en,pt-br
seen() { curl -s -X DELETE $M/journal; call 200 $1 whoami '{}' -H "Accept-Language: $2"; gets 200 "$M/journal?method=whoami"; }
seen $B 'de, pt-BR;q=0.8, en;q=0.2'
says '"Accept-Language":\["pt-br"\]'
seen $BRIDGE 'xx-invented, de;q=0.5'
says '"Accept-Language":\["de"\]'
silent invented

#> A request with an `Origin` of another host gets 403. There is no setting that lets browsers of other hosts in.
for path in mcp/tools/list mcp mcp/admin/diagnostics metrics; do
	gets 403 -u admin:admin-pass -H 'Origin: https://evil.example' $BRIDGE/$path
	says 'evil.example' || says -i origin
done
gets 200 -u agent:agent-pass -H "Origin: $BRIDGE" $BRIDGE/mcp/tools/list

#> On loopback connections the `Host` must be one of this machine's names, or that of `oauth_resource`; else 403.
lists 403 $BRIDGE -H 'Host: evil.example'
lists 200 $BRIDGE -H 'Host: localhost'

#> With `allowed_hosts` the `Host` must be one of these, wherever the connection comes from; on loopback this machine's own
#> names pass, too.
serve B bridge --drupal $SITE --allowed-hosts bridge.example
lists 200 $B -H 'Host: bridge.example'
lists 200 $B
lists 403 $B -H 'Host: other.example'

#> The 403 names the host or the origin and the setting. Probes are served under every name.
lists 403 $BRIDGE -H 'Host: evil.example'
says 'evil\.example.*allowed_hosts'
lists 403 $BRIDGE -H 'Origin: https://evil.example'
says 'evil\.example.*allowed_hosts'
gets 200 -H 'Host: evil.example' -H 'Origin: https://evil.example' $BRIDGE/healthz

#> `tls_cert` and `tls_key` are looked at for new connections, at most once a second, and read again when they change. A pair
#> that cannot be read leaves the one before in force, and says so in the log.
pair() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout new.key -out new.pem -days 2 -subj "/CN=$1" -addext subjectAltName=IP:127.0.0.1 2>/dev/null; mv new.key key.pem; mv new.pem cert.pem; }
pair one
chmod 600 key.pem
serve B bridge --drupal $SITE --tls-cert cert.pem --tls-key key.pem
shows() { curl -svk -o /dev/null $B/healthz 2>&1 | grep -q "CN=$1"; }
case $B in https:*) ;; *) false ;; esac
shows one
sleep 1.1
pair two
soon shows two
sleep 1.1
echo nothing >cert.pem
shows two
soon grep -q 'the certificate stays as it was.*cert\.pem' B.log
shows two

#> Where other users may read or change them, the log warns at the start and at each SIGHUP, with the `chmod` that fixes it.
printf 'drupal: %s\n' $SITE >open.yaml
chmod 666 open.yaml
serve B bridge --config open.yaml
soon grep -q 'chmod .*open.yaml' B.log
kill -HUP $(cat B.pid)
twice() { test $(grep -c 'chmod .*open.yaml' B.log) = 2; }
soon twice

#> `audit_log` is a file, created for its owner only, that gets one JSON line for each call of a tool, over every interface:
#>
#> Arguments,
#> results and credentials are never in it.
serve B bridge --drupal $SITE --audit-log audit.jsonl
call 200 $B content.search '{"query":"First secret"}' -H 'X-Request-Id: r-1'
call 404 $B no.such.tool
gets 200 -u agent:agent-pass $B/mcp -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2025-11-25' --json '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
SESSION=$(sed -n 's/^Mcp-Session-Id: //Ip' said)
gets 200 -u agent:agent-pass $B/mcp -H "Mcp-Session-Id: $SESSION" -H 'Accept: application/json, text/event-stream' --json '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"whoami","arguments":{}}}'
cat audit.jsonl
test "$(stat -c %a audit.jsonl)" = 600
grep -qE '^\{"time":"[^"]*","request_id":"r-1","user":"agent","caller":"[0-9a-f]{12}","address":"127.0.0.1","tool":"content.search","outcome":"ok","status":200,"ms":[0-9.]+\}$' audit.jsonl
grep -q '"outcome":"tool_not_found"' audit.jsonl
grep -q '"tool":"whoami"' audit.jsonl
not grep -q 'secret\|agent-pass' audit.jsonl

#> To rotate the file, rename it and send SIGHUP.
serve B bridge --drupal $SITE --audit-log rotate.jsonl
call 200 $B whoami
mv rotate.jsonl rotate.1
kill -HUP $(cat B.pid)
again() { test -e rotate.jsonl; }
soon again
call 200 $B whoami
soon test -s rotate.jsonl

#> With `session_keys` the state of a session is encrypted into its id
#>
#> every replica with a key in common goes on with it, for that identity only.
export BRIDGE_SESSION_KEYS=secret-of-more-than-32-characters-0123456789
serve B bridge --drupal $SITE
serve C bridge --drupal $SITE
gets 200 -u agent:agent-pass $B/mcp -H 'Accept: application/json, text/event-stream' --json '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
SESSION=$(sed -n 's/^Mcp-Session-Id: //Ip' said)
gets 200 -u agent:agent-pass $C/mcp -H "Mcp-Session-Id: $SESSION" -H 'Accept: application/json, text/event-stream' --json '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
gets 404 -u agent2:agent2-pass $C/mcp -H "Mcp-Session-Id: $SESSION" -H 'Accept: application/json, text/event-stream' --json '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
gets 404 -u agent:agent-pass $BRIDGE/mcp -H "Mcp-Session-Id: $SESSION" -H 'Accept: application/json, text/event-stream' --json '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'

#> Attempts under way count as if they failed, so that many at once get no further.
serve B bridge --drupal $SITE
fault '{"kind":"delay","delay":"500ms","route":"methods","count":30}'
curl -s -X DELETE $M/journal
for i in $(seq 12); do printf 'url = "%s/mcp/tools/list"\nuser = "agent:wrong%s"\noutput = "/dev/null"\nnext\n' $B $i; done | sed '$d' >many
curl -s --parallel --parallel-immediate --config many || true
test "$(curl -s "$M/journal?route=methods" | grep -o '"seq":' | wc -l)" -le 4
curl -s -X DELETE $M/faults

#> A session that went unused for `session_idle` ends.
serve B bridge --drupal $SITE --session-idle 300ms
post() { gets $1 -u agent:agent-pass $2/mcp -H 'Accept: application/json, text/event-stream' --json "$3" ${SESSION:+-H "Mcp-Session-Id: $SESSION"}; }
INITIALIZE='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
opens() { SESSION=; post 200 $1 "$INITIALIZE"; SESSION=$(sed -n 's/^Mcp-Session-Id: //Ip' said); }
opens $B
sleep 1
post 404 $B '{"jsonrpc":"2.0","id":2,"method":"ping"}'

#> Such a session lasts for `session_life`,
#> used or not
#>
#> Without `shared`, a `DELETE` ends a session on the replica that receives it; on the others it lasts until
#> `session_life` is over.
#>
#> To rotate, put the new
#> key first, reload all replicas, and remove the old key when `session_life` is over.
post() { gets $1 -u agent:agent-pass $2/mcp -H 'Accept: application/json, text/event-stream' --json "$3" ${SESSION:+-H "Mcp-Session-Id: $SESSION"}; }
INITIALIZE='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
PING='{"jsonrpc":"2.0","id":2,"method":"ping"}'
opens() { SESSION=; post 200 $1 "$INITIALIZE"; SESSION=$(sed -n 's/^Mcp-Session-Id: //Ip' said); }
OLD=the-old-secret-of-more-than-32-characters-0123456789 NEW=the-new-secret-of-more-than-32-characters-0123456789
BRIDGE_SESSION_KEYS=$OLD serve A bridge --drupal $SITE
BRIDGE_SESSION_KEYS=$NEW,$OLD serve B bridge --drupal $SITE
BRIDGE_SESSION_KEYS=$NEW serve C bridge --drupal $SITE --session-life 3s
opens $A
post 200 $B "$PING"
post 404 $C "$PING"
gets 204 -X DELETE -u agent:agent-pass -H "Mcp-Session-Id: $SESSION" $A/mcp
post 404 $A "$PING"
post 200 $B "$PING"
opens $B

opens $C
post 200 $C "$PING"
sleep 3.3
post 404 $C "$PING"

#> One credential may hold 2,500 sessions
#>
#> A session in use ends for nobody: when there is no other, `initialize`
#> gets 503 with `Retry-After`.
serve B bridge --drupal $SITE
INITIALIZE='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
A='Accept: application/json, text/event-stream'
curl -s -i -u agent:agent-pass -H "$A" --json "$INITIALIZE" "$B/mcp?[1-2500]" | tr -d '\r' | sed -n 's/^Mcp-Session-Id: //Ip' >ids
test $(wc -l <ids) = 2500
while read -r id; do
	printf 'url = "%s/mcp"\nuser = "agent:agent-pass"\nheader = "%s"\nheader = "Content-Type: application/json"\nheader = "Mcp-Session-Id: %s"\ndata = "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":2,\\"method\\":\\"ping\\"}"\noutput = "/dev/null"\nnext\n' "$B" "$A" "$id"
done <ids | sed '$d' >pings
curl -s --config pings
gets 503 -u agent:agent-pass -H "$A" --json "$INITIALIZE" $B/mcp
says '^Retry-After: '
gets 200 -u agent2:agent2-pass -H "$A" --json "$INITIALIZE" $B/mcp

#> Only regular files are read.
mkfifo pipe.pem
exits 2 timeout 5 bridgecheck bridge --drupal $SITE --tls-cert pipe.pem --tls-key pipe.pem --listen 127.0.0.1:0

#> A token that is refused
#> is not asked about again for 5 s.
#>
#> at most every 5 seconds and for
#> at most 10 seconds each.
#>
#> A token with an unknown key waits for one refresh, at
#> most 3 seconds. Keys are used for 10 minutes without asking, and for 1 hour while the authorization server does not respond.
#>
#> all together 200 and then 10 in a second
#>
#> A command to the store is given
#> up after 100 ms
constant bridge/oauth/introspect.go 'refusalKept = 5 \* time\.Second$'
constant bridge/oauth/keys.go 'keysRetry +=  *5 \* time\.Second'
constant bridge/oauth/keys.go 'keysWait +=  *10 \* time\.Second'
constant bridge/oauth/keys.go 'unknownWait +=  *3 \* time\.Second'
constant bridge/oauth/keys.go 'keysFresh +=  *10 \* time\.Minute'
constant bridge/oauth/keys.go 'keysStale +=  *time\.Hour'
constant bridge/observe/bounded.go 'lineRate, lineBurst = 10, 200$'
constant bridge/shared/shared.go 'timeout +=  *100 \* time\.Millisecond'

#> At most `max_discovery` discoveries run at one time.
fault '{"kind":"delay","delay":"8s","route":"methods"}'
asked() { test "$(curl -s "$M/journal?route=methods" | grep -o '"seq":' | wc -l)" = $1; }
for limit in 1 32; do
	serve B bridge --drupal $SITE --max-discovery $limit
	curl -s -X DELETE $M/journal
	for name in agent agent2 discoverer; do curl -s -o /dev/null -u $name:$name-pass $B/mcp/tools/list & done
	soon asked $((limit < 3 ? limit : 3))
	sleep 0.5
	asked $((limit < 3 ? limit : 3))
	kill $(cat B.pid)
done
curl -s -X DELETE $M/faults

#> The store learns neither credentials nor names
if store; then
	export BRIDGE_SESSION_KEYS=secret-of-more-than-32-characters-0123456789
	exec 3<>/dev/tcp/127.0.0.1/$PORT
	printf 'MONITOR\r\n' >&3
	cat <&3 >monitor &
	for n in A B; do serve $n bridge --drupal $SITE --shared redis://127.0.0.1:$PORT --rate-limit 100; done
	joined $A $B
	call 200 $A whoami
	lists 403 $A -u agent2:wrong-password
	gets 200 -X POST -u admin:admin-pass $A/mcp/admin/invalidate
	gets 200 -u agent:agent-pass $A/mcp -H 'Accept: application/json, text/event-stream' --json '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
	SESSION=$(sed -n 's/^Mcp-Session-Id: //Ip' said)
	gets 204 -X DELETE -u agent:agent-pass -H "Mcp-Session-Id: $SESSION" $A/mcp
	events() { test $(grep -c XADD monitor) = 2; }
	soon events
	grep -q ZADD monitor
	not grep -iE "agent|admin|whoami|wrong-pass|\"[^\"]*127\.0\.0\.1|content\.|$SESSION|$(printf agent:agent-pass | base64)|$BRIDGE_SESSION_KEYS" monitor
fi

#> `user` is the account's name in small letters, or a checked token's subject. `outcome` is `ok` or the error's code.
serve B bridge --drupal $SITE --audit-log names.jsonl
call 200 $B whoami '{}' -u AGENT:agent-pass
call 500 $B fail.server
cat names.jsonl
grep -q '"user":"agent".*"tool":"whoami","outcome":"ok"' names.jsonl
grep -q '"tool":"fail.server","outcome":"execution_error","status":500' names.jsonl

#> Sessions outlast SIGHUP
printf 'drupal: %s\n' $SITE >again.yaml
serve B bridge --config again.yaml
post() { gets $1 -u agent:agent-pass $B/mcp -H 'Accept: application/json, text/event-stream' --json "$2" ${SESSION:+-H "Mcp-Session-Id: $SESSION"}; }
SESSION=
post 200 '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
SESSION=$(sed -n 's/^Mcp-Session-Id: //Ip' said)
echo 'page_size: 3' >>again.yaml
kill -HUP $(cat B.pid)
few() { lists 200 $B && test $(grep -o '"inputSchema"' said | wc -l) = 3; }
soon few
post 200 '{"jsonrpc":"2.0","id":2,"method":"ping"}'

#> Where the bridge's machine has no descriptors or ports left, calls get 503 `overloaded`; the site is not taken for dead, and
#> `/readyz` stays as it was. A few descriptors are kept for `/readyz` and `/healthz`: while clients hold all others, these two
#> respond, and everything else gets 503 and a closed connection.
(ulimit -n 60; exec bridgecheck bridge --drupal $SITE --listen 127.0.0.1:0) >FEW.log 2>&1 &
soon grep -q '^listening on' FEW.log
FEW=$(sed -n 's/^listening on //p' FEW.log)
lists 200 $FEW
for fd in $(seq 20 90); do eval "exec $fd<>/dev/tcp/127.0.0.1/${FEW##*:}" && printf 'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n' >&$fd || true; done
sleep 1
gets 200 $FEW/healthz
gets 200 $FEW/readyz
lists 503 $FEW
says '"overloaded"' '^Connection: close'

#> A site that trusts `forward_address` counts for each client by itself, but the bridge
#> still counts by account.
serve B bridge --drupal $SITE --trusted-proxies 127.0.0.1 --forward-address
for i in 1 2 3 4; do lists 403 $B -u agent2:wrong$i -H "X-Forwarded-For: 203.0.113.$i"; done
lists 429 $B -u agent2:wrong5 -H 'X-Forwarded-For: 203.0.113.5'

#> `bridge_shared_up` and `bridge_shared_total` show it, and the log says it once.
BRIDGE_SESSION_KEYS=secret-of-more-than-32-characters-0123456789 serve B bridge --drupal $SITE --shared redis://127.0.0.1:1 --rate-limit 100
for i in 1 2 3 4 5 6; do call 200 $B whoami; done
soon grep -q '127.0.0.1:1' B.log
sleep 1
gets 200 $B/metrics
says '^bridge_shared_up 0$' '^bridge_shared_total[{].* [1-9]'
test $(grep -c '127.0.0.1:1' B.log) = 1
