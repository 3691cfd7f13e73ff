// npm `ai` with `@ai-sdk/openai`: one of its two wires, as `wireOf` says.
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai';

async function reportWire(wireOf) {
  const model = wireOf(createOpenAI({ baseURL: `${url}/v1`, apiKey: key }));
  const ask = (prompt, more) => generateText({ model, prompt, maxRetries: 0, ...more });
  const user = content => ({ role: 'user', content });
  await report('@ai-sdk/openai', {
    async answer() {
      same((await ask('hello')).text, 'You said hello.');
    },
    async stream() {
      const pieces = [];
      for await (const piece of streamText({ model, prompt: 'story', maxRetries: 0 }).textStream) pieces.push(piece);
      same([pieces.join(''), pieces.length > 1], [STORY, true]);
    },
    async tools() {
      const execute = async ({ place }) => `rain in ${place}`;
      const weather = tool({ description: 'Tell the weather.', inputSchema: jsonSchema(PLACE), execute });
      const done = await ask('weather', { tools: { weather }, stopWhen: stepCountIs(3) });
      same(done.text, 'Seen rain in Oslo.');
    },
    async structured() {
      const done = await ask('person', { output: Output.object({ schema: jsonSchema(PERSON) }) });
      same(done.output, { name: 'Bob', age: 7 });
    },
    async image() {
      const bytes = Buffer.from(PNG, 'base64');
      const content = [{ type: 'text', text: 'look' }, { type: 'file', data: bytes, mediaType: 'image/png' }];
      same((await generateText({ model, messages: [user(content)], maxRetries: 0 })).text, SEEN);
    },
    async continue() {
      const first = await ask('hello');
      const messages = [user('hello'), ...first.response.messages, user('everything')];
      const then = await generateText({ model, messages, maxRetries: 0 });
      same(then.text, 'user: hello | assistant: You said hello. | user: everything');
    },
    async failure() {
      await raised(() => ask('fail'), 'the model refuses');
    },
    async cancel() {
      // Aborting stops reading; the turn is cancelled by the gateway's own route.
      const abort = new AbortController();
      const reading = raised(() => ask('linger', { abortSignal: abort.signal }));
      await running();
      abort.abort();
      await cancelRunning();
      await reading;
    },
    async approval() {
      const [done] = await Promise.all([ask('refund'), approveOne()]);
      same(done.text, 'Seen paid back.');
    },
  });
}
