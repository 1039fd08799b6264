// A small server with fastmcp, as its README builds one: over HTTP on a free port, with sessions or, as `stateless`, without them;
// as `stdio` on stdin and stdout.
import { FastMCP } from 'fastmcp';
import * as z from 'zod/v4';

const how = process.argv[2];
const server = new FastMCP({ name: 'small', version: '1.0.0' });
server.addTool({ name: 'greet', description: 'Greets', parameters: z.object({ name: z.string() }), execute: async ({ name }) => `Hello, ${name}!` });
await server.start(
  how === 'stdio' ? { transportType: 'stdio' } : { transportType: 'httpStream', httpStream: { port: 8080, host: '127.0.0.1', stateless: how === 'stateless' } },
);
