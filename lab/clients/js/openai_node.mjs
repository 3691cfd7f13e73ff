// npm `openai` in Node: chat completions and responses.
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const user = content => [{ role: 'user', content }];
const chat = (content, more) => client.chat.completions.create({ model: 'shop', messages: user(content), ...more });
const respond = (input, more) => client.responses.create({ model: 'shop', input, ...more });

await report('openai', {
  async answer() {
    same((await chat('hello')).choices[0].message.content, 'You said hello.');
    same((await respond('hello')).output_text, 'You said hello.');
  },
  async stream() {
    const pieces = [];
    for await (const chunk of await chat('story', { stream: true })) pieces.push(chunk.choices[0]?.delta?.content ?? '');
    same([pieces.join(''), pieces.length > 1], [STORY, true]);
    const deltas = [];
    for await (const event of await respond('story', { stream: true }))
      if (event.type === 'response.output_text.delta') deltas.push(event.delta);
    same([deltas.join(''), deltas.length > 1], [STORY, true]);
  },
  async tools() {
    const run = async ({ place }) => `rain in ${place}`;
    const made = { name: 'weather', parse: JSON.parse, parameters: PLACE, function: run };
    const tools = [{ type: 'function', function: made }];
    const runner = client.chat.completions.runTools({ model: 'shop', messages: user('weather'), tools });
    same(await runner.finalContent(), 'Seen rain in Oslo.');
    const named = [{ type: 'function', name: 'weather', parameters: PLACE, strict: true }];
    const first = await respond('weather', { tools: named });
    const output = [{ type: 'function_call_output', call_id: first.output.at(-1).call_id, output: 'rain' }];
    const rest = await respond(output, { previous_response_id: first.id, tools: named });
    same(rest.output_text, 'Seen rain.');
  },
  async structured() {
    const response_format = { type: 'json_schema', json_schema: { name: 'person', schema: PERSON, strict: true } };
    const parsed = await client.chat.completions.parse({ model: 'shop', messages: user('person'), response_format });
    same(JSON.parse(parsed.choices[0].message.content), { name: 'Bob', age: 7 });
    const text = { format: { type: 'json_schema', name: 'person', schema: PERSON, strict: true } };
    same(JSON.parse((await respond('person', { text })).output_text), { name: 'Bob', age: 7 });
  },
  async image() {
    const parts = [{ type: 'text', text: 'look' }, { type: 'image_url', image_url: { url: PICTURE } }];
    same((await chat(parts)).choices[0].message.content, SEEN);
    const content = [{ type: 'input_text', text: 'look' }, { type: 'input_image', image_url: PICTURE, detail: 'auto' }];
    same((await respond([{ role: 'user', content }])).output_text, SEEN);
  },
  async continue() {
    const first = await respond('hello');
    const then = await respond('everything', { previous_response_id: first.id });
    same(then.output_text, 'user: hello | assistant: You said hello. | user: everything');
    const messages = [...user('hello'), { role: 'assistant', content: 'Hi.' }, ...user('everything')];
    const told = await client.chat.completions.create({ model: 'shop', messages });
    same(told.choices[0].message.content, 'user: hello | assistant: Hi. | user: everything');
  },
  async failure() {
    const error = await raised(() => chat('fail'), 'the model refuses');
    same(error instanceof OpenAI.InternalServerError, true);
    await raised(async () => {
      for await (const _ of await chat('fail', { stream: true }));
    }, 'the model refuses');
    const begun = await respond('fail', { background: true });
    same(await ended(begun.id.slice(5)), 'failed');
    same((await client.responses.retrieve(begun.id)).status, 'failed');
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
