#!/usr/bin/env node
// Runs the program of the package for this system, with the same arguments, input, output, signals and exit code.
'use strict';
const { spawn } = require('node:child_process');
const os = require('node:os');

const name = `@bridgecheck/${process.platform}-${process.arch}`;
const wanted = require('../package.json').optionalDependencies ?? {};

function fail(reason) {
  process.stderr.write(`bridgecheck: ${reason}\n`);
  process.exit(4); // no verdict
}

let program;
try {
  program = require.resolve(`${name}/bin/bridgecheck${process.platform === 'win32' ? '.exe' : ''}`);
} catch {
  fail(name in wanted
    ? `the package ${name} is not installed; install bridgecheck again, with optional dependencies (without --omit=optional), on this system`
    : `there is no package for ${process.platform} on ${process.arch}; there are ${Object.keys(wanted).join(', ')}`);
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => child.kill(signal));
}
child.on('error', (error) => fail(`${program} cannot be started: ${error.message}`));
child.on('exit', (code, signal) => process.exit(code ?? 128 + os.constants.signals[signal]));
