// OpenAI's npm client against a gateway: a stream, a tool of its own over two requests, a response taken up again, an error.
import OpenAI from "openai";

const [baseURL, apiKey] = process.argv.slice(-2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const said = {};

const stream = await client.chat.completions.create({
  model: "shop",
  messages: [{ role: "user", content: "story" }],
  stream: true,
});
said.story = "";
for await (const chunk of stream) said.story += chunk.choices[0]?.delta?.content ?? "";

const runner = client.chat.completions.runTools({
  model: "shop",
  messages: [{ role: "user", content: "weather" }],
  tools: [
    {
      type: "function",
      function: {
        name: "weather",
        parse: JSON.parse,
        parameters: { type: "object", properties: { place: { type: "string" } } },
        function: async ({ place }) => `rain in ${place}`,
      },
    },
  ],
});
said.weather = await runner.finalContent();

const begun = await client.responses.create({ model: "shop", input: "story", background: true });
said.events = [];
for await (const event of await client.responses.retrieve(begun.id, { stream: true, starting_after: 1 }))
  said.events.push(event.sequence_number);
said.response = (await client.responses.retrieve(begun.id)).output_text;

try {
  await client.chat.completions.create({ model: "gpt-5", messages: [{ role: "user", content: "x" }] });
} catch (error) {
  said.error = [error.constructor.name, error.code];
}
console.log(JSON.stringify(said));
