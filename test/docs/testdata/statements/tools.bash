#> # writes tools.lock.json: commit it
exits 0 bridgecheck tools lock --exec 'bridgecheck bridge'
test -s tools.lock.json
exits 0 bridgecheck tools diff tools.lock.json --exec 'bridgecheck bridge'

#> Of a site file the
#> reference bridge shows the tools.
exits 0 bridgecheck tools lock default -o site.lock.json
bridgecheck tools lock --exec 'bridgecheck bridge' -o exec.lock.json >/dev/null
cmp site.lock.json exec.lock.json

#> `bridgecheck tools rules` lists the rules, each with its reason
exits 0 bridgecheck tools rules
says '^input/required' '^input/unproved' '^output/unproved'

#> | breaking for callers | a tool is lost, an argument more is required, a type is narrower, a result promises less, a schema is invalid | yes |
#>
#> | breaking for models | an annotation on safety changed | yes |
#>
#> | | a description, a title, a default changed | with `--strict` |
#>
#> | additive | a tool more, an optional argument more, more values taken | no |
list() { printf '{"tools":[%s]}' "$1" >$2; }
T='"name":"a","description":"does","inputSchema":{"type":"object","properties":{"q":{"type":"string"}}},"annotations":{"readOnlyHint":true}'
list "{$T},{\"name\":\"b\",\"inputSchema\":{\"type\":\"object\"}}" old
d() { list "$2" new; exits $1 bridgecheck tools diff old new "${@:3}"; }
B='{"name":"b","inputSchema":{"type":"object"}}'
d 0 "{$T},$B"
d 1 "{$T}"
d 1 "{${T/'"type":"object"'/'"type":"object","required":["q"]'}},$B"
d 1 "{${T/'"type":"string"'/'"type":"string","maxLength":3'}},$B"
d 1 "{${T/'{"q":{"type":"string"}}'/[]}},$B"
d 1 "{${T/'"readOnlyHint":true'/'"readOnlyHint":false'}},$B"
d 0 "{${T/does/deletes}},$B"
d 1 "{${T/does/deletes}},$B" --strict
d 0 "{$T},$B,{\"name\":\"c\",\"inputSchema\":{\"type\":\"object\"}}"
d 0 "{${T/'"q":'/'"r":{"type":"string"},"q":'}},$B"

#> `{"minimum": 1}` and `{"exclusiveMinimum": 0}` are the same for
#> integers.
printf '{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"n":{"type":"integer","minimum":1}}}}]}' >one
printf '{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"n":{"type":"integer","exclusiveMinimum":0}}}}]}' >two
exits 0 bridgecheck tools diff one two
says 'It takes the same arguments' '^0 breaking for callers'

#> An entry that has expired, or matches nothing, fails the gate:
printf 'known:\n- {clause: tool/lost, reason: x, until: 2020-01-01}\n' >expired.yaml
printf 'known:\n- {clause: tool/lost, tool: z, reason: x}\n' >nothing.yaml
printf 'known:\n- {clause: tool/lost, tool: b, reason: x}\n' >allow.yaml
list() { printf '{"tools":[%s]}' "$1" >$2; }
list '{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}' old
list '{"name":"a","inputSchema":{"type":"object"}}' new
exits 0 bridgecheck tools diff old new --allow allow.yaml
exits 1 bridgecheck tools diff old new --allow expired.yaml
exits 1 bridgecheck tools diff old old --allow nothing.yaml

#> Exit codes: 0 nothing breaks, 1 something does, 2 wrong usage, 3 the bridge cannot be reached. `--format` writes `console`,
#> `markdown` for a pull request, `json`, `sarif` (at the tool's line of the lock) and `junit`.
printf '{"tools":[]}' >none
exits 2 bridgecheck tools diff
exits 3 bridgecheck tools diff none --url http://127.0.0.1:1
for f in console markdown json sarif junit; do exits 0 bridgecheck tools diff none none --format $f; done
exits 2 bridgecheck tools diff none none --format html

#> or a file: a lock, a
#> report, [a site file](site-files.md), or the saved result of MCP's `tools/list` (`--caller` says whose it is).
bridgecheck fixtures export default -o site.yaml
printf '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}}' >saved.json
for source in site.yaml default saved.json; do
	exits 0 bridgecheck tools lock $source -o -
	says '"tools_lock"'
done
exits 0 bridgecheck tools lock saved.json --caller guest -o -
says '"guest"'

#> A report keeps the beginning of long lists: where it holds no whole one, `tools` says so.
bridgecheck run --only list/names-unique --report-dir report >/dev/null
exits 2 bridgecheck tools lock report/report.json -o -
says 'the report holds no whole list of tools'

#> Where an object names its members and says nothing of others, callers are taken to send no others. Each breaking
#> difference of a schema has an example where one is found: a value that one side takes and the other refuses. What
#> cannot be shown to be harmless is breaking (`input/unproved`, `output/unproved`): look at it, and allow it.
side() { printf '{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{%s}}}]}' "$2" >$1; }
side old '"q":{"type":"string"}'
side new '"q":{"type":"string"},"n":{"type":"integer"}'
exits 0 bridgecheck tools diff old new
side new '"q":{"type":"string","maxLength":3}'
exits 1 bridgecheck tools diff old new
says '^breaks +input/length ' 'example: [{]"q":"....+"[}]'
side old '"q":{"type":"string","not":{"enum":["a"]}}'
side new '"q":{"type":"string","not":{"const":"a"}}'
exits 1 bridgecheck tools diff old new
says '^breaks +input/unproved '
printf 'known:\n- {clause: input/unproved, tool: a, reason: looked at}\n' >allow.yaml
exits 0 bridgecheck tools diff old new --allow allow.yaml
