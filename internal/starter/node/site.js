// The Drupal site: its methods, and calls of them. Every request is made as the caller (access/credentials-forwarded).
import {once} from 'node:events'
import http from 'node:http'
import https from 'node:https'
import {Failure, notFound} from './failure.js'
import {isObject, memoized, parse, stringify} from './json.js'

const SITE = process.env.DRUPAL_URL?.replace(/\/+$/, '') // the only host that is ever called (upstream/no-ssrf)
const TIMEOUT = 1000 * (process.env.BRIDGE_UPSTREAM_TIMEOUT || 10)
const MAX_BYTES = 8 << 20 // upstream/huge-answer
const {request, Agent} = SITE?.startsWith('https:') ? https : http // fetch computes more, and adds headers of its own
const agent = new Agent({keepAlive: true}) // upstream/pooled

// A site's list comes again and again: it is parsed once.
const parseOnce = memoized(parse)
const found = memoized(({data, meta}) => ({methods: data.filter(isObject), mayDiscover: meta?.mcp?.discovery === true}))

/** The methods that the caller may run, and whether the caller may discover them. */
export async function methods(caller) {
  const {status, body} = await exchange(caller, '/jsonrpc/methods')
  if (status !== 200 || !Array.isArray(body?.data)) throw unusable(status)
  return found(body)
}

let calls = 0

/** Calls a method, once: nothing here tries again (invoke/runs-once). */
export async function call(caller, {name: method, inputSchema}, params) {
  const id = ++calls
  const {status, body} = await exchange(caller, '/jsonrpc', {jsonrpc: '2.0', id, method, params})
  if (!isObject(body)) throw unusable(status)
  const {error, result} = body
  if ('error' in body && !('result' in body)) {
    // Drupal sends errors without the id, under 200, 400 and 500 (upstream/id-mismatch, upstream/error-any-status).
    if (isObject(error) && (body.id ?? id) === id) throw failed(method, error, inputSchema.properties, params)
  } else if ('result' in body && !('error' in body) && status === 200 && body.id === id) {
    return result
  }
  throw unusable(status)
}

function failed(method, {code, message, data}, properties, params) {
  if (code === -32601) return notFound(method)
  const text = typeof data === 'string' ? data : '' // an object may have a member toString
  if (code === -32600 && text.startsWith('Access Denied')) {
    return new Failure(403, 'access_denied', `You may not run ${method}.`)
  }
  // Drupal's own text on an argument has PHP's class names in it: only the name is taken (invoke/invalid-arguments-named).
  const [, refused, missing] = /^(?:The (.+?) parameter does not conform |Missing required parameter: (.+)$)/.exec(text) ?? []
  const parameter = refused ?? missing
  if (code === -32602 && parameter) {
    const fault = missing ? 'missing' : 'not valid'
    return new Failure(400, 'invalid_params', `The argument ${parameter} of ${method} is ${fault}.`,
      {parameter, expected: properties[parameter], received: params[parameter] ?? null})
  }
  const details = {jsonrpc_code: code, jsonrpc_data: code === -32603 ? undefined : data} // PHP's own text (invoke/no-trace-leak)
  if (code === -32602) return new Failure(400, 'invalid_params', `The tool ${method} refused its arguments: ${message}`, details)
  return new Failure(500, 'execution_error', `The tool ${method} failed: ${message}`, details)
}

/** One exchange with the site. Gives the status and the JSON of the body, or undefined for a body that is not JSON. */
async function exchange(caller, path, message) {
  const headers = {...caller.headers, accept: 'application/json'}
  if (message) headers['content-type'] = 'application/json'
  const end = new AbortController()
  const leave = () => end.abort()
  caller.gone.addEventListener('abort', leave)
  if (caller.gone.aborted) leave()
  let late = false // the time covers the body as well (upstream/timeout)
  const timer = setTimeout(() => { late = true; leave() }, TIMEOUT)
  let response, text
  try {
    const sent = request(SITE + path, {method: message ? 'POST' : 'GET', headers, agent, signal: end.signal})
    sent.end(message && stringify(message));
    [response] = await once(sent, 'response')
    text = await read(response)
  } catch {
    if (late) throw new Failure(504, 'upstream_timeout', 'The site did not respond in time.')
    if (response) throw unusable(response.statusCode)
    throw new Failure(503, 'upstream_unavailable', 'The site cannot be reached.')
  } finally {
    clearTimeout(timer)
    caller.gone.removeEventListener('abort', leave)
  }
  const status = response.statusCode
  if (status === 401) {
    const challenge = response.headers['www-authenticate']
    throw new Failure(401, 'authentication_required', 'The site asks for credentials.', undefined,
      challenge ? {'WWW-Authenticate': challenge} : {})
  }
  if (status === 403) throw new Failure(403, 'access_denied', 'The site refuses this caller.')
  try {
    return {status, body: message ? parse(text) : parseOnce(text)}
  } catch {
    return {status}
  }
}

/** The body as text; it throws if it is too long, no UTF-8, or ends early. */
async function read(response) {
  const chunks = []
  let bytes = 0
  for await (const chunk of response) {
    if ((bytes += chunk.length) > MAX_BYTES) throw new Error('too long')
    chunks.push(chunk)
  }
  return new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(Buffer.concat(chunks))
}

const unusable = status => status === 503
  ? new Failure(503, 'upstream_unavailable', 'The site says that it is not available.')
  : new Failure(502, 'upstream_error', "The site's response is not usable.")
