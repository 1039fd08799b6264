// Talks to an MCP server with a library that agents are built with, and prints what it saw as a JSON document a line:
//   node libraries.mjs LIBRARY URL AUTHORIZATION TOOL ARGUMENTS
// {"tools": names, as a model sees them}, {"text": of the tool's result}
const [library, url, Authorization, tool, args] = process.argv.slice(2);
const headers = Authorization === '' ? {} : { Authorization };

const say = (what) => process.stdout.write(JSON.stringify(what) + '\n');
const text = (result) => (typeof result === 'string' ? result : JSON.stringify(result));

const libraries = {
  async 'ai-sdk'() {
    const { createMCPClient } = await import('@ai-sdk/mcp');
    const client = await createMCPClient({ transport: { type: 'http', url, headers } });
    const tools = await client.tools();
    say({ tools: Object.keys(tools) });
    return tools[tool].execute(JSON.parse(args), { toolCallId: '1', messages: [] });
  },
  async langchain() {
    const { MultiServerMCPClient } = await import('@langchain/mcp-adapters');
    const client = new MultiServerMCPClient({ mcpServers: { drupal: { transport: 'http', url, headers } } });
    const tools = await client.getTools();
    say({ tools: tools.map((t) => t.name) });
    return tools.find((t) => t.name === tool).invoke(JSON.parse(args));
  },
  async 'openai-agents'() {
    const { getAllMcpTools, MCPServerStreamableHttp } = await import('@openai/agents');
    const server = new MCPServerStreamableHttp({ name: 'drupal', url, requestInit: { headers } });
    await server.connect();
    say({ tools: (await getAllMcpTools({ mcpServers: [server] })).map((t) => t.name) });
    return server.callTool(tool, JSON.parse(args));
  },
};

say({ text: text(await libraries[library]()) });
process.exit(0); // a transport may keep a stream open
