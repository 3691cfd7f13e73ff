// The command line of npm `@modelcontextprotocol/inspector`, a process a call.
import { execFile } from 'node:child_process';

const COMMAND = 'node_modules/@modelcontextprotocol/inspector/cli/build/index.js';

function call(tool, given = {}) {
  const pairs = Object.entries(given).flatMap(([name, value]) => ['--tool-arg', `${name}=${value}`]);
  const args = [COMMAND, `${url}/mcp`, '--transport', 'http', '--header', `Authorization: Bearer ${key}`];
  args.push('--method', 'tools/call', '--tool-name', tool, ...pairs);
  return new Promise((done, failed) =>
    execFile(process.execPath, args, (error, out, said) => {
      if (error) return failed(new Error(said));
      const told = JSON.parse(out);
      done({ isError: Boolean(told.isError), ...told.structuredContent, words: told.content?.[0]?.text });
    }),
  );
}

await report('@modelcontextprotocol/inspector', {
  async answer() {
    same((await call('shop', { message: 'hello' })).text, 'You said hello.');
  },
  stream: absent('its command line shows no progress; `watch` has the events'),
  tools: absent('clients of MCP have no tools of their own'),
  structured: absent('a call brings no schema; `submit` takes `output_schema` as an object, which its command line cannot write'),
  image: absent('the arguments of the tool are text'),
  async continue() {
    const first = await call('shop', { message: 'hello' });
    const then = await call('shop', { message: 'everything', session: first.session });
    same(then.text, 'user: hello | assistant: You said hello. | user: everything');
  },
  async failure() {
    const failed = await call('shop', { message: 'fail' });
    same([failed.isError, failed.words.includes('the model refuses')], [true, true]);
  },
  async cancel() {
    const begun = await call('shop', { message: 'linger', wait_s: 0 });
    await call('cancel', { turn_id: begun.turn_id });
    same(await ended(begun.turn_id), 'cancelled');
  },
  async approval() {
    const parked = await call('shop', { message: 'refund' });
    const [open] = parked.waits_for;
    await call('approve', { approval_id: open.approval_id });
    same((await call('result', { turn_id: parked.turn_id, wait_s: 30 })).text, 'Seen paid back.');
  },
});
