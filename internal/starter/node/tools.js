// From the methods of the site to tools.
import {isNumber, isObject, memoized} from './json.js'

const reported = new Set()

/** The tools among the methods, by name. One that cannot be translated does not cost the others (translate/one-bad-tool). */
export const toolsOf = memoized(methods => {
  const tools = new Map() // not an object: names such as constructor exist on every object (describe/name-exact)
  for (const method of methods) {
    if (!method.attributes?.mcpTool) continue // list/only-marked-methods
    try {
      tools.set(method.id, tool(method))
    } catch (error) {
      if (!reported.has(method.id)) console.error(`${method.id} is left out: ${error.message}`)
      reported.add(method.id)
    }
  }
  return tools
})

function tool({id, attributes: {usage, params, output, mcpTool}}) {
  const made = {name: id, description: usage || mcpTool.title || id, inputSchema: inputSchema(params ?? {})}
  if (mcpTool.title) made.title = mcpTool.title
  if (output) made.outputSchema = usable(output)
  if (isObject(mcpTool.annotations)) made.annotations = mcpTool.annotations // PHP writes [] for none (list/tool-optional-members)
  return made
}

function inputSchema(params) {
  if (Array.isArray(params) && params.length > 0) throw new Error('it takes its parameters by position') // mapping/by-position
  const properties = mapped(params, ({schema, attributes}) => {
    const property = usable(schema)
    return attributes?.description ? {...property, description: attributes.description} : property
  })
  const required = Object.keys(params).filter(name => params[name].attributes?.required)
  return {type: 'object', properties, ...(required.length > 0 && {required})} // mapping/required-exact
}

const TYPES = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'])
const isText = value => typeof value === 'string'
const isCount = value => Number.isInteger(value) && value >= 0
// What the value of a keyword has to be (schema/input-valid).
const VALUES = new Map(Object.entries({
  type: value => [value].flat().every(type => TYPES.has(type)),
  enum: value => Array.isArray(value) && value.length > 0,
  required: value => Array.isArray(value) && value.every(isText),
  uniqueItems: value => typeof value === 'boolean',
  pattern: value => isText(value) && new RegExp(value, 'u'), // throws if it is wrong
}))
for (const key of ['title', 'description', 'format']) VALUES.set(key, isText)
for (const key of ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']) VALUES.set(key, isNumber)
for (const key of ['Length', 'Items', 'Properties']) VALUES.set(`min${key}`, isCount).set(`max${key}`, isCount)

// Which keywords hold schemas: by name, as a list, or one.
const MAPS = ['properties', 'patternProperties', 'dependencies']
const LISTS = ['allOf', 'anyOf', 'oneOf', 'items']
const ONE = ['items', 'additionalItems', 'additionalProperties', 'contains', 'propertyNames', 'not', 'if', 'then', 'else']

/** The schema as every client can use it: references replaced by what they refer to, and PHP's [] by {} where a schema or a
 *  map stands. It throws if that cannot be had: one that is null, cyclic, or refers to elsewhere (translate/one-bad-tool). */
function usable(root) {
  let size = 0
  return walk(root, 0)

  function walk(schema, depth) {
    if (typeof schema === 'boolean') return schema
    if (isEmptyList(schema)) return {}
    if (!isObject(schema)) throw new Error('a schema is no object')
    if (depth > 30 || ++size > 2000) throw new Error('a schema is cyclic or too large') // schema/bounded
    if ('$ref' in schema) return walk(target(schema.$ref), depth + 1)
    const {definitions, $defs, ...made} = schema // nothing refers to them now
    for (const [key, value] of Object.entries(made)) {
      if (VALUES.has(key) && !VALUES.get(key)(value)) throw new Error(`a schema has a wrong ${key}`)
    }
    for (const key of MAPS) {
      if (!(key in made)) continue
      made[key] = mapped(made[key], value => key === 'dependencies' && Array.isArray(value) ? value : walk(value, depth + 1))
    }
    for (const key of LISTS) if (made[key]?.length > 0) made[key] = made[key].map(value => walk(value, depth + 1))
    for (const key of ONE) if (isObject(made[key]) || isEmptyList(made[key])) made[key] = walk(made[key], depth + 1)
    if (made.type === 'array') made.items ??= {} // profile/array-items
    return made
  }

  function target(ref) {
    const path = /^#(\/.*)?$/.exec(ref) // schema/no-remote-ref
    if (!path) throw new Error(`a schema refers to ${ref}`)
    return decodeURIComponent(path[1] ?? '').split('/').slice(1)
      .reduce((at, part) => at?.[part.replaceAll('~1', '/').replaceAll('~0', '~')], root)
  }
}

const isEmptyList = value => Array.isArray(value) && value.length === 0
// Object.fromEntries keeps a member named __proto__, an assignment does not (mapping/properties-complete).
const mapped = (map, change) => Object.fromEntries(Object.entries(map).map(([name, value]) => [name, change(value)]))
