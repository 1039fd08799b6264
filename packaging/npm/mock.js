// A mock Drupal for tests: started as a process of its own, and controlled through its control plane.
'use strict';
const { spawn } = require('node:child_process');
const { program } = require('./lib/program.js');

// start starts a mock on a free port and resolves when it is ready. It ends with this process.
async function start({ site = 'default', args = [] } = {}) {
  const child = spawn(program(), ['mock', '--site', site, '--listen', '127.0.0.1:0', '--control', '127.0.0.1:0', ...args],
    { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => { child.once('exit', resolve); child.once('error', resolve); });
  const kill = () => child.kill();
  process.once('exit', kill);
  ended.then(() => process.removeListener('exit', kill));
  const { url, control } = await ready(child);
  for (const stream of [child.stdout, child.stderr]) { // a test ends though the mock still runs
    stream.resume();
    stream.unref();
  }
  child.unref();

  // ask sends a request to the control plane.
  const ask = async (method, path, body, type = 'application/json') => {
    const response = await fetch(control + path, {
      method, body: type === 'application/json' && body !== undefined ? JSON.stringify(body) : body,
      headers: body === undefined ? {} : { 'Content-Type': type },
    });
    const text = await response.text();
    if (!response.ok) {
      let why = text;
      try { why = JSON.parse(text).error ?? text; } catch { /* it is shown as it is */ }
      throw new Error(`the mock refuses ${method} ${path}: ${why}`);
    }
    return text;
  };
  const json = async (...request) => JSON.parse(await ask(...request));
  const before = await ask('GET', 'site');
  let since = 0; // the last request before the last reset

  return {
    url,
    control,
    // arm makes the site misbehave, and resolves to a function that ends it.
    async arm(fault) {
      const { id } = await json('POST', 'faults', fault);
      return () => ask('DELETE', `faults/${id}`).then(() => {});
    },
    // journal resolves to the requests that reached the site, oldest first, with their bodies as text.
    async journal(filter = {}) {
      const { entries, lost } = await json('GET', `journal?${new URLSearchParams({ after: since, ...filter })}`);
      if (lost > 0) throw new Error(`the mock's journal has dropped ${lost} requests`);
      return (entries ?? []).map((entry) => ({ ...entry, body: Buffer.from(entry.body ?? '', 'base64').toString() }));
    },
    // patch changes the site, as PATCH site of the control plane does.
    patch: (change) => ask('PATCH', 'site', change).then(() => {}),
    // reset puts the site back as it was, and empties the journal and the faults.
    async reset() {
      await ask('DELETE', 'faults');
      await ask('DELETE', 'freeze');
      await ask('PUT', 'site', before, 'application/yaml');
      await ask('DELETE', 'journal');
      since = (await json('GET', 'journal')).last;
    },
    // stop ends the mock.
    async stop() {
      child.kill();
      await ended;
    },
  };
}

// ready reads the two lines that a mock prints, one on each stream: which comes first is not known.
function ready(child) {
  return new Promise((resolve, reject) => {
    let out = '';
    let errors = '';
    const look = () => {
      const url = /listening on (http\S+)\s/.exec(out);
      const control = /control plane is at (http\S+)\s/.exec(errors);
      if (url && control) resolve({ url: url[1], control: control[1] });
    };
    child.stdout.on('data', (data) => { out += data; look(); });
    child.stderr.on('data', (data) => { errors += data; look(); });
    child.once('error', (error) => reject(new Error(`the mock cannot be started: ${error.message}`)));
    child.once('close', (code) => reject(new Error(`the mock ended with ${code}: ${errors.trim() || out.trim()}`)));
  });
}

module.exports = { start };
