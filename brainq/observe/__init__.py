"""Watching: one logger factory. What is logged never holds prompts, arguments or results."""
