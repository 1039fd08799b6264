// JSON without loss. JSON.parse rounds integers beyond 2^53, writes 1.0 as 1 and keeps the last of two members of one name
// (invoke/arguments-forwarded, invoke/result-exact, invoke/duplicate-members).
import {randomUUID} from 'node:crypto'

const TOKEN = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}[\]]|(-?\d[\d.eE+-]*)/g
const MARK = randomUUID() // nobody else can write a string that begins with it
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g')
const MAX_DEPTH = 128 // invoke/large-body

/** Parses a text; a number that JavaScript cannot hold becomes a marked string, which stringify writes as it was. */
export function parse(text) {
  JSON.parse(text) // refuses what is not JSON
  const open = [] // for each object or list around a token, the names seen in it
  const marked = text.replace(TOKEN, (token, string, colon, number) => {
    if (number) return String(Number(number)) === number ? number : `"${MARK}${number}"`
    if (token === '{' || token === '[') {
      if (open.push(new Set()) > MAX_DEPTH) throw new SyntaxError(`more than ${MAX_DEPTH} levels`)
    } else if (token === '}' || token === ']') {
      open.pop()
    } else if (colon) {
      const name = JSON.parse(string)
      if (open.at(-1).has(name)) throw new SyntaxError(`the member ${string} is repeated`)
      open.at(-1).add(name)
    }
    return token
  })
  return JSON.parse(marked)
}

/** The function with a memory: the newest values are kept by their argument. They are shared: do not change them. */
export function memoized(make) {
  const made = new Map()
  return argument => {
    if (!made.has(argument)) {
      if (made.size === 8) made.delete(made.keys().next().value)
      made.set(argument, make(argument))
    }
    return made.get(argument)
  }
}

export const stringify = value => JSON.stringify(value).replace(MARKED, '$1')

export const isNumber = value => typeof value === 'number' || (typeof value === 'string' && value.startsWith(MARK))

export const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value)
