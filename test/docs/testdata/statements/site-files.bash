cat >site.yaml <<'END'
title: My site
permissions: [create content]
roles:
  authenticated: [use jsonrpc services]
  agent: [use jsonrpc services, access content, access mcp tool discovery]
users:
- {uid: 1, name: admin, password: admin-pass}
- uid: 3
  name: agent
  password: agent-pass
  roles: [agent]
  tokens: [agent-token, {value: narrow, scopes: [agent]}, {value: old, expires: "2020-01-31T12:00:00Z"}, {value: gone, revoked: true}]
- {uid: 4, name: shut, password: shut-pass, roles: [agent], blocked: true}
- {uid: 5, name: nopass, roles: [agent]}
content:
  articles: [{nid: 1, title: First}, {nid: 2, title: Second, refused: It is locked}]
  node: [{id: "1", label: First, uuid: 00000000-0000-4000-8000-000000000001}]
methods:
- {id: a.echo, behaviour: echo, params: {text: {schema: {type: object}}}}
- {id: a.count, behaviour: {sleep: 300ms, then: count}}
- {id: a.whoami, behaviour: whoami}
- {id: a.types, behaviour: types, params: {n: {schema: {type: number}}, o: {schema: {type: object}}}}
- {id: b.value, behaviour: {value: {count: 42, exact: 1.10}}}
- {id: b.fail, behaviour: {fail: {code: -32000, message: Not now, data: {retry: true}}}}
- {id: b.throw, behaviour: {throw: It broke secretly, class: InvalidArgumentException}}
- {id: b.runs, behaviour: {runs: b.value}}
- {id: b.list, params: {query: {schema: {type: string}}, page: {factory: pagination}}, behaviour: {list: articles, match: title, by: query, page: page, fields: [nid]}}
- {id: b.get, params: {nid: {schema: {type: integer}, required: true}}, behaviour: {get: articles, match: nid, by: nid, field: title, missing: There is none}}
- {id: b.entity, params: {entity: {factory: entity, required: true}}, behaviour: {entity: entity}}
- {id: b.pick, params: {name: {schema: {type: string}}}, behaviour: {pick: [name], with: {kind: person}}}
- {id: b.concat, params: {name: {schema: {type: string}}}, behaviour: {concat: "Hello ", by: name}}
- {id: c.both, access: [access content, create content], behaviour: echo}
- {id: c.null, params: null, behaviour: echo}
- {id: c.list, params: [{schema: {type: integer}}], behaviour: {value: 1}}
- {id: c.bound, params: {n: {schema: {type: integer, minimum: 1, exclusiveMinimum: 1}}}, behaviour: echo}
END
serve SITE mock --site site.yaml
rpc() { gets "$1" -u agent:agent-pass --json "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$2\",\"params\":${3:-{\}}}" $SITE/jsonrpc; }

#> an unknown one is an error with file and line.
printf 'title: x\nmethods:\n- {id: a, behavior: echo}\n' >wrong.yaml
exits 2 bridgecheck fixtures validate wrong.yaml
says 'wrong\.yaml:3'

#> it reads `/jsonrpc/methods`
#> as the account of `DRUPAL_USER` and `DRUPAL_PASSWORD`, changes nothing and runs nothing. Behaviours, permissions and other
#> accounts are not published
DRUPAL_USER=agent DRUPAL_PASSWORD=agent-pass bridgecheck fixtures import --url $SITE -o imported.yaml
grep -q 'b.value' imported.yaml
exits 0 bridgecheck fixtures validate imported.yaml
not grep -q 'It broke\|locked' imported.yaml

#> | `title` | the site's name, as in `Page not found \| TITLE` | the file's name |
gets 404 $SITE/no-page
says '<title>Page not found \| My site</title>'
sed /^title/d site.yaml >untitled.yaml
serve U mock --site untitled.yaml
gets 404 $U/no-page
says '<title>Page not found \| untitled'

#> of `/jsonrpc`; `/jsonrpc/methods` accepts all kinds of the site, and sessions | `[basic, bearer]` |
gets 200 -H 'Authorization: Bearer agent-token' --json '{"jsonrpc":"2.0","id":1,"method":"a.whoami"}' $SITE/jsonrpc
curl -s -c jar -o /dev/null -H 'Content-Type: application/json' "$SITE/user/login?_format=json" -d '{"name":"agent","pass":"agent-pass"}'
gets 200 -b jar $SITE/jsonrpc/methods
code=$(curl -s -o said -w '%{http_code}' -b jar --json '{"jsonrpc":"2.0","id":1,"method":"a.whoami"}' $SITE/jsonrpc)
test "$code" != 200

#> `anonymous` is held by callers without an account, `authenticated` by all others.
rpc 200 a.whoami
gets 401 --json '{"jsonrpc":"2.0","id":1,"method":"a.whoami"}' $SITE/jsonrpc

#> a number from 1, required; 1 holds every permission |
gets 200 -u admin:admin-pass --json '{"jsonrpc":"2.0","id":1,"method":"c.both"}' $SITE/jsonrpc
says '"result"'

#> | `password` | for Basic and login | none: neither works |
gets 403 -u nopass: $SITE/jsonrpc/methods
gets 403 -u nopass:nopass-pass $SITE/jsonrpc/methods

#> | `blocked` | the account is blocked | false |
gets 403 -u shut:shut-pass $SITE/jsonrpc/methods

#> | `expires` | RFC 3339, in quotes | never |
#>
#> | `revoked` | the token is refused | false |
gets 401 -H 'Authorization: Bearer old' $SITE/jsonrpc/methods
gets 401 -H 'Authorization: Bearer gone' $SITE/jsonrpc/methods
gets 200 -H 'Authorization: Bearer narrow' $SITE/jsonrpc/methods

#> | `id` | required, once in a site | |
printf 'methods:\n- {id: a.b, behaviour: echo}\n- {id: a.b, behaviour: echo}\n' >twice.yaml
exits 2 bridgecheck fixtures validate twice.yaml
printf 'methods:\n- {behaviour: echo}\n' >none.yaml
exits 2 bridgecheck fixtures validate none.yaml

#> | `access` | permissions, all of which are needed | none |
rpc 200 c.both
says '"code":-32600' 'Access Denied: The .*create content.* permission is required'

#> `null`: PHP's NULL, with which the site refuses any parameter |
gets 400 -u agent:agent-pass --json '{"jsonrpc":"2.0","id":1,"method":"c.null","params":{"a":1}}' $SITE/jsonrpc
says '"code":-32'

#> | `behaviour` | what it does when it runs, required | |
#>
#> | `name` | required | |
#>
#> | `value` | the token, required. Of a behaviour: the result | |
#>
#> | `code` | `fail` | the error's code, required |
#>
#> | `annotations` | a JSON object | |
#>
#> | `unchecked` | true: schemas and annotations may be anything, for sites that are broken on purpose | false |
valid() { printf '%s\n' "$2" >check.yaml; exits $1 bridgecheck fixtures validate check.yaml; }
valid 2 'users: [{uid: 3}]'
valid 0 'users: [{uid: 3, name: a}]'
valid 2 'users: [{uid: 3, name: a, tokens: [{scopes: []}]}]'
valid 2 'methods: [{id: a.b, behaviour: {fail: {message: x}}}]'
valid 0 'methods: [{id: a.b, behaviour: {fail: {code: -32000, message: x}}}]'
valid 2 'methods: [{id: a.b, behaviour: echo, mcp: {annotations: [x]}}]'
valid 2 'methods: [{id: a.b, behaviour: echo, params: {p: {schema: {type: 5}}}}]'
valid 0 'methods: [{id: a.b, behaviour: echo, unchecked: true, mcp: {annotations: [x]}, params: {p: {schema: {type: 5}}}}]'
printf 'methods:\n- {id: a.b}\n' >idle.yaml
exits 2 bridgecheck fixtures validate idle.yaml

#> one of `schema`, `factory` and `drupal`, or `schema` beside `factory`
printf 'methods:\n- {id: a.b, behaviour: echo, params: {a: {schema: {type: string}, drupal: string}}}\n' >both.yaml
exits 2 bridgecheck fixtures validate both.yaml

#> write a bound
#> that excludes its own value as `minimum: 1, exclusiveMinimum: 1`
rpc 400 c.bound '{"n":1}'
rpc 200 c.bound '{"n":2}'

#> All but `echo` and `value` see their arguments as PHP does: `{}` becomes `[]`, `1.0` becomes `1`.
rpc 200 a.types '{"n":1.0,"o":{}}'
says '"n":\{"type":"float","value":1\}' '"o":\{"type":"array","value":\[\]\}'
rpc 200 a.echo '{"text":{"a":1.0,"b":{}}}'
says '"result":\{"text":\{"a":1\.0,"b":\{\}\}\}'

#> | `echo` | returns its arguments as one object: members and digits as sent, without white space, texts escaped as PHP does |
rpc 200 a.echo '{"text":{"z": 1e2,"a":[ ], "t":"é<", "z":1.10}}'
says '"result":\{"text":\{"z":1e2,"a":\[\],"t":"\\u00e9\\u003C","z":1\.10\}\}'

#> | `count` | returns how often it ran on this site, this time included |
#>
#> | `sleep` | all | a pause before all else, as `200ms` |
began=$(date +%s%N)
rpc 200 a.count
test $((($(date +%s%N) - began) / 1000000)) -ge 300
says '"result":1[,}]'
rpc 200 a.count
says '"result":2[,}]'

#> | `whoami` | returns `{uid, name}` of the caller |
rpc 200 a.whoami
says '"result":\{"uid":3,"name":"agent"\}'

#> | `types` | returns, for every declared parameter, PHP's name of its type and the value |
rpc 200 a.types '{"n":1.5,"o":{"a":1}}'
says '"n":\{"type":"float","value":1\.5\}' '"type":"array"'

#> | `message` | `fail` | the error's message |
#>
#> | `fail` | throws a JsonRpcException with the keys below |
rpc 200 b.fail
says '"code":-32000,"message":"Not now"' '"retry":true'

#> | `throw` | throws a PHP exception with this message, which must not leak |
rpc 200 b.throw
says '"code":-32603'

#> | `runs` | returns how often the named method ran, notifications included |
rpc 200 b.runs
says '"result":0[,}]'
rpc 200 b.value
gets 204 -u agent:agent-pass --json '{"jsonrpc":"2.0","method":"b.value"}' $SITE/jsonrpc
rpc 200 b.runs
says '"result":2[,}]'

#> | `list` | returns the items of a content list |
#>
#> for `list` a text in which the argument must occur, for `get` the one equal to it |
#>
#> | `page` | `list` | the parameter that holds `{offset, limit}` |
#>
#> | `fields` | `list`, `get` | the members to return; default all |
rpc 200 b.list
says '"result":\[\{"nid":1\},\{"nid":2\}\]'
rpc 200 b.list '{"query":"Sec"}'
says '"result":\[\{"nid":2\}\]'
rpc 200 b.list '{"page":{"offset":1,"limit":1}}'
says '"result":\[\{"nid":2\}\]'

#> returns one item of a content list, or fails with -32602; an item's own member `refused` is the reason of such a failure |
#>
#> | `field` | `get` | return this member alone |
#>
#> | `missing` | `get` | the data of the error when there is no such item |
rpc 200 b.get '{"nid":1}'
says '"result":"First"'
rpc 200 b.get '{"nid":2}'
says '"code":-32602' 'It is locked'
rpc 200 b.get '{"nid":9}'
says '"code":-32602' 'There is none'

#> | `entity` | returns `{label, id}` of the entity `{type, uuid}` in the named parameter |
rpc 200 b.entity '{"entity":{"type":"node","uuid":"00000000-0000-4000-8000-000000000001"}}'
says '"result":\{"label":"First","id":"1"\}'

#> | `pick` | returns an object of the named arguments, null for those not sent |
#>
#> | `with` | `pick` | further members of the result |
rpc 200 b.pick
says '"name":null' '"kind":"person"'
rpc 200 b.pick '{"name":"Ada"}'
says '"name":"Ada"'

#> | `concat` | returns the text followed by the argument of `by` |
rpc 200 b.concat '{"name":"Ada"}'
says '"result":"Hello Ada"'

#> | `scopes` | roles that the token is cut down to | all of the user |
#>
#> | `methods` | in the order in which the site serves them | |
#>
#> | `usage` | what it is for; the tool's description | |
#>
#> | `mcp` | the McpTool attribute, with `title` and `annotations`; `{}`: a tool without either. Under `auth`: kinds of `/mcp/tools/*`, default `[cookie]` | no tool |
#>
#> | `factory` | `pagination` or `entity`, or one of these by its PHP class | |
#>
#> | `required` | | false |
#>
#> | `settings` | with `drupal`: further settings, as allowed values and bounds | |
cat >tools.yaml <<'END'
roles: {agent: [use jsonrpc services, access mcp tool discovery], reader: [access content]}
users: [{uid: 3, name: agent, password: agent-pass, roles: [agent, reader], tokens: [{value: narrow, scopes: [agent]}, {value: whole}]}]
methods:
- {id: z.first, usage: The first of them, mcp: {title: First, annotations: {readOnlyHint: true}}, behaviour: echo, params: {page: {factory: pagination, required: true}, size: {drupal: integer, settings: {min: 2}}}}
- {id: a.second, mcp: {}, access: [access content], behaviour: echo, params: {n: {schema: {type: integer}, default: 3, description: How many}}}
- {id: m.third, behaviour: echo}
END
serve TOOLS mock --site tools.yaml --control 127.0.0.1:0
curl -s -u agent:agent-pass $TOOLS/jsonrpc/methods >methods
test "$(grep -oE '"id":"[a-z]\.[a-z]*"' methods | sort -u | wc -l)" = 3
test "$(grep -oE '[azm]\.(first|second|third)' methods | uniq | head -n 3 | tr '\n' ' ')" = 'z.first a.second m.third '
serve B bridge --drupal $TOOLS
lists 200 $B
says '"name":"z.first","title":"First","description":"The first of them"' '"readOnlyHint":true' '"size":[{][^}]*"minimum":2' '"required":\["page"\]' '"default":3' '"description":"How many"'
silent m.third
gets 200 -H 'Authorization: Bearer whole' "$B/mcp/tools/describe?name=a.second"
gets 404 -H 'Authorization: Bearer narrow' "$B/mcp/tools/describe?name=a.second"
gets 200 -H 'Authorization: Bearer narrow' "$B/mcp/tools/describe?name=z.first"
