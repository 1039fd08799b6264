// Authorizes itself with one of the TypeScript SDKs, from nothing but the endpoint's URL and a client's credentials, and prints
// what it saw as a JSON document a line:
//   CLIENT_SECRET=… node authorize.mjs v1|v2 legacy|modern URL CLIENT TOOL ARGUMENTS
// {"tools": names}, {"result": of the tool}
const [sdk, era, url, clientId, tool, args] = process.argv.slice(2);

const { Client, StreamableHTTPClientTransport, ClientCredentialsProvider } =
  sdk === 'v1'
    ? {
        ...(await import('@modelcontextprotocol/sdk/client/index.js')),
        ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
        ...(await import('@modelcontextprotocol/sdk/client/auth-extensions.js')),
      }
    : await import('@modelcontextprotocol/client');

const say = (what) => process.stdout.write(JSON.stringify(what) + '\n');

const authProvider = new ClientCredentialsProvider({ clientId, clientSecret: process.env.CLIENT_SECRET });
const client = new Client(
  { name: 'bridgecheck-clients', version: '1' },
  sdk === 'v2' ? { versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' } } : {},
);
await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider }));
say({ tools: (await client.listTools()).tools.map((t) => t.name) });
say({ result: await client.callTool({ name: tool, arguments: JSON.parse(args) }) });
process.exit(0); // a transport may keep a stream open
