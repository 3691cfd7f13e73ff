"""What a model is asked with: history, memory and tools that fit its window; and what keeps the history short."""
