"""OpenAI's two APIs, chat completions and Responses, and the servers that implement them."""
