// The TypeScript SDK's client at a gateway: what it was told, as one line of JSON.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, done, gated] = process.argv.slice(1);
const client = new Client({ name: "npm", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const progress = [];
const heard = (update) => progress.push(update.progress);
const call = (message, options) => client.callTool({ name: "obedient", arguments: { message, session: "npm" } }, undefined, options);
const answer = await call(done, { onprogress: heard });
const unknown = await client.callTool({ name: "nothing", arguments: {} }).catch((error) => error.message);
const cancel = new AbortController();
const cut = (update) => update.message === "read runs" && cancel.abort("enough");
await call(gated, { onprogress: cut, signal: cancel.signal }).catch(() => {});
// To close ends what is being sent, the cancel too: the turn has to end first.
const open = async () => {
  const found = await client.callTool({ name: "list", arguments: { state: "accepted", session: "npm" } });
  return found.structuredContent.turns.length;
};
while (await open()) await new Promise((resolve) => setTimeout(resolve, 100));
await client.close();
console.log(JSON.stringify({ tools, answer, progress, unknown }));
