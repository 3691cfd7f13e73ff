// npm `openai` as a page has it. Its requests are sent as a browser does: a preflight, which must allow what follows.
import OpenAI from 'openai';

const ORIGIN = 'http://page.example';
const SIMPLE = new Set(['accept', 'accept-language', 'content-language']);
let preflights = 0;

async function browserFetch(input, init = {}) {
  const request = new Headers(init.headers);
  const names = [...request.keys()].filter(name => !SIMPLE.has(name)).sort();
  const method = (init.method ?? 'GET').toUpperCase();
  const allowed = await fetch(input, {
    method: 'OPTIONS',
    headers: {
      Origin: ORIGIN,
      'Access-Control-Request-Method': method,
      'Access-Control-Request-Headers': names.join(','),
    },
  });
  preflights += 1;
  const given = (allowed.headers.get('access-control-allow-headers') ?? '').toLowerCase().split(/\s*,\s*/);
  const refused = names.filter(name => !given.includes(name) && !given.includes('*'));
  if (!allowed.ok || refused.length) throw new TypeError(`the preflight is refused: ${allowed.status} ${refused}`);
  const methods = (allowed.headers.get('access-control-allow-methods') ?? '').split(/\s*,\s*/);
  if (!['GET', 'POST', 'HEAD', ...methods].includes(method)) throw new TypeError(`${method} is not allowed`);
  request.set('Origin', ORIGIN);
  const answer = await fetch(input, { ...init, headers: request });
  if (answer.headers.get('access-control-allow-origin') !== ORIGIN) throw new TypeError('the answer is not for this page');
  return answer;
}

const client = new OpenAI({
  baseURL: `${url}/v1`,
  apiKey: key,
  maxRetries: 0,
  dangerouslyAllowBrowser: true,
  fetch: browserFetch,
});
const user = content => [{ role: 'user', content }];
const chat = (content, more, options) =>
  client.chat.completions.create({ model: 'shop', messages: user(content), ...more }, options);
const respond = (input, more) => client.responses.create({ model: 'shop', input, ...more });

await report('openai', {
  async answer() {
    const named = { headers: { 'X-Session-ID': 'page-1' } };
    same((await chat('hello', {}, named)).choices[0].message.content, 'You said hello.');
    same(preflights, 1);
  },
  async stream() {
    const pieces = [];
    for await (const chunk of await chat('story', { stream: true })) pieces.push(chunk.choices[0]?.delta?.content ?? '');
    same([pieces.join(''), pieces.length > 1], [STORY, true]);
  },
  async tools() {
    const named = [{ type: 'function', name: 'weather', parameters: PLACE, strict: true }];
    const first = await respond('weather', { tools: named });
    const output = [{ type: 'function_call_output', call_id: first.output.at(-1).call_id, output: 'rain' }];
    const rest = await respond(output, { previous_response_id: first.id, tools: named });
    same(rest.output_text, 'Seen rain.');
  },
  async structured() {
    const text = { format: { type: 'json_schema', name: 'person', schema: PERSON, strict: true } };
    same(JSON.parse((await respond('person', { text })).output_text), { name: 'Bob', age: 7 });
  },
  async image() {
    const content = [{ type: 'input_text', text: 'look' }, { type: 'input_image', image_url: PICTURE, detail: 'auto' }];
    same((await respond([{ role: 'user', content }])).output_text, SEEN);
  },
  async continue() {
    const first = await respond('hello');
    const then = await respond('everything', { previous_response_id: first.id });
    same(then.output_text, 'user: hello | assistant: You said hello. | user: everything');
  },
  async failure() {
    const error = await raised(() => chat('fail'), 'the model refuses');
    same(error instanceof OpenAI.InternalServerError, true);
  },
  async cancel() {
    const begun = await respond('linger', { background: true });
    await client.responses.cancel(begun.id);
    same(await ended(begun.id.slice(5)), 'cancelled');
  },
  async approval() {
    const [done] = await Promise.all([respond('refund'), approveOne()]);
    same(done.output_text, 'Seen paid back.');
  },
});
