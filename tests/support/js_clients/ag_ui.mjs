// Agents of the npm package `@ag-ui/client`. A command a line on stdin, an answer each.
import { createInterface } from 'node:readline';
import { HttpAgent, buildResumeArray } from '@ag-ui/client';

const url = process.argv[1];
console.error = () => {};
// The client cancels the body of a broken connection, too, and nobody takes what that throws.
process.on('unhandledRejection', () => {});

const agents = new Map();

function agentOf({ thread, path = '/agui', headers }) {
  if (!agents.has(thread)) {
    const agent = new HttpAgent({ url: `${url}${path}`, threadId: thread, headers, fetch: breaking });
    agents.set(thread, agent);
  }
  return agents.get(thread);
}

const verbs = {
  async say({ message, text, ...more }) {
    const agent = agentOf(more);
    agent.addMessage({ id: message, role: 'user', content: text });
    return verbs.run(more);
  },
  // Once more, with what the agent holds.
  async run({ breakAfter, tools, context, state, resume, ...more }) {
    left = breakAfter ?? Infinity;
    const agent = agentOf(more);
    let failed, outcome, runError;
    const custom = [];
    const subscriber = {
      onRunFinishedEvent: ({ event }) => void (outcome = event.outcome),
      onRunErrorEvent: ({ event }) => void (runError = event),
      onCustomEvent: ({ event }) => void custom.push(event.name),
    };
    try {
      await agent.runAgent({ tools, context, resume, ...(state && { state }) }, subscriber);
    } catch (error) {
      failed = { message: error.message, status: error.status };
    }
    return { messages: agent.messages, pending: agent.pendingInterrupts, outcome, runError, failed, custom };
  },
  async answer({ responses, ...more }) {
    const agent = agentOf(more);
    return verbs.run({ ...more, resume: buildResumeArray(agent.pendingInterrupts, responses) });
  },
  async result({ id, call, content, ...more }) {
    agentOf(more).addMessage({ id, role: 'tool', toolCallId: call, content });
    return verbs.run(more);
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: verb, ...command } = JSON.parse(line);
  try {
    console.log(JSON.stringify(await verbs[verb](command)));
  } catch (thrown) {
    console.log(JSON.stringify({ thrown: String(thrown.stack ?? thrown) }));
  }
}
