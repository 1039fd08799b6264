// node instrument.mjs DIR: rewrites the modules of DIR so that they hold all of Stryker's mutants, of which
// __STRYKER_ACTIVE_MUTANT__ switches one on, and prints a line of JSON for each mutant.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createInstrumenter } from '@stryker-mutator/instrumenter'
import { createInjector } from 'typed-inject'

const dir = process.argv[2]
const options = { plugins: null, excludedMutations: [], ignorers: [], mutator: { plugins: null, excludedMutations: [] } }
const silent = () => {}
const logger = {
  isTraceEnabled: silent, isDebugEnabled: silent, isInfoEnabled: silent, isWarnEnabled: silent, isErrorEnabled: silent,
  trace: silent, debug: silent, info: silent, warn: console.error, error: console.error, fatal: console.error,
}
const instrumenter = createInjector().provideValue('logger', logger).provideValue('options', options).injectFunction(createInstrumenter)

const sources = readdirSync(dir).filter(name => name.endsWith('.js') && !name.endsWith('.test.js'))
  .map(name => ({ name, content: readFileSync(`${dir}/${name}`, 'utf8'), mutate: true }))
const { files, mutants } = await instrumenter.instrument(sources, options)
for (const { name, content } of files) writeFileSync(`${dir}/${name}`, content)
for (const { id, fileName, location, mutatorName, replacement, status } of mutants) {
  if (status !== 'Ignored') {
    const { line, column } = location.start // counted from 0
    console.log(JSON.stringify({ switch: id, file: fileName, line: line + 1, column: column + 1, kind: mutatorName, by: replacement }))
  }
}
