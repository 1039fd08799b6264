serve SITE mock --control 127.0.0.1:0
M=$(control SITE)
serve BRIDGE bridge --drupal $SITE
# post STATUS METHOD [PARAMS [CURL-ARGUMENT…]]: a message to /mcp, as agent.
post() { gets "$1" -u agent:agent-pass -H 'Accept: application/json, text/event-stream' --json "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$2\",\"params\":${3:-{\}}}" ${SESSION:+-H "Mcp-Session-Id: $SESSION"} "${@:4}" $BRIDGE/mcp; }
opens() { post 200 initialize "{\"protocolVersion\":\"$1\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}"; SESSION=$(sed -n 's/^Mcp-Session-Id: //Ip' said); }
opens 2025-11-25

#> prints what the account may run, and why a method is no tool
DRUPAL_URL=$SITE DRUPAL_USER=agent DRUPAL_PASSWORD=agent-pass exits 0 bridgecheck bridge --check
says 'content\.list' 'content\.unlisted.* no '

#> the very command of the configuration in a terminal, with its `env` before it and `</dev/null` behind it, says
#> what is wrong in one sentence; `--check-config` in place of an argument of it may find nothing
DRUPAL_URL=$SITE exits 2 bridgecheck bridge -stdio
test $(wc -l <said) = 1
DRUPAL_URL=ftp://x exits 2 bridgecheck bridge --stdio
test $(wc -l <said) = 1
DRUPAL_URL=$SITE DRUPAL_USER=agent DRUPAL_PASSWORD=agent-pass exits 0 bridgecheck bridge --stdio
silent '^bridgecheck:'
DRUPAL_URL=$SITE exits 0 bridgecheck bridge --check-config

#> `the site refuses the account: DRUPAL_PASSWORD is not set`
DRUPAL_URL=$SITE DRUPAL_USER=agent any bridgecheck bridge --stdio
says 'the site refuses the account: DRUPAL_PASSWORD is not set$'

#> `The site did not list its methods in a usable form` | connected, and what responds at `DRUPAL_URL` is another server, a page for
#> people, a Drupal without the module JSON-RPC, or a port for HTTP under `https://`; `DRUPAL_URL` is the address of the site, and with `/jsonrpc` behind it the bridge
#> does not start | the same command prints the status that came, or what TLS says |
DRUPAL_URL=$BRIDGE DRUPAL_USER=agent DRUPAL_PASSWORD=agent-pass exits 3 bridgecheck bridge --check
says 'responds, but gives no list of methods: .*HTTP status 404'
echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}' >hello
DRUPAL_URL=$BRIDGE DRUPAL_USER=agent DRUPAL_PASSWORD=agent-pass bridgecheck bridge --stdio <hello >said 2>/dev/null
says serverInfo 'The site did not list its methods in a usable form'
DRUPAL_URL=$SITE/jsonrpc exits 2 bridgecheck bridge --stdio
says 'leave /jsonrpc out'

#> `the site refuses the account`, or by HTTP `The site denies this caller access` | the password is wrong, or the account may not use JSON-RPC: Drupal refuses both alike (403)
lists 403 $BRIDGE -u agent:wrong
says 'The site denies this caller access'
echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}' >hello
DRUPAL_URL=$SITE DRUPAL_USER=agent DRUPAL_PASSWORD=wrong bridgecheck bridge --stdio <hello >said 2>&1 || true
says 'the site refuses the account'

#> connected, without tools, or `This caller may not discover tools` | the account may run no method that is a tool, or lacks the permission to discover them
gets 403 -u outsider:outsider-pass $BRIDGE/mcp/tools/list
says 'This caller may not discover tools'

#> `The site cannot be reached` | connected, and the bridge does not reach the site: it is down, or `DRUPAL_URL` is wrong | the same command prints the address and the reason
DRUPAL_URL=http://127.0.0.1:1 DRUPAL_USER=agent DRUPAL_PASSWORD=agent-pass exits 3 bridgecheck bridge --check || exits 1 env DRUPAL_URL=http://127.0.0.1:1 DRUPAL_USER=agent DRUPAL_PASSWORD=agent-pass bridgecheck bridge --check
says '127\.0\.0\.1:1.*refused'

#> | endpoint | `POST`, `GET` and `DELETE /mcp`, Streamable HTTP; `bridge --stdio` |
gets 405 -X PUT $BRIDGE/mcp
says '^Allow: .*POST' '^Allow: .*GET' '^Allow: .*DELETE'
DRUPAL_URL=$SITE DRUPAL_USER=agent DRUPAL_PASSWORD=agent-pass bridgecheck bridge --stdio <<<'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}' >said
says serverInfo
opens 2025-11-25
gets 204 -X DELETE -u agent:agent-pass -H "Mcp-Session-Id: $SESSION" $BRIDGE/mcp
post 404 tools/list

#> | revisions | 2026-07-28 (no sessions), 2025-11-25 and 2025-06-18 (with sessions) |
SESSION=
opens 2025-06-18
says '"protocolVersion":"2025-06-18"' '^Mcp-Session-Id: '
SESSION=
opens 2025-11-25
says '"protocolVersion":"2025-11-25"' '^Mcp-Session-Id: '
SESSION=
opens 2024-01-01
silent '"protocolVersion":"2024-01-01"'

#> | capabilities | `tools`, with `listChanged`; nothing else |
SESSION=
opens 2025-11-25
says '"capabilities":\{"tools":\{"listChanged":true\}\}'

#> a session is only usable by its creator
post 404 tools/list '{}' -u agent2:agent2-pass
post 200 tools/list

#> | browsers | a request from a page of another host is refused with 403 |
post 403 tools/list '{}' -H 'Origin: https://evil.example'

#> A result is text: a string as it is, everything else as JSON. With an output schema it is `structuredContent`, and the text is
#> the JSON of that: a value that is not an object is wrapped as `{"result": …}`, and its schema likewise.
post 200 tools/call '{"name":"content.count","arguments":{}}'
says '"text":"[{]..result..:[0-9]+[}]"' '"structuredContent":\{"result":[0-9]+\}'
post 200 tools/call '{"name":"content.get","arguments":{"nid":1}}'
says '"structuredContent":\{"nid":1'
post 200 tools/list
says '"name":"content.count".*"outputSchema":\{"type":"object","properties":\{"result":'

#> Arguments that break the schema and calls that fail are results with `isError` and a text that says what to do.
post 200 tools/call '{"name":"content.get","arguments":{"nid":"x"}}'
says '"isError":true' '"text":"'
post 200 tools/call '{"name":"fail.server","arguments":{}}'
says '"isError":true' '"text":"'

#> all others are
#> in the tool's `_meta`, under `org.drupal/annotations`.
post 200 tools/list
says '"annotations":\{"readOnlyHint":true\}|"annotations":\{[^}]*"readOnlyHint":true' '"_meta":\{"org.drupal/annotations":\{"category":"content"'

#> Off unless an authorization server is configured. Then its access tokens are the only credentials accepted over HTTP, on
#> `/mcp` and on the three endpoints; stdio still uses its account.
#>
#> 401 with `WWW-Authenticate: Bearer resource_metadata="…", scope="…"`; no `scope` where no visible tool requires one
#>
#> `GET /.well-known/oauth-protected-resource/mcp`, or without `/mcp` | the metadata (RFC 9728): the authorization server, and the scopes of all visible tools |
serve OAUTH bridge --drupal $SITE --oauth-issuer http://127.0.0.1:1 --oauth-resource http://127.0.0.1:8081/mcp
gets 401 $OAUTH/mcp --json '{}'
says '^[Ww][Ww][Ww]-Authenticate: Bearer resource_metadata="'
lists 401 $OAUTH
gets 200 $OAUTH/.well-known/oauth-protected-resource/mcp
says '"authorization_servers":\["http://127.0.0.1:1"\]'
gets 200 $OAUTH/.well-known/oauth-protected-resource
gets 404 $BRIDGE/.well-known/oauth-protected-resource/mcp
DRUPAL_USER=agent DRUPAL_PASSWORD=agent-pass bridgecheck bridge --stdio --drupal $SITE --oauth-issuer http://127.0.0.1:1 --oauth-resource http://127.0.0.1:8081/mcp <<<'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}' >said
says serverInfo

#> Addresses must be https, except on this machine.
exits 2 bridgecheck bridge --check-config --drupal $SITE --oauth-issuer http://login.example --oauth-resource https://bridge.example/mcp
says 'https'


#> A result is text: a string as it is, everything else as JSON.
#>
#> The annotation `resultContent` of a method without an output schema turns a result into other content: `image` or `audio` of `{data, mimeType}`
cat >forms.yaml <<'END'
roles: {agent: [use jsonrpc services, access mcp tool discovery]}
users: [{uid: 3, name: agent, password: agent-pass, roles: [agent]}]
methods:
- {id: a.plain, mcp: {}, behaviour: {value: hello}}
- {id: a.number, mcp: {}, behaviour: {value: 42}}
- {id: a.structured, mcp: {annotations: {resultContent: image}}, output: {type: object}, behaviour: {value: {data: aGVsbG8=, mimeType: image/png}}}
- {id: a.image, mcp: {annotations: {resultContent: image}}, behaviour: {value: {data: aGVsbG8=, mimeType: image/png}}}
END
serve FORMS mock --site forms.yaml
serve BRIDGE bridge --drupal $FORMS
opens 2025-11-25
post 200 tools/call '{"name":"a.plain","arguments":{}}'
says '"text":"hello"'
post 200 tools/call '{"name":"a.number","arguments":{}}'
says '"text":"42"'
post 200 tools/call '{"name":"a.image","arguments":{}}'
says '"type":"image"' '"mimeType":"image..?png"'
post 200 tools/call '{"name":"a.structured","arguments":{}}'
silent '"type":"image"'

#> any response is the bridge's; a 403 says which setting to change, a 400 about a session that the name is accepted |
gets 403 -H 'Host: bridge.example' $BRIDGE/mcp
says 'allowed_hosts'
gets 400 $BRIDGE/mcp
says 'Mcp-Session-Id is missing'

#> Every method with the McpTool attribute is a tool, for accounts that may see it.
post 200 tools/list
says '"content\.list"'
silent '"content\.unlisted"'

#> what it says of an active token is
#> used for 30 s.
#>
#> Keys are fetched when a token names an unknown one, at most every 5 s, and used for an hour while the authorization
#> server is down
#>
#> Clocks may differ by 10 s.
constant bridge/oauth/introspect.go 'introspectionKept = 30 \* time\.Second$'
constant bridge/oauth/keys.go 'keysRetry +=  *5 \* time\.Second'
constant bridge/oauth/keys.go 'keysStale +=  *time\.Hour'
constant bridge/oauth/oauth.go 'leeway +=  *10 \* time\.Second'

#> | a token that is expired, forged, of another issuer or for another audience | 401 with `error="invalid_token"`; the token is not forwarded |
#>
#> | a token without a scope that the tool requires | 403 with `error="insufficient_scope"` and the scopes |
#>
#> | as above | the caller's token, unchanged |
#>
#> | with `oauth_exchange` | a token that the bridge got in exchange (RFC 8693), for the same account |
passes() { for id in $1; do grep -A8 "\"id\": \"auth/$id\"" bridgecheck-report/report.json | grep -q '"verdict": "pass"' || { echo "auth/$id does not pass"; return 1; }; done; }
TOKENS='auth/own-account,auth/token-signature,auth/token-expired,auth/token-issuer,auth/token-audience,auth/scope-enforced,auth/insufficient-scope'
exits 0 bridgecheck run --exec 'bridgecheck bridge' --capabilities oauth,mcp,-auth-basic --only $TOKENS
passes "$(tr , '\n' <<<${TOKENS//auth\//})"
exits 0 bridgecheck run --exec 'bridgecheck bridge' --capabilities oauth,token-exchange,mcp,-auth-basic --only $TOKENS,auth/no-passthrough
passes "$(tr , '\n' <<<${TOKENS//auth\//}) no-passthrough"

#> A server that speaks MCP alone (`-tools`), such as the tool server of another Drupal module, is tested by MCP requests: its
#> own area `mcp`, and the clauses on names, descriptions, schemas, types, callers and calls of the other areas that do not
#> need the three endpoints.
exits 0 bridgecheck run --exec 'bridgecheck bridge' --capabilities mcp,-tools --only list/names-unique,schema/bounded,mcp/unknown-tool,describe/missing-name
test $(grep -c '"verdict": "pass"' bridgecheck-report/report.json) = 3
grep -A8 '"id": "describe/missing-name"' bridgecheck-report/report.json | grep -q '"verdict": "not-applicable"'
