// A small MCP server with tmcp, which shares no code with the SDKs.
import { serve } from '@hono/node-server';
import { ZodJsonSchemaAdapter } from '@tmcp/adapter-zod';
import { HttpTransport } from '@tmcp/transport-http';
import { McpServer } from 'tmcp';
import * as z from 'zod/v4';

const server = new McpServer({ name: 'small', version: '1' }, { adapter: new ZodJsonSchemaAdapter(), capabilities: { tools: {} } });
server.tool({ name: 'greet', description: 'Greets', schema: z.object({ name: z.string() }) },
  async ({ name }) => ({ content: [{ type: 'text', text: `Hello, ${name}!` }] }));
const transport = new HttpTransport(server);
serve({ fetch: async (request) => (await transport.respond(request)) ?? new Response(null, { status: 404 }) });
