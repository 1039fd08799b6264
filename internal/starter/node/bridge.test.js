// The bridge in front of a small site of its own. `bridgecheck run --config bridgecheck.yaml` tests it against the whole
// contract.
import assert from 'node:assert/strict'
import {createServer} from 'node:http'
import {after, before, beforeEach, test} from 'node:test'

const BIG = '9007199254740993' // JavaScript would round it
const methods = JSON.stringify({
  data: [
    {id: 'content.get', attributes: {usage: 'Loads content', mcpTool: {title: 'Get'}, params: {
      nid: {schema: {type: 'integer'}, attributes: {required: true}},
    }}},
    {id: 'cache.rebuild', attributes: {usage: 'No tool'}},
    {id: 'by.position', attributes: {usage: 'No names', mcpTool: {title: 'P'}, params: [{schema: {type: 'integer'}}]}},
    {id: 'content.tree', attributes: {usage: 'References', mcpTool: [], params: {
      tag: {schema: {$ref: '#/definitions/tag', definitions: {tag: {type: 'object', properties: []}}}, attributes: []},
    }}},
  ],
  meta: {mcp: {discovery: true}},
})

let site, bridge, seen, reply
const listen = server => new Promise(resolve => {
  server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`))
})

before(async () => {
  site = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    seen.push({url: request.url, authorization: request.headers.authorization, body})
    if (request.headers.authorization !== 'Basic me') {
      return response.writeHead(401, {'WWW-Authenticate': 'Basic realm="site"'}).end('<html>')
    }
    if (request.url === '/jsonrpc/methods') return response.end(methods)
    const [status, text] = reply(JSON.parse(body))
    response.writeHead(status).end(text)
  })
  process.env.DRUPAL_URL = await listen(site)
  process.env.BRIDGE_PAGE_SIZE = '1'
  const {server} = await import('./server.js')
  bridge = server
  bridge.url = await listen(bridge)
})
beforeEach(() => {
  seen = []
  reply = ({id}) => [200, `{"jsonrpc": "2.0", "id": ${id}, "result": {"big": ${BIG}, "ratio": 1.0}}`]
})
after(() => {
  site.close()
  bridge.close()
})

async function ask(path, {authorization = 'Basic me', body} = {}) {
  const response = await fetch(bridge.url + path, {
    method: body ? 'POST' : 'GET', body, headers: {...(authorization && {authorization}), 'content-type': 'application/json'},
  })
  const text = await response.text()
  return {status: response.status, headers: response.headers, text, json: JSON.parse(text)}
}
const invoke = body => ask('/mcp/tools/invoke', {body})
const error = ({status, json}) => `${status} ${json.error?.code}`

test('list has the tools, page by page', async () => {
  const first = await ask('/mcp/tools/list')
  assert.deepEqual(first.json.tools, [{
    name: 'content.get', description: 'Loads content', title: 'Get',
    inputSchema: {type: 'object', properties: {nid: {type: 'integer'}}, required: ['nid']},
  }])
  const second = await ask(`/mcp/tools/list?cursor=${encodeURIComponent(first.json.nextCursor)}`)
  assert.deepEqual(second.json, {tools: [{
    name: 'content.tree', description: 'References',
    inputSchema: {type: 'object', properties: {tag: {type: 'object', properties: {}}}},
  }]})
  assert.equal(error(await ask('/mcp/tools/list?cursor=LTE%3D')), '400 invalid_cursor')
})

test('describe has the tool of the list, and no other method', async () => {
  assert.equal((await ask('/mcp/tools/describe?name=content.get')).json.tool.name, 'content.get')
  for (const name of ['cache.rebuild', 'by.position', 'Content.Get', 'constructor']) {
    assert.equal(error(await ask(`/mcp/tools/describe?name=${name}`)), '404 tool_not_found', name)
  }
  assert.equal(error(await ask('/mcp/tools/describe')), '400 missing_parameter')
})

test('invoke forwards arguments and result without loss, once, as the caller', async () => {
  const {status, text} = await invoke(`{"name": "content.get", "arguments": {"nid": ${BIG}, "filter": {}}}`)
  assert.equal(status, 200)
  assert.equal(text, `{"result":{"big":${BIG},"ratio":1.0}}`)
  const calls = seen.filter(({url}) => url === '/jsonrpc')
  assert.equal(calls.length, 1)
  assert.match(calls[0].body, new RegExp(`"params":\\{"nid":${BIG},"filter":\\{\\}\\}`))
  assert.equal(calls[0].authorization, 'Basic me')
})

test('invoke runs nothing that is malformed or hidden', async () => {
  for (const [body, want] of [
    ['{"name": "content.get"', '400 invalid_json'],
    ['{"name": "content.get", "name": "x", "arguments": {}}', '400 invalid_json'],
    [`{"name": "content.get", "arguments": ${'['.repeat(10_000)}${']'.repeat(10_000)}}`, '400 invalid_json'],
    ['null', '400 missing_parameter'],
    ['{"name": ["content.get"], "arguments": {}}', '400 missing_parameter'],
    ['{"name": "content.get", "arguments": []}', '400 missing_parameter'],
    ['{"name": "cache.rebuild", "arguments": {}}', '404 tool_not_found'],
    [`{"name": "content.get", "arguments": {"x": "${'x'.repeat(3 << 20)}"}}`, '413 request_too_large'],
  ]) assert.equal(error(await invoke(body)), want, body.slice(0, 80))
  assert.deepEqual(seen.filter(({url}) => url === '/jsonrpc'), [])
})

test("the site's errors get their status and code", async () => {
  const text = (message, data) => `{"jsonrpc": "2.0", "id": null, "error": {${message}, "data": ${JSON.stringify(data)}}}`
  for (const [status, body, want] of [
    [200, text('"code": -32600, "message": "Invalid Request"', 'Access Denied: no'), '403 access_denied'],
    [400, text('"code": -32601, "message": "Method Not Found"', 'x'), '404 tool_not_found'],
    [400, text('"code": -32602, "message": "Invalid Params"', 'There is no such article'), '400 invalid_params'],
    [500, text('"code": -32603, "message": "Internal Error"', '/var/www/secret.php'), '500 execution_error'],
    [200, '{"jsonrpc": "2.0", "id": 0, "result": 1}', '502 upstream_error'],
    [503, '<html>', '503 upstream_unavailable'],
    [204, '', '502 upstream_error'],
  ]) {
    reply = () => [status, body]
    const got = await invoke('{"name": "content.get", "arguments": {"nid": 1}}')
    assert.equal(error(got), want, body)
    assert.doesNotMatch(got.text, /secret/)
  }
  const refusal = 'The nid parameter does not conform to the parameter schema. Adaptor Drupal\\x'
  reply = () => [400, text('"code": -32602, "message": "Invalid Params"', refusal)]
  const {data} = (await invoke('{"name": "content.get", "arguments": {"nid": "one"}}')).json.error
  assert.deepEqual(data, {parameter: 'nid', expected: {type: 'integer'}, received: 'one'})
})

test('a caller without credentials gets the challenge of the site', async () => {
  const refused = await ask('/mcp/tools/list', {authorization: ''})
  assert.equal(error(refused), '401 authentication_required')
  assert.equal(refused.headers.get('www-authenticate'), 'Basic realm="site"')
})

test('paths and verbs that do not exist are refused as JSON', async () => {
  assert.equal(error(await ask('/mcp/nothing')), '404 not_found')
  const refused = await ask('/mcp/tools/invoke')
  assert.equal(error(refused), '405 method_not_allowed')
  assert.equal(refused.headers.get('allow'), 'POST')
})
