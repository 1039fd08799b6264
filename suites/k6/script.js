// A load test of a bridge for k6, written by `bridgecheck load export --k6`:
//
//   k6 run script.js
//
// It sends calls that the bridge served when this file was written, at a rate that you choose. Secrets are read from
// environment variables, which `identities` names; k6 takes them from its own environment or by -e NAME=VALUE.
//
//   BRIDGE_URL  base URL of the bridge, if it is not the one below
//   RATE        calls a second (default 10)
//   DURATION    for how long (default 1m)
//   P95         milliseconds in which 95 of 100 calls must be served (default 1000)
import http from 'k6/http';
import encoding from 'k6/encoding';
import { check } from 'k6';

const url = __ENV.BRIDGE_URL || {{.URL}};

// How each caller authenticates: header, scheme, and the variable that holds the secret.
const identities = {{.Identities}};

// Each call with its body as text, so that no number loses digits.
const calls = {{.Calls}};

const rate = Number(__ENV.RATE || 10);

export const options = {
  scenarios: {
    calls: {
      executor: 'constant-arrival-rate',
      rate,
      timeUnit: '1s',
      duration: __ENV.DURATION || '1m',
      preAllocatedVUs: Math.max(10, rate),
      maxVUs: Math.max(100, 10 * rate),
    },
  },
  thresholds: {
    checks: ['rate>0.99'],
    http_req_failed: ['rate<0.01'],
    'http_req_duration{name:invoke}': [`p(95)<${Number(__ENV.P95 || 1000)}`],
    'http_req_duration{name:list}': [`p(95)<${Number(__ENV.P95 || 1000)}`],
    dropped_iterations: ['count<1'],
  },
};

function secret(name) {
  if (!__ENV[name]) {
    throw new Error(`set the environment variable ${name}: this script holds no secrets`);
  }
  return __ENV[name];
}

const headers = {};
for (const [identity, credentials] of Object.entries(identities)) {
  headers[identity] = { 'Content-Type': 'application/json' };
  for (const c of credentials) {
    const value = c.user === undefined ? secret(c.env) : encoding.b64encode(`${c.user}:${secret(c.env)}`);
    headers[identity][c.header] = c.scheme ? `${c.scheme} ${value}` : value;
  }
}

let next = Math.floor(Math.random() * calls.length);

export default function () {
  const call = calls[next++ % calls.length];
  if (next % 10 === 0) {
    const list = http.get(`${url}/mcp/tools/list`, { headers: headers[call.identity], tags: { name: 'list' } });
    check(list, { 'the list has tools': (r) => r.status === 200 && r.body.includes('"tools"') });
  }
  const response = http.post(`${url}/mcp/tools/invoke`, call.body, { headers: headers[call.identity], tags: { name: 'invoke', tool: call.tool } });
  check(response, { 'the call has a result': (r) => r.status === 200 && r.body.includes('"result"') });
}
