// `createOpenAI().chat()`: chat completions.
await reportWire(openai => openai.chat("shop"));
