#!/usr/bin/env node
// Runs the program of the package for this system, with the same arguments, input, output, signals and exit code.
'use strict';
const { spawn } = require('node:child_process');
const os = require('node:os');
const { program } = require('../lib/program.js');

function fail(reason) {
  process.stderr.write(`bridgecheck: ${reason}\n`);
  process.exit(4); // no verdict
}

let file;
try {
  file = program();
} catch (error) {
  fail(error.message);
}

const child = spawn(file, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => child.kill(signal));
}
child.on('error', (error) => fail(`${file} cannot be started: ${error.message}`));
child.on('exit', (code, signal) => process.exit(code ?? 128 + os.constants.signals[signal]));
