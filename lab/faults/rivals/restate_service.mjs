// The write as a durable step of a Restate virtual object: see lab/faults/rivals.
import * as restate from "@restatedev/restate-sdk";

const [port, setting] = process.argv.slice(2);
const once = setting === "one attempt";

async function tell(kind, place, turn, more = {}) {
  const body = JSON.stringify({ place, turn, pid: process.pid, ...more });
  await (await fetch(`${process.env.FAULTS_EFFECTS}/${kind}`, { method: "POST", body })).text();
}

async function write(turn) {
  await tell("visit", "before", turn);
  await tell("write", "write", turn, { key: turn });
  return "written";
}

const agent = restate.object({
  name: "Agent",
  options: once ? { retryPolicy: { maxAttempts: 1, onMaxAttempts: "kill" } } : {},
  handlers: {
    turn: async (ctx, turn) => {
      await ctx.run("model", () => "asked");
      const said = await ctx.run("write", () => write(turn), once ? { maxRetryAttempts: 1 } : {});
      await ctx.run("model", () => "answered");
      return said;
    },
  },
});

restate.serve({ services: [agent], port: Number(port) });
