// `createOpenAI()` as it is: responses.
await reportWire(openai => openai("shop"));
