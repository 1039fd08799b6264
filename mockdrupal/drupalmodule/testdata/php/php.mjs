// Runs a PHP script by the PHP of PHP_VERSION, with the directories of PHP_ROOTS (separated by colons) at their own paths.
import { PHP, setPhpIniEntries } from '@php-wasm/universal'
import { loadNodeRuntime, createNodeFsMountHandler, FileLockManagerForPosix } from '@php-wasm/node'

const options = { followSymlinks: true, fileLockManager: new FileLockManagerForPosix(), emscriptenOptions: { processId: process.pid } }
const php = new PHP(await loadNodeRuntime(process.env.PHP_VERSION, options))
for (const root of process.env.PHP_ROOTS.split(':')) {
  php.mkdir(root)
  await php.mount(root, createNodeFsMountHandler(root))
}
await setPhpIniEntries(php, { memory_limit: '512M', display_errors: '1', error_reporting: '32767' })
const [script, ...args] = process.argv.slice(2)
const response = await php.run({ scriptPath: script, $_SERVER: { ARGV_JSON: JSON.stringify(args) } })
process.stdout.write(Buffer.from(response.bytes), () => process.exit(response.exitCode))
if (response.errors) process.stderr.write(response.errors)
