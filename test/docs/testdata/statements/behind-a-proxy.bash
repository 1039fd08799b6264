serve SITE mock

#> streams of a bridge that does not send `X-Accel-Buffering: no` stop; the reference sends it
serve BRIDGE bridge --drupal $SITE
post() { gets 200 -u agent:agent-pass $BRIDGE/mcp -H 'Accept: application/json, text/event-stream' --json "$1" "${@:2}"; }
post '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
SESSION=$(sed -n 's/^Mcp-Session-Id: //Ip' said)
curl -s -i -N --max-time 1 -u agent:agent-pass -H 'Accept: text/event-stream' -H "Mcp-Session-Id: $SESSION" $BRIDGE/mcp >said || true
says '^Content-Type: text/event-stream' '^X-Accel-Buffering: no'

#> # keeps /metrics and /mcp/admin/ from the public
#>
#> # the proxies below pass the Host on
#>
#> # whose X-Forwarded-For names the client
#>
#> # only for a bridge below a path
sed -n '/^# bridge.yaml$/,/^```$/p' "$ROOT/docs/behind-a-proxy.md" | sed "/^\`\`\`$/d; s|^drupal:.*|drupal: $SITE|; /^listen:/d; s/^admin_listen:.*/admin_listen: 127.0.0.1:0/" >proxy.yaml
serve B bridge --config proxy.yaml
lists 200 $B -H 'Host: bridge.example'
gets 200 -u agent:agent-pass -H 'Host: bridge.example' $B/drupal/mcp/tools/list
gets 404 -H 'Host: bridge.example' $B/metrics
gets 404 -H 'Host: bridge.example' -u admin:admin-pass $B/mcp/admin/diagnostics
gets 403 -u x:y -H 'Host: bridge.example' -H 'X-Forwarded-For: 203.0.113.7' $B/mcp/tools/list
soon grep -q client=203.0.113.7 B.log

#> For a rolling restart the bridge says on SIGTERM that it is not ready, serves on for `drain_pause`, and then refuses connections.
serve DRAIN bridge --drupal $SITE --drain-pause 2s
kill $(cat DRAIN.pid)
drains() { gets 503 $DRAIN/readyz; }
soon drains
lists 200 $DRAIN
refused() { test "$(curl -s -o /dev/null -w '%{http_code}' $DRAIN/livez)" = 000; }
soon refused

#> Node closes after 5 s by default
#> (`server.keepAliveTimeout`). The starters wait for 3 minutes.
exits 0 bridgecheck init node starter
grep -qE 'keepAliveTimeout = (3 \* 60 \* 1000|180[_]?000)' starter/*.js
