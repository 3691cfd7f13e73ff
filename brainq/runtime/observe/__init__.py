"""Observation: logs, metrics and traces. They never hold prompts, arguments or results by default."""
