// The agent as a Restate virtual object, one a session: its turns run one after the other, and its history is its state.
// The model, each tool and each finalizer step is a durable step (ctx.run). No SQL: `log` and `decision` do nothing.
import { setTimeout as sleep } from "node:timers/promises";
import * as restate from "@restatedev/restate-sdk";

const MODEL_S = Number(process.env.BENCH_MODEL_S ?? 0);
const READ_S = Number(process.env.BENCH_READ_S ?? 0);
const WRITE_S = Number(process.env.BENCH_WRITE_S ?? 0);
const ANSWER = "Three notes were read and one was written.";
const READS = ["plans/monday", "plans/tuesday", "plans/wednesday"];
const WRITE = { path: "plans/week", text: "Monday, Tuesday and Wednesday in one note." };
const FINAL_STEPS = ["citations", "usage", "log", "result", "decision", "memory", "learner", "end"];

const pause = (seconds) => (seconds ? sleep(1000 * seconds) : undefined);

async function model(messages) {
  await pause(MODEL_S);
  if (messages.some((message) => message.role === "tool")) return { text: ANSWER, calls: [] };
  const reads = READS.map((path) => ({ tool: "read_note", arguments: { path } }));
  return { text: "", calls: [...reads, { tool: "write_note", arguments: WRITE }] };
}

async function readNote({ path }) {
  await pause(READ_S);
  return `# ${path}\nBuy apples. Call the dentist. Water the plants.`;
}

async function writeNote({ path, text }) {
  await pause(WRITE_S);
  return `wrote ${text.length} characters to ${path}`;
}

const agent = restate.object({
  name: "Agent",
  handlers: {
    turn: async (ctx, question) => {
      const messages = (await ctx.get("messages")) ?? [];
      messages.push({ role: "user", content: question });
      const asked = await ctx.run("model", () => model(messages));
      messages.push({ role: "assistant", content: asked.text, calls: asked.calls });
      const reads = asked.calls.filter((call) => call.tool === "read_note");
      const answers = await restate.RestatePromise.all(
        reads.map((call) => ctx.run("read_note", () => readNote(call.arguments))),
      );
      for (const call of asked.calls.slice(reads.length)) {
        answers.push(await ctx.run("write_note", () => writeNote(call.arguments)));
      }
      messages.push(...answers.map((content) => ({ role: "tool", content })));
      const { text } = await ctx.run("model", () => model(messages));
      messages.push({ role: "assistant", content: text });
      ctx.set("messages", messages);
      let resultAt = 0;
      let finalSteps = 0;
      for (const name of FINAL_STEPS) {
        const done = await ctx.run(name, () => Date.now() / 1000);
        if (name === "result") resultAt = done;
        finalSteps += 1;
      }
      return { text, calls: answers.length, final_steps: finalSteps, result_at: resultAt };
    },
  },
});

restate.serve({ services: [agent], port: Number(process.argv[2]) });
