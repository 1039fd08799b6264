// Talks to an MCP server with one of the TypeScript SDKs, and prints what it saw as a JSON document a line:
//   node talk.mjs v1|v2 legacy|modern URL AUTHORIZATION TOOL ARGUMENTS BAD-ARGUMENTS
// {"tools": names over all pages}, {"result": of the tool}, {"bad": the same with bad arguments}, then {"listening": true};
// after the next notification of changed tools {"changed": names}, and it ends.
const [sdk, era, url, authorization, tool, args, badArgs] = process.argv.slice(2);

const { Client, StreamableHTTPClientTransport } =
  sdk === 'v1'
    ? { ...(await import('@modelcontextprotocol/sdk/client/index.js')), ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')) }
    : await import('@modelcontextprotocol/client');

const say = (what) => process.stdout.write(JSON.stringify(what) + '\n');

// names follows the cursors itself: v1 gives a page at a time, v2 all pages at once.
async function names(client) {
  const seen = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? undefined : { cursor });
    seen.push(...page.tools.map((t) => t.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return seen;
}

let changed;
const notified = new Promise((resolve) => (changed = resolve));
const client = new Client(
  { name: 'bridgecheck-clients', version: '1' },
  {
    listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => changed() } },
    ...(sdk === 'v2' && { versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' } }),
  },
);
const requestInit = authorization === '' ? {} : { headers: { Authorization: authorization } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
say({ tools: await names(client) });
say({ result: await client.callTool({ name: tool, arguments: JSON.parse(args) }) });
say({ bad: await client.callTool({ name: tool, arguments: JSON.parse(badArgs) }) });
say({ listening: true });
await notified;
say({ changed: await names(client) });
await client.close();
process.exit(0); // a transport may keep a stream open
