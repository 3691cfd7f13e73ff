"""The UI message stream of the AI SDK: what `useChat` speaks."""
