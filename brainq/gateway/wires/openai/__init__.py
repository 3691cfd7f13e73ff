"""OpenAI's wires: chat completions, responses and models. Each is a fold over a turn's events; docs/wires/openai.md."""
