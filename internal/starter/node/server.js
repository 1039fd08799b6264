// The three endpoints of the bridge. Every response passes through respond.
import {createHash} from 'node:crypto'
import {createServer} from 'node:http'
import {gzipSync} from 'node:zlib'
import {Failure, notFound} from './failure.js'
import {isObject, parse, stringify} from './json.js'
import {call, methods} from './site.js'
import {toolsOf} from './tools.js'

const PAGE_SIZE = Number(process.env.BRIDGE_PAGE_SIZE || 50)
const MAX_BODY = 2 << 20

const endpoints = {
  '/mcp/tools/list': {verbs: ['GET', 'HEAD'], run: list},
  '/mcp/tools/describe': {verbs: ['GET', 'HEAD'], run: describe},
  '/mcp/tools/invoke': {verbs: ['POST'], run: invoke},
}

async function list(caller, query) {
  const tools = [...(await discover(caller)).values()]
  // A cursor holds the position and a version of the list, so that an old one is refused (list/change-between-pages).
  const version = createHash('sha256').update(stringify(tools.map(tool => tool.name))).digest('base64url').slice(0, 12)
  const cursor = one(query, 'cursor') || `${version}.0`
  const [, of, offset] = /^([\w-]{12})\.(\d{1,9})$/.exec(cursor) ?? []
  if (of !== version) throw new Failure(400, 'invalid_cursor', 'The cursor is not one of this list: begin at the first page.')
  const next = Number(offset) + PAGE_SIZE
  const page = {tools: tools.slice(Number(offset), next)}
  if (next < tools.length) page.nextCursor = `${version}.${next}` // list/page-boundary-exact
  return page
}

async function describe(caller, query) {
  const tools = await discover(caller) // before the name: permission comes first (errors/precedence)
  const name = one(query, 'name')
  if (!name) throw new Failure(400, 'missing_parameter', 'The parameter name is missing.')
  const tool = tools.get(name)
  if (!tool) throw notFound(name)
  return {tool}
}

async function invoke(caller, query, request) {
  const body = await read(request)
  // The discovery permission is not asked for: who may run a tool may do so by its name (access/discovery-not-execution).
  const {methods: found} = await methods(caller)
  if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? '')) {
    throw new Failure(415, 'unsupported_media_type', 'The body has to be application/json.')
  }
  let message
  try {
    message = parse(new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(body))
  } catch (error) {
    throw new Failure(400, 'invalid_json', `The body is not JSON: ${error.message}`)
  }
  const {name, arguments: args} = isObject(message) ? message : {}
  if (typeof name !== 'string' || name === '') {
    throw new Failure(400, 'missing_parameter', 'The parameter name is missing, or no string.')
  }
  if (!isObject(args)) throw new Failure(400, 'missing_parameter', 'The parameter arguments is missing, or no object.')
  const tool = toolsOf(found).get(name)
  if (!tool) throw notFound(name)
  return {result: await call(caller, tool, args)} // the site decides, and validates the arguments
}

async function discover(caller) {
  const {methods: found, mayDiscover} = await methods(caller)
  if (!mayDiscover) { // access/list-403
    throw new Failure(403, 'access_denied', 'The site does not say that you may discover tools (meta.mcp.discovery).')
  }
  return toolsOf(found)
}

/** The value of a query parameter; `name[]=x` is another parameter (describe/name-not-scalar). */
function one(query, name) {
  const values = query.getAll(name)
  if (values.length > 1) throw new Failure(400, 'invalid_request', `The parameter ${name} is repeated.`)
  return values[0]
}

/** The body. One that is too long is read to its end, but not kept: the connection stays usable. */
async function read(request) {
  const chunks = []
  let bytes = 0
  for await (const chunk of request) if ((bytes += chunk.length) <= MAX_BODY) chunks.push(chunk)
  if (bytes > MAX_BODY) throw new Failure(413, 'request_too_large', `The body is longer than ${MAX_BODY} bytes.`)
  return Buffer.concat(chunks)
}

async function respond(request, response) {
  const [, path, query] = /^([^?]*)\??(.*)$/s.exec(request.url)
  const gone = new AbortController()
  response.on('close', () => gone.abort()) // a caller who is gone needs no response of the site (upstream/cancel)
  const caller = {gone: gone.signal, headers: {}}
  for (const name of ['authorization', 'accept-language']) if (request.headers[name]) caller.headers[name] = request.headers[name]
  try {
    const endpoint = Object.hasOwn(endpoints, path) && endpoints[path]
    if (!endpoint) throw new Failure(404, 'not_found', `There is no path ${path}.`)
    if (!endpoint.verbs.includes(request.method)) {
      throw new Failure(405, 'method_not_allowed', `${path} does not take ${request.method}.`, undefined,
        {Allow: endpoint.verbs.join(', ')})
    }
    const body = await endpoint.run(caller, new URLSearchParams(query), request)
    send(200, body, {})
  } catch (error) {
    if (gone.signal.aborted) return
    if (!(error instanceof Failure)) console.error(error)
    const known = error instanceof Failure ? error : new Failure(500, 'internal_error', 'The bridge failed.')
    const {status, code, message, data, headers} = known
    send(status, {error: {code, message, data}}, headers)
  }

  function send(status, body, headers) {
    let bytes = Buffer.from(stringify(body))
    headers = {
      ...headers, 'Content-Type': 'application/json', 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff',
      Vary: 'Accept-Encoding',
    }
    if (bytes.length > 1024 && /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(request.headers['accept-encoding'] ?? '')) {
      bytes = gzipSync(bytes)
      headers['Content-Encoding'] = 'gzip'
    }
    response.writeHead(status, {...headers, 'Content-Length': bytes.length}).end(bytes)
  }
}

export const server = createServer(respond)
server.keepAliveTimeout = 180_000 // longer than proxies keep theirs, which would send on a connection that closes
