"""OpenAI's wires: chat completions, responses and models, each a fold over a turn's events; see docs/openai.md."""
