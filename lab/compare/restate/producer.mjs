// Submits turns as it is told: see lab/compare/serving.py.
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import * as clients from "@restatedev/restate-sdk-clients";

const restate = clients.connect({ url: process.argv[2] });

async function turn() {
  const id = randomUUID();
  const submittedAt = Date.now() / 1000;
  const submitted = await restate
    .objectSendClient({ name: "Agent" }, id)
    .turn("Make one note of the first three days.", clients.rpc.sendOpts({ idempotencyKey: id }));
  const { result_at: resultAt, ...ended } = await restate.result(submitted);
  return { ...ended, latency_s: resultAt - submittedAt };
}

console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const turns = await Promise.all(Array.from({ length: Number(line) }, turn));
  console.log("done");
  console.log(JSON.stringify(turns));
}
