"""The request to a model: history, memory and tools within its context window, and the compaction of long histories."""
