serve SITE mock --control 127.0.0.1:0
M=$(control SITE)
export BRIDGE_SESSION_KEYS=secret-of-more-than-32-characters-0123456789

#> Replicas of the reference bridge need one thing in common, `session_keys`, and gain from a second, a Valkey or Redis
#> (`shared`).
BRIDGE_SESSION_KEYS= exits 2 bridgecheck bridge --check-config --drupal $SITE --shared redis://127.0.0.1:6379
says session_keys

#> | lists, cursors, ETags | the same where the site is
serve A bridge --drupal $SITE
serve B bridge --drupal $SITE
lists 200 $A
grep -i '^etag' said >one
cursor=$(sed -n 's/.*"nextCursor":"\([^"]*\)".*/\1/p' said)
lists 200 $B
grep -i '^etag' said >other
cmp one other
lists 200 $B --get --data-urlencode "cursor=$cursor"

#> | `POST /mcp/admin/invalidate` | reaches one replica; the others when the TTL is over | reaches all |
serve A bridge --drupal $SITE --discovery-ttl 1h --permission-ttl 1h
serve B bridge --drupal $SITE --discovery-ttl 1h --permission-ttl 1h
for u in $A $B; do lists 200 $u; done
curl -s -X PATCH $M/site --json '{"disable":{"methods":["content.count"]}}'
gets 200 -X POST -u admin:admin-pass $A/mcp/admin/invalidate
gone() { gets 404 -u agent:agent-pass "$A/mcp/tools/describe?name=content.count"; }
soon gone
gets 200 -u agent:agent-pass "$B/mcp/tools/describe?name=content.count"
curl -s -X PATCH $M/site --json '{"enable":{"methods":["content.count"]}}'

#> | `rate_limit`, the `auth_` limits | count at each replica: set them to a part |
serve A bridge --drupal $SITE --rate-limit 0.01 --rate-burst 1
serve B bridge --drupal $SITE --rate-limit 0.01 --rate-burst 1
call 200 $A whoami
call 200 $B whoami
call 429 $A whoami

#> The store is never needed.
#>
#> A command takes 100 ms at most; after three failures in a row a replica goes on alone, logs it,
#> and tries to reach the store twice a second. `bridge_shared_total` counts commands by outcome.
serve A bridge --drupal $SITE --shared redis://127.0.0.1:1 --rate-limit 5
lists 200 $A
for i in 1 2 3 4; do call 200 $A whoami; done
gets 200 $A/metrics
says '^bridge_shared_up 0$' '^bridge_shared_total[{].*outcome="'
soon grep -qi 'store\|shared' A.log

#> | with `session_keys` alone | with `shared` as well |
#>
#> | `POST /mcp/admin/invalidate` | reaches one replica; the others when the TTL is over | reaches all |
#>
#> | a session that its client ended | is over at one replica | is over at all |
#>
#> | `rate_limit`, the `auth_` limits | count at each replica: set them to a part | count at all together |
if store; then
	serve A bridge --drupal $SITE --discovery-ttl 1h --permission-ttl 1h --shared redis://127.0.0.1:$PORT --rate-limit 0.01 --rate-burst 1
	serve B bridge --drupal $SITE --discovery-ttl 1h --permission-ttl 1h --shared redis://127.0.0.1:$PORT --rate-limit 0.01 --rate-burst 1
	joined $A $B
	call 200 $A whoami
	call 429 $B whoami
	curl -s -X PATCH $M/site --json '{"disable":{"methods":["content.count"]}}'
	gets 200 -X POST -u admin:admin-pass $A/mcp/admin/invalidate
	gone() { gets 404 -u agent:agent-pass "$B/mcp/tools/describe?name=content.count"; }
	soon gone
	curl -s -X PATCH $M/site --json '{"enable":{"methods":["content.count"]}}'
	post() { gets $1 -u agent:agent-pass $2/mcp -H 'Accept: application/json, text/event-stream' --json "$3" "${@:4}"; }
	post 200 $A '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
	SESSION=$(sed -n 's/^Mcp-Session-Id: //Ip' said)
	post 200 $B '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' -H "Mcp-Session-Id: $SESSION"
	curl -s -o /dev/null -X DELETE -u agent:agent-pass -H "Mcp-Session-Id: $SESSION" $A/mcp
	over() { post 404 $B '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' -H "Mcp-Session-Id: $SESSION"; }
	soon over
fi

#> `--url A --url B` names replicas that run already, of
#> which none can be ended: what needs that is then not testable.
serve FREE mock
kill $(cat FREE.pid)
for n in A B; do serve $n bridge --drupal $FREE --discovery-ttl 1s --permission-ttl 1s --upstream-timeout 2s; done
any bridgecheck run --contract draft --url $A --url $B --mock-listen ${FREE#http://} --only 'replicas/*' --capabilities mcp
not grep -q '"verdict": "fail"' bridgecheck-report/report.json
grep -q '"verdict": "pass"' bridgecheck-report/report.json
grep -q '"verdict": "not-testable"' bridgecheck-report/report.json

#> or 10,000 events follow while a replica is away
#>
#> A command takes 100 ms at most
#>
#> and tries to reach the store twice a second.
constant bridge/shared/events.go 'kept +=  *"10000"'
constant bridge/shared/shared.go 'timeout +=  *100 \* time\.Millisecond'
constant bridge/shared/shared.go 'retryTime +=  *500 \* time\.Millisecond'

#> Where the environment has `BRIDGE_SHARED`, the replicas receive it, and the run claims `replicas-shared`.
printf '#!/bin/bash\necho ${BRIDGE_SHARED:-none} >>shared\nexec bridgecheck bridge\n' >shared.sh
chmod +x shared.sh
replicas() { exits 0 bridgecheck run --contract draft --exec ./shared.sh --replicas 2 --only describe/missing-name --jobs 1; }
BRIDGE_SHARED=redis://127.0.0.1:1 replicas
test "$(sort -u shared)" = redis://127.0.0.1:1
grep -q '"replicas-shared"' bridgecheck-report/report.json
rm shared
replicas
test "$(sort -u shared)" = none
not grep -q '"replicas-shared"' bridgecheck-report/report.json
