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
serve A bridge --drupal $SITE --rate-limit 1 --rate-burst 1
serve B bridge --drupal $SITE --rate-limit 1 --rate-burst 1
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
