// A test of a bridge with the mock as its site: what it sends, and what it does when the site fails.
const { after, afterEach, before, test } = require('node:test');
const assert = require('node:assert');
const { start } = require('../mock.js'); // elsewhere: require('bridgecheck/mock')

let site;
before(async () => { site = await start(); });
afterEach(() => site.reset());
after(() => site.stop());

// call stands for the bridge under test.
const call = (method) => fetch(`${site.url}/jsonrpc`, {
  method: 'POST',
  headers: { Authorization: `Basic ${btoa('agent:agent-pass')}`, 'Content-Type': 'application/json' },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method }),
});

test('a call runs its method once, as the caller', async () => {
  assert.equal((await call('content.list')).status, 200);
  const entries = await site.journal({ method: 'content.list' });
  assert.deepEqual(entries.map((e) => [e.user, e.status, e.calls[0].ran]), [['agent', 200, true]]);
  assert.equal(JSON.parse(entries[0].body).method, 'content.list');
});

test('a fault acts until it is disarmed', async () => {
  const disarm = await site.arm({ kind: 'status', status: 503, method: 'content.*' });
  assert.equal((await call('content.list')).status, 503);
  await disarm();
  assert.equal((await call('content.list')).status, 200);
});

test('reset forgets what a test did', async () => {
  await site.patch({ users: { agent: { blocked: true } } });
  assert.notEqual((await call('content.list')).status, 200);
  await site.reset();
  assert.deepEqual(await site.journal(), []);
  assert.equal((await call('content.list')).status, 200);
});

test('a fault that cannot be is refused with what is wrong', async () => {
  await assert.rejects(site.arm({ kind: 'no-such-kind' }), /no-such-kind/);
});

test('a mock that cannot start says why', async () => {
  await assert.rejects(start({ site: 'no-such-site' }), /no-such-site/);
});
